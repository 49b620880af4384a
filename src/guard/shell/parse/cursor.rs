//! The place in the text: bytes, blanks, comments, spans, levels.

use std::cell::Cell;
use std::ops::Range;

use super::document::Documents;
use super::{MAX_COMMANDS, MAX_DEPTH, Read};
use crate::guard::shell::syntax::{Base, Refused, Span, Why};

/// What one call may still spend, all of its nested texts together.
pub(super) struct Purse {
    /// Bytes that are read a second time.
    rereading: Cell<usize>,
    commands: Cell<usize>,
}

impl Purse {
    pub(super) fn of(text: &str) -> Self {
        Self { rereading: Cell::new(8 * text.len() + 1024), commands: Cell::new(MAX_COMMANDS) }
    }
}

/// A text, and how far it is read.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) documents: Documents,
    base: Base,
    depth: usize,
    purse: &'t Purse,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, base: Base, depth: usize, purse: &'t Purse) -> Self {
        Self { text, at: 0, documents: Documents::default(), base, depth, purse }
    }

    /// A reader of a text that stands within this one.
    pub(super) fn within<'n>(&self, text: &'n str, base: Base) -> Parser<'n>
    where
        't: 'n,
    {
        Parser::new(text, base, self.depth, self.purse)
    }

    /// The place of bytes of this text as a base of a nested one.
    pub(super) fn base(&self, bytes: Range<usize>, exact: bool) -> Base {
        match &self.base {
            Base::At(offset) if exact => Base::At(offset + bytes.start),
            base => Base::Within(base.span(bytes)),
        }
    }

    /// The byte at a place.
    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// A place, moved past backslashes with a line feed: bash drops them while it reads bytes.
    pub(super) fn joined(&self, mut at: usize) -> usize {
        while self.text.as_bytes()[at.min(self.text.len())..].starts_with(b"\\\n") {
            at += 2;
        }
        at
    }

    /// The next byte; joins lines.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.at = self.joined(self.at);
        self.byte_at(self.at)
    }

    /// The byte after the next one.
    pub(super) fn peek_second(&mut self) -> Option<u8> {
        self.peek();
        self.byte_at(self.joined(self.at + 1))
    }

    /// Takes the next bytes, if they are these.
    pub(super) fn take(&mut self, token: &[u8]) -> bool {
        let mut at = self.at;
        for byte in token {
            at = self.joined(at);
            if self.byte_at(at) != Some(*byte) {
                return false;
            }
            at += 1;
        }
        self.at = at;
        true
    }

    /// Skips what may stand before a token: blanks and a comment.
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.byte_at(self.at) == Some(b'#') {
            self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |length| self.at + length);
        }
    }

    /// Skips blanks, comments and line feeds. How many line feeds.
    pub(super) fn newlines(&mut self) -> Read<usize> {
        for count in 0.. {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(count);
            }
            self.newline()?;
        }
        Ok(0)
    }

    /// Takes a line feed, and the here-documents that begin after it.
    pub(super) fn newline(&mut self) -> Read<()> {
        self.at += 1;
        self.read_documents()
    }

    /// The bytes of the next character; none at the end.
    pub(super) fn character_length(&self) -> usize {
        self.text[self.at..].chars().next().map_or(0, char::len_utf8)
    }

    /// Whether no word begins here.
    pub(super) fn at_break(&mut self) -> bool {
        match self.peek() {
            Some(b'<' | b'>') => self.peek_second() != Some(b'('),
            byte => byte.is_none_or(is_break),
        }
    }

    /// The span of bytes of this text in the outermost one.
    pub(super) fn span(&self, bytes: Range<usize>) -> Span {
        self.base.span(bytes)
    }

    /// Reads something one level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.refuse(Why::TooDeep));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Goes back to read text again, which is paid for. Bash drops all joints of lines from such text, those in comments and quoted
    /// here-documents too, which are none at the first reading.
    pub(super) fn back_to(&mut self, at: usize) -> Read<()> {
        let spent = self.at - at;
        if self.text[at..self.at].contains("\\\n") {
            return Err(self.refuse_since(at, Why::Ambiguous));
        }
        self.at = at;
        self.spend(&self.purse.rereading, spent, Why::TooDeep)
    }

    /// Counts a command or here-document.
    pub(super) fn count(&self) -> Read<()> {
        self.spend(&self.purse.commands, 1, Why::TooLong)
    }

    fn spend(&self, from: &Cell<usize>, amount: usize, why: Why) -> Read<()> {
        from.set(from.get().checked_sub(amount).ok_or_else(|| self.refuse(why))?);
        Ok(())
    }

    /// A refusal of what stands here.
    pub(super) fn refuse(&self, why: Why) -> Refused {
        Refused { at: self.span(self.at..self.at + self.character_length()), why }
    }

    /// A refusal of everything from a place up to here.
    pub(super) fn refuse_since(&self, start: usize, why: Why) -> Refused {
        Refused { at: self.span(start..self.at), why }
    }

    /// A refusal of what stands here, where something else has to.
    pub(super) fn unexpected(&self) -> Refused {
        self.refuse(if self.at >= self.text.len() { Why::Unterminated } else { Why::Unexpected })
    }

    /// Takes a token that has to stand here, blanks before it allowed.
    pub(super) fn expect(&mut self, token: &[u8]) -> Read<()> {
        self.blanks();
        if self.take(token) { Ok(()) } else { Err(self.unexpected()) }
    }
}

/// Whether a byte ends an unquoted word.
pub(super) fn is_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// Whether a byte begins a name.
pub(super) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether a byte goes on with a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
