//! Lists, pipelines and compound commands.

use std::rc::Rc;

use super::super::field::Field;
use super::super::syntax::{Command, Item, Kind, List, Redirect, RedirectKind, Span, Then, Word};
use super::state::{Function, Shell, Value};
use super::stream::Stream;
use super::{Cause, Origins, Runner};

/// The most values of a loop for which its body is followed one by one.
const MAX_ROUNDS: usize = 16;

/// A folder that may be the current one.
type Folder = Option<Rc<str>>;

impl Runner<'_> {
    /// Runs a list; its output.
    pub(super) fn list(&mut self, list: &List, shell: &mut Shell) -> Stream {
        let mut output = Stream::empty();
        let mut rest = &list.0[..];
        while !rest.is_empty() {
            let length =
                rest.iter().position(|item| matches!(item.then, Then::Next | Then::Background)).map_or(rest.len(), |at| at + 1);
            let (chain, after) = rest.split_at(length);
            rest = after;
            if chain[length - 1].then == Then::Background {
                let moment = shell.now();
                output.append(self.chain(chain, shell));
                shell.back_to(&moment);
            } else {
                output.append(self.chain(chain, shell));
            }
        }
        output
    }

    /// Runs pipelines that `&&` and `||` join. All but the first may run or not.
    fn chain(&mut self, chain: &[Item], shell: &mut Shell) -> Stream {
        // The folders with which the chain may end, and those of a failure that the next `||` takes up.
        let (mut ends, mut failures): (Vec<Folder>, Vec<Folder>) = (Vec::new(), Vec::new());
        let mut output = self.pipeline(&chain[0], shell);
        let first = shell.now();
        for (item, next) in chain.iter().zip(&chain[1..]) {
            let failed = shell.after_failure.take().unwrap_or_else(|| shell.folder.clone());
            let left = std::mem::take(&mut shell.leaves);
            match item.then {
                Then::Or => {
                    if !left {
                        ends.push(shell.folder.clone());
                    }
                    failures.push(failed);
                    shell.folder = agreed(&failures);
                    failures.clear();
                }
                Then::And | Then::Next | Then::Background => failures.push(failed),
            }
            output.append(self.pipeline(next, shell));
        }
        let left = std::mem::take(&mut shell.leaves);
        let failed = shell.after_failure.take();
        let folder = shell.folder.clone();
        if chain.len() > 1 {
            self.doubt(shell, &first, &chain[0].commands[0].span);
        }
        if !left || ends.is_empty() {
            ends.push(folder);
            // With `set -e` a failure of the last one ends the shell.
            if !shell.stops_on_failure {
                ends.extend(failed);
            }
        }
        ends.append(&mut failures);
        shell.folder = agreed(&ends);
        shell.leaves = left && chain.len() == 1;
        output
    }

    pub(super) fn doubt(&mut self, shell: &mut Shell, moment: &super::state::Moment, at: &Span) {
        let changes = shell.doubt_since(moment);
        self.step(changes, at);
    }

    fn pipeline(&mut self, item: &Item, shell: &mut Shell) -> Stream {
        let [only] = &item.commands[..] else {
            let mut piped: Option<Stream> = None;
            for command in &item.commands {
                let moment = shell.now();
                if let Some(stream) = piped.take() {
                    shell.input = Rc::new(stream);
                }
                piped = Some(self.command(command, shell));
                shell.back_to(&moment);
            }
            return piped.unwrap_or_default();
        };
        shell.after_failure = None;
        self.command(only, shell)
    }

    /// Runs one command; what it writes to its standard output.
    pub(super) fn command(&mut self, command: &Command, shell: &mut Shell) -> Stream {
        if !self.step(1, &command.span) {
            return Stream::unknown(Origins::default());
        }
        self.deeper(&command.span, |runner| {
            let input = Rc::clone(&shell.input);
            let target = runner.redirects(&command.redirects, shell);
            let output = runner.kind(command, shell);
            // `exec` without a program keeps its redirections.
            let keeps = matches!(&command.kind, Kind::Simple { words, .. } if is_bare_exec(words));
            if !keeps {
                shell.input = input;
            }
            match target {
                Some(path) => {
                    runner.write(&path, output, shell);
                    Stream::empty()
                }
                None => output,
            }
        })
    }

    fn kind(&mut self, command: &Command, shell: &mut Shell) -> Stream {
        match &command.kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, &command.span, shell),
            Kind::Group(list) => self.list(list, shell),
            Kind::Subshell(list) => self.substitution(list, &command.span, shell),
            Kind::If { branches, otherwise } => {
                let mut output = Stream::empty();
                let before = shell.now();
                for (condition, body) in branches {
                    output.append(self.list(condition, shell));
                    output.append(self.branch(body, &command.span, shell));
                }
                if let Some(body) = otherwise {
                    output.append(self.branch(body, &command.span, shell));
                }
                self.doubt(shell, &before, &command.span);
                maybe(output)
            }
            Kind::Case { subject, arms } => {
                self.single(subject, shell);
                let mut output = Stream::empty();
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.single(pattern, shell);
                    }
                    output.append(self.branch(body, &command.span, shell));
                }
                maybe(output)
            }
            Kind::Loop { condition, body } => self.rounds(&command.span, shell, |runner, shell| {
                let mut output = runner.list(condition, shell);
                output.append(runner.list(body, shell));
                output
            }),
            Kind::ArithmeticFor { header, body } => {
                self.arithmetic(header, shell);
                self.rounds(&command.span, shell, |runner, shell| runner.list(body, shell))
            }
            Kind::For { name, values, select, body } => {
                self.for_each(name, values.as_deref(), *select, body, &command.span, shell)
            }
            Kind::Arithmetic(text) => {
                self.arithmetic(text, shell);
                Stream::empty()
            }
            Kind::Condition(words) => {
                // `-eq`, `-v` and their like evaluate names.
                self.evaluates = true;
                for word in words {
                    self.single(word, shell);
                }
                Stream::empty()
            }
            Kind::Function { name, body } => {
                let function = Rc::new(Function { body: (**body).clone(), at: command.span.clone() });
                self.defined.push(Rc::clone(&function));
                shell.functions.insert(Rc::from(name.as_str()), function);
                Stream::empty()
            }
            Kind::Coprocess(body) => {
                let moment = shell.now();
                shell.input = Rc::new(Stream::unknown(Origins::default()));
                self.command(body, shell);
                shell.back_to(&moment);
                Stream::empty()
            }
        }
    }

    /// A list that may run or not.
    fn branch(&mut self, body: &List, at: &Span, shell: &mut Shell) -> Stream {
        let moment = shell.now();
        let output = self.list(body, shell);
        self.doubt(shell, &moment, at);
        shell.leaves = false;
        output
    }

    /// Something that runs any number of times: as it is at first, and once more with everything unknown that a round changes.
    fn rounds(&mut self, at: &Span, shell: &mut Shell, mut round: impl FnMut(&mut Self, &mut Shell) -> Stream) -> Stream {
        let moment = shell.now();
        let mut output = round(self, shell);
        self.doubt(shell, &moment, at);
        output.append(round(self, shell));
        self.doubt(shell, &moment, at);
        shell.leaves = false;
        maybe(output)
    }

    fn for_each(
        &mut self,
        name: &str,
        values: Option<&[Word]>,
        select: bool,
        body: &List,
        at: &Span,
        shell: &mut Shell,
    ) -> Stream {
        let values = match values {
            Some(words) => self.fields(words, shell),
            None => shell.positional.as_ref().map_or_else(
                || vec![Field::unknown(super::super::field::Open::Many, at.clone())],
                |words| words.iter().skip(1).cloned().collect(),
            ),
        };
        let single = |field: &Field| field.literal().is_some() && !select;
        if values.len() <= MAX_ROUNDS && values.iter().all(single) {
            let moment = shell.now();
            let mut output = Stream::empty();
            for value in values {
                shell.assign(name, Value::Text(value));
                output.append(self.list(body, shell));
                // The round may be left in its middle.
                self.doubt(shell, &moment, at);
                shell.leaves = false;
            }
            return output;
        }
        let mut from = Origins::default();
        values.iter().for_each(|value| from.add(&value.from));
        // What all values begin with, so that a value among known paths is one.
        let value = Value::unknown(from);
        self.rounds(at, shell, |runner, shell| {
            shell.assign(name, value.clone());
            runner.list(body, shell)
        })
    }

    /// Makes redirections; the file that takes the standard output, if one does.
    fn redirects(&mut self, redirects: &[Redirect], shell: &mut Shell) -> Option<Field> {
        let mut target = None;
        for redirect in redirects {
            let descriptor = redirect.descriptor.as_deref();
            if let Some(name) = descriptor.and_then(|name| name.strip_prefix('{')?.strip_suffix('}')) {
                shell.assign(name, Value::unknown(Origins::default()));
            }
            match &redirect.kind {
                RedirectKind::Read(word) => {
                    let path = self.single(word, shell);
                    let stream = self.read(&path, shell);
                    self.give(descriptor, stream, shell);
                }
                RedirectKind::HereDocument(body) => {
                    let text = self.single(body, shell);
                    self.give(descriptor, Stream::known(text), shell);
                }
                RedirectKind::HereString(word) => {
                    let stream = Stream::known(self.single(word, shell));
                    self.give(descriptor, stream.with_line_feed(), shell);
                }
                RedirectKind::Write(word) => {
                    let path = self.single(word, shell);
                    if descriptor.is_none_or(|descriptor| descriptor == "1") {
                        target = Some(path);
                    }
                }
                RedirectKind::WriteBoth(word) => target = Some(self.single(word, shell)),
                RedirectKind::Duplicate(word) => {
                    let source = self.single(word, shell);
                    if descriptor.is_some_and(|descriptor| descriptor == "0") || source.open != super::super::field::Open::No {
                        let stream = self.read(&Field::known(format!("/dev/fd/{}", source.text), word.span.clone()), shell);
                        self.give(descriptor, stream, shell);
                    }
                }
            }
        }
        target
    }

    /// Joins a text to a descriptor: 0 unless another is named.
    fn give(&mut self, descriptor: Option<&str>, stream: Stream, shell: &mut Shell) {
        match descriptor {
            None | Some("0") => shell.input = Rc::new(stream),
            Some(number) => drop(self.files.insert(format!("/dev/fd/{number}"), stream)),
        }
    }

    /// What a file holds.
    pub(super) fn read(&self, path: &Field, shell: &Shell) -> Stream {
        let Some(path_text) = path.literal() else { return Stream::unknown(path.from.clone()) };
        match path_text {
            "/dev/null" => Stream::empty(),
            "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => (*shell.input).clone(),
            path_text => {
                let known = Self::absolute(path_text, shell).and_then(|path| self.files.get(&path).cloned());
                known.unwrap_or_else(|| Stream::unknown(Origins::default()))
            }
        }
    }

    /// Whether the text says what a file holds, or whose output it is.
    pub(super) fn is_written(&self, path: &str, shell: &Shell) -> bool {
        Self::absolute(path, shell).is_some_and(|path| self.files.contains_key(&path))
    }

    /// Notes what a file holds from now on; after more than one write it may be either.
    pub(super) fn write_text(&mut self, path: &str, text: Stream, shell: &Shell) {
        let Some(path) = Self::absolute(path, shell) else { return };
        if path == "/dev/null" {
            return;
        }
        match self.files.entry(path) {
            std::collections::hash_map::Entry::Vacant(free) => drop(free.insert(text)),
            std::collections::hash_map::Entry::Occupied(mut taken) => {
                let mut from = taken.get().from().clone();
                from.add(text.from());
                *taken.get_mut() = Stream::unknown(from);
            }
        }
    }

    fn write(&mut self, path: &Field, text: Stream, shell: &Shell) {
        if let Some(path) = path.literal() {
            self.write_text(path, text, shell);
        }
    }

    fn absolute(path: &str, shell: &Shell) -> Option<String> {
        crate::guard::paths::resolve(shell.folder.as_deref(), path)
    }

    /// Notes that a name changes what the text says.
    pub(super) fn changes(&mut self, at: &Span, name: &str) {
        self.unclear(at, Cause::Changes(name.to_owned()));
    }
}

fn is_bare_exec(words: &[Word]) -> bool {
    use super::super::syntax::PartKind;
    matches!(words, [word] if matches!(&word.parts[..], [part] if matches!(&part.kind, PartKind::Text(text) if text == "exec")))
}

/// The folder, if there is only one.
fn agreed(folders: &[Folder]) -> Folder {
    let first = folders.first()?;
    if folders.iter().all(|folder| folder == first) { first.clone() } else { None }
}

/// An output that may be none, or another one as often as not.
fn maybe(output: Stream) -> Stream {
    if output.text() == Some("") { output } else { Stream::unknown(output.from().clone()) }
}
