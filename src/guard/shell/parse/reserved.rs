//! Reserved words, where a command may begin.

use super::cursor::{Parser, is_break};

/// A word that is no program when it stands unquoted where a command begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    If,
    Then,
    Elif,
    Else,
    Fi,
    While,
    Until,
    For,
    Select,
    Do,
    Done,
    Case,
    Esac,
    Function,
    Coproc,
    Time,
    Not,
    Open,
    Close,
    Condition,
    /// `in`, `]]`: never where a command begins.
    Misplaced,
}

impl Reserved {
    fn of(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"if" => Self::If,
            b"then" => Self::Then,
            b"elif" => Self::Elif,
            b"else" => Self::Else,
            b"fi" => Self::Fi,
            b"while" => Self::While,
            b"until" => Self::Until,
            b"for" => Self::For,
            b"select" => Self::Select,
            b"do" => Self::Do,
            b"done" => Self::Done,
            b"case" => Self::Case,
            b"esac" => Self::Esac,
            b"function" => Self::Function,
            b"coproc" => Self::Coproc,
            b"time" => Self::Time,
            b"!" => Self::Not,
            b"{" => Self::Open,
            b"}" => Self::Close,
            b"[[" => Self::Condition,
            b"in" | b"]]" => Self::Misplaced,
            _ => return None,
        })
    }

    /// Whether it ends a list.
    pub(super) fn closes(self) -> bool {
        match self {
            Self::Then | Self::Elif | Self::Else | Self::Fi | Self::Do | Self::Done | Self::Esac | Self::Close => true,
            Self::If | Self::While | Self::Until | Self::For | Self::Select | Self::Case | Self::Function => false,
            Self::Coproc | Self::Time | Self::Not | Self::Open | Self::Condition | Self::Misplaced => false,
        }
    }
}

/// The longest reserved word.
const LONGEST: usize = 8;

impl Parser<'_> {
    /// The whole unquoted word that begins here, if it is as short as a reserved word, and where it ends.
    pub(super) fn short_word(&mut self) -> Option<([u8; LONGEST], usize, usize)> {
        self.peek();
        let (mut word, mut length, mut at) = ([0; LONGEST], 0, self.at);
        while let Some(byte) = self.byte_at(at).filter(|byte| !is_break(*byte)) {
            *word.get_mut(length)? = byte;
            length += 1;
            at = self.joined(at + 1);
        }
        let goes_on = matches!(self.byte_at(at), Some(b'<' | b'>')) && self.byte_at(self.joined(at + 1)) == Some(b'(');
        (!goes_on).then_some((word, length, at))
    }

    /// Whether the whole unquoted word that begins here is this one.
    pub(super) fn at_word(&mut self, expected: &[u8]) -> bool {
        self.short_word().is_some_and(|(word, length, _)| &word[..length] == expected)
    }

    /// Takes a word, if it is this one.
    pub(super) fn take_word(&mut self, expected: &[u8]) -> bool {
        let Some((word, length, end)) = self.short_word() else { return false };
        let found = &word[..length] == expected;
        if found {
            self.at = end;
        }
        found
    }

    /// The reserved word that begins here.
    pub(super) fn reserved(&mut self) -> Option<Reserved> {
        let (word, length, _) = self.short_word()?;
        Reserved::of(&word[..length])
    }
}
