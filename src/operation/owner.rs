//! What an operation's owner declares, and how it answers a proposal.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{OperationStatus, Performance};
use crate::clock::{Deadline, Timestamp};
use crate::declare::Digest;
use crate::id::{AttemptId, OperationId};
use crate::interception::{ChainFailure, Denied, Escalated, Judged, Permitted, Plan, Progress, Report, StageSpec};
use crate::signal::Subject;

/// The owner of one sort of operation. There is no global registry of hooks: each owner compiles its own plan (I-1).
pub trait Owner: Sized + Send + Sync + 'static {
    /// The owner's name in plans and records.
    const NAME: &'static str;
    /// What is judged, and what will be performed.
    type Context: Judged + Serialize;
    /// What performing gives back.
    type Output: Serialize + Send + Sync + 'static;

    /// The stages, in order. Those of the owner's own accept no registration (I-18).
    fn stages() -> Vec<StageSpec>;

    /// What a fact about the operation is about, for filters.
    fn subject(context: &Self::Context) -> Option<Subject> {
        let _none = context;
        None
    }

    /// How long performing may take by what was judged; the operation's own budget may be shorter.
    fn time_limit(context: &Self::Context) -> Option<Duration> {
        let _none = context;
        None
    }
}

/// What a result stage of an owner judges: how performing ended.
pub type ResultOf<O> = Performance<Arc<<O as Owner>::Output>>;

/// The compiled plan of an owner.
pub type OwnerPlan<O> = Plan<<O as Owner>::Context, ResultOf<O>>;

/// How much an operation writes of its own (I-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// No rows of its own: its facts reach the journal exactly as the session's audit says.
    Minimal,
    /// The pre-call evidence is control flow: where it cannot be appended, the operation is not performed. The closing fact is confirmed.
    Governed,
}

/// A proposal on its way to its owner. Only the proposing handle builds one (P-9).
pub struct Proposal<O: Owner> {
    pub(super) operation: OperationId,
    pub(super) attempt: AttemptId,
    pub(super) context: Arc<O::Context>,
    pub(super) digest: Digest,
    pub(super) deadline: Deadline,
    pub(super) progress: Progress,
}

impl<O: Owner> Proposal<O> {
    /// The operation.
    #[must_use]
    pub fn operation(&self) -> &OperationId {
        &self.operation
    }

    /// This attempt of it.
    #[must_use]
    pub fn attempt(&self) -> &AttemptId {
        &self.attempt
    }

    /// What is proposed.
    #[must_use]
    pub fn context(&self) -> &Arc<O::Context> {
        &self.context
    }

    /// Its digest, computed once by the proposer.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// When a ruling is due. Without one by then the proposal is denied.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Where the owner notes how far its chain came, so that a proposal whose proposer goes away is recorded with what was never called.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl<O: Owner> fmt::Debug for Proposal<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proposal({} {} {:?})", O::NAME, self.attempt, self.deadline)
    }
}

/// How an owner answers a proposal.
pub struct Ruling<O: Owner, P> {
    /// The answer.
    pub verdict: Verdict<O, P>,
    /// What each interceptor answered (I-8); `None` when no chain ran.
    pub report: Option<Report>,
}

/// What an owner rules.
pub enum Verdict<O: Owner, P> {
    /// It may be performed.
    Permit(Grant<O, P>),
    /// It must not be performed.
    Denied(Box<Denied<O::Context>>),
    /// Capacity asks to come back (I-9).
    Deferred {
        /// From when trying again makes sense.
        retry_at: Timestamp,
        /// What to tell.
        reason: String,
        /// Who deferred.
        registration: Arc<str>,
    },
    /// An approver has to be asked; this attempt is over (I-10).
    Escalated(Box<Escalated<O::Context>>),
    /// An interceptor could not answer, and its stage declares that the operation fails with it: not performed (I-3).
    Failed(Box<ChainFailure>),
}

/// What a permit is made of.
pub struct Grant<O: Owner, P> {
    /// The judged context and the basis of the permission.
    pub permitted: Permitted<O::Context>,
    /// The compiled plan that judged it; its result stages run after the operation.
    pub plan: OwnerPlan<O>,
    /// The place through which the permit is completed (P-14).
    pub place: P,
}

/// Decides proposals of one owner. The actors implement it; tests supply fakes.
pub trait Authorizer<O: Owner>: Send + Sync {
    /// The reserved place through which a permit is completed (P-14).
    type Place: CompletionPlace;

    /// Asks for a ruling. It never fails: whoever cannot decide denies.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor (I-4).
    fn propose(&self, proposal: Proposal<O>) -> impl Future<Output = Ruling<O, Self::Place>> + Send;
}

/// The reserved place in an owner's completion lane (P-14): completing is never refused.
pub trait CompletionPlace: Send + 'static {
    /// Tells the owner how the permitted attempt ended.
    fn complete(self, completion: Completion);

    /// Hands the owner what is left of an attempt whose caller has gone (I-4): it runs it to its end, which comes within the owner's declared
    /// bound, and is told by it how the attempt ended. An owner that has nobody to run it, or stops before its end, drops it: the attempt ends all
    /// the same, and what was not torn down stays.
    fn shield(self, rest: Shielded);
}

/// What is left of an attempt whose caller has gone: its teardown and its record. Dropping it ends the attempt at once.
pub type Shielded = BoxFuture<'static, Completion>;

/// How a permitted attempt ended: outcome class and digests only.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The attempt.
    pub attempt: AttemptId,
    /// How it ended.
    pub status: OperationStatus,
    /// The digest of what was permitted.
    pub effective: Digest,
}
