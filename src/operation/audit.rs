//! What an operation asks of the observation plane: two places before anything runs, and a closing fact that is never refused.

use std::fmt;
use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::clock::{Deadline, Timestamp};
use crate::id::{AttemptId, OperationId, SessionId};
use crate::signal::{Signal, SignalSeq};

/// How a session's facts must reach the journal (P-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditMode {
    /// A proposal that the journal cannot take is denied before any interceptor runs.
    Required,
    /// Facts go to the journal; one that cannot is counted, and nothing is denied for it.
    BestEffort,
    /// No journal.
    Off,
}

/// Why a required journal took no proposal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditUnavailable {
    /// No room before the deadline: nothing was lost, try again after the journal has caught up.
    #[error("the journal had no room for the two facts of this proposal")]
    Full,
    /// The journal refuses writes or is gone.
    #[error("the journal does not accept writes: {reason}")]
    Refusing {
        /// What it last said.
        reason: String,
    },
    /// The session asks for a journal and the runtime has none.
    #[error("the session requires an audit, but the runtime has no store: give the runtime one, or choose another audit mode")]
    NoJournal,
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
    /// The attempt is open already: it was proposed, and has no end yet. Nothing is recorded under its identity a second time (I-12).
    #[error("attempt {attempt} is open already: a retry is a new attempt")]
    AttemptOpen {
        /// The attempt.
        attempt: AttemptId,
    },
}

/// Why a fact is not known to be in the journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unrecorded {
    /// There is no journal to confirm anything.
    #[error("there is no journal")]
    NoJournal,
    /// The journal answered with a refusal; the fact is counted as lost.
    #[error("the journal refused the fact: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// No answer before the deadline: the fact may or may not be there.
    #[error("the journal did not confirm in time")]
    Late,
}

/// The observation plane, as an operation sees it: the admission of one session's facts.
///
/// An implementor keeps the order of submission, never blocks in [`ClosingPlace::close`], and counts every fact that it cannot record.
pub trait Audit: Clone + Send + Sync + 'static {
    /// A reserved place for the closing fact.
    type Place: ClosingPlace;

    /// The session.
    fn session(&self) -> &SessionId;

    /// Wall time for records.
    fn now(&self) -> Timestamp;

    /// Whether anything looks at facts now. Where nothing does, no payload is built.
    fn is_watched(&self) -> bool;

    /// Whether facts are submitted to a journal at all.
    fn is_recorded(&self) -> bool;

    /// Claims the attempt, reserves two places in the journal and submits the proposal's fact into the first (P-9). The claim ends with the place.
    ///
    /// # Errors
    /// [`AuditUnavailable::AttemptOpen`] and [`AuditUnavailable::SessionEnded`] in every mode, the others under [`AuditMode::Required`] only. Nothing was
    /// submitted.
    ///
    /// # Cancel safety
    /// Cancel safe: until it returns, nothing is submitted.
    fn propose(
        &self,
        operation: &OperationId,
        attempt: &AttemptId,
        fact: impl FnOnce() -> Signal + Send,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Self::Place, AuditUnavailable>> + Send;

    /// Submits a fact and waits until it is committed.
    ///
    /// # Errors
    /// [`Unrecorded`] when it is not known to be committed.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws nothing that was submitted.
    fn confirm(&self, fact: Signal, deadline: Deadline) -> impl Future<Output = Result<SignalSeq, Unrecorded>> + Send;
}

/// The reserved place for the fact that closes an attempt.
pub trait ClosingPlace: fmt::Debug + Send + 'static {
    /// Submits the closing fact without waiting. It is never refused for want of room: the place was reserved.
    fn close(self, fact: impl FnOnce() -> Signal);

    /// Submits the closing fact and waits until it is committed.
    ///
    /// # Errors
    /// [`Unrecorded`] when it is not known to be committed.
    ///
    /// # Cancel safety
    /// The fact is submitted at the first poll; dropping the future after it only stops the waiting.
    fn close_confirmed(self, fact: Signal, deadline: Deadline) -> impl Future<Output = Result<SignalSeq, Unrecorded>> + Send;
}
