//! The gate of a session as an interceptor: one guard in the plan of an owner of its own.
//!
//! | the gate             | the proposal                 | the emitter          |
//! |----------------------|------------------------------|----------------------|
//! | allows               | is permitted, and completed  | goes on              |
//! | denies, fails, panics | is denied                   | nobody is shown the fact |
//! | cancels itself       | is denied                    | the cancellation     |
//! | fails fatally        | is denied                    | the failure          |

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::{CallableRef, CanonicalError, Digest, digest_of};
use tipstaff_core::dispatch::{FailureKind, HandlerError, HandlerFailure};
use tipstaff_core::interception::{
    Decision, Denial, DenialCause, DenialCode, InterceptError, Judged, Registration, StageSpec, Turn,
};
use tipstaff_core::operation::{End, Owner};
use tipstaff_core::signal::Signal;

use crate::owners::{OwnerHandle, owner_plan};
use crate::runtime::RuntimeError;
use crate::session::Session;

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

/// The owner of one session's gate: a supervised actor of its own.
#[derive(Debug, Clone)]
pub(super) struct GateOwner {
    owner: OwnerHandle<SessionPolicy>,
    session: Session,
}

impl GateOwner {
    pub(super) async fn start(session: &Session, gate: Gate) -> Result<Self, RuntimeError> {
        let callable = CallableRef::from_static("tipstaff::compat::session_gate@1");
        let guard = Registration::decide_async("gate", STAGE, callable, move |shown: Arc<Shown>, _turn: Turn| {
            let gate = Arc::clone(&gate);
            async move { decision(&shown, gate(Arc::clone(&shown.fact)).await) }
        });
        let plan = owner_plan::<SessionPolicy>("session_policy").register(guard).build()?;
        Ok(Self { owner: session.runtime().start_owner(plan).await?, session: session.clone() })
    }

    pub(super) async fn stop(&self, deadline: Deadline) {
        self.owner.stop(deadline).await;
    }

    /// Puts the showing of a fact on record, asks the gate, and records what it said (P-1, P-9).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the gate, and closes the record.
    pub(super) async fn rule(&self, fact: &Arc<Signal>) -> Ruled {
        let unanswered = Arc::<OnceLock<HandlerError>>::default();
        let shown = Shown { fact: Arc::clone(fact), unanswered: Arc::clone(&unanswered) };
        let answer = self.owner.perform(&self.session, shown, |_granted| async { Ok::<(), Infallible>(()) }).await;
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
