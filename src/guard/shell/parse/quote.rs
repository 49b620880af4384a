//! Quotes, and text that is read as if it were in double quotes.

use std::borrow::Cow;

use super::cursor::{Parser, is_name};
use super::parts::Parts;
use super::{Read, ansi};
use crate::guard::shell::syntax::{PartKind, Why};

/// What an expansion stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Nothing: the value is split into fields.
    Unquoted,
    /// Double quotes.
    Double,
    /// A here-document.
    Document,
    /// Arithmetic or a subscript.
    Arithmetic,
}

/// Where text ends that is read as in double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At `"`.
    Quote,
    /// At `}`.
    Brace,
    /// At the end of the text, a here-document's.
    Text,
}

impl Parser<'_> {
    /// `'..'`
    pub(super) fn single_quotes(&mut self, parts: &mut Parts) -> Read<()> {
        let start = self.at + 1;
        let Some(length) = self.text[start..].find('\'') else { return Err(self.refuse(Why::Unterminated)) };
        parts.cut();
        parts.text(self, start..start + length, true);
        parts.cut();
        self.at = start + length + 1;
        Ok(())
    }

    /// `".."`
    pub(super) fn double_quotes(&mut self, parts: &mut Parts) -> Read<()> {
        self.at += 1;
        parts.cut();
        let before = parts.len();
        self.quoted(parts, End::Quote, Context::Double)?;
        if parts.len() == before {
            parts.text(self, self.at..self.at, true);
        }
        parts.cut();
        self.at += 1;
        Ok(())
    }

    /// Text as in double quotes, up to its end, which stays.
    pub(super) fn quoted(&mut self, parts: &mut Parts, end: End, context: Context) -> Read<()> {
        loop {
            let Some(byte) = self.peek() else {
                return if end == End::Text { Ok(()) } else { Err(self.refuse(Why::Unterminated)) };
            };
            match byte {
                b'"' if end == End::Quote => return Ok(()),
                b'}' if end == End::Brace => return Ok(()),
                b'"' if end == End::Brace => self.inner_quotes(parts)?,
                b'$' if end == End::Brace && matches!(self.peek_second(), Some(b'\'' | b'"')) => {
                    return Err(self.refuse(Why::Ambiguous));
                }
                b'\'' if end == End::Brace => self.literal_quotes(parts, context)?,
                b'<' | b'>' if end == End::Brace && self.peek_second() == Some(b'(') => return Err(self.refuse(Why::Ambiguous)),
                b'\\' => self.quoted_escape(parts, end),
                b'`' => self.backquotes(parts, context)?,
                b'$' => self.dollar(parts, context)?,
                _ => self.quoted_run(parts),
            }
        }
    }

    /// `".."` in the word of a quoted expansion. Bash takes these quotes away before it looks for names and substitutions.
    fn inner_quotes(&mut self, parts: &mut Parts) -> Read<()> {
        let start = self.at;
        self.double_quotes(parts)?;
        let end = self.at - 1;
        if self.glues(start) || self.glues(end) { Err(self.refuse_since(start, Why::Ambiguous)) } else { Ok(()) }
    }

    /// Whether a `$` or `$name` before a quote would go on behind it.
    fn glues(&self, quote: usize) -> bool {
        let before = &self.text.as_bytes()[..quote];
        let name = before.iter().rev().take_while(|byte| is_name(**byte)).count();
        let after = self.byte_at(self.joined(quote + 1));
        before[..quote - name].ends_with(b"$") && (name == 0 || after.is_some_and(|byte| is_name(byte) || b"[\"".contains(&byte)))
    }

    fn quoted_run(&mut self, parts: &mut Parts) {
        let rest = &self.text.as_bytes()[self.at..];
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'`' | b'$' | b'}' | b'\'' | b'<' | b'>');
        let length = rest.iter().skip(1).position(special).map_or(rest.len(), |place| place + 1);
        parts.text(self, self.at..self.at + length, true);
        self.at += length;
    }

    /// A backslash where only some characters are escaped.
    fn quoted_escape(&mut self, parts: &mut Parts, end: End) {
        let escaped = match self.byte_at(self.at + 1) {
            Some(b'$' | b'`' | b'\\') => true,
            Some(b'"') => end != End::Text,
            Some(b'}') => end == End::Brace,
            _ => false,
        };
        let start = self.at + usize::from(escaped);
        self.at += 1;
        // Within braces a kept backslash still takes the meaning of what follows.
        if escaped || end == End::Brace {
            self.at += self.character_length();
        }
        // An escaped character joins no text before it, which would cover the backslash.
        parts.text(self, start..self.at, true);
    }

    /// `'..'` where the quotes are text and yet what they hold is no end of anything. Bash makes the expansions in them.
    pub(super) fn literal_quotes(&mut self, parts: &mut Parts, context: Context) -> Read<()> {
        let start = self.at + 1;
        let Some(length) = self.text[start..].find('\'') else { return Err(self.refuse(Why::Unterminated)) };
        let inner = start..start + length;
        parts.text(self, self.at..start, true);
        let mut nested = self.within(&self.text[inner.clone()], self.base(inner, true));
        nested.quoted(parts, End::Text, context)?;
        parts.cut();
        self.at = start + length;
        parts.text(self, self.at..self.at + 1, true);
        self.at += 1;
        Ok(())
    }

    /// A backslash outside quotes.
    pub(super) fn escape(&mut self, parts: &mut Parts) -> Read<()> {
        let start = self.at + 1;
        let Some(escaped) = self.text[start..].chars().next() else {
            // The last byte of a text: bash keeps the backslash.
            parts.text(self, self.at..start, true);
            self.at = start;
            return Ok(());
        };
        if super::word::is_control(escaped) {
            return Err(self.refuse(Why::Control));
        }
        self.at = start + escaped.len_utf8();
        parts.cut();
        parts.text(self, start..self.at, true);
        parts.cut();
        Ok(())
    }

    /// `$'..'`; here stands the quote.
    pub(super) fn ansi_quotes(&mut self, parts: &mut Parts) -> Read<()> {
        let start = self.at + 1;
        let end = self.unescaped(start, b'\'').ok_or_else(|| self.refuse(Why::Unterminated))?;
        let text = ansi::decode(&self.text[start..end]).ok_or_else(|| self.refuse(Why::Ambiguous))?;
        self.at = end + 1;
        parts.push(self, PartKind::Text(text), start..end, true);
        Ok(())
    }

    /// `` `..` ``
    pub(super) fn backquotes(&mut self, parts: &mut Parts, context: Context) -> Read<()> {
        let start = self.at;
        let end = self.unescaped(start + 1, b'`').ok_or_else(|| self.refuse(Why::Unterminated))?;
        let inner = start + 1..end;
        let source = &self.text[inner.clone()];
        if context == Context::Arithmetic && source.contains("\\\"") {
            return Err(self.refuse(Why::Ambiguous));
        }
        let exact = !source.contains('\\');
        let text =
            if exact { Cow::Borrowed(source) } else { Cow::Owned(without_backslashes(source, context == Context::Double)) };
        let base = self.base(if exact { inner } else { start..end + 1 }, exact);
        let list = self.deeper(|parser| parser.within(&text, base).all_lines())?;
        self.at = end + 1;
        parts.push(self, PartKind::Command(list), start..self.at, context != Context::Unquoted);
        Ok(())
    }

    /// The next place of a byte that no backslash stands before.
    fn unescaped(&self, from: usize, wanted: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                byte if *byte == wanted => return Some(at),
                _ => at += 1,
            }
        }
        None
    }
}

/// The text that backquotes hold, as the nested shell gets it.
fn without_backslashes(source: &str, double: bool) -> String {
    let mut text = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('\n') => {}
            Some(escaped @ ('$' | '`' | '\\')) => text.push(escaped),
            Some('"') if double => text.push('"'),
            other => {
                text.push('\\');
                text.extend(other);
            }
        }
    }
    text
}
