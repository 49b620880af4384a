//! A performed operation on its way to its record.

use std::fmt;
use std::sync::Arc;

use super::answer::{Answer, End};
use super::attempt::Attempt;
use super::performance::FailureClass;
use super::permit::OpenPermit;
use super::record::{self, ResultRecord};
use super::{Audit, CompletionPlace, Failure, Granted, OperationStatus, Owner, OwnerPlan, Performance, Profile, ResultOf};
use crate::clock::Deadline;
use crate::interception::{Judged, ResultOutcome, ResultPhase, Withheld};

/// An operation that was performed. Its result has not been looked at, and its end is not recorded yet.
#[must_use = "dropped, the attempt is recorded as ambiguous"]
pub struct Performed<O: Owner, A: Audit, P: CompletionPlace> {
    pub(super) attempt: Attempt<O, A>,
    pub(super) granted: Granted<O>,
    pub(super) plan: OwnerPlan<O>,
    pub(super) open: OpenPermit<P>,
    pub(super) performance: ResultOf<O>,
}

/// An operation whose result stages have answered.
#[must_use = "dropped, the attempt is recorded as ambiguous"]
pub struct Reviewed<O: Owner, A: Audit, P: CompletionPlace> {
    attempt: Attempt<O, A>,
    /// How performing ended: what is recorded.
    performance: Arc<ResultOf<O>>,
    /// What the caller gets.
    shown: Shown<O>,
    open: OpenPermit<P>,
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
    /// Dropping the future records the attempt as ambiguous.
    pub async fn review(self) -> Reviewed<O, A, P> {
        let Self { mut attempt, granted, plan, open, performance } = self;
        let performance = Arc::new(performance);
        let phase = match &*performance {
            Performance::Returned(_) => ResultPhase::Returned,
            Performance::Failed(_) | Performance::TimedOut | Performance::Unknown { .. } => ResultPhase::Error,
        };
        if !plan.has_result_stage(phase) {
            let shown = Shown::Result { performance: Arc::clone(&performance), replaced: false };
            return Reviewed { attempt, performance, shown, open };
        }
        let deadline = Deadline::after(attempt.operation.ruling_budget);
        let mut report = attempt.report.take().unwrap_or_else(|| plan.report());
        let outcome = plan.apply_result(phase, granted.shared_context(), Arc::clone(&performance), deadline, &mut report).await;
        attempt.report = Some(report);
        let shown = match outcome {
            ResultOutcome::Kept { result, replaced } => Shown::Result { performance: result, replaced },
            ResultOutcome::Withheld(withheld) => Shown::Withheld(withheld),
            ResultOutcome::Failed(failure) => Shown::Failed(Failure::of(FailureClass::ResultStage, failure.to_string())),
        };
        Reviewed { attempt, performance, shown, open }
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> Reviewed<O, A, P> {
    /// Records the end and answers the caller. Under [`Profile::Governed`] it waits until the record is committed, and says so if it is not (I-17).
    ///
    /// # Durability
    /// Under [`Profile::Minimal`] the closing fact is submitted, not confirmed.
    ///
    /// # Cancel safety
    /// The closing fact is submitted at the first poll; dropping the future after it loses only the answer.
    pub async fn record(self) -> Answer<O> {
        let Self { attempt, performance, shown, open } = self;
        let status = status_of(&performance);
        let digest = attempt.audit.is_watched().then(|| performance.digest().ok()).flatten();
        let mut record = record::End::default();
        match &*performance {
            Performance::Failed(failure) => record.failure = Some(failure),
            Performance::Unknown { reason } => record.reason = Some(reason),
            Performance::Returned(_) | Performance::TimedOut => {}
        }
        record.result = Some(match &shown {
            Shown::Withheld(withheld) => ResultRecord::withheld(digest, withheld),
            Shown::Result { replaced, .. } => ResultRecord { digest, replaced: *replaced, withheld: None },
            Shown::Failed(_) => ResultRecord { digest, replaced: false, withheld: None },
        });
        let answer = match attempt.operation.profile {
            Profile::Minimal => {
                let outcome = attempt.close(status, record);
                Answer { end: shown.into_end(), outcome }
            }
            Profile::Governed => {
                let deadline = Deadline::after(attempt.operation.ruling_budget);
                match attempt.close_confirmed(status, record, deadline).await {
                    Ok(outcome) => Answer { end: shown.into_end(), outcome },
                    Err((cause, outcome)) => Answer { end: End::PerformedUnrecorded { performance: (*performance).clone(), cause }, outcome },
                }
            }
        };
        drop(open);
        answer
    }
}

fn status_of<T>(performance: &Performance<T>) -> OperationStatus {
    match performance {
        Performance::Returned(_) => OperationStatus::Completed,
        Performance::Failed(_) => OperationStatus::Failed,
        Performance::TimedOut => OperationStatus::TimedOut,
        Performance::Unknown { .. } => OperationStatus::Ambiguous,
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
        f.debug_tuple("Performed").field(&self.attempt).finish()
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> fmt::Debug for Reviewed<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reviewed").field(&self.attempt).finish()
    }
}
