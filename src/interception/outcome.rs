//! What a chain answers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::decision::{AskRequest, Note};
use super::denial::{Denial, DenialCause};
use super::error::ChainFailure;
use crate::clock::Timestamp;
use crate::declare::Digest;

/// What the stages before the operation answered.
#[must_use = "an operation is performed only when the outcome is `Permitted`"]
pub enum ChainOutcome<C> {
    /// The operation may be performed, with this context and no other.
    Permitted(Permitted<C>),
    /// It is denied.
    Denied(Box<Denied<C>>),
    /// There is no room now (I-9).
    Deferred {
        /// From when trying again makes sense.
        retry_at: Timestamp,
        /// What to tell.
        reason: String,
        /// Who deferred.
        registration: Arc<str>,
    },
    /// A named approver must decide; this attempt ends (I-10).
    Escalated(Box<Escalated<C>>),
    /// An interceptor could not answer, and its stage declares that the operation fails with it (I-3).
    Failed(Box<ChainFailure>),
}

/// Never shows the context.
impl<C> fmt::Debug for ChainOutcome<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permitted(permit) => permit.fmt(f),
            Self::Denied(denied) => denied.fmt(f),
            Self::Deferred { retry_at, reason, registration } => f
                .debug_struct("Deferred")
                .field("retry_at", retry_at)
                .field("reason", reason)
                .field("registration", registration)
                .finish(),
            Self::Escalated(escalated) => escalated.fmt(f),
            Self::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
        }
    }
}

/// On what a permission rests (I-22). Only `Enforced` is evidence of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The decisions bind.
    Enforced,
    /// The seam cannot be enforced; the decisions are on record (I-21).
    Advisory,
    /// The plan only evaluates: it is reported what it would have answered.
    NotEnforced,
}

/// A permission.
pub struct Permitted<C> {
    /// The judged context: what is performed is this value.
    pub context: Arc<C>,
    /// Its digest.
    pub digest: Digest,
    /// On what the permission rests.
    pub basis: Basis,
    /// The labels of all decisions that stand, in plan order, each once.
    pub labels: Vec<Arc<str>>,
    /// The notes of all decisions, in plan order.
    pub notes: Vec<Note>,
    /// What the first interceptor that would have ended the chain answered, where the plan only evaluates.
    pub would_have: Option<Box<WouldHave>>,
}

/// Never shows the context.
impl<C> fmt::Debug for Permitted<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { context: _, digest, basis, labels, notes, would_have } = self;
        f.debug_struct("Permitted")
            .field("digest", digest)
            .field("basis", basis)
            .field("labels", labels)
            .field("notes", notes)
            .field("would_have", would_have)
            .finish_non_exhaustive()
    }
}

/// What a plan that only evaluates would have answered instead of a permission (I-22).
#[derive(Debug)]
pub enum WouldHave {
    /// Denied.
    Denied(Denial),
    /// Deferred.
    Deferred {
        /// From when trying again would have made sense.
        retry_at: Timestamp,
        /// Who would have deferred.
        registration: Arc<str>,
    },
    /// Asked a named approver.
    Escalated(Vec<Escalation>),
    /// Failed.
    Failed(ChainFailure),
}

/// A denial with what it carried.
pub struct Denied<C> {
    /// The denial.
    pub denial: Denial,
    /// Whether the owner is asked to stop altogether.
    pub owner_stop: bool,
    /// The replacement that the denial carried: observed, never performed.
    pub observed: Option<Arc<C>>,
    /// The notes of all decisions, in plan order.
    pub notes: Vec<Note>,
}

/// Never shows the replacement.
impl<C> fmt::Debug for Denied<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { denial, owner_stop, observed, notes } = self;
        f.debug_struct("Denied")
            .field("denial", denial)
            .field("owner_stop", owner_stop)
            .field("observed", &observed.is_some())
            .field("notes", notes)
            .finish()
    }
}

/// An attempt that ends because a person must decide. Approval starts a new attempt (I-10).
pub struct Escalated<C> {
    /// The approver that the plan names.
    pub approver: Arc<str>,
    /// Every ask that stands, in plan order; at least one.
    pub asks: Vec<Escalation>,
    /// The context that is to be approved.
    pub context: Arc<C>,
    /// Its digest.
    pub digest: Digest,
    /// The notes of all decisions, in plan order.
    pub notes: Vec<Note>,
}

/// Never shows the context.
impl<C> fmt::Debug for Escalated<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { approver, asks, context: _, digest, notes } = self;
        f.debug_struct("Escalated")
            .field("approver", approver)
            .field("asks", asks)
            .field("digest", digest)
            .field("notes", notes)
            .finish_non_exhaustive()
    }
}

/// One ask that stands at the end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// The asker's stage.
    pub stage: Arc<str>,
    /// The asker.
    pub registration: Arc<str>,
    /// What it asks.
    pub request: AskRequest,
}

/// What the result stages answered. None of them changes that the operation was performed (I-16).
#[must_use]
pub enum ResultOutcome<R> {
    /// The result goes to the caller.
    Kept {
        /// The result, as it stands after all replacements.
        result: Arc<R>,
        /// Whether an interceptor replaced it.
        replaced: bool,
    },
    /// The caller gets no result.
    Withheld(Box<Withheld>),
    /// An interceptor could not answer, and its stage declares that the answer fails with it (I-3).
    Failed(Box<ChainFailure>),
}

/// Never shows the result.
impl<R> fmt::Debug for ResultOutcome<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept { result: _, replaced } => f.debug_struct("Kept").field("replaced", replaced).finish_non_exhaustive(),
            Self::Withheld(withheld) => f.debug_tuple("Withheld").field(withheld).finish(),
            Self::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
        }
    }
}

/// Why a caller gets no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Withheld {
    /// What to tell.
    pub reason: String,
    /// [`DenialCause::Policy`] when an interceptor withheld it, otherwise the class of the failure that withholds it.
    pub cause: DenialCause,
    /// The stage.
    pub stage: Arc<str>,
    /// The registration.
    pub registration: Arc<str>,
}
