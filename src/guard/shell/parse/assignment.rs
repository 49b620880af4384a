//! Assignments: before a program, and after `declare` and its like.

use super::Read;
use super::cursor::{Parser, begins_name, is_break};
use super::parts::Parts;
use super::word::Stop;
use crate::guard::shell::syntax::{Assignment, PartKind, Value, Why, Word};

/// The builtins after which `name=(..)` is a word.
const DECLARING: &[&str] = &["alias", "declare", "export", "local", "readonly", "typeset", "eval", "let"];

/// Whether arrays may stand in the words after a program, by its source.
pub(super) fn declares(program: &str) -> bool {
    DECLARING.contains(&program)
}

impl Parser<'_> {
    /// The assignment that begins here, if one does.
    pub(super) fn assignment(&mut self) -> Read<Option<Assignment>> {
        let Some(target) = self.assigned()? else { return Ok(None) };
        let value = if self.peek() == Some(b'(') { Value::Array(self.array()?) } else { Value::Scalar(self.value()?) };
        self.refuse_more(&value)?;
        let Target { name, subscript, append, start } = target;
        Ok(Some(Assignment { name, subscript, append, value, span: self.span(start..self.at) }))
    }

    /// The word that begins here after `declare` and its like.
    pub(super) fn declared(&mut self) -> Read<Word> {
        self.peek();
        let start = self.at;
        let Some(name) = self.array_name() else {
            self.at = start;
            return self.word(Stop::Word);
        };
        let mut parts = Parts::default();
        parts.push(self, PartKind::Text(name), start..self.at, false);
        let from = self.at;
        let elements = Value::Array(self.array()?);
        self.refuse_more(&elements)?;
        let Value::Array(elements) = elements else { return Err(self.unexpected()) };
        parts.push(self, PartKind::Array(elements), from..self.at, false);
        Ok(parts.word(self, start..self.at))
    }

    /// `name=` or `name+=`, if a `(` follows. Otherwise the place means nothing.
    fn array_name(&mut self) -> Option<String> {
        self.peek().filter(|byte| begins_name(*byte))?;
        let mut name = self.name();
        name.push_str(if self.take(b"+") { "+=" } else { "=" });
        (self.take(b"=") && self.peek() == Some(b'(')).then_some(name)
    }

    /// Moves past `name=` and its like. Where none begins, the place stays.
    fn assigned(&mut self) -> Read<Option<Target>> {
        if !self.peek().is_some_and(begins_name) {
            return Ok(None);
        }
        let start = self.at;
        let name = self.name();
        let from = self.at;
        let subscript = if self.take(b"[") { Some(self.deeper(Self::subscript)?) } else { None };
        let append = self.peek_second() == Some(b'=') && self.take(b"+");
        if self.take(b"=") {
            return Ok(Some(Target { name, subscript, append, start }));
        }
        if subscript.is_some() && !self.text[from..self.at].bytes().all(is_plain) {
            return Err(self.refuse_since(start, Why::Ambiguous));
        }
        self.at = start;
        Ok(None)
    }

    /// The text after `=`; it may be empty.
    fn value(&mut self) -> Read<Word> {
        if self.at_break() {
            return Ok(Word { span: self.span(self.at..self.at), parts: Vec::new() });
        }
        self.word(Stop::Word)
    }

    /// `(..)` after `name=`.
    fn array(&mut self) -> Read<Vec<Word>> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b')') => break,
                // Shells differ in where the body of a here-document begins.
                Some(b'\n') if self.documents.is_waiting() => return Err(self.refuse(Why::Ambiguous)),
                Some(b'\n') => self.at += 1,
                Some(b'[') => elements.push(self.deeper(Self::element)?),
                _ => elements.push(self.word(Stop::Word)?),
            }
        }
        self.at += 1;
        Ok(elements)
    }

    /// `[..]=..` in an array.
    fn element(&mut self) -> Read<Word> {
        let (start, mut parts) = (self.at, Parts::default());
        parts.text(self, start..start + 1, false);
        self.at += 1;
        parts.append(self.subscript()?);
        parts.text(self, self.at - 1..self.at, false);
        self.unquoted(&mut parts, Stop::Word)?;
        Ok(parts.word(self, start..self.at))
    }

    /// Refuses text that goes on directly after an array.
    fn refuse_more(&mut self, value: &Value) -> Read<()> {
        let more = matches!(value, Value::Array(_)) && !self.at_break();
        if more { Err(self.refuse(Why::Ambiguous)) } else { Ok(()) }
    }
}

/// What is assigned to.
struct Target {
    name: String,
    subscript: Option<Word>,
    append: bool,
    start: usize,
}

/// Whether a byte of a subscript means the same in an ordinary word.
fn is_plain(byte: u8) -> bool {
    !is_break(byte) && !matches!(byte, b'\'' | b'"' | b'\\' | b'`' | b'$')
}
