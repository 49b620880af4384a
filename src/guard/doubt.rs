//! Why a call may match a guard, and what is said about it.

use std::fmt;

use super::shell::run::Cause;
use super::shell::syntax::Why;

/// Why a match is not certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The line is not read to its end, or something runs in it that its text does not tell.
    Unclear(Cause),
    /// The input is not of a known form.
    Input(&'static str),
    /// A program word that may be the guarded program.
    Program(String),
    /// A word that may be the guarded subcommand.
    Subcommand(String),
    /// A word that may be or hold a guarded option.
    Option(String),
    /// A setting on the line may do what a guarded option does.
    Setting,
    /// An operand or path that may be outside.
    Folder(String),
    /// A program of which the words name one that runs text.
    Runs(String),
    /// A program (first) of which the words name the guarded one (second), so that it may run.
    Names(String, String),
    /// A word that cannot be replaced exactly.
    Rebuild,
}

/// The longest part of a word that a doubt repeats, in characters.
const EXCERPT: usize = 80;

/// The beginning of a word, for a message.
fn excerpt(word: &str) -> String {
    match word.char_indices().nth(EXCERPT) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclear(cause) => cause.fmt(f),
            Self::Input(why) => f.write_str(why),
            Self::Program(word) => write!(f, "{:?} may be the guarded program", excerpt(word)),
            Self::Subcommand(word) => write!(f, "{:?} may be or hide the guarded subcommand", excerpt(word)),
            Self::Option(word) => write!(f, "{:?} may be or hold a guarded option", excerpt(word)),
            Self::Setting => f.write_str("a setting on the line may do what the guard is for"),
            Self::Folder(path) => write!(f, "where {:?} is cannot be told", excerpt(path)),
            Self::Runs(word) => write!(f, "{:?} runs what its words, its input or a file say", excerpt(word)),
            Self::Names(word, name) => write!(f, "the words of {:?} name {name:?}, and something may run them", excerpt(word)),
            Self::Rebuild => {
                f.write_str("the program word does not stand in the line as it runs, so that it cannot be replaced exactly")
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) => write!(f, "the line cannot be read: {why}"),
            Self::Program => f.write_str("the name of the program is computed"),
            Self::Runs(what) => write!(f, "{:?} runs text that the line does not tell", excerpt(what)),
            Self::Changes(what) => write!(f, "{:?} changes what names stand for", excerpt(what)),
            Self::TooMuch => f.write_str("the line leads to more than is followed"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is longer than is read",
            Self::TooDeep => "it is nested deeper than is read",
            Self::Unterminated => "a quote, substitution, here-document or compound command has no end",
            Self::Unexpected => "a word or operator stands where the grammar has none",
            Self::Control => "it holds a control character",
            Self::Ambiguous => "shells read it in different ways",
        })
    }
}
