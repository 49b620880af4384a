//! A performed operation on its way to its record.

use std::fmt;
use std::sync::Arc;

use super::answer::{Answer, End};
use super::held::{Held, closing};
use super::performance::FailureClass;
use super::record::ResultRecord;
use super::teardown::Ending;
use super::{Audit, CompletionPlace, Failure, Granted, Owner, OwnerPlan, Performance, Profile, ResultOf};
use crate::clock::Deadline;
use crate::interception::{ResultEnd, ResultOutcome, Withheld};

/// An operation that was performed. Its result has not been looked at, and its end is not recorded yet.
#[must_use = "dropped, the attempt is recorded as ambiguous"]
pub struct Performed<O: Owner, A: Audit, P: CompletionPlace> {
    pub(super) held: Held<O, A, P>,
    pub(super) granted: Granted<O>,
    pub(super) plan: OwnerPlan<O>,
    pub(super) performance: Arc<ResultOf<O>>,
}

/// An operation whose result stages have answered.
#[must_use = "dropped, the attempt is recorded as ambiguous"]
pub struct Reviewed<O: Owner, A: Audit, P: CompletionPlace> {
    held: Held<O, A, P>,
    /// How performing ended: what is recorded.
    performance: Arc<ResultOf<O>>,
    /// What the caller gets.
    shown: Shown<O>,
}

enum Shown<O: Owner> {
    Result { performance: Arc<ResultOf<O>>, replaced: bool },
    Withheld(Box<Withheld>),
    Failed(Failure),
}

impl<O: Owner, A: Audit, P: CompletionPlace> Performed<O, A, P> {
    /// Runs the result stages: they may replace or keep back what the caller gets, never that the operation was performed (I-16).
    ///
    /// # Cancel safety
    /// Dropping the future records the attempt as ambiguous; where its owner tears down, as it was performed.
    pub async fn review(self) -> Reviewed<O, A, P> {
        let Self { mut held, plan, granted, performance } = self;
        let phase = match &*performance {
            Performance::Returned(_) => ResultEnd::Returned,
            Performance::Failed(_) | Performance::TimedOut | Performance::Unknown { .. } => ResultEnd::Error,
        };
        if !plan.has_result_stage(phase) {
            let shown = Shown::Result { performance: Arc::clone(&performance), replaced: false };
            return Reviewed { held, performance, shown };
        }
        let attempt = held.attempt();
        let deadline = Deadline::after(attempt.operation.ruling_budget);
        let mut report = attempt.report.take().unwrap_or_else(|| plan.report());
        let outcome = plan.apply_result(phase, granted.shared_context(), Arc::clone(&performance), deadline, &mut report).await;
        held.attempt().report = Some(report);
        let shown = match outcome {
            ResultOutcome::Kept { result, replaced } => Shown::Result { performance: result, replaced },
            ResultOutcome::Withheld(withheld) => Shown::Withheld(withheld),
            ResultOutcome::Failed(failure) => Shown::Failed(Failure::of(FailureClass::ResultStage, failure.to_string())),
        };
        Reviewed { held, performance, shown }
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> Reviewed<O, A, P> {
    /// Tears down where the owner does, records the end and answers the caller. Under [`Profile::Governed`] it waits until the record is committed, and
    /// says so if it is not (I-17).
    ///
    /// # Durability
    /// Under [`Profile::Minimal`] the closing fact is submitted, not confirmed.
    ///
    /// # Cancel safety
    /// Without a teardown, the closing fact is submitted at the first poll; dropping the future after it loses only the answer. With one, dropping the
    /// future hands the rest over to the owner: the teardown goes on from where it stands, and the closing fact follows it.
    pub async fn record(self) -> Answer<O> {
        let Self { mut held, performance, shown } = self;
        held.tear_down().await;
        let attempt = held.attempt();
        let digest = attempt.digest_of(&performance);
        let (profile, budget) = (attempt.operation.profile, attempt.operation.ruling_budget);
        let (status, mut record) = closing(&performance);
        record.result = Some(match &shown {
            Shown::Withheld(withheld) => ResultRecord::withheld(digest, withheld),
            Shown::Result { replaced, .. } => ResultRecord { digest, replaced: *replaced, withheld: None },
            Shown::Failed(_) => ResultRecord { digest, replaced: false, withheld: None },
        });
        match profile {
            Profile::Minimal => {
                let outcome = held.close(status, record);
                Answer { end: shown.into_end(), outcome }
            }
            Profile::Governed => match held.close_confirmed(status, record, Deadline::after(budget)).await {
                Ok(outcome) => Answer { end: shown.into_end(), outcome },
                Err((cause, outcome)) => {
                    Answer { end: End::PerformedUnrecorded { performance: (*performance).clone(), cause }, outcome }
                }
            },
        }
    }
}

impl<O: Owner> Shown<O> {
    fn into_end(self) -> End<O> {
        match self {
            Self::Withheld(withheld) => End::Withheld(withheld),
            Self::Failed(failure) => End::Failed(failure),
            Self::Result { performance, .. } => match &*performance {
                Performance::Returned(result) => End::Completed(Arc::clone(result)),
                Performance::Failed(failure) => End::Failed(failure.clone()),
                Performance::TimedOut => End::TimedOut,
                Performance::Unknown { reason } => End::Ambiguous { reason: reason.clone() },
            },
        }
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> fmt::Debug for Performed<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Performed").field("granted", &self.granted).finish_non_exhaustive()
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> fmt::Debug for Reviewed<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewed").field("end", &Ending::from(&*self.performance)).finish_non_exhaustive()
    }
}
