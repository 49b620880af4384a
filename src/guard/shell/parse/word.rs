//! Unquoted text: words, and the operands of `${..}` outside double quotes.

use std::ops::Range;

use super::cursor::{Parser, is_break};
use super::parts::Parts;
use super::quote::Context;
use super::{Read, arithmetic};
use crate::guard::shell::syntax::{PartKind, Refused, Why, Word};

/// Where unquoted text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the end of an argument.
    Word,
    /// At the end of a program's word.
    Program,
    /// At the end of a word in `[[ ]]`.
    Operand,
    /// At the end of a regular expression in `[[ ]]`.
    Expression,
    /// At the `}` of an expansion.
    Brace,
}

impl Parser<'_> {
    /// The word that begins here; one byte of it at least.
    pub(super) fn word(&mut self, stop: Stop) -> Read<Word> {
        self.peek();
        let start = self.at;
        let mut parts = Parts::default();
        self.unquoted(&mut parts, stop)?;
        if self.at == start { Err(self.unexpected()) } else { Ok(parts.word(self, start..self.at)) }
    }

    /// Unquoted text with everything in it.
    pub(super) fn unquoted(&mut self, parts: &mut Parts, stop: Stop) -> Read<()> {
        let (mut open, mut pattern) = (0_usize, false);
        loop {
            let start = self.at;
            let Some(byte) = self.peek() else { return self.text_ended(stop, open) };
            match byte {
                b'\'' | b'"' | b'\\' | b'`' | b'$' => self.special(parts, byte)?,
                b'<' | b'>' if self.peek_second() == Some(b'(') => self.process(parts, byte)?,
                b'}' if stop == Stop::Brace => return Ok(()),
                b'(' if open > 0 || self.opens_pattern(stop, pattern)? => {
                    open += 1;
                    self.plain(parts);
                }
                b')' if open > 0 => {
                    open -= 1;
                    self.plain(parts);
                }
                _ if open > 0 || stop == Stop::Brace => self.plain(parts),
                b'|' if stop == Stop::Expression => self.plain(parts),
                byte if is_break(byte) => return Ok(()),
                _ => {
                    pattern = self.run(parts)?;
                    continue;
                }
            }
            pattern = false;
            // Within parentheses bash counts the brackets of substitutions too.
            if open > 0 && matches!(byte, b'$' | b'<' | b'>') && !arithmetic::is_balanced(&self.text[start..self.at]) {
                return Err(self.refuse_since(start, Why::Ambiguous));
            }
        }
    }

    fn text_ended(&self, stop: Stop, open: usize) -> Read<()> {
        if open > 0 || stop == Stop::Brace { Err(self.refuse(Why::Unterminated)) } else { Ok(()) }
    }

    /// Quotes, escapes and expansions.
    fn special(&mut self, parts: &mut Parts, byte: u8) -> Read<()> {
        match byte {
            b'\'' => self.single_quotes(parts),
            b'"' => self.double_quotes(parts),
            b'\\' => self.escape(parts),
            b'`' => self.backquotes(parts, Context::Unquoted),
            _ => self.dollar(parts, Context::Unquoted),
        }
    }

    /// Whether a `(` goes on with the word: in a regular expression, and in `[[ ]]` after one of `?*+@!`.
    fn opens_pattern(&self, stop: Stop, pattern: bool) -> Read<bool> {
        match stop {
            Stop::Operand => Ok(pattern),
            Stop::Expression => Ok(true),
            // With `extglob` it does, without the line is refused.
            Stop::Word | Stop::Program if pattern => Err(self.refuse(Why::Ambiguous)),
            Stop::Word | Stop::Program | Stop::Brace => Ok(false),
        }
    }

    /// One character as text.
    fn plain(&mut self, parts: &mut Parts) {
        let end = self.at + self.character_length();
        parts.text(self, self.at..end, false);
        self.at = end;
    }

    /// Text without anything special in it. Whether its last character may begin a pattern with parentheses.
    fn run(&mut self, parts: &mut Parts) -> Read<bool> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len()).max(1);
        let bytes = self.at..self.at + length;
        self.refuse_control(bytes.clone())?;
        parts.text(self, bytes, false);
        self.at += length;
        Ok(matches!(rest[length - 1], b'?' | b'*' | b'+' | b'@' | b'!'))
    }

    /// Refuses control characters in unquoted text: what a terminal shows of such a line is not what runs.
    fn refuse_control(&self, bytes: Range<usize>) -> Read<()> {
        let Some((place, control)) = self.text[bytes.clone()].char_indices().find(|(_, found)| is_control(*found)) else {
            return Ok(());
        };
        let start = bytes.start + place;
        Err(Refused { at: self.span(start..start + control.len_utf8()), why: Why::Control })
    }

    /// `<(..)`, `>(..)`.
    fn process(&mut self, parts: &mut Parts, byte: u8) -> Read<()> {
        let start = self.at;
        self.take(&[byte, b'(']);
        let list = self.substitution()?;
        parts.push(self, PartKind::Process { list, output: byte == b'>' }, start..self.at, false);
        Ok(())
    }
}

/// Whether a character is refused outside quotes.
pub(super) fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

/// Whether a byte ends a run of unquoted text. `}` counts, since it ends an operand.
fn is_special(byte: u8) -> bool {
    is_break(byte) || matches!(byte, b'\'' | b'"' | b'\\' | b'`' | b'$' | b'}')
}
