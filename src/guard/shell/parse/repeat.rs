//! `for`, `select`.

use super::Read;
use super::cursor::Parser;
use super::word::Stop;
use crate::guard::shell::syntax::{Kind, List, Word};

impl Parser<'_> {
    /// `for`, over words or with arithmetic.
    pub(super) fn for_loop(&mut self) -> Read<Kind> {
        self.take(b"for");
        self.blanks();
        if self.take(b"((") {
            return self.arithmetic_for();
        }
        self.over_words(false)
    }

    pub(super) fn select(&mut self) -> Read<Kind> {
        self.take(b"select");
        self.blanks();
        self.over_words(true)
    }

    fn arithmetic_for(&mut self) -> Read<Kind> {
        let header = self.bracketed(b'(', b')')?;
        self.at += 1;
        if self.byte_at(self.at) != Some(b')') {
            return Err(self.unexpected());
        }
        self.at += 1;
        self.blanks();
        self.take(b";");
        self.newlines()?;
        Ok(Kind::ArithmeticFor { header, body: self.loop_body()? })
    }

    fn over_words(&mut self, select: bool) -> Read<Kind> {
        let start = self.at;
        self.word(Stop::Word)?;
        let name = self.text[start..self.at].to_owned();
        let mut separated = self.newlines()? > 0;
        let values = if self.take_word(b"in") { Some(self.values()?) } else { None };
        separated |= values.is_some();
        if values.is_none() && self.take(b";") {
            self.newlines()?;
            separated = true;
        }
        let body = if separated { self.loop_body()? } else { self.do_body()? };
        Ok(Kind::For { name, values, select, body })
    }

    /// The words after `in`, their end, and line feeds after it.
    fn values(&mut self) -> Read<Vec<Word>> {
        let mut values = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b';') => {
                    self.at += 1;
                    break;
                }
                Some(b'\n') => break,
                _ => values.push(self.word(Stop::Word)?),
            }
        }
        self.newlines()?;
        Ok(values)
    }

    /// `do ..; done` or `{ ..; }`
    fn loop_body(&mut self) -> Read<List> {
        if !self.at_word(b"{") {
            return self.do_body();
        }
        self.take(b"{");
        let list = self.body()?;
        self.close(b"}")?;
        Ok(list)
    }
}
