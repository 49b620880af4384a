//! Text that moves between commands: an input, an output, a file.

use super::super::field::{Field, Open};
use super::super::syntax::{Base, Span};
use super::origin::Origins;

/// The longest text that is followed, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// A text, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Stream {
    content: Content,
    from: Origins,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Content {
    /// Nothing was joined to it: whatever the host of the line gives, which is no text of the line.
    #[default]
    Outside,
    Known(Field),
    Unknown,
}

impl Stream {
    pub(super) fn unknown(from: Origins) -> Self {
        Self { content: Content::Unknown, from }
    }

    /// A known text.
    pub(super) fn known(field: Field) -> Self {
        match field.literal() {
            Some(text) if text.len() <= MAX_TEXT => Self { from: field.from.clone(), content: Content::Known(field) },
            _ => Self::unknown(field.from),
        }
    }

    /// No text.
    pub(super) fn empty() -> Self {
        Self::known(Field::default())
    }

    /// The programs whose output it holds.
    pub(super) fn from(&self) -> &Origins {
        &self.from
    }

    /// Whether it is what the host of the line gives.
    pub(super) fn is_outside(&self) -> bool {
        self.content == Content::Outside
    }

    /// The text, if it is known.
    pub(in crate::guard) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Known(field) => Some(&field.text),
            Content::Outside | Content::Unknown => None,
        }
    }

    /// Where the text stands.
    pub(super) fn base(&self) -> Option<Base> {
        match &self.content {
            Content::Known(field) => Some(field.base(0)),
            Content::Outside | Content::Unknown => None,
        }
    }

    /// The text with a line feed at its end; where it stands stays as it is.
    pub(super) fn with_line_feed(mut self) -> Self {
        if let Content::Known(field) = &mut self.content {
            field.text.push('\n');
        }
        self
    }

    /// Puts another text after this one.
    pub(super) fn append(&mut self, next: Self) {
        self.from.add(&next.from);
        self.content = match (std::mem::take(&mut self.content), next.content) {
            (Content::Known(one), Content::Known(next)) if one.text.is_empty() => Content::Known(next),
            (Content::Known(one), Content::Known(next)) if next.text.is_empty() => Content::Known(one),
            (Content::Known(mut one), Content::Known(next)) if one.text.len() + next.text.len() <= MAX_TEXT => {
                one.text.push_str(&next.text);
                one.exact = None;
                Content::Known(one)
            }
            _ => Content::Unknown,
        };
    }

    /// The text as one field.
    pub(super) fn whole(&self, span: Span) -> Field {
        match self.text() {
            Some(text) => Field { from: self.from.clone(), ..Field::known(text, span) },
            None => Field { from: self.from.clone(), ..Field::unknown(Open::One, span) },
        }
    }

    /// The text as one field: without the line feeds at its end, as a substitution takes it.
    pub(super) fn substituted(&self, span: Span) -> Field {
        let mut field = self.whole(span);
        field.text.truncate(field.text.trim_end_matches('\n').len());
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_follow_each_other() {
        let mut output = Stream::empty();
        output.append(Stream::known(Field { exact: Some(5), ..Field::known("a\n", 5..7) }));
        assert_eq!((output.text(), output.base()), (Some("a\n"), Some(Base::At(5))));
        output.append(Stream::known(Field::known("b\n\n", 8..9)));
        assert_eq!((output.text(), output.base()), (Some("a\nb\n\n"), Some(Base::Within(5..7))));
        assert_eq!(output.substituted(0..1).literal(), Some("a\nb"));
        output.append(Stream::unknown(Origins::of("curl")));
        assert_eq!((output.text(), output.from().len()), (None, 1));
        assert_eq!(output.substituted(0..1).open, Open::One);
    }
}
