//! Which command begins here; simple commands, functions, `coproc`.

use super::Read;
use super::assignment::declares;
use super::cursor::Parser;
use super::reserved::Reserved;
use super::word::{Stop, is_control};
use crate::guard::shell::syntax::{Assignment, Command, Kind, PartKind, Redirect, Why, Word};

impl Parser<'_> {
    /// The command that begins here. `time` may be a program in some places.
    pub(super) fn command(&mut self, program_time: bool) -> Read<Command> {
        self.count()?;
        self.blanks();
        let start = self.at;
        if let Some(kind) = self.compound()? {
            let redirects = self.redirects()?;
            return Ok(Command { kind, redirects, span: self.span(start..self.at) });
        }
        match self.reserved() {
            Some(Reserved::Function) => self.function_word(),
            Some(Reserved::Coproc) => self.coprocess(),
            Some(Reserved::Time) if program_time => self.simple(start, false),
            Some(_) => Err(self.unexpected()),
            None => self.simple(start, false),
        }
    }

    /// A compound command with its redirections; it has to be one.
    fn compound_command(&mut self) -> Read<Command> {
        self.blanks();
        let start = self.at;
        let Some(kind) = self.compound()? else { return Err(self.unexpected()) };
        let redirects = self.redirects()?;
        Ok(Command { kind, redirects, span: self.span(start..self.at) })
    }

    /// A simple command, or a function without `function`. After `coproc` its first word may be the name of a compound command.
    fn simple(&mut self, start: usize, named: bool) -> Read<Command> {
        let mut simple = Simple { named, end: self.at, ..Simple::default() };
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
            } else if self.at_break() {
                break;
            } else if let Some(assignment) = if simple.words.is_empty() { self.assignment()? } else { None } {
                simple.assignments.push(assignment);
            } else if let Some(other) = self.next_word(&mut simple, start)? {
                return Ok(other);
            }
            simple.end = self.at;
        }
        self.finish(simple, start)
    }

    /// Takes a word of a simple command. If it is a name after all, that of a function or coprocess: the whole command.
    fn next_word(&mut self, simple: &mut Simple, start: usize) -> Read<Option<Command>> {
        if !simple.words.is_empty() {
            let word = if simple.array { self.declared()? } else { self.word(Stop::Word)? };
            simple.words.push(word);
            return Ok(None);
        }
        let from = self.at;
        let word = self.word(Stop::Program)?;
        if word.parts.iter().any(|part| matches!(&part.kind, PartKind::Text(text) if text.chars().any(is_control))) {
            return Err(self.refuse_since(from, Why::Control));
        }
        simple.array = declares(&self.text[from..self.at]);
        let end = self.at;
        self.blanks();
        let only = simple.assignments.is_empty() && simple.redirects.is_empty();
        if only && simple.named && self.at_compound() {
            return self.compound_command().map(Some);
        }
        if only && self.peek() == Some(b'(') {
            let name = self.text[from..end].to_owned();
            self.parentheses()?;
            return self.function(name, start).map(Some);
        }
        self.at = end;
        simple.words.reserve_exact(1);
        simple.words.push(word);
        Ok(None)
    }

    fn finish(&mut self, simple: Simple, start: usize) -> Read<Command> {
        let Simple { assignments, words, redirects, end, .. } = simple;
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command { kind: Kind::Simple { assignments, words }, redirects, span: self.span(start..end) })
    }

    /// `()` of a function.
    fn parentheses(&mut self) -> Read<()> {
        self.expect(b"(")?;
        self.expect(b")")
    }

    /// The body of a function.
    fn function(&mut self, name: String, start: usize) -> Read<Command> {
        self.newlines()?;
        let body = Box::new(self.compound_command()?);
        Ok(Command { kind: Kind::Function { name, body }, redirects: Vec::new(), span: self.span(start..self.at) })
    }

    /// `function NAME`, with or without `()`.
    fn function_word(&mut self) -> Read<Command> {
        let start = self.at;
        self.take(b"function");
        self.blanks();
        let from = self.at;
        self.word(Stop::Program)?;
        let name = self.text[from..self.at].to_owned();
        let end = self.at;
        self.blanks();
        // `((` and `( ls )` are bodies.
        if self.take(b"(") {
            self.blanks();
            if !self.take(b")") {
                self.at = end;
            }
        }
        self.function(name, start)
    }

    /// `coproc`, with or without a name.
    fn coprocess(&mut self) -> Read<Command> {
        let start = self.at;
        self.take(b"coproc");
        self.blanks();
        let command = match self.reserved() {
            _ if self.at_compound() => self.compound_command()?,
            Some(word) if word != Reserved::Time => return Err(self.unexpected()),
            _ => self.simple(self.at, true)?,
        };
        Ok(Command { kind: Kind::Coprocess(Box::new(command)), redirects: Vec::new(), span: self.span(start..self.at) })
    }

    /// Whether a compound command begins here.
    fn at_compound(&mut self) -> bool {
        if self.peek() == Some(b'(') {
            return true;
        }
        match self.reserved() {
            Some(Reserved::Function | Reserved::Coproc | Reserved::Time | Reserved::Not | Reserved::Misplaced) | None => false,
            Some(word) => !word.closes(),
        }
    }
}

/// A simple command while it is read.
#[derive(Default)]
struct Simple {
    assignments: Vec<Assignment>,
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// Whether the first word may be the name of a coprocess.
    named: bool,
    /// Whether arrays may stand among the words.
    array: bool,
    /// Where the last of it ends.
    end: usize,
}
