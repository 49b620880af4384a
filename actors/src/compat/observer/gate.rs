//! The gate of a session as an interceptor: one guard in the plan of an owner of its own.
//!
//! | the gate             | the proposal                 | the emitter          |
//! |----------------------|------------------------------|----------------------|
//! | allows               | is permitted, and completed  | goes on              |
//! | denies, fails, panics | is denied                   | nobody is shown the fact |
//! | cancels itself       | is denied                    | the cancellation     |
//! | fails fatally        | is denied                    | the failure          |

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use tipstaff_core::declare::{CallableRef, CanonicalError, Digest, digest_of};
use tipstaff_core::dispatch::{FailureKind, HandlerError, HandlerFailure};
use tipstaff_core::interception::{
    ChainOutcome, Decision, Denial, DenialCause, DenialCode, InterceptError, Judged, PlanBuilder, Registration, Report, StageSpec, Turn,
};
use tipstaff_core::operation::{
    Authorizer, Completion, CompletionPlace, End, Grant, Operation, Owner, OwnerPlan, Proposal, Ruling, Verdict, perform,
};
use tipstaff_core::signal::Signal;

use crate::observation::SessionAudit;

const STAGE: &str = "policy";
const DENIED: DenialCode = DenialCode::from_static("session.gate");

/// What a gate says: whether the fact may be shown.
pub(super) type Gate = Arc<dyn Fn(Arc<Signal>) -> BoxFuture<'static, Result<bool, HandlerError>> + Send + Sync>;

/// The owner whose operations are the showing of facts.
pub(super) struct SessionPolicy;

impl Owner for SessionPolicy {
    const NAME: &'static str = "session_policy";
    type Context = Shown;
    type Output = ();

    fn stages() -> Vec<StageSpec> {
        vec![StageSpec::guard(STAGE), StageSpec::own_step("show")]
    }
}

/// A fact that is to be shown. It is judged by its kind, its emitter and its payload.
pub(super) struct Shown {
    fact: Arc<Signal>,
    /// What the gate said instead of an answer. The record has the denial that this becomes; the emitter gets this.
    unanswered: Arc<OnceLock<HandlerError>>,
}

#[derive(Serialize)]
struct Judgeable<'a> {
    kind: &'a str,
    role: &'a str,
    payload: &'a serde_json::Value,
}

impl Shown {
    fn judgeable(&self) -> Judgeable<'_> {
        Judgeable { kind: self.fact.kind().as_str(), role: self.fact.role().as_str(), payload: self.fact.payload().value() }
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.judgeable().serialize(serializer)
    }
}

impl Judged for Shown {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(&self.judgeable())
    }
}

/// How a gate ruled.
pub(super) enum Ruled {
    Allowed,
    Denied(Denial),
    Cancelled,
    Fatal(HandlerFailure),
}

/// The compiled plan of one session's gate. It rules in the proposer's task.
#[derive(Clone)]
pub(super) struct GatePlan(OwnerPlan<SessionPolicy>);

impl GatePlan {
    pub(super) fn new(gate: Gate) -> Self {
        let callable = CallableRef::from_static("tipstaff::compat::session_gate@1");
        let guard = Registration::decide_async("gate", STAGE, callable, move |shown: Arc<Shown>, _turn: Turn| {
            let gate = Arc::clone(&gate);
            async move { decision(&shown, gate(Arc::clone(&shown.fact)).await) }
        });
        let plan = PlanBuilder::new("session_policy", &SessionPolicy::stages()).register(guard).build();
        Self(plan.expect("one guard with a name at a declared stage"))
    }

    /// Puts the showing of a fact on record, asks the gate, and records what it said (P-1, P-9).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the gate, and closes the record.
    pub(super) async fn rule(&self, fact: &Arc<Signal>, audit: SessionAudit) -> Ruled {
        let unanswered = Arc::<OnceLock<HandlerError>>::default();
        let shown = Shown { fact: Arc::clone(fact), unanswered: Arc::clone(&unanswered) };
        let answer = perform(Operation::new(shown), audit, self, |_granted| async { Ok::<(), Infallible>(()) }).await;
        Ruled::of(answer.end, unanswered.get())
    }
}

impl Ruled {
    fn of(end: End<SessionPolicy>, unanswered: Option<&HandlerError>) -> Self {
        match (unanswered, end) {
            (None, End::Completed(_)) => Self::Allowed,
            (Some(HandlerError::Cancelled), _) => Self::Cancelled,
            (Some(HandlerError::Failed(failure)), _) if failure.kind() == FailureKind::Fatal => Self::Fatal(failure.clone()),
            (_, End::Denied(denial)) => Self::Denied(denial),
            // Neither deferred nor escalated by one guard; whatever it is, it is no permission.
            (_, _) => Self::Denied(Denial::by_host(DenialCause::Policy, "the gate gave no permission")),
        }
    }

    /// Whether the gate failed instead of saying no.
    pub(super) fn failed(&self) -> bool {
        matches!(self, Self::Denied(denial) if denial.cause != DenialCause::Policy)
    }
}

fn decision(shown: &Shown, said: Result<bool, HandlerError>) -> Result<Decision<Shown>, InterceptError> {
    let error = match said {
        Ok(true) => return Ok(Decision::proceed()),
        Ok(false) => return Ok(Decision::deny(DENIED, "the session's gate does not let the fact be shown")),
        Err(error) => error,
    };
    let answer = match &error {
        HandlerError::Cancelled => InterceptError::cancelled("the gate was cancelled"),
        HandlerError::Failed(failure) => InterceptError::new(failure.to_string()),
    };
    // A gate is asked once for each proposal.
    let _first = shown.unanswered.set(error);
    Err(answer)
}

impl Authorizer<SessionPolicy> for GatePlan {
    type Place = NoPlace;

    async fn propose(&self, proposal: Proposal<SessionPolicy>) -> Ruling<SessionPolicy, NoPlace> {
        let mut report = Report::new();
        let context = Arc::clone(proposal.context());
        let outcome = self.0.apply_identified(context, proposal.digest(), proposal.deadline(), &mut report).await;
        let verdict = match outcome {
            ChainOutcome::Permitted(permitted) => Verdict::Permit(Grant { permitted, plan: self.0.clone(), place: NoPlace }),
            ChainOutcome::Denied(denied) => Verdict::Denied(denied),
            ChainOutcome::Deferred { retry_at, reason, registration } => Verdict::Deferred { retry_at, reason, registration },
            ChainOutcome::Escalated(escalated) => Verdict::Escalated(escalated),
            ChainOutcome::Failed(failure) => Verdict::Failed(failure),
        };
        Ruling { verdict, report: Some(report) }
    }
}

/// A permit of this owner is performed where it is granted, so that nobody else has to be told.
pub(super) struct NoPlace;

impl CompletionPlace for NoPlace {
    fn complete(self, _completion: Completion) {}
}

impl fmt::Debug for GatePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GatePlan").field(&self.0).finish()
    }
}
