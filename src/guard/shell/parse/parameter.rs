//! `${..}`.
//!
//! | after `${`                       | read as                                                    |
//! |----------------------------------|------------------------------------------------------------|
//! | a name, digits or one of `@*#?-$!` | the parameter                                            |
//! | `#` and a parameter, then `}`    | its length                                                 |
//! | `!` and a parameter              | what its value names; `${!x*}`, `${!x@}`, `${!x[@]}`: names |
//!
//! | after the parameter              | read as                                                    |
//! |----------------------------------|------------------------------------------------------------|
//! | `[..]`                           | a subscript                                                |
//! | `:-` `:=` `:?` `:+`, or without colon | a word that is used by condition                      |
//! | `@P`                             | the value as program text                                  |
//! | `#` `%` `/` `^` `,` `:` `@`      | a changed value                                            |
//!
//! Outside double quotes the words are unquoted text. Within them they are text as in double quotes, but for patterns, whose quotes count.

use super::Read;
use super::cursor::{Parser, begins_name};
use super::dollar::is_parameter;
use super::parts::Parts;
use super::quote::{Context, End};
use super::word::Stop;
use crate::guard::shell::syntax::{Operation, Parameter, PartKind, Why, Word};

impl Parser<'_> {
    /// The expansion after its `${`, and the `}`.
    pub(super) fn parameter(&mut self, context: Context) -> Read<Parameter> {
        let next = self.peek_second();
        let parameter = match self.peek() {
            Some(b'#') if next.is_some_and(|byte| begins_name(byte) || is_parameter(byte)) => self.length(context)?,
            Some(b'!') if next.is_some_and(|byte| begins_name(byte) || is_parameter(byte)) => self.indirect(context)?,
            _ => self.plain_parameter(context)?,
        };
        if self.take(b"}") { Ok(parameter) } else { Err(self.unexpected()) }
    }

    fn plain_parameter(&mut self, context: Context) -> Read<Parameter> {
        let (name, subscript) = self.subject()?;
        let operation = self.operation(context)?;
        Ok(Parameter { name, subscript, operation })
    }

    /// The name of a parameter and its subscript.
    fn subject(&mut self) -> Read<(String, Option<Box<Word>>)> {
        let name = match self.peek() {
            Some(byte) if begins_name(byte) => self.name(),
            Some(byte) if byte.is_ascii_digit() => self.name(),
            Some(byte) if is_parameter(byte) => {
                self.at += 1;
                char::from(byte).to_string()
            }
            _ => return Err(self.unexpected()),
        };
        let has_subscript = begins_name(name.as_bytes()[0]) && self.take(b"[");
        let subscript = if has_subscript { Some(Box::new(self.subscript()?)) } else { None };
        Ok((name, subscript))
    }

    /// The text of a subscript after its `[`, and the `]`.
    pub(super) fn subscript(&mut self) -> Read<Word> {
        let word = self.bracketed(b'[', b']')?;
        self.at += 1;
        Ok(word)
    }

    /// `${#x}`; also `${#-w}` and its like, where `#` is the parameter.
    fn length(&mut self, context: Context) -> Read<Parameter> {
        let start = self.at;
        self.take(b"#");
        let (name, subscript) = self.subject()?;
        if self.peek() == Some(b'}') {
            return Ok(Parameter { name, subscript, operation: Operation::Length });
        }
        if begins_name(name.as_bytes()[0]) || name.as_bytes()[0].is_ascii_digit() {
            return Err(self.unexpected());
        }
        self.at = start;
        self.plain_parameter(context)
    }

    /// `${!x}` and its like; also `${!-w}`, where `!` is the parameter.
    fn indirect(&mut self, context: Context) -> Read<Parameter> {
        let start = self.at;
        self.take(b"!");
        let (name, subscript) = self.subject()?;
        if !(begins_name(name.as_bytes()[0]) || name.as_bytes()[0].is_ascii_digit()) && self.peek() != Some(b'}') {
            self.at = start;
            return self.plain_parameter(context);
        }
        if self.take(b"*") || self.peek_second() == Some(b'}') && self.take(b"@") {
            return Ok(Parameter { name, subscript, operation: Operation::Changed(Vec::new()) });
        }
        // The tree has no place for words beside the value's evaluation.
        match self.operation(context)? {
            Operation::Value => Ok(Parameter { name, subscript, operation: Operation::Evaluated }),
            operation if is_literal(&operation) => Ok(Parameter { name, subscript, operation: Operation::Evaluated }),
            _ => Err(self.refuse_since(start, Why::Ambiguous)),
        }
    }

    /// What follows a parameter, up to the `}`, which stays.
    fn operation(&mut self, context: Context) -> Read<Operation> {
        let Some(byte) = self.peek() else { return Err(self.unexpected()) };
        let colon = byte == b':' && matches!(self.peek_second(), Some(b'-' | b'=' | b'?' | b'+'));
        if colon {
            self.take(b":");
        }
        let Some(operator) = self.peek() else { return Err(self.unexpected()) };
        match operator {
            b'}' => return Ok(Operation::Value),
            b'@' => return self.transformation(),
            b'-' | b'=' | b'?' | b'+' | b':' | b'#' | b'%' | b'/' | b'^' | b',' => self.at += 1,
            _ => return Err(self.unexpected()),
        }
        let pattern = matches!(operator, b'#' | b'%' | b'/' | b'^' | b',');
        let word = self.operand(context, pattern)?;
        Ok(match operator {
            b'-' => Operation::Default { colon, word: Box::new(word) },
            b'=' => Operation::Assign { colon, word: Box::new(word) },
            b'?' => Operation::Error { colon, word: Box::new(word) },
            b'+' => Operation::Alternative { colon, word: Box::new(word) },
            _ => Operation::Changed(vec![word]),
        })
    }

    /// `@P` and its like.
    fn transformation(&mut self) -> Read<Operation> {
        self.take(b"@");
        let Some(letter) = self.peek().filter(|letter| b"UuLQEPAKak".contains(letter)) else { return Err(self.unexpected()) };
        self.at += 1;
        Ok(if letter == b'P' { Operation::Evaluated } else { Operation::Changed(Vec::new()) })
    }

    /// The word of an operation, up to the `}`.
    fn operand(&mut self, context: Context, pattern: bool) -> Read<Word> {
        self.peek();
        let (start, mut parts) = (self.at, Parts::default());
        if pattern || context == Context::Unquoted {
            self.unquoted(&mut parts, Stop::Brace)?;
        } else {
            self.quoted(&mut parts, End::Brace, context)?;
        }
        Ok(parts.word(self, start..self.at))
    }
}

/// Whether no word of an operation holds an expansion.
fn is_literal(operation: &Operation) -> bool {
    let literal = |word: &Word| word.parts.iter().all(|part| matches!(part.kind, PartKind::Text(_)));
    match operation {
        Operation::Default { word, .. }
        | Operation::Assign { word, .. }
        | Operation::Alternative { word, .. }
        | Operation::Error { word, .. } => literal(word),
        Operation::Changed(words) => words.iter().all(literal),
        Operation::Value | Operation::Length | Operation::Evaluated => true,
    }
}
