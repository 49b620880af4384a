//! What a recovery writes and reports. Pure.

use serde_json::json;

use super::{AttemptRow, DeathEvidence, InstanceVerdict, RuntimeInstance};
use crate::clock::Timestamp;
use crate::id::{AttemptId, InvocationId, OperationId, SessionId};
use crate::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal, SignalSeq, Subject};

/// What a recovery found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Every instance that had open proposals, and what was known about it.
    pub judged: Vec<(RuntimeInstance, InstanceVerdict)>,
    /// The proposals that were closed.
    pub closed: Vec<ClosedByRecovery>,
    /// How many proposals were left open, because their instance is alive or unknown.
    pub left_open: u64,
}

/// A proposal that a recovery closed as ambiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedByRecovery {
    /// The session.
    pub session: SessionId,
    /// The operation.
    pub operation: OperationId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The position of the closing fact.
    pub seq: SignalSeq,
}

/// The closing fact of a proposal whose instance is dead: it keeps the proposal's invocation and subject, and says what showed the death.
pub(super) fn ambiguous(
    row: &AttemptRow,
    invocation: Option<InvocationId>,
    subject: Option<Subject>,
    evidence: DeathEvidence,
    now: Timestamp,
) -> Signal {
    let value = json!({
        "cause": "instance_dead",
        "instance": row.instance.as_str(),
        "evidence": evidence.as_str(),
        "proposed_seq": row.proposed,
    });
    let mut fact = Signal::builder(row.session.clone(), LifecycleKind::OperationAmbiguous, now)
        .operation(row.operation.clone())
        .attempt(row.attempt.clone())
        .role(EmitterRole::shipped("recovery"))
        .payload(Payload::from_value(PayloadType::shipped("tipstaff.operation_ambiguous", 1), value));
    if let Some(invocation) = invocation {
        fact = fact.invocation(invocation);
    }
    if let Some(subject) = subject {
        fact = fact.subject(subject);
    }
    fact.build()
}
