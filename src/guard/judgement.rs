//! What is judged, and the answers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

/// One call of a tool, as far as guards look at it.
#[derive(Debug, Clone, Copy)]
pub struct GuardedCall<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The arguments of the call.
    pub input: &'a Value,
    /// The folder in which the tool starts, absolute; without it relative paths are unknown, hence asked about.
    pub cwd: Option<&'a str>,
    /// The folder that the work belongs to, absolute; without it no relative folder of a policy is known.
    pub workspace: Option<&'a str>,
}

/// What the guards of a policy say about one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// Every guard that answers, in the order of the file.
    pub matches: Vec<Match>,
    /// Every guard that only records, in the order of the file.
    pub notes: Vec<Note>,
}

/// One guard's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The guard's name.
    pub guard: Arc<str>,
    /// What it answers.
    pub answer: Answer,
    /// The policy's reason; where the match is not certain, why it is not.
    pub reason: Arc<str>,
    /// What the match hangs on.
    pub place: Site,
    /// Whether the call matches. Otherwise it may, which is always [`Answer::Ask`].
    pub certain: bool,
}

/// What a guard that only records has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The guard's name.
    pub guard: Arc<str>,
    /// The policy's reason; where the match is not certain, why it is not.
    pub reason: Arc<str>,
    /// What the match hangs on.
    pub place: Site,
    /// Whether the call matches. Otherwise it may.
    pub certain: bool,
}

/// An answer, ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The call is not rewritten. It does not weaken another guard's `ask` or `deny`.
    Allow,
    /// Somebody has to approve.
    Ask,
    /// The call is not performed.
    Deny,
}

/// What of a call a match hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Site {
    /// Bytes of the command line; an empty range where the reading ended.
    Line(Range<usize>),
    /// An element of the list of words, counted from 0.
    Element(usize),
    /// A path, as the call names it.
    Path(String),
    /// The input as a whole.
    Input,
}

/// What the rewriting guards of a policy make of one call.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewrite {
    /// The call with another input.
    To {
        /// The guards that replaced something, in the order of the file.
        guards: Vec<Arc<str>>,
        /// The whole input of the tool.
        input: Value,
    },
    /// The call would have to be rewritten and cannot be rebuilt exactly. It means the same as [`Answer::Ask`].
    CannotRebuild {
        /// The guard that would rewrite.
        guard: Arc<str>,
        /// Why it cannot.
        reason: Arc<str>,
    },
}

impl Judgement {
    /// The answer that counts: the most severe one (`deny`, then `ask`, then `allow`), of several the first in the file. Nothing: no guard
    /// has anything against the call.
    #[must_use]
    pub fn winner(&self) -> Option<&Match> {
        self.matches.iter().reduce(|best, next| if next.answer > best.answer { next } else { best })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(bytes) if bytes.is_empty() => write!(f, "byte {} of the line", bytes.start),
            Self::Line(bytes) => write!(f, "bytes {} to {} of the line", bytes.start, bytes.end),
            Self::Element(at) => write!(f, "word {at}"),
            Self::Path(path) => write!(f, "path {path:?}"),
            Self::Input => f.write_str("the input"),
        }
    }
}
