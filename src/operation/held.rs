//! What a permitted attempt holds until its end: its closing place, its owner's place, and its teardown if it has one.

use std::sync::Arc;

use super::attempt::Attempt;
use super::permit::OpenPermit;
use super::record::{self, ResultRecord};
use super::teardown::{Ending, Teardown};
use super::{Audit, Completion, CompletionPlace, OperationOutcome, OperationStatus, Owner, Performance, ResultOf, Unrecorded};
use crate::clock::Deadline;

/// A permitted attempt on its way to its end. Dropped, it ends all the same: with a teardown, that survives its caller (I-4).
pub(super) struct Held<O: Owner, A: Audit, P: CompletionPlace>(Option<Inner<O, A, P>>);

struct Inner<O: Owner, A: Audit, P: CompletionPlace> {
    attempt: Attempt<O, A>,
    // Dropped after the attempt has ended: fields drop in this order.
    open: OpenPermit<P>,
    teardown: Option<Teardown>,
    ended: Option<Ended<O>>,
}

/// How performing ended.
struct Ended<O: Owner> {
    ending: Ending,
    performance: Arc<ResultOf<O>>,
}

impl<O: Owner, A: Audit, P: CompletionPlace> Held<O, A, P> {
    pub(super) fn new(attempt: Attempt<O, A>, open: OpenPermit<P>, teardown: Option<Teardown>) -> Self {
        Self(Some(Inner { attempt, open, teardown, ended: None }))
    }

    /// Notes how performing ended: from here on a drop records that, where there is a teardown.
    pub(super) fn note(&mut self, ending: Ending, performance: Arc<ResultOf<O>>) {
        self.inner().ended = Some(Ended { ending, performance });
    }

    pub(super) fn attempt(&mut self) -> &mut Attempt<O, A> {
        &mut self.inner().attempt
    }

    /// Runs the teardown, if there is one.
    ///
    /// Dropping the future hands the rest of it over to the owner.
    pub(super) async fn tear_down(&mut self) {
        let inner = self.inner();
        let ending = inner.ended.as_ref().map_or(Ending::CallerGone, |ended| ended.ending);
        if let Some(teardown) = &mut inner.teardown {
            inner.attempt.teardown = Some(teardown.run(ending).await);
        }
        inner.teardown = None;
    }

    /// Ends the attempt, then tells the owner.
    pub(super) fn close(self, status: OperationStatus, end: record::End<'_>) -> OperationOutcome {
        let (attempt, _open) = self.take();
        attempt.close(status, end)
    }

    /// Ends the attempt and waits until that is committed, then tells the owner.
    pub(super) async fn close_confirmed(
        self,
        status: OperationStatus,
        end: record::End<'_>,
        deadline: Deadline,
    ) -> Result<OperationOutcome, (Unrecorded, OperationOutcome)> {
        // Dropped in reverse: the attempt ends before its owner is told.
        let (attempt, _open) = self.take();
        attempt.close_confirmed(status, end, deadline).await
    }

    fn inner(&mut self) -> &mut Inner<O, A, P> {
        self.0.as_mut().expect("only the end of the attempt, which takes this by value, leaves it empty")
    }

    fn take(mut self) -> (Attempt<O, A>, OpenPermit<P>) {
        let Inner { attempt, open, .. } = self.0.take().expect("an attempt is ended once, by value");
        (attempt, open)
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> Drop for Held<O, A, P> {
    fn drop(&mut self) {
        let Some(inner) = self.0.take() else { return };
        // Without a teardown: the attempt ends where it stands, and then the owner is told.
        let Inner { attempt, open, teardown: Some(teardown), ended } = inner else { return };
        if let Some((place, completion)) = open.take() {
            place.shield(Box::pin(survive(attempt, teardown, ended, completion)));
        }
    }
}

/// The end of an attempt whose caller has gone.
async fn survive<O: Owner, A: Audit>(
    mut attempt: Attempt<O, A>,
    mut teardown: Teardown,
    ended: Option<Ended<O>>,
    completion: impl FnOnce() -> Completion,
) -> Completion {
    let ending = ended.as_ref().map_or(Ending::CallerGone, |ended| ended.ending);
    attempt.teardown = Some(teardown.run(ending).await);
    match ended {
        Some(Ended { performance, .. }) => {
            let (status, mut end) = closing(&performance);
            end.result = Some(ResultRecord { digest: attempt.digest_of(&performance), replaced: false, withheld: None });
            let _nobody_asks = attempt.close(status, end);
        }
        // It ends as ambiguous, as every attempt that is dropped while it is being performed.
        None => drop(attempt),
    }
    completion()
}

/// How an attempt closes after this end of performing.
pub(super) fn closing<T>(performance: &Performance<T>) -> (OperationStatus, record::End<'_>) {
    let end = record::End::default();
    match performance {
        Performance::Returned(_) => (OperationStatus::Completed, end),
        Performance::Failed(failure) => (OperationStatus::Failed, record::End { failure: Some(failure), ..end }),
        Performance::TimedOut => (OperationStatus::TimedOut, end),
        Performance::Unknown { reason } => (OperationStatus::Ambiguous, record::End { reason: Some(reason), ..end }),
    }
}
