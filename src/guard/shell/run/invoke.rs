//! Simple commands: assignments, the program, what it runs.

use std::rc::Rc;

use super::super::field::{Field, Open};
use super::super::parse::parse;
use super::super::syntax::{Assignment, Base, Span, Value as Assigned, Word};
use super::super::wrapper::{self, Child, Folder};
use super::state::{Shell, Value};
use super::stream::Stream;
use super::{Cause, Flow, Invocation, Origins, Runner};

/// A program with its words.
pub(super) struct Call {
    pub(super) fields: Vec<Field>,
    /// Unknown words follow.
    pub(super) more: bool,
    /// Not even a function or builtin of the shell may stand for the program's name.
    pub(super) outside: bool,
}

impl Call {
    pub(super) fn new(fields: Vec<Field>) -> Self {
        Self { fields, more: false, outside: false }
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
                match fields.iter().any(|field| field.open == Open::Many || field.pattern) {
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
        let Call { mut fields, more, outside } = call;
        if more {
            fields.push(Field { from: shell.input.from().clone(), ..Field::unknown(Open::Many, at.clone()) });
        }
        let name = fields[0].base_name().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic())).map(str::to_owned);
        let Some(name) = name else {
            self.flow(&fields[0].from, "the name of a program", at);
            self.unclear(at, Cause::Program);
            return Stream::unknown(all_origins(&fields));
        };
        let plain = fields[0].literal() == Some(&name);
        let mut output = None;
        if plain && !outside {
            if let Some(function) = shell.functions.get(name.as_str()).map(Rc::clone) {
                self.called.insert(function.at.clone());
                let positional = shell.positional.take();
                shell.positional = known_words(&fields).then(|| fields.clone().into());
                output = Some(self.command(&function.body, shell));
                shell.positional = positional;
                shell.leaves = false;
            }
            self.builtin(&name, &fields, at, shell);
        }
        let children = wrapper::children(&fields);
        self.trace.invocations.push(Invocation {
            folder: shell.folder.clone(),
            input: shell.input.text().map(str::to_owned),
            wrapper: children.is_some(),
            fields: fields.clone(),
        });
        if children.is_none()
            && let Some(path) = fields[0].literal().filter(|path| path.contains('/') && self.is_written(path, shell))
        {
            let script = self.read(&Field::known(path, at.clone()), shell);
            return self.program_text(&script, &name, at, shell, Some(fields.into()));
        }
        let mut ran: Option<Stream> = None;
        for child in children.into_iter().flatten() {
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
        match child {
            Child::Command { mut words, assignments, more, folder } => {
                for word in words.iter_mut().filter(|word| word.open != Open::No) {
                    // Words that are taken from the input.
                    word.from.add(shell.input.from());
                }
                let moment = shell.now();
                for (name, value) in assignments {
                    let value = Value::Text(value);
                    self.setting(&name, &value, at, shell);
                    shell.assign(&name, value);
                }
                match folder {
                    Folder::Same => {}
                    Folder::Unknown => shell.folder = None,
                    Folder::Known(path) => self.change_folder(&path, shell),
                }
                let outside = !matches!(name, "command" | "builtin" | "exec");
                let output = self.invoke(Call { fields: words, more, outside: outside || name == "exec" }, shell);
                let (leaves, changed) = (shell.leaves, shell.folder.clone());
                shell.back_to(&moment);
                if name == "command" || name == "builtin" {
                    shell.folder = changed;
                    shell.leaves = leaves;
                }
                output
            }
            Child::Text { text, skip, positional, here } => {
                let positional = (!positional.is_empty()).then(|| positional.into());
                self.flow(&text.from, name, at);
                let Some(program) = text.literal().and_then(|text| text.get(skip..)) else {
                    self.unclear(&text.span, Cause::Runs(name.to_owned()));
                    return Stream::unknown(all_origins(fields));
                };
                self.nested(program, text.base(skip), positional, here, at, shell)
            }
            Child::Input { positional } => {
                let input = Rc::clone(&shell.input);
                let positional = (!positional.is_empty()).then(|| positional.into());
                self.program_text(&input, name, at, shell, positional)
            }
            Child::File { path, positional, here } => {
                let positional = (!positional.is_empty()).then(|| positional.into());
                match path.literal() {
                    None => {
                        self.flow(&path.from, name, at);
                        self.unclear(&path.span, Cause::Runs(name.to_owned()));
                        Stream::unknown(all_origins(fields))
                    }
                    Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-") => {
                        let input = Rc::clone(&shell.input);
                        self.program_text(&input, name, at, shell, positional)
                    }
                    Some(known) if self.is_written(known, shell) => {
                        let script = self.read(&path, shell);
                        match (here, script.text(), script.base()) {
                            (true, Some(text), Some(base)) => {
                                self.flow(script.from(), name, at);
                                self.nested(text, base, positional, true, at, shell)
                            }
                            _ => self.program_text(&script, name, at, shell, positional),
                        }
                    }
                    // A script of the user's: out of sight.
                    Some(_) => Stream::unknown(all_origins(fields)),
                }
            }
            Child::Unclear(field) => {
                let at = fields.get(field).map_or_else(|| at.clone(), |field| field.span.clone());
                self.unclear(&at, Cause::Runs(name.to_owned()));
                Stream::unknown(all_origins(fields))
            }
        }
    }

    /// Runs an input or a file as the program of another shell.
    fn program_text(&mut self, text: &Stream, name: &str, at: &Span, shell: &mut Shell, positional: Option<Rc<[Field]>>) -> Stream {
        self.flow(text.from(), name, at);
        match (text.text(), text.base()) {
            (Some(program), Some(base)) => self.nested(program, base, positional, false, at, shell),
            _ if text.is_outside() => Stream::empty(),
            _ => {
                self.unclear(at, Cause::Runs(name.to_owned()));
                Stream::unknown(text.from().clone())
            }
        }
    }

    /// Reads and runs program text, in this shell (`here`) or in another one that starts in the same folder.
    fn nested(&mut self, program: &str, base: Base, positional: Option<Rc<[Field]>>, here: bool, at: &Span, shell: &mut Shell) -> Stream {
        if !self.step(1 + program.len() / 16, at) {
            return Stream::unknown(Origins::default());
        }
        let parsed = parse(program, base, self.depth);
        let moment = shell.now();
        if !here || positional.is_some() {
            shell.positional = positional;
        }
        let output = self.deeper(at, |runner| runner.text(&parsed, shell));
        if here {
            shell.leaves = false;
        } else {
            shell.back_to(&moment);
        }
        output
    }

    fn flow(&mut self, from: &Origins, to: &str, at: &Span) {
        if from.len() > 0 {
            self.trace.flows.push(Flow { from: from.clone(), to: to.to_owned(), at: at.clone() });
        }
    }
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
