//! Simple commands: assignments, the program, what it runs.

use std::rc::Rc;

use super::super::field::{Field, Open};
use super::super::parse::parse;
use super::super::syntax::{Assignment, Base, Span, Value as Assigned, Word};
use super::super::wrapper::{self, Child, Folder, Scope};
use super::state::{Moment, Shell, Value};
use super::stream::Stream;
use super::{Cause, Flow, Invocation, Origins, Runner};

/// A program with its words.
pub(super) struct Call {
    pub(super) fields: Vec<Field>,
    /// Not even a function or builtin of the shell may stand for the program's name.
    pub(super) outside: bool,
}

impl Call {
    pub(super) fn new(fields: Vec<Field>) -> Self {
        Self { fields, outside: false }
    }
}

impl Runner<'_> {
    /// Runs a simple command; its output.
    pub(super) fn simple(&mut self, assignments: &[Assignment], words: &[Word], at: &Span, shell: &mut Shell) -> Stream {
        let fields = self.fields(words, shell);
        let mut before = Vec::new();
        for assignment in assignments {
            let value = self.assigned(assignment, shell);
            self.setting(&assignment.name, &value, at, shell);
            before.push((assignment.name.as_str(), shell.value(&assignment.name).cloned()));
            shell.assign(&assignment.name, value);
        }
        if words.is_empty() {
            return Stream::empty();
        }
        let output = self.invoke(Call::new(fields), shell);
        for (name, value) in before {
            // It was for this command only.
            shell.assign(name, value.unwrap_or_else(|| Value::unknown(Origins::default())));
        }
        output
    }

    fn assigned(&mut self, assignment: &Assignment, shell: &mut Shell) -> Value {
        let element = assignment.subscript.as_ref().map(|subscript| {
            self.evaluates = true;
            self.single(subscript, shell)
        });
        let value = match &assignment.value {
            Assigned::Scalar(word) => Value::Text(self.single(word, shell)),
            Assigned::Array(words) => {
                let fields = self.fields(words, shell);
                let odd = |field: &Field| field.open == Open::Many || field.pattern || field.text.starts_with('[');
                match fields.iter().any(odd) {
                    true => Value::unknown(Origins::default()),
                    false => Value::Array(fields),
                }
            }
        };
        match (element, assignment.append, shell.value(&assignment.name), value) {
            (None, false, _, value) => value,
            (None, true, Some(Value::Array(old)), Value::Array(new)) => Value::Array([old.clone(), new].concat()),
            (None, true, Some(Value::Text(old)), Value::Text(new)) if old.literal().is_some() => {
                let mut text = Stream::known(old.clone());
                text.append(Stream::known(new));
                Value::Text(text.whole(assignment.span.clone()))
            }
            (_, _, old, new) => {
                let mut from = old.map(Value::from).unwrap_or_default();
                from.add(&new.from());
                Value::unknown(from)
            }
        }
    }

    /// Runs a program with its words; its output.
    pub(super) fn invoke(&mut self, call: Call, shell: &mut Shell) -> Stream {
        let Some(program) = call.fields.first() else { return Stream::empty() };
        let at = program.span.clone();
        if !self.step(1 + call.fields.len(), &at) {
            return Stream::unknown(Origins::default());
        }
        self.deeper(&at, |runner| runner.follow(call, &at, shell))
    }

    fn follow(&mut self, call: Call, at: &Span, shell: &mut Shell) -> Stream {
        let Call { fields, outside } = call;
        let name = fields[0].base_name().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic())).map(str::to_owned);
        let Some(name) = name else {
            self.flow(&fields[0].from, "the name of a program", at);
            self.unclear(at, Cause::Program);
            return Stream::unknown(all_origins(&fields));
        };
        let plain = fields[0].literal() == Some(&name);
        let folder = shell.folder.clone();
        let (mut output, mut is_function) = (None, false);
        if plain && !outside {
            let moment = shell.now();
            let function = shell.functions.get(name.as_str()).map(Rc::clone);
            if let Some(function) = &function {
                self.called.insert(function.at.clone());
                shell.positional = known_words(&fields).then(|| fields.clone().into());
                output = Some(self.command(&function.body, shell));
                shell.positional = moment.positional();
                shell.leaves = false;
            }
            self.builtin(&name, &fields, at, shell);
            is_function = function.is_some();
            if is_function {
                // The function, or the command of that name; and some of its variables may have been its own.
                self.doubt(shell, &moment, at);
            }
        }
        let children = match fields[0].literal() {
            Some(_) => wrapper::children(&fields),
            None => {
                // Of a path the end is known: which program of that name it is, is not.
                let named = Field::known(fields[0].tail.as_str(), at.clone());
                wrapper::Children { known: false, ..wrapper::children(&[&[named], &fields[1..]].concat()) }
            }
        };
        self.trace.invocations.push(Invocation {
            folder,
            input: Rc::clone(&shell.input),
            wrapper: children.known || is_function,
            elsewhere: shell.elsewhere,
            fields: fields.clone(),
        });
        if children.list.is_empty()
            && let Some(path) = fields[0].literal().filter(|path| path.contains('/') && self.is_written(path, shell))
        {
            let script = self.read(&Field::known(path, at.clone()), shell);
            let moment = shell.now();
            let output = self.program_text(&script, &name, fields, Scope::Apart, at, shell);
            shell.back_to(&moment);
            return output;
        }
        let mut ran: Option<Stream> = None;
        for child in children.list {
            let child = self.child(child, &name, &fields, at, shell);
            match &mut ran {
                None => ran = Some(child),
                Some(output) => output.append(child),
            }
        }
        match (output, ran) {
            (Some(mut output), _) => {
                // The program of the same name may run as well.
                output.append(Stream::unknown(all_origins(&fields)));
                output
            }
            (None, Some(ran)) => ran,
            (None, None) => self.output(&name, &fields, shell),
        }
    }

    /// Runs what a program runs of its words.
    fn child(&mut self, child: Child, name: &str, fields: &[Field], at: &Span, shell: &mut Shell) -> Stream {
        let moment = shell.now();
        match child {
            Child::Command { words, assignments, folder, fed } => {
                // Every level copies the words that are left.
                if !self.step(3 * words.len(), at) {
                    return Stream::unknown(Origins::default());
                }
                let here = matches!(name, "command" | "builtin") && folder == Folder::Same;
                self.enter(&folder, shell);
                for (name, value) in assignments {
                    let value = Value::Text(value);
                    self.setting(&name, &value, at, shell);
                    shell.assign(&name, value);
                }
                let words = if fed { fed_by(words, shell.input.from()) } else { words };
                if fed {
                    shell.input = Rc::new(Stream::unknown(Origins::default()));
                }
                let output = self.invoke(Call { fields: words, outside: !here }, shell);
                if here {
                    shell.input = moment.input();
                } else {
                    shell.back_to(&moment);
                }
                output
            }
            Child::Text { text, positional, scope, folder } => {
                self.flow(&text.from, name, at);
                let Some(program) = text.literal() else {
                    self.unclear(&text.span, Cause::Runs(name.to_owned()));
                    return Stream::unknown(all_origins(fields));
                };
                self.enter(&folder, shell);
                let output = self.nested(program, text.base(0), positional, scope, at, shell);
                self.leave(scope, &moment, shell);
                output
            }
            Child::Input { positional, scope, folder } => {
                let program = Rc::clone(&shell.input);
                shell.input = Rc::new(Stream::empty());
                self.enter(&folder, shell);
                let output = self.program_text(&program, name, positional, scope, at, shell);
                self.leave(scope, &moment, shell);
                output
            }
            Child::File { path, positional, scope, folder } => {
                let Some(known) = path.literal() else {
                    self.flow(&path.from, name, at);
                    self.unclear(&path.span, Cause::Runs(name.to_owned()));
                    return Stream::unknown(all_origins(fields));
                };
                let is_input = matches!(known, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
                if !is_input && !self.is_written(known, shell) {
                    // A script of the user's: out of sight.
                    return Stream::unknown(all_origins(fields));
                }
                let program = self.read(&path, shell);
                self.enter(&folder, shell);
                let output = self.program_text(&program, name, positional, scope, at, shell);
                self.leave(scope, &moment, shell);
                output
            }
            Child::Unclear(span) => {
                self.unclear(&span, Cause::Runs(name.to_owned()));
                Stream::unknown(all_origins(fields))
            }
        }
    }

    /// Goes where a child runs.
    fn enter(&mut self, folder: &Folder, shell: &mut Shell) {
        match folder {
            Folder::Same => {}
            Folder::Known(path) => self.change_folder(path, shell),
            Folder::Unknown => shell.folder = None,
            Folder::Elsewhere => {
                shell.folder = None;
                shell.elsewhere = true;
            }
        }
    }

    fn leave(&mut self, scope: Scope, moment: &Moment, shell: &mut Shell) {
        match scope {
            Scope::Here => shell.input = moment.input(),
            Scope::Apart | Scope::Later => shell.back_to(moment),
        }
    }

    /// Runs an input or a file as program text.
    fn program_text(
        &mut self,
        text: &Stream,
        name: &str,
        positional: Vec<Field>,
        scope: Scope,
        at: &Span,
        shell: &mut Shell,
    ) -> Stream {
        self.flow(text.from(), name, at);
        match (text.text(), text.base()) {
            (Some(program), Some(base)) => self.nested(program, base, positional, scope, at, shell),
            _ => {
                self.unclear(at, Cause::Runs(name.to_owned()));
                Stream::unknown(text.from().clone())
            }
        }
    }

    /// Reads and runs program text.
    fn nested(
        &mut self,
        program: &str,
        base: Base,
        positional: Vec<Field>,
        scope: Scope,
        at: &Span,
        shell: &mut Shell,
    ) -> Stream {
        if !self.step(1 + program.len() / 4, at) {
            return Stream::unknown(Origins::default());
        }
        let parsed = parse(program, base, self.depth);
        if scope == Scope::Later {
            let mut later = shell.later();
            return self.deeper(at, |runner| runner.text(&parsed, &mut later));
        }
        let before = shell.positional.clone();
        let own = scope == Scope::Apart || !positional.is_empty();
        if own {
            shell.positional = known_words(&positional).then(|| positional.into());
        }
        let output = self.deeper(at, |runner| runner.text(&parsed, shell));
        if own {
            shell.positional = before;
        }
        shell.leaves = false;
        output
    }

    fn flow(&mut self, from: &Origins, to: &str, at: &Span) {
        if from.len() > 0 {
            self.trace.flows.push(Flow { from: from.clone(), to: to.to_owned(), at: at.clone() });
        }
    }
}

/// Words of which the open ones hold what was read from an input.
fn fed_by(mut words: Vec<Field>, from: &Origins) -> Vec<Field> {
    words.iter_mut().filter(|word| word.open != Open::No).for_each(|word| word.from.add(from));
    words
}

/// Whether every word is one word.
fn known_words(fields: &[Field]) -> bool {
    fields.iter().all(|field| field.open != Open::Many && !field.pattern)
}

/// The programs whose output stands in some words.
pub(super) fn all_origins(fields: &[Field]) -> Origins {
    fields.iter().fold(Origins::default(), |mut all, field| {
        all.add(&field.from);
        all
    })
}
