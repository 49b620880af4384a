//! `[[ .. ]]`: a flat list of its words and operators. Whether its terms make an expression is checked as bash does.

use super::Read;
use super::cursor::Parser;
use super::parts::literal;
use super::word::Stop;
use crate::guard::shell::syntax::{Kind, Why, Word};

/// The letters of the operators with one operand.
const UNARY: &[u8] = b"abcdefghknoprstuvwxzGLORSN";

/// The operators with two operands that are words.
const BINARY: &[&[u8]] = &[b"=", b"==", b"!=", b"-nt", b"-ot", b"-ef", b"-eq", b"-ne", b"-lt", b"-gt", b"-le", b"-ge"];

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Read<Kind> {
        self.take(b"[[");
        let mut words = Vec::new();
        self.expression(&mut words)?;
        self.close(b"]]")?;
        Ok(Kind::Condition(words))
    }

    /// Terms joined by `&&` and `||`.
    fn expression(&mut self, words: &mut Vec<Word>) -> Read<()> {
        loop {
            self.term(words)?;
            self.blanks();
            if !(self.operator_word(b"&&", words) || self.operator_word(b"||", words)) {
                return Ok(());
            }
        }
    }

    fn term(&mut self, words: &mut Vec<Word>) -> Read<()> {
        self.newlines()?;
        while self.at_word(b"!") {
            self.operator_word(b"!", words);
            self.newlines()?;
        }
        if self.operator_word(b"(", words) {
            self.deeper(|parser| parser.expression(words))?;
            if !self.operator_word(b")", words) {
                return Err(self.unexpected());
            }
        } else if self.at_unary() {
            words.push(self.operand_word(Stop::Operand)?);
            self.blanks();
            words.push(self.operand_word(Stop::Operand)?);
        } else {
            words.push(self.operand_word(Stop::Operand)?);
            self.blanks();
            if self.is_single() {
                return Ok(());
            }
            self.binary(words)?;
        }
        self.newlines()?;
        Ok(())
    }

    /// An operator and its right operand.
    fn binary(&mut self, words: &mut Vec<Word>) -> Read<()> {
        let mut stop = Stop::Operand;
        if !(self.operator_word(b"<", words) || self.operator_word(b">", words)) {
            if self.at_word(b"=~") {
                stop = Stop::Expression;
            } else if !BINARY.iter().any(|operator| self.at_word(operator)) {
                return Err(self.unexpected());
            }
            words.push(self.word(Stop::Operand)?);
        }
        self.blanks();
        words.push(self.operand_word(stop)?);
        Ok(())
    }

    fn operand_word(&mut self, stop: Stop) -> Read<Word> {
        if self.at_word(b"]]") { Err(self.refuse(Why::Unexpected)) } else { self.word(stop) }
    }

    /// Whether a word stands alone, without an operator after it.
    fn is_single(&mut self) -> bool {
        match self.peek() {
            Some(b')') => true,
            Some(byte @ (b'&' | b'|')) => self.peek_second() == Some(byte),
            _ => self.at_word(b"]]"),
        }
    }

    fn at_unary(&mut self) -> bool {
        self.short_word().is_some_and(|(word, length, _)| length == 2 && word[0] == b'-' && UNARY.contains(&word[1]))
    }

    /// Takes an operator as a word.
    fn operator_word(&mut self, operator: &[u8], words: &mut Vec<Word>) -> bool {
        self.peek();
        let start = self.at;
        let found = self.take(operator);
        if found {
            words.push(literal(String::from_utf8_lossy(operator), self.span(start..self.at)));
        }
        found
    }
}
