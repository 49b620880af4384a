//! How performing an operation ended, as its body says it.

use std::fmt;

use serde::Serialize;

use crate::declare::{CanonicalError, Digest, digest_of};
use crate::interception::Judged;

/// Why a performed operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    class: FailureClass,
    message: String,
}

/// The class of a failure. Only [`Self::Error`] comes from the body's own answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The body returned an error.
    Error,
    /// The body panicked; nothing unwound into the runtime.
    Panic,
    /// Not performed: an interceptor failed before it, and its stage propagates that.
    Interceptor,
    /// A result stage failed after the body returned, and its plan propagates that.
    ResultStage,
}

impl Failure {
    /// A failure that the body reports.
    #[must_use]
    pub fn new(error: impl fmt::Display) -> Self {
        Self { class: FailureClass::Error, message: error.to_string() }
    }

    pub(super) fn of(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// Its class.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        self.class
    }

    /// What the error said.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// How performing ended. A body that returns a `Result` need not name this type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Performance<T> {
    /// It returned.
    Returned(T),
    /// It failed.
    Failed(Failure),
    /// It ended at its deadline.
    TimedOut,
    /// It is not known whether, or how far, it ran: the attempt is ambiguous and is never retried under its identity (I-12).
    Unknown {
        /// What is known.
        reason: String,
    },
}

impl<T> Performance<T> {
    /// The same end with another result.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Performance<U> {
        match self {
            Self::Returned(value) => Performance::Returned(map(value)),
            Self::Failed(failure) => Performance::Failed(failure),
            Self::TimedOut => Performance::TimedOut,
            Self::Unknown { reason } => Performance::Unknown { reason },
        }
    }
}

impl<T: Serialize + Send + Sync + 'static> Judged for Performance<T> {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

/// What a body may return: a [`Performance`], or a `Result` whose error becomes a [`Failure`].
pub trait IntoPerformance<T> {
    /// The performance.
    fn into_performance(self) -> Performance<T>;
}

impl<T> IntoPerformance<T> for Performance<T> {
    fn into_performance(self) -> Self {
        self
    }
}

impl<T, E: fmt::Display> IntoPerformance<T> for Result<T, E> {
    fn into_performance(self) -> Performance<T> {
        match self {
            Ok(value) => Performance::Returned(value),
            Err(error) => Performance::Failed(Failure::new(error)),
        }
    }
}
