//! Text that ends at the bracket that closes it: arithmetic, subscripts.
//!
//! Bash finds the end by counting brackets outside quotes and substitutions, and makes the expansions of what is between as if it stood in
//! double quotes, single quotes and all.

use super::cursor::Parser;
use super::parts::Parts;
use super::quote::Context;
use super::{MAX_DEPTH, Read};
use crate::guard::shell::syntax::{Why, Word};

impl Parser<'_> {
    /// The text up to the closing bracket, which stays.
    pub(super) fn bracketed(&mut self, open: u8, close: u8) -> Read<Word> {
        let start = self.at;
        let (mut parts, mut count) = (Parts::default(), 0_usize);
        loop {
            let place = self.at;
            let Some(byte) = self.peek() else { return Err(self.refuse(Why::Unterminated)) };
            match byte {
                byte if byte == close && count == 0 => return Ok(parts.word(self, start..self.at)),
                b'\'' => self.literal_quotes(&mut parts, Context::Arithmetic)?,
                b'"' => self.double_quotes(&mut parts)?,
                b'`' => self.backquotes(&mut parts, Context::Arithmetic)?,
                b'\\' => self.escape(&mut parts)?,
                b'$' => {
                    self.dollar(&mut parts, Context::Arithmetic)?;
                    // Bash counts its brackets too, at one of its two readings.
                    if !is_balanced(&self.text[place..self.at]) {
                        return Err(self.refuse_since(place, Why::Ambiguous));
                    }
                }
                _ => {
                    count = if byte == open { count + 1 } else { count - usize::from(byte == close) };
                    if count > MAX_DEPTH {
                        return Err(self.refuse(Why::TooDeep));
                    }
                    self.arithmetic_run(&mut parts);
                }
            }
        }
    }

    /// A byte, and those after it that mean nothing.
    fn arithmetic_run(&mut self, parts: &mut Parts) {
        let rest = &self.text.as_bytes()[self.at..];
        let special = |byte: &u8| matches!(byte, b'\'' | b'"' | b'`' | b'\\' | b'$' | b'(' | b')' | b'[' | b']');
        let length = rest.iter().skip(1).position(special).map_or(rest.len(), |place| place + 1);
        parts.text(self, self.at..self.at + length, true);
        self.at += length;
    }
}

/// Whether no bracket of a text closes one that stands before it or is closed after it.
pub(super) fn is_balanced(text: &str) -> bool {
    let level = |level: usize, byte: u8| match byte {
        b'(' | b'[' => Some(level + 1),
        b')' | b']' => level.checked_sub(1),
        _ => Some(level),
    };
    text.bytes().try_fold(0, level) == Some(0)
}
