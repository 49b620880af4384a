//! What a `$` begins.

use super::Read;
use super::cursor::{Parser, begins_name, is_name};
use super::document::{Documents, fill};
use super::list::Extent;
use super::parts::Parts;
use super::quote::Context;
use crate::guard::shell::syntax::{List, Operation, Parameter, PartKind, Why};

impl Parser<'_> {
    /// A `$` and what belongs to it.
    pub(super) fn dollar(&mut self, parts: &mut Parts, context: Context) -> Read<()> {
        let start = self.at;
        self.at += 1;
        let quoted = context != Context::Unquoted;
        let kind = match self.peek() {
            Some(b'(') if self.peek_second() == Some(b'(') => self.double_parenthesis()?,
            Some(b'(') => {
                self.at += 1;
                PartKind::Command(self.substitution()?)
            }
            Some(b'[') => self.brackets()?,
            Some(b'{') => self.braces(context)?,
            Some(b'\'') if !quoted => return self.ansi_quotes(parts),
            Some(b'"') if !quoted => return self.double_quotes(parts),
            Some(b'\'') if context == Context::Arithmetic => return Err(self.refuse(Why::Ambiguous)),
            Some(byte) if begins_name(byte) => parameter(self.name()),
            Some(byte) if is_parameter(byte) => {
                self.at += 1;
                parameter(char::from(byte).to_string())
            }
            _ => {
                parts.text(self, start..start + 1, quoted);
                return Ok(());
            }
        };
        parts.push(self, kind, start..self.at, quoted);
        Ok(())
    }

    /// The name that begins here.
    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| is_name(*byte)) {
            name.push(char::from(byte));
            self.at += 1;
        }
        name
    }

    /// The list of a substitution after its `(`, and the `)`.
    pub(super) fn substitution(&mut self) -> Read<List> {
        self.deeper(|parser| {
            let outer = std::mem::replace(&mut parser.documents, Documents::of_substitution());
            let mut list = parser.list(Extent::Substitution)?.unwrap_or_default();
            if parser.peek() != Some(b')') {
                return Err(parser.unexpected());
            }
            if parser.documents.is_waiting() {
                return Err(parser.refuse(Why::Ambiguous));
            }
            parser.at += 1;
            fill(&mut list, &mut parser.documents);
            parser.documents = outer;
            Ok(list)
        })
    }

    /// `$((..))`, or `$(` with a subshell in it.
    fn double_parenthesis(&mut self) -> Read<PartKind> {
        let start = self.at + 1;
        self.take(b"((");
        let word = self.deeper(|parser| parser.bracketed(b'(', b')'))?;
        if self.take(b"))") {
            return Ok(PartKind::Arithmetic(word));
        }
        self.at += 1;
        self.deeper(|parser| parser.bracketed(b'(', b')'))?;
        let end = self.at + 1;
        self.back_to(start)?;
        let list = self.substitution()?;
        if self.at == end { Ok(PartKind::Command(list)) } else { Err(self.refuse_since(start, Why::Ambiguous)) }
    }

    /// `$[..]`
    fn brackets(&mut self) -> Read<PartKind> {
        self.at += 1;
        let word = self.deeper(|parser| parser.bracketed(b'[', b']'))?;
        self.at += 1;
        Ok(PartKind::Arithmetic(word))
    }

    /// `${..}`, `${ ..; }`, `${| ..; }`
    fn braces(&mut self, context: Context) -> Read<PartKind> {
        self.at += 1;
        match self.peek() {
            Some(b' ' | b'\t' | b'\n') => self.function_substitution(),
            Some(b'|') => {
                self.at += 1;
                self.function_substitution()
            }
            _ => self.deeper(|parser| parser.parameter(context)).map(PartKind::Parameter),
        }
    }

    fn function_substitution(&mut self) -> Read<PartKind> {
        self.deeper(|parser| {
            let outer = std::mem::take(&mut parser.documents);
            let mut list = parser.list(Extent::Function)?.unwrap_or_default();
            parser.expect(b"}")?;
            if parser.documents.is_waiting() {
                return Err(parser.refuse(Why::Ambiguous));
            }
            fill(&mut list, &mut parser.documents);
            parser.documents = outer;
            Ok(PartKind::Command(list))
        })
    }
}

/// Whether a byte after `$` is a parameter of its own.
pub(super) fn is_parameter(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
}

fn parameter(name: String) -> PartKind {
    PartKind::Parameter(Parameter { name, subscript: None, operation: Operation::Value })
}
