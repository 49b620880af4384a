//! A report as data: the form that a journal stores. Version 1; members are only ever added.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Report, Step};
use crate::declare::{CallableRef, Digest};
use crate::interception::budget::nanos;
use crate::interception::denial::DenialCode;
use crate::interception::outcome::Basis;
use crate::interception::stage::OnFailure;

/// A report as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportRecord {
    /// The plan's name.
    pub plan: Arc<str>,
    /// The plan's digest (I-7).
    pub plan_digest: Digest,
    /// On what a permission of the plan rests (I-22).
    pub basis: Basis,
    /// Every registration in plan order.
    pub steps: Vec<StepRecord>,
    /// The guards that were due to run again after a change (I-5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<StepRecord>,
}

/// One registration's line as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The stage.
    pub stage: Arc<str>,
    /// The registration.
    pub registration: Arc<str>,
    /// The durable name of its code.
    pub callable: CallableRef,
    /// [`Answer::as_str`].
    pub answer: String,
    /// What a failure meant (I-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<OnFailure>,
    /// Why it was passed over: [`SkipReason::as_str`](super::SkipReason::as_str).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Who stopped it from being called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Arc<str>>,
    /// How long it took, in nanoseconds; absent if it was not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// The digest that it judged (I-6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Digest>,
    /// The digest of its replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Digest>,
    /// The code of its denial or ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<DenialCode>,
    /// Its reason, or how it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it asked the owner to stop altogether.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stops_owner: bool,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteRecord>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Arc<str>>,
    /// Its evidence references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Value>,
}

/// A note as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRecord {
    /// For programs.
    pub code: Arc<str>,
    /// For people.
    pub text: String,
}

impl ReportRecord {
    pub(super) fn of(report: &Report) -> Self {
        Self {
            plan: Arc::clone(&report.shape.name),
            plan_digest: report.plan_digest(),
            basis: report.basis(),
            steps: report.steps().map(StepRecord::of).collect(),
            again: report.again().map(StepRecord::of).collect(),
        }
    }
}

impl StepRecord {
    fn of(step: Step<'_>) -> Self {
        let answer = step.answer();
        let elapsed = answer.was_called().then(|| nanos(step.elapsed()));
        Self {
            stage: step.stage().into(),
            registration: step.registration().into(),
            callable: step.callable().clone(),
            answer: answer.as_str().to_owned(),
            mapped: answer.mapping(),
            skipped: match answer {
                Answer::Skipped(reason) => Some(reason.as_str().to_owned()),
                _ => None,
            },
            stopped_by: step.stopped_by().map(Into::into),
            elapsed_ns: elapsed,
            judged: step.judged(),
            replaced_by: step.replaced_by(),
            code: step.code().cloned(),
            reason: step.reason().map(str::to_owned),
            stops_owner: step.stops_owner(),
            notes: step.notes().iter().map(|note| NoteRecord { code: Arc::clone(&note.code), text: note.text.clone() }).collect(),
            labels: step.labels().to_vec(),
            evidence: step.evidence().iter().map(|evidence| evidence.value().clone()).collect(),
        }
    }
}
