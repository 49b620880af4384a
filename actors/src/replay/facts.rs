//! What a transcript becomes: identities, signals and outcomes. Pure.

use std::sync::Arc;

use serde_json::{Value, json};
use tipstaff_core::clock::Timestamp;
use tipstaff_core::declare::{Digest, digest_of};
use tipstaff_core::id::{AttemptId, InvalidId, OperationId, SessionId, SignalId};
use tipstaff_core::operation::{ExecutionScope, Failure, Performance, ToolCall};
use tipstaff_core::signal::{EmitterRole, Payload, PayloadType, Signal, SignalError, SignalKind};
use tipstaff_core::transcript::{Call, Outcome, Thread};

/// The session of a thread. A sub-agent has one of its own.
pub(super) fn session_of(thread: &Thread) -> Result<SessionId, InvalidId> {
    let product = thread.product.as_str();
    match &thread.agent {
        None => SessionId::new(format!("replay/{product}/{}", thread.session)),
        Some(agent) => SessionId::new(format!("replay/{product}/{}/{agent}", thread.session)),
    }
}

/// The identity of one attempt: the call, the policy that judges it, and how often it was tried under it.
pub(super) fn attempt_of(operation: &OperationId, policy: Option<Digest>, tried: u32) -> AttemptId {
    let digest = digest_of(&json!([operation.as_str(), policy, tried])).expect("texts and small numbers have a canonical form");
    let digest = digest.to_string();
    AttemptId::new(format!("replay/{}", digest.rsplit(':').next().unwrap_or(&digest))).expect("a digest is short and printable")
}

/// The identity of a fact of a transcript, which the same record yields on every reading.
pub(super) fn fact_id(session: &SessionId, name: &str, about: &impl serde::Serialize) -> SignalId {
    let about = serde_json::to_value(about).unwrap_or(Value::Null);
    let digest = digest_of(&json!([session.as_str(), name, about])).map(|digest| digest.to_string()).unwrap_or_default();
    SignalId::new(format!("replay/{}", digest.rsplit(':').next().unwrap_or_default()))
        .unwrap_or_else(|_invalid| SignalId::generate())
}

/// The call as the action executor judges it.
pub(super) fn tool_call(call: &Call, workspace: Option<&Arc<str>>) -> ToolCall {
    let name = match &call.namespace {
        Some(namespace) => format!("{namespace}__{}", call.name),
        None => call.name.to_string(),
    };
    let scope = ExecutionScope { cwd: call.cwd.clone(), workspace: workspace.cloned() };
    let caller = call.agent.as_deref().map_or_else(|| "agent".to_owned(), |agent| format!("agent/{agent}"));
    ToolCall::new(name, call.input.clone()).identity(caller).scope(scope)
}

/// Where a call runs, as far as it says so: the working directory of its record, or the one that its input names.
pub(super) fn working_directory(call: &Call) -> Option<Arc<str>> {
    let named = || call.input.get("workdir").and_then(Value::as_str).filter(|path| path.starts_with('/')).map(Arc::from);
    call.cwd.clone().or_else(named)
}

/// A user kind of the namespace `transcript.`.
pub(super) fn kind(name: &str) -> Result<SignalKind, SignalError> {
    SignalKind::user(format!("transcript.{name}"))
}

/// One fact of a transcript. The stamp of its record is data: stamps go backwards, positions do not.
pub(super) fn fact(
    session: &SessionId,
    id: SignalId,
    kind: SignalKind,
    detail: Value,
    now: Timestamp,
) -> Result<Signal, SignalError> {
    let payload = Payload::from_value(PayloadType::new("transcript", 1)?, detail);
    Ok(Signal::builder(session.clone(), kind, now).id(id).role(EmitterRole::new("replay")?).payload(payload).build())
}

/// Whether a closing fact is the attempt's own, with its decision. The runtime closes an attempt in its place after a crash, or when the journal lost
/// the attempt's own end: such a fact tells that it ended, not what was decided.
pub(super) fn is_own_end(fact: &Signal) -> bool {
    fact.role().as_str() == "operation"
}

/// How the recorded outcome ends the operation. A call that the original refused had no effect there; that is its outcome, not the policy's denial.
pub(super) fn performance(outcome: &Outcome) -> Performance<Value> {
    match outcome {
        Outcome::Succeeded => Performance::Returned(json!({ "outcome": "succeeded" })),
        Outcome::Failed { class, exit_code } => {
            let code = exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            Performance::Failed(Failure::new(format!("{}{code}", class.as_str())))
        }
        Outcome::Refused { class } => {
            Performance::Failed(Failure::new(format!("had no effect in the original: {}", class.as_str())))
        }
        Outcome::Unknown(because) => Performance::Unknown { reason: because.as_str().to_owned() },
    }
}

/// The outcome as data.
pub(super) fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Succeeded => json!({ "outcome": "succeeded" }),
        Outcome::Failed { class, exit_code } => json!({ "outcome": "failed", "class": class.as_str(), "exit_code": exit_code }),
        Outcome::Refused { class } => json!({ "outcome": "refused", "class": class.as_str() }),
        Outcome::Unknown(because) => json!({ "outcome": "unknown", "because": because.as_str() }),
    }
}
