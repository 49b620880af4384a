//! An operation that has begun, and whose owner tears down after it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::held::Held;
use super::permit::{budget, run};
use super::teardown::{Ending, Teardown, TearsDown};
use super::{
    Audit, CompletionPlace, Failure, Granted, IntoPerformance, OperationStatus, OwnerPlan, Performance, Performed, Permit,
    StatusCell,
};
use crate::cancel::Cancellation;

/// An operation that has begun. Dropped, its teardown runs all the same, with its owner, and the attempt is recorded as ambiguous (I-4, P-14).
#[must_use = "dropped, the attempt is torn down and recorded as ambiguous"]
pub struct Performing<O: TearsDown, A: Audit, P: CompletionPlace> {
    held: Held<O, A, P>,
    granted: Granted<O>,
    plan: OwnerPlan<O>,
    budget: Option<Duration>,
    status: StatusCell,
}

impl<O: TearsDown, A: Audit, P: CompletionPlace> Permit<O, A, P> {
    /// Begins the operation, with what has to be torn down after it: at most once per attempt, because this takes the permit (I-12).
    ///
    /// The teardown is called once, whatever becomes of the operation and of its caller. It is told how performing ended, and is asked to stop at
    /// the owner's bound; what has not stopped within its grace is dropped.
    pub fn begin<F, Fut>(self, teardown: F) -> Performing<O, A, P>
    where
        F: FnOnce(Ending, Cancellation) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let Self { open, plan, granted, attempt } = self;
        // A refusal is reported by the cell. It cannot happen: a permit exists once, and its attempt was pending.
        let _refused = attempt.status.set(OperationStatus::Running);
        let (budget, status) = (budget(&attempt, &granted), attempt.status.clone());
        let held = Held::new(attempt, open, Some(Teardown::new(O::TEARDOWN, teardown)));
        Performing { held, granted, plan, budget, status }
    }
}

impl<O: TearsDown, A: Audit, P: CompletionPlace> Performing<O, A, P> {
    /// What was permitted.
    #[must_use]
    pub fn granted(&self) -> &Granted<O> {
        &self.granted
    }

    /// The status of the attempt, for those who wait for its end.
    #[must_use]
    pub fn status(&self) -> StatusCell {
        self.status.clone()
    }

    /// Within what it has to be performed.
    pub(super) fn budget(&self) -> Option<Duration> {
        self.budget
    }

    /// Runs the body to its end, as [`Permit::perform`].
    ///
    /// # Cancel safety
    /// Dropping the future drops the body's future wherever it stands. The teardown runs with the owner; the attempt is recorded as ambiguous.
    pub async fn run<F, Fut, R>(self, body: F) -> Performed<O, A, P>
    where
        F: FnOnce(Granted<O>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<O::Output>,
    {
        let performance = run(self.granted.clone(), self.budget, body).await;
        self.ended(performance)
    }

    /// Says how performing ended, for an owner that drives it step by step.
    pub fn ended(self, performance: Performance<O::Output>) -> Performed<O, A, P> {
        let ending = Ending::from(&performance);
        self.ended_as(ending, Arc::new(performance.map(Arc::new)))
    }

    /// Notes how performing ended, while more is to be done before its record.
    pub(super) fn note(&mut self, ending: Ending, performance: Arc<super::ResultOf<O>>) {
        self.held.note(ending, performance);
    }

    pub(super) fn ended_as(self, ending: Ending, performance: Arc<super::ResultOf<O>>) -> Performed<O, A, P> {
        let Self { mut held, granted, plan, .. } = self;
        held.note(ending, Arc::clone(&performance));
        Performed { held, granted, plan, performance }
    }
}

impl<O: TearsDown, A: Audit, P: CompletionPlace> fmt::Debug for Performing<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Performing").field("granted", &self.granted).field("status", &self.status.get()).finish_non_exhaustive()
    }
}
