//! An owner, an audit and an authorizer for programs that are checked and never run for their effect.

#![expect(dead_code, reason = "each program needs its part of this")]

use std::sync::Arc;

use tipstaff_core::clock::{Deadline, Timestamp};
use tipstaff_core::id::{AttemptId, OperationId, SessionId};
use tipstaff_core::interception::{ChainOutcome, Plan, StageSpec};
use tipstaff_core::operation::{
    Audit, AuditUnavailable, Authorizer, ClosingPlace, Completion, CompletionPlace, Grant, Granted, Owner, OwnerPlan, Permit, Proposal,
    Proposed, Ruling, Shielded, Unrecorded, Verdict,
};
use tipstaff_core::signal::{Signal, SignalSeq};

/// The owner of operations that are texts.
pub struct Texts;

impl Owner for Texts {
    const NAME: &'static str = "texts";
    type Context = String;
    type Output = String;

    fn stages() -> Vec<StageSpec> {
        vec![StageSpec::guard("policy"), StageSpec::own_step("perform")]
    }
}

pub type TextProposed = Proposed<Texts, NoJournal>;
pub type TextPermit = Permit<Texts, NoJournal, Place>;

/// An audit that records nothing.
#[derive(Clone)]
pub struct NoJournal(pub SessionId);

impl Audit for NoJournal {
    type Place = Place;

    fn session(&self) -> &SessionId {
        &self.0
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn is_recorded(&self) -> bool {
        true
    }

    async fn propose(
        &self,
        _operation: &OperationId,
        _attempt: &AttemptId,
        _fact: impl FnOnce() -> Signal + Send,
        _deadline: Deadline,
    ) -> Result<Place, AuditUnavailable> {
        Ok(Place)
    }

    async fn confirm(&self, _fact: Signal, _deadline: Deadline) -> Result<SignalSeq, Unrecorded> {
        Ok(SignalSeq(1))
    }
}

/// A place that is always there.
#[derive(Debug)]
pub struct Place;

impl ClosingPlace for Place {
    fn close(self, _fact: impl FnOnce() -> Signal) {}

    async fn close_confirmed(self, _fact: Signal, _deadline: Deadline) -> Result<SignalSeq, Unrecorded> {
        Ok(SignalSeq(2))
    }
}

impl CompletionPlace for Place {
    fn complete(self, _completion: Completion) {}

    fn shield(self, _rest: Shielded) {}
}

/// An authorizer that runs a plan in the caller's task.
pub struct Desk(pub OwnerPlan<Texts>);

impl Authorizer<Texts> for Desk {
    type Place = Place;

    async fn propose(&self, proposal: Proposal<Texts>) -> Ruling<Texts, Place> {
        let plan: &Plan<_, _> = &self.0;
        let mut report = plan.report();
        let context = Arc::clone(proposal.context());
        let verdict = match plan.apply_identified(context, proposal.digest(), proposal.deadline(), &mut report).await {
            ChainOutcome::Permitted(permitted) => Verdict::Permit(Grant { permitted, plan: plan.clone(), place: Place }),
            ChainOutcome::Denied(denied) => Verdict::Denied(denied),
            ChainOutcome::Deferred { retry_at, reason, registration } => Verdict::Deferred { retry_at, reason, registration },
            ChainOutcome::Escalated(escalated) => Verdict::Escalated(escalated),
            ChainOutcome::Failed(failure) => Verdict::Failed(failure),
        };
        Ruling { verdict, report: Some(report) }
    }
}

/// What the programs perform.
pub async fn body(granted: Granted<Texts>) -> Result<String, std::fmt::Error> {
    Ok(granted.context().to_uppercase())
}
