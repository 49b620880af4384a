//! Permission to perform one operation, once.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::timeout_at;

use super::answer::Answer;
use super::attempt::{Attempt, fact};
use super::contained::{contained, panic_text};
use super::held::Held;
use super::performance::FailureClass;
use super::record::EvidenceRecord;
use super::teardown::Ending;
use super::{
    Audit, Completion, CompletionPlace, Failure, Grant, IntoPerformance, OperationStatus, Owner, OwnerPlan, Performance,
    Performed, Profile, StatusCell,
};
use crate::clock::Deadline;
use crate::declare::Digest;
use crate::id::{AttemptId, OperationId};
use crate::interception::{Basis, Denial, DenialCause, Note, Permitted, Report};
use crate::signal::SignalKind;

/// What was permitted: the judged context and the basis of the permission. Cheap to clone; having one permits nothing.
pub struct Granted<O: Owner>(Arc<Inner<O>>);

struct Inner<O: Owner> {
    operation: OperationId,
    attempt: AttemptId,
    permitted: Permitted<O::Context>,
}

impl<O: Owner> Granted<O> {
    pub(super) fn new(operation: OperationId, attempt: AttemptId, permitted: Permitted<O::Context>) -> Self {
        Self(Arc::new(Inner { operation, attempt, permitted }))
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> &OperationId {
        &self.0.operation
    }

    /// This attempt of it: the idempotency key for what the body does outside.
    #[must_use]
    pub fn attempt(&self) -> &AttemptId {
        &self.0.attempt
    }

    /// The judged context. Perform this and nothing else: it may differ from what was proposed.
    #[must_use]
    pub fn context(&self) -> &O::Context {
        &self.0.permitted.context
    }

    pub(super) fn shared_context(&self) -> &Arc<O::Context> {
        &self.0.permitted.context
    }

    /// Its digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.permitted.digest
    }

    /// On what the permission rests. Only [`Basis::Enforced`] is evidence of a permission (I-22).
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.0.permitted.basis
    }

    /// The labels of all decisions that stand.
    #[must_use]
    pub fn labels(&self) -> &[Arc<str>] {
        &self.0.permitted.labels
    }

    /// The notes of all decisions.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.0.permitted.notes
    }
}

impl<O: Owner> Clone for Granted<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: Owner> fmt::Debug for Granted<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted").field("attempt", &self.0.attempt).field("permitted", &self.0.permitted).finish()
    }
}

/// Permission to perform one operation, once. It is not `Clone` and is consumed by performing; dropped unused, the operation is recorded as
/// abandoned (P-14).
#[must_use = "a permit that is dropped records an abandoned operation"]
pub struct Permit<O: Owner, A: Audit, P: CompletionPlace> {
    pub(super) attempt: Attempt<O, A>,
    pub(super) granted: Granted<O>,
    pub(super) plan: OwnerPlan<O>,
    // Dropped after the attempt has ended: fields drop in this order.
    pub(super) open: OpenPermit<P>,
}

/// The owner's reserved place for the completion of one permit. Whatever happens to the permit, its owner is told (P-14).
pub(super) struct OpenPermit<P: CompletionPlace> {
    place: Option<P>,
    attempt: AttemptId,
    effective: Digest,
    status: StatusCell,
}

impl<P: CompletionPlace> OpenPermit<P> {
    /// The place, and what its owner is told once the attempt has ended; `None` when it was told.
    pub(super) fn take(mut self) -> Option<(P, impl FnOnce() -> Completion + Send + 'static)> {
        let place = self.place.take()?;
        let (attempt, status, effective) = (self.attempt.clone(), self.status.clone(), self.effective);
        Some((place, move || Completion { attempt, status: status.get(), effective }))
    }
}

impl<P: CompletionPlace> Drop for OpenPermit<P> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.complete(Completion { attempt: self.attempt.clone(), status: self.status.get(), effective: self.effective });
        }
    }
}

impl<O: Owner, A: Audit, P: CompletionPlace> Permit<O, A, P> {
    pub(super) fn issue(mut attempt: Attempt<O, A>, grant: Grant<O, P>) -> Self {
        let Grant { permitted, plan, place } = grant;
        let granted = Granted::new(attempt.operation.id.clone(), attempt.operation.attempt.clone(), permitted);
        attempt.granted = Some(granted.clone());
        attempt.plan = Some(plan.digest());
        let open = OpenPermit {
            place: Some(place),
            attempt: attempt.operation.attempt.clone(),
            effective: granted.digest(),
            status: attempt.status.clone(),
        };
        Self { attempt, granted, plan, open }
    }

