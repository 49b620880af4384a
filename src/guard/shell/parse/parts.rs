//! The parts of a word while it is read.

use std::ops::Range;

use super::cursor::Parser;
use crate::guard::shell::syntax::{Part, PartKind, Span, Word};

/// Parts in their order.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    /// Where the text of the last part ends, if it may go on.
    open: Option<usize>,
}

impl Parts {
    /// Adds bytes of the text as they are.
    pub(super) fn text(&mut self, parser: &Parser<'_>, bytes: Range<usize>, quoted: bool) {
        let text = &parser.text[bytes.clone()];
        let span = parser.span(bytes.clone());
        if self.open == Some(bytes.start)
            && let Some(Part { kind: PartKind::Text(known), quoted: same, span: place }) = self.parts.last_mut()
            && *same == quoted
        {
            known.push_str(text);
            place.end = span.end;
            self.open = Some(bytes.end);
            return;
        }
        self.add(Part { kind: PartKind::Text(text.to_owned()), quoted, span });
        self.open = Some(bytes.end);
    }

    /// Adds what bytes of the text stand for.
    pub(super) fn push(&mut self, parser: &Parser<'_>, kind: PartKind, bytes: Range<usize>, quoted: bool) {
        self.add(Part { kind, quoted, span: parser.span(bytes) });
        self.open = None;
    }

    fn add(&mut self, part: Part) {
        // Most words have one part: room for more at once would be most of the memory of a long text.
        if self.parts.is_empty() {
            self.parts.reserve_exact(1);
        }
        self.parts.push(part);
    }

    /// Adds the parts of a word.
    pub(super) fn append(&mut self, word: Word) {
        self.parts.extend(word.parts);
        self.open = None;
    }

    /// Takes care that text which follows does not join the text before: quotes stand between them.
    pub(super) fn cut(&mut self) {
        self.open = None;
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The word of these bytes.
    pub(super) fn word(self, parser: &Parser<'_>, bytes: Range<usize>) -> Word {
        Word { span: parser.span(bytes), parts: self.parts }
    }
}

/// A word of unquoted text.
pub(super) fn literal(text: impl Into<String>, span: Span) -> Word {
    Word { parts: vec![Part { kind: PartKind::Text(text.into()), quoted: false, span: span.clone() }], span }
}
