//! The other answers, the interceptor's turn, and how closures answer.

use std::sync::Arc;

use super::decision::Decision;
use super::error::InterceptError;
use crate::clock::{Deadline, Timestamp};
use crate::declare::Digest;

/// What an interceptor is told beside the context.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    digest: Digest,
    deadline: Deadline,
    again: bool,
}

impl Turn {
    #[inline]
    pub(super) const fn new(deadline: Deadline, digest: Digest, again: bool) -> Self {
        Self { digest, deadline, again }
    }

    /// The instant from which an answer counts as a timeout: the earliest of the registration's bound, the stage's deadline and the proposal's (I-3).
    #[must_use]
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The digest of what is judged (I-6). An approval or a cached answer may be bound to it.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether a guard runs again because a transform changed the context (I-5).
    #[must_use]
    pub const fn is_again(&self) -> bool {
        self.again
    }
}

/// The answer of an admission interceptor: capacity, not authorization (I-9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Admit,
    /// There is no room now. Never security evidence.
    Defer {
        /// From when trying again makes sense.
        retry_at: Timestamp,
        /// What to tell.
        reason: String,
    },
}

/// The answer of a result interceptor (I-15). It changes what the caller gets, never that the operation was performed (I-16).
#[derive(Debug)]
pub enum ResultDecision<R> {
    /// Hands the result on.
    Keep,
    /// Hands on another result.
    Replace(Arc<R>),
    /// Hands on no result. The recorded outcome stays.
    Withhold {
        /// What to tell.
        reason: String,
    },
}

impl<R> ResultDecision<R> {
    /// Hands on another result.
    pub fn replace(result: impl Into<Arc<R>>) -> Self {
        Self::Replace(result.into())
    }

    /// Hands on no result.
    pub fn withhold(reason: impl Into<String>) -> Self {
        Self::Withhold { reason: reason.into() }
    }
}

/// What a closure may return as an answer of type `A`: the answer itself, or a `Result` with any error.
pub trait IntoAnswer<A> {
    /// The answer, or why there is none.
    ///
    /// # Errors
    /// The interceptor's own error. Its stage declares what that means (I-3).
    fn into_answer(self) -> Result<A, InterceptError>;
}

impl<C> IntoAnswer<Self> for Decision<C> {
    fn into_answer(self) -> Result<Self, InterceptError> {
        Ok(self)
    }
}

impl IntoAnswer<Self> for Admission {
    fn into_answer(self) -> Result<Self, InterceptError> {
        Ok(self)
    }
}

impl<R> IntoAnswer<Self> for ResultDecision<R> {
    fn into_answer(self) -> Result<Self, InterceptError> {
        Ok(self)
    }
}

impl<A, E: Into<InterceptError>> IntoAnswer<A> for Result<A, E> {
    fn into_answer(self) -> Result<A, InterceptError> {
        self.map_err(Into::into)
    }
}
