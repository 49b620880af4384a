//! The way of an operation: the one place where the planes meet.
//!
//! Each step consumes the value of the step before, so that a wrong order does not compile:
//!
//! | step      | value        | next, or the end                                                        |
//! |-----------|--------------|-------------------------------------------------------------------------|
//! | propose   | [`Proposed`] | two places reserved, the fact submitted; else denied, and nothing ran   |
//! | authorize | [`Permit`]   | else denied, deferred, escalated or not performed                       |
//! | evidence  | [`Permit`]   | governed only: committed; else denied                                   |
//! | perform   | `Performed`  | at most once; a drop from here on is ambiguous                          |
//! | review    | `Reviewed`   | the result stages                                                       |
//! | record    | [`Answer`]   | the closing fact, observed from then on                                 |

use std::future::Future;
use std::sync::Arc;

use super::answer::{Answer, End};
use super::attempt::{Attempt, fact};
use super::contained::contained;
use super::performance::FailureClass;
use super::record::{self, DeferralRecord, EscalationRecord, ProposedRecord};
use super::{
    Audit, AuditUnavailable, Authorizer, Failure, Granted, IntoPerformance, Operation, OperationOutcome, OperationStatus, Owner,
    Permit, Proposal, RecordState, Ruling, StatusCell, Verdict,
};
use crate::clock::Deadline;
use crate::declare::Digest;
use crate::interception::{Denial, DenialCause, Judged};
use crate::signal::LifecycleKind;

/// Runs one operation through the planes.
///
/// # Cancel safety
/// Dropping the future cancels the running interceptor or drops the body's future. Either way the attempt has its closing fact: cancelled,
/// abandoned or ambiguous (P-2, P-9).
pub async fn perform<O, A, Z, F, Fut, R>(operation: Operation<O::Context>, audit: A, authorizer: &Z, body: F) -> Answer<O>
where
    O: Owner,
    A: Audit,
    Z: Authorizer<O>,
    F: FnOnce(Granted<O>) -> Fut + Send,
    Fut: Future<Output = R> + Send,
    R: IntoPerformance<O::Output>,
{
    let proposed = match Proposed::submit(operation, audit).await {
        Ok(proposed) => proposed,
        Err(answer) => return answer,
    };
    let permit = match proposed.authorize(authorizer).await {
        Ok(permit) => permit,
        Err(answer) => return answer,
    };
    let permit = match permit.record_evidence().await {
        Ok(permit) => permit,
        Err(answer) => return answer,
    };
    permit.perform(body).await.review().await.record().await
}

/// A proposal that is on record. Nobody has been asked yet.
///
/// Dropped, the attempt is recorded as cancelled.
#[must_use = "dropped, the attempt is recorded as cancelled"]
pub struct Proposed<O: Owner, A: Audit> {
    attempt: Attempt<O, A>,
    /// Why there is none, if so: the value has no canonical form, or its code panicked.
    digest: Result<Digest, String>,
    deadline: Deadline,
}

impl<O: Owner, A: Audit> Proposed<O, A> {
    /// Reserves two places in the journal and submits `operation_proposed` into the first (P-9).
    ///
    /// # Errors
    /// An answer that denies with [`DenialCause::AuditUnavailable`], under a required audit only: nobody was asked (P-10).
    ///
    /// # Cancel safety
    /// Cancel safe: until it returns, nothing is on record.
    pub async fn submit(operation: Operation<O::Context>, audit: A) -> Result<Self, Answer<O>> {
        let deadline = Deadline::after(operation.ruling_budget);
        let digest = match contained(|| operation.context.digest()) {
            Ok(digest) => digest.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("the digest of the proposed value panicked: {panic}")),
        };
        let requested = digest.as_ref().ok().copied();
        let proposal = || {
            let record = ProposedRecord::<O> {
                owner: O::NAME,
                profile: operation.profile,
                context: &operation.context,
                digest: requested,
            };
            fact::<O, A>(&operation, &audit, LifecycleKind::OperationProposed.into(), "tipstaff.operation_proposed", &record)
        };
        match audit.propose(&operation.id, &operation.attempt, proposal, deadline).await {
            Ok(place) => Ok(Self { attempt: Attempt::new(operation, requested, audit, place), digest, deadline }),
            Err(unavailable) => Err(unaudited(operation, requested, unavailable)),
        }
    }

    /// The status of the attempt, for those who wait for its end.
    #[must_use]
    pub fn status(&self) -> StatusCell {
        self.attempt.status.clone()
    }

    /// Asks the owner for a ruling.
    ///
    /// # Errors
    /// The answer, where the operation must not be performed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor (I-4) and records the attempt as cancelled, with what was never called.
    pub async fn authorize<Z: Authorizer<O>>(self, authorizer: &Z) -> Result<Permit<O, A, Z::Place>, Answer<O>> {
        let Self { mut attempt, digest, deadline } = self;
        let digest = match digest {
            Ok(digest) => digest,
            Err(error) => return Err(attempt.close_denied(Denial::by_host(DenialCause::ContextInvalid, error))),
        };
        let proposal = Proposal {
            operation: attempt.operation.id.clone(),
            attempt: attempt.operation.attempt.clone(),
            context: Arc::clone(&attempt.operation.context),
            digest,
            deadline,
            progress: attempt.progress.clone(),
        };
        let Ruling { verdict, report } = authorizer.propose(proposal).await;
        attempt.report = report;
        match verdict {
            Verdict::Permit(grant) => Ok(Permit::issue(attempt, grant)),
            Verdict::Denied(denied) => Err(attempt.close_denied(denied.denial)),
            Verdict::Deferred { retry_at, reason, registration } => {
                let deferral = DeferralRecord { retry_at, reason: &reason, registration: &registration };
                let outcome =
                    attempt.close(OperationStatus::Deferred, record::End { deferral: Some(deferral), ..Default::default() });
                Err(Answer { end: End::Deferred { retry_at, reason }, outcome })
            }
            Verdict::Escalated(escalated) => {
                let escalation = EscalationRecord::of(&escalated);
                let outcome =
                    attempt.close(OperationStatus::Escalated, record::End { escalation: Some(escalation), ..Default::default() });
                Err(Answer { end: End::Escalated(escalated), outcome })
            }
            Verdict::Failed(failure) => {
                let failed = Failure::of(FailureClass::Interceptor, failure.to_string());
                let outcome =
                    attempt.close(OperationStatus::Failed, record::End { failure: Some(&failed), ..Default::default() });
                Err(Answer { end: End::NotPerformed(failure), outcome })
            }
        }
    }
}

impl<O: Owner, A: Audit> Attempt<O, A> {
    pub(super) fn close_denied(self, denial: Denial) -> Answer<O> {
        let outcome = self.close(OperationStatus::Denied, record::End { denial: Some((&denial).into()), ..Default::default() });
        Answer { end: End::Denied(denial), outcome }
    }
}

/// The answer where a required audit could not take the proposal. There is no fact of it: that is what could not be written.
fn unaudited<O: Owner>(operation: Operation<O::Context>, requested: Option<Digest>, unavailable: AuditUnavailable) -> Answer<O> {
    let denial = Denial::by_host(DenialCause::AuditUnavailable, unavailable.to_string());
    let outcome = OperationOutcome {
        operation: operation.id,
        attempt: operation.attempt,
        status: OperationStatus::Denied,
        profile: operation.profile,
        basis: None,
        requested,
        effective: None,
        report: None,
        teardown: None,
        recorded: RecordState::Unavailable(unavailable),
    };
    Answer { end: End::Denied(denial), outcome }
}
