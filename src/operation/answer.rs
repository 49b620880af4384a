//! What the caller of an operation gets.

use std::sync::Arc;

use super::{AuditUnavailable, Failure, OperationStatus, Owner, Profile, ResultOf, TeardownEnd, Unrecorded};
use crate::clock::Timestamp;
use crate::declare::Digest;
use crate::id::{AttemptId, OperationId};
use crate::interception::{Basis, ChainFailure, Denial, Escalated, Report, Withheld};
use crate::signal::SignalSeq;

/// The end of one attempt, as its caller sees it.
#[must_use = "an operation may have been denied: look at its end"]
pub struct Answer<O: Owner> {
    /// How it ended.
    pub end: End<O>,
    /// Identities, status and what was judged.
    pub outcome: OperationOutcome,
}

/// How one attempt ended.
pub enum End<O: Owner> {
    /// It was performed, and this is its result.
    Completed(Arc<O::Output>),
    /// It was performed, and a result stage keeps its result back (I-16). The recorded outcome stays completed.
    Withheld(Box<Withheld>),
    /// It was performed and failed.
    Failed(Failure),
    /// It was performed and ended at its deadline.
    TimedOut,
    /// It is not known whether, or how far, it ran.
    Ambiguous {
        /// What is known.
        reason: String,
    },
    /// It was not performed.
    Denied(Denial),
    /// It was not performed: come back later (I-9).
    Deferred {
        /// From when trying again makes sense.
        retry_at: Timestamp,
        /// What to tell.
        reason: String,
    },
    /// It was not performed: an approver has to be asked (I-10).
    Escalated(Box<Escalated<O::Context>>),
    /// It was not performed: an interceptor could not answer, and its stage declares that the operation fails with it (I-3).
    NotPerformed(Box<ChainFailure>),
    /// It was performed, and the evidence of its end could not be stored (I-17). Not a failure: never retry it as one.
    PerformedUnrecorded {
        /// How performing ended.
        performance: ResultOf<O>,
        /// Why it is not recorded.
        cause: Unrecorded,
    },
}

/// Identities, status and what was judged.
#[derive(Debug)]
pub struct OperationOutcome {
    /// The operation.
    pub operation: OperationId,
    /// This attempt of it.
    pub attempt: AttemptId,
    /// How it ended.
    pub status: OperationStatus,
    /// What it wrote of its own (I-11).
    pub profile: Profile,
    /// On what the permission rested; `None` where there was none (I-22).
    pub basis: Option<Basis>,
    /// The digest of what was proposed; `None` when it has no canonical form, which is denied.
    pub requested: Option<Digest>,
    /// The digest of what was permitted.
    pub effective: Option<Digest>,
    /// What each interceptor answered (I-8); `None` when no chain ran.
    pub report: Option<Report>,
    /// How the owner's teardown ended, where it has one and it was reached.
    pub teardown: Option<TeardownEnd>,
    /// How the closing fact stands.
    pub recorded: RecordState,
}

/// How the closing fact of an attempt stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordState {
    /// The session has no audit.
    Off,
    /// Submitted to the journal; not waited for.
    Submitted,
    /// Committed at this position.
    Confirmed(SignalSeq),
    /// Not known to be committed; counted as lost.
    Unrecorded(Unrecorded),
    /// Nothing could be submitted, and so nothing was called.
    Unavailable(AuditUnavailable),
}

impl<O: Owner> Answer<O> {
    /// The result, if there is one for the caller.
    #[must_use]
    pub fn result(&self) -> Option<&O::Output> {
        match &self.end {
            End::Completed(result) => Some(result),
            _ => None,
        }
    }

    /// The denial, if it was denied.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match &self.end {
            End::Denied(denial) => Some(denial),
            _ => None,
        }
    }

    /// Whether the operation may have had an effect. `false` only where it certainly was not performed.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        match &self.end {
            End::Completed(_)
            | End::Withheld(_)
            | End::Failed(_)
            | End::TimedOut
            | End::Ambiguous { .. }
            | End::PerformedUnrecorded { .. } => true,
            End::Denied(_) | End::Deferred { .. } | End::Escalated(_) | End::NotPerformed(_) => false,
        }
    }
}

impl<O: Owner> std::fmt::Debug for Answer<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("end", &self.outcome.status).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
