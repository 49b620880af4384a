//! What a plan declares, without its code: the part that has a digest and that reports share.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::Approver;
use crate::declare::{CallableRef, Digest, digest_of};
use crate::interception::outcome::Basis;
use crate::interception::stage::{OnFailure, StageKind, StageSpec};

/// A compiled declaration.
#[derive(Debug)]
pub(in crate::interception) struct Shape {
    pub(in crate::interception) name: Arc<str>,
    pub(in crate::interception) digest: Digest,
    pub(in crate::interception) basis: Basis,
    pub(in crate::interception) approver: Approver,
    pub(in crate::interception) stages: Vec<Stage>,
    /// In plan order.
    pub(in crate::interception) registrations: Vec<Registered>,
    /// How many registrations stand before the operation is performed.
    pub(in crate::interception) before: usize,
    /// The last transform stage that has a registration: after it, guards run again (I-5).
    pub(in crate::interception) last_transform: Option<usize>,
}

/// A stage and the range of its registrations.
#[derive(Debug)]
pub(in crate::interception) struct Stage {
    pub(in crate::interception) spec: StageSpec,
    pub(in crate::interception) from: usize,
    pub(in crate::interception) to: usize,
}

/// A registration without its code.
#[derive(Debug)]
pub(in crate::interception) struct Registered {
    pub(in crate::interception) name: Arc<str>,
    pub(in crate::interception) stage: Arc<str>,
    pub(in crate::interception) order: i32,
    pub(in crate::interception) callable: CallableRef,
    pub(in crate::interception) bound: Option<Duration>,
}

/// What the digest covers (I-7). The members' names are part of it: renaming one changes every plan's digest.
#[derive(Serialize)]
struct Declared<'s> {
    format: &'static str,
    plan: &'s str,
    basis: Basis,
    approver: Option<&'s str>,
    stages: Vec<DeclaredStage<'s>>,
}

#[derive(Serialize)]
struct DeclaredStage<'s> {
    name: &'s str,
    kind: StageKind,
    on_failure: OnFailure,
    deadline: Option<DeclaredDuration>,
    stop_ends_stage: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shielded: bool,
    unreachable: bool,
    registrations: Vec<DeclaredRegistration<'s>>,
}

#[derive(Serialize)]
struct DeclaredRegistration<'s> {
    name: &'s str,
    order: i32,
    callable: &'s CallableRef,
    bound: Option<DeclaredDuration>,
}

#[derive(Serialize)]
struct DeclaredDuration {
    seconds: u64,
    nanoseconds: u32,
}

impl From<Duration> for DeclaredDuration {
    fn from(duration: Duration) -> Self {
        Self { seconds: duration.as_secs(), nanoseconds: duration.subsec_nanos() }
    }
}

/// The digest of a declaration.
pub(super) fn digest(name: &str, basis: Basis, approver: &Approver, stages: &[Stage], registrations: &[Registered]) -> Digest {
    let declared = Declared {
        format: "tipstaff.plan/1",
        plan: name,
        basis,
        approver: match approver {
            Approver::None => None,
            Approver::EndsAttempt(name) => Some(name),
        },
        stages: stages.iter().map(|stage| declared_stage(stage, &registrations[stage.from..stage.to])).collect(),
    };
    digest_of(&declared).expect("a declaration holds texts, integers and booleans with fixed keys")
}

fn declared_stage<'s>(stage: &'s Stage, registrations: &'s [Registered]) -> DeclaredStage<'s> {
    DeclaredStage {
        name: &stage.spec.name,
        kind: stage.spec.kind,
        on_failure: stage.spec.on_failure,
        deadline: stage.spec.deadline.map(Into::into),
        stop_ends_stage: stage.spec.stop_ends_stage,
        shielded: stage.spec.shielded,
        unreachable: stage.spec.unreachable.is_some(),
        registrations: registrations
            .iter()
            .map(|registered| DeclaredRegistration {
                name: &registered.name,
                order: registered.order,
                callable: &registered.callable,
                bound: registered.bound.map(Into::into),
            })
            .collect(),
    }
}
