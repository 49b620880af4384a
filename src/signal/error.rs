//! Why a fact cannot be built, a redaction cannot be declared, or a predicate cannot tell.

use std::fmt;

use super::redact::MAX_REDACTIONS;

/// Why a fact cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// A kind has no namespace, or one that is not its author's to use.
    #[error("signal kind {name:?} is not `namespace.name` of lower-case letters, digits, `_` and `-`: {remedy}")]
    Kind {
        /// The refused name.
        name: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A role, subject or payload type is empty, too long or holds a control character.
    #[error("{what} {text:?} must be 1 to 256 printable bytes")]
    Name {
        /// Which member.
        what: &'static str,
        /// The refused text.
        text: String,
    },
    /// The payload cannot be written as JSON.
    #[error("the payload of type {payload_type} cannot be written as JSON")]
    Payload {
        /// The declared type of the payload.
        payload_type: String,
        /// What serialisation said.
        #[source]
        source: serde_json::Error,
    },
}

/// Why something is no redaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRedaction {
    /// A field path cannot be read.
    #[error("field path {path:?} is wrong at byte {at}: {why}")]
    Path {
        /// The path.
        path: String,
        /// Where.
        at: usize,
        /// What is wrong, and what is right.
        why: &'static str,
    },
    /// A pattern is no regular expression that can be used.
    #[error("pattern {pattern:?} cannot be used: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// There are more than [`MAX_REDACTIONS`].
    #[error("{given} redactions are too many: a session has at most {MAX_REDACTIONS}")]
    TooMany {
        /// How many were given.
        given: usize,
    },
}

/// A predicate could not tell whether it wants a fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the predicate could not tell: {why}")]
pub struct PredicateError {
    why: String,
}

impl PredicateError {
    /// With what the predicate says about it.
    #[must_use]
    pub fn new(why: impl fmt::Display) -> Self {
        Self { why: why.to_string() }
    }
}
