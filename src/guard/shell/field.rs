//! A field: what a word is after its expansions, as far as the text says.

use super::run::origin::Origins;
use super::syntax::{Base, Span};

/// One word as a program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Field {
    /// The text, or the beginning that is known.
    pub(in crate::guard) text: String,
    /// What is not known of it.
    pub(in crate::guard) open: Open,
    /// The end that is known of one word of which the middle is not. Empty unless `open` is [`Open::One`].
    pub(in crate::guard) tail: String,
    /// What is not known holds no blank, so that it stays one word also without quotes. False where all is known.
    pub(in crate::guard) solid: bool,
    /// The text is an unquoted pattern, for which the shell puts the names of files if there are any.
    pub(in crate::guard) pattern: bool,
    /// Where it stands.
    pub(in crate::guard) span: Span,
    /// Where the text begins, if it stands in the outermost text byte for byte.
    pub(in crate::guard) exact: Option<usize>,
    /// The programs whose output the text holds.
    pub(in crate::guard) from: Origins,
}

/// What is not known of a field. Ordered by how little is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::guard) enum Open {
    /// Nothing: the text is the whole word.
    #[default]
    No,
    /// What follows the text; it is one word.
    One,
    /// What follows the text, and how many words it is: none, one or many.
    Many,
}

impl Field {
    /// A field of known text that stands somewhere in a span.
    pub(in crate::guard) fn known(text: impl Into<String>, span: Span) -> Self {
        Self { text: text.into(), span, ..Self::default() }
    }

    /// Unknown words.
    pub(in crate::guard) fn unknown(open: Open, span: Span) -> Self {
        Self { open, span, ..Self::default() }
    }

    /// The text, if all of it is known.
    pub(in crate::guard) fn literal(&self) -> Option<&str> {
        (self.open == Open::No && !self.pattern).then_some(self.text.as_str())
    }

    /// The word for a message: what is not known of it as three dots.
    pub(in crate::guard) fn shown(&self) -> String {
        let gap = if self.open == Open::No { "" } else { "..." };
        format!("{}{gap}{}", self.text, self.tail)
    }

    /// The end of the path that the word is, after its last slash, if it is known.
    pub(in crate::guard) fn base_name(&self) -> Option<&str> {
        match self.open {
            _ if self.pattern => None,
            Open::No => self.text.rsplit('/').next(),
            Open::One => self.tail.rsplit_once('/').map(|(_, name)| name),
            Open::Many => None,
        }
    }

    /// Where the text stands when it is read as program text from its byte `skip` on.
    pub(in crate::guard) fn base(&self, skip: usize) -> Base {
        self.exact.map_or_else(|| Base::Within(self.span.clone()), |offset| Base::At(offset + skip))
    }
}
