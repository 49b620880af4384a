//! What the facts of an operation carry. Payload types `tipstaff.operation_proposed` and `tipstaff.operation_closed`, version 1: fields keep their
//! names, types and meaning; new optional ones may come.

use std::sync::Arc;

use serde::Serialize;

use super::{Failure, OperationStatus, Owner, Profile, TeardownEnd};
use crate::clock::Timestamp;
use crate::declare::Digest;
use crate::interception::{Basis, Denial, DenialCause, Escalated, ReportRecord, Withheld};
use crate::signal::{Payload, PayloadType, SignalError};

/// The payload of `operation_proposed`: what is asked for, whole.
#[derive(Serialize)]
pub(super) struct ProposedRecord<'a, O: Owner> {
    pub(super) owner: &'static str,
    pub(super) profile: Profile,
    pub(super) context: &'a O::Context,
    /// Absent when the context has no canonical form; it is denied then.
    pub(super) digest: Option<Digest>,
}

/// The payload of `tipstaff.pre_call_evidence`: what was permitted, before it is performed (I-11).
#[derive(Serialize)]
pub(super) struct EvidenceRecord<'a, O: Owner> {
    pub(super) owner: &'static str,
    pub(super) basis: Basis,
    pub(super) requested: Option<Digest>,
    pub(super) effective: Digest,
    pub(super) context: &'a O::Context,
    pub(super) plan: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ReportRecord>,
}

/// The payload of the closing kinds: how the attempt ended, and why.
#[derive(Serialize)]
pub(super) struct ClosedRecord<'a, O: Owner> {
    pub(super) owner: &'static str,
    pub(super) status: OperationStatus,
    pub(super) profile: Profile,
    /// On what a permission rested; absent where there was none (I-22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) basis: Option<Basis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requested: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effective: Option<Digest>,
    /// The effective context, where a transform replaced the requested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<&'a O::Context>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Digest>,
    #[serde(flatten)]
    pub(super) end: End<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) labels: &'a [Arc<str>],
    /// How the owner's teardown ended, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) teardown: Option<&'a TeardownEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ReportRecord>,
    pub(super) elapsed_us: u64,
}

/// What only some ends have.
#[derive(Default, Serialize)]
pub(super) struct End<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) denial: Option<DenialRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deferral: Option<DeferralRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) escalation: Option<EscalationRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<ResultRecord<'a>>,
    /// Why nobody knows how it ended, or what was being called when the proposer went away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'a str>,
    /// What was never called, where a proposer went away in the middle of the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) never_called: Vec<Arc<str>>,
}

#[derive(Serialize)]
pub(super) struct DenialRecord<'a> {
    code: &'a str,
    reason: &'a str,
    cause: DenialCause,
    stage: Option<&'a str>,
    registration: Option<&'a str>,
    never_called: &'a [Arc<str>],
}

impl<'a> From<&'a Denial> for DenialRecord<'a> {
    fn from(denial: &'a Denial) -> Self {
        Self {
            code: denial.code.as_str(),
            reason: &denial.reason,
            cause: denial.cause,
            stage: denial.stage.as_deref(),
            registration: denial.registration.as_deref(),
            never_called: &denial.never_called,
        }
    }
}

#[derive(Serialize)]
pub(super) struct DeferralRecord<'a> {
    pub(super) retry_at: Timestamp,
    pub(super) reason: &'a str,
    pub(super) registration: &'a str,
}

#[derive(Serialize)]
pub(super) struct EscalationRecord<'a> {
    approver: &'a str,
    asks: Vec<AskRecord<'a>>,
}

#[derive(Serialize)]
struct AskRecord<'a> {
    registration: &'a str,
    code: &'a str,
    reason: &'a str,
}

impl<'a> EscalationRecord<'a> {
    pub(super) fn of<C>(escalated: &'a Escalated<C>) -> Self {
        let ask = |ask: &'a crate::interception::Escalation| AskRecord {
            registration: &ask.registration,
            code: ask.request.code().as_str(),
            reason: ask.request.reason(),
        };
        Self { approver: &escalated.approver, asks: escalated.asks.iter().map(ask).collect() }
    }
}

/// The result by digest: what a tool returned may be large or secret, and a sink that wants it whole can subscribe to it.
#[derive(Serialize)]
pub(super) struct ResultRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    pub(super) replaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) withheld: Option<&'a str>,
}

impl<'a> ResultRecord<'a> {
    pub(super) fn withheld(digest: Option<Digest>, withheld: &'a Withheld) -> Self {
        Self { digest, replaced: false, withheld: Some(&withheld.reason) }
    }
}

pub(super) fn payload(name: &'static str, record: &impl Serialize) -> Result<Payload, SignalError> {
    Payload::from_serialize(PayloadType::shipped(name, 1), record)
}