    /// Under the governed profile, appends the evidence of the decision and waits until it is committed: control flow, not observation (I-11). Under
    /// any other profile it returns at once.
    ///
    /// # Durability
    /// When this returns `Ok` under [`Profile::Governed`], the evidence is committed.
    ///
    /// # Errors
    /// An answer that denies with [`DenialCause::EvidenceUnavailable`]: the operation is not performed.
    ///
    /// # Cancel safety
    /// Dropping the future records the attempt as abandoned; the evidence may be on record.
    pub async fn record_evidence(self) -> Result<Self, Answer<O>> {
        if self.attempt.operation.profile != Profile::Governed {
            return Ok(self);
        }
        let kind = SignalKind::user("tipstaff.pre_call_evidence").expect("the literal is a namespaced name");
        let evidence = EvidenceRecord::<O> {
            owner: O::NAME,
            basis: self.granted.basis(),
            requested: self.attempt.requested,
            effective: self.granted.digest(),
            context: self.granted.context(),
            plan: self.plan.digest(),
            report: self.attempt.report.as_ref().map(Report::record),
        };
        let fact = fact::<O, A>(&self.attempt.operation, &self.attempt.audit, kind, "tipstaff.pre_call_evidence", &evidence);
        let deadline = Deadline::after(self.attempt.operation.ruling_budget);
        let confirmed = self.attempt.audit.confirm(fact, deadline).await;
        match confirmed {
            Ok(_seq) => Ok(self),
            Err(cause) => {
                let Self { attempt, open, .. } = self;
                let answer = attempt.close_denied(Denial::by_host(DenialCause::EvidenceUnavailable, cause.to_string()));
                drop(open);
                Err(answer)
            }
        }
    }

    /// What was permitted.
    #[must_use]
    pub fn granted(&self) -> &Granted<O> {
        &self.granted
    }

    /// The status of the attempt, for those who wait for its end.
    #[must_use]
    pub fn status(&self) -> StatusCell {
        self.attempt.status.clone()
    }

    /// Performs the operation: at most once per attempt, because this takes the permit (I-12).
    ///
    /// A panic of the body is caught and is a failure of the operation. Past the operation's own bound the body's future is dropped and the attempt
    /// has timed out.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body's future wherever it stands and records the attempt as ambiguous: it may have had any part of its effect.
    pub async fn perform<F, Fut, R>(self, body: F) -> Performed<O, A, P>
    where
        F: FnOnce(Granted<O>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<O::Output>,
    {
        let Self { open, plan, granted, attempt } = self;
        // A refusal is reported by the cell. It cannot happen: a permit exists once, and its attempt was pending.
        let _refused = attempt.status.set(OperationStatus::Running);
        let budget = budget(&attempt, &granted);
        let mut held = Held::new(attempt, open, None);
        let performance = run(granted.clone(), budget, body).await;
        let ending = Ending::from(&performance);
        let performance = Arc::new(performance.map(Arc::new));
        held.note(ending, Arc::clone(&performance));
        Performed { held, granted, plan, performance }
    }
}

/// Within what the operation has to be performed: its own budget, or what was judged if that is shorter.
pub(super) fn budget<O: Owner, A: Audit>(attempt: &Attempt<O, A>, granted: &Granted<O>) -> Option<Duration> {
    let judged = contained(|| O::time_limit(granted.context())).ok().flatten();
    attempt.operation.perform_budget.into_iter().chain(judged).min()
}

/// Runs a body: its panic is a failure, and past its budget it is dropped.
pub(super) async fn run<O, F, Fut, R>(granted: Granted<O>, budget: Option<Duration>, body: F) -> Performance<O::Output>
where
    O: Owner,
    F: FnOnce(Granted<O>) -> Fut + Send,
    Fut: Future<Output = R> + Send,
    R: IntoPerformance<O::Output>,
{
    let work = AssertUnwindSafe(async move { body(granted).await.into_performance() }).catch_unwind();
    let ended = match budget {
        None => work.await,
        Some(budget) => match timeout_at(Deadline::after(budget).instant(), work).await {
            Ok(ended) => ended,
            Err(_elapsed) => Ok(Performance::TimedOut),
        },
    };
    ended.unwrap_or_else(|panic| Performance::Failed(Failure::of(FailureClass::Panic, panic_text(panic))))
}

impl<O: Owner, A: Audit, P: CompletionPlace> fmt::Debug for Permit<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("attempt", &self.attempt).field("granted", &self.granted).finish_non_exhaustive()
    }
}
