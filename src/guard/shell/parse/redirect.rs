//! Redirections.

use super::Read;
use super::cursor::{Parser, begins_name, is_name};
use super::parts::literal;
use super::word::Stop;
use crate::guard::shell::syntax::{PartKind, Redirect, RedirectKind, Why, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Read,
    Write,
    WriteBoth,
    DuplicateInput,
    DuplicateOutput,
    Document { tabs: bool },
    HereString,
}

/// The operators, longer ones before those that they begin with.
const OPERATORS: &[(&[u8], Operator)] = &[
    (b"<<<", Operator::HereString),
    (b"<<-", Operator::Document { tabs: false }),
    (b"<<", Operator::Document { tabs: true }),
    (b"<&", Operator::DuplicateInput),
    (b"<>", Operator::Read),
    (b"<", Operator::Read),
    (b">>", Operator::Write),
    (b">|", Operator::Write),
    (b">&", Operator::DuplicateOutput),
    (b">", Operator::Write),
    (b"&>>", Operator::WriteBoth),
    (b"&>", Operator::WriteBoth),
];

impl Parser<'_> {
    /// The redirection that begins here, if one does.
    pub(super) fn redirect(&mut self) -> Read<Option<Redirect>> {
        self.peek();
        let start = self.at;
        let descriptor = self.descriptor()?;
        if descriptor.is_none() {
            self.at = start;
        }
        // `<(` is a word, also after digits.
        let operator = if self.at_break() { OPERATORS.iter().find(|(token, _)| self.take(token)) } else { None };
        let Some((_, operator)) = operator else {
            self.at = start;
            return Ok(None);
        };
        let kind = self.target(*operator)?;
        Ok(Some(Redirect { descriptor, kind, span: self.span(start..self.at) }))
    }

    /// Redirections after a compound command.
    pub(super) fn redirects(&mut self) -> Read<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            let end = self.at;
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => {
                    self.at = end;
                    return Ok(redirects);
                }
            }
        }
    }

    /// The number or `{name}` before an operator. Where there is none, the place means nothing.
    fn descriptor(&mut self) -> Read<Option<String>> {
        let start = self.at;
        match self.peek() {
            Some(byte) if byte.is_ascii_digit() => {
                let name = self.name();
                Ok(Some(name).filter(|name| name.parse::<i32>().is_ok()).filter(|_| self.at_arrow()))
            }
            Some(b'{') => {
                self.at += 1;
                if !self.peek().is_some_and(begins_name) {
                    return Ok(None);
                }
                let mut name = self.name();
                if self.peek() == Some(b'[') {
                    name.push_str(&self.plain_subscript(start)?);
                }
                Ok(Some(name).filter(|_| self.take(b"}") && self.at_arrow()))
            }
            _ => Ok(None),
        }
    }

    fn at_arrow(&mut self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>'))
    }

    /// `[..]` in `{name[..]}`; refused, unless it is plain.
    fn plain_subscript(&mut self, start: usize) -> Read<String> {
        let from = self.at;
        self.at += 1;
        while self.peek().is_some_and(|byte| is_name(byte) || matches!(byte, b'@' | b'*')) {
            self.at += 1;
        }
        if self.take(b"]") { Ok(self.text[from..self.at].to_owned()) } else { Err(self.refuse_since(start, Why::Ambiguous)) }
    }

    fn target(&mut self, operator: Operator) -> Read<RedirectKind> {
        self.blanks();
        let duplicates = matches!(operator, Operator::DuplicateInput | Operator::DuplicateOutput);
        let start = self.at;
        // The whole target, whatever follows.
        if duplicates && self.take(b"-") {
            return Ok(RedirectKind::Duplicate(literal("-", self.span(start..self.at))));
        }
        // A number before another operator belongs to that one.
        let number = !duplicates && self.peek().is_some_and(|byte| byte.is_ascii_digit()) && self.descriptor()?.is_some();
        self.at = start;
        if number || self.at_break() {
            return Err(self.unexpected());
        }
        let word = self.word(Stop::Word)?;
        Ok(match operator {
            Operator::Read => RedirectKind::Read(word),
            Operator::Write => RedirectKind::Write(word),
            Operator::WriteBoth => RedirectKind::WriteBoth(word),
            Operator::DuplicateInput => RedirectKind::Duplicate(word),
            Operator::DuplicateOutput if is_descriptor(&word) => RedirectKind::Duplicate(word),
            Operator::DuplicateOutput => RedirectKind::WriteBoth(word),
            Operator::Document { tabs } => RedirectKind::HereDocument(self.await_document(&word, start, tabs)?),
            Operator::HereString => RedirectKind::HereString(word),
        })
    }
}

/// Whether a word is a number, with `-` after it or not.
fn is_descriptor(word: &Word) -> bool {
    let [part] = word.parts.as_slice() else { return false };
    let PartKind::Text(text) = &part.kind else { return false };
    let digits = text.strip_suffix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
