//! Plans: an owner's stages and the registrations at them, compiled once and then immutable.

mod build;
mod registration;
mod shape;

use std::fmt;
use std::sync::Arc;

pub use build::PlanBuilder;
pub use registration::{Declaration, Registration};
pub(super) use shape::{Registered, Shape, Stage};

use super::evaluator::{AdmitCall, DecideCall, ResultCall};
use super::outcome::Basis;
use super::report::Report;
use super::stage::{ResultPhase, StageKind};
use crate::declare::Digest;

/// An immutable plan over contexts `C` and results `R`. Cheap to clone; shared by every proposal of its owner.
///
/// # Ordering
/// Registrations run one after the other in the order (stage, explicit order, composition order), whatever order they arrived in (I-2). There is no
/// concurrent mode: latency never decides (P04, P05).
pub struct Plan<C, R = ()>(pub(super) Arc<Compiled<C, R>>);

pub(super) struct Compiled<C, R> {
    pub(super) shape: Arc<Shape>,
    /// For each stage of the shape, the code of its registrations in order.
    pub(super) calls: Vec<Calls<C, R>>,
}

/// The code behind one stage.
pub(super) enum Calls<C, R> {
    OwnStep,
    Admission(Vec<AdmitCall<C>>),
    Deciding(Vec<DecideCall<C>>),
    Result(Vec<ResultCall<C, R>>),
}

/// Who decides what is left of an ask at the end of a chain (I-10).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Approver {
    /// Nobody: an ask denies, with the asker's code and reason.
    #[default]
    None,
    /// A named approver, outside this attempt: the attempt ends as escalated, and an approval starts a new one.
    EndsAttempt(Arc<str>),
}

impl<C, R> Plan<C, R> {
    /// The plan's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.shape.name
    }

    /// The digest over names, stages, orders, error mappings, deadlines, bounds and references (I-7). Two processes that compile one declaration
    /// get one digest. Code is not covered: whoever changes what a handler decides changes the version of its reference.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.shape.digest
    }

    /// On what a permission of this plan rests (I-22).
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.0.shape.basis
    }

    /// Who decides what is left of an ask.
    #[must_use]
    pub fn approver(&self) -> &Approver {
        &self.0.shape.approver
    }

    /// The names of all registrations, in plan order.
    pub fn registrations(&self) -> impl Iterator<Item = &str> {
        self.0.shape.registrations.iter().map(|registered| &*registered.name)
    }

    /// Whether a result stage that runs after this end has a registration.
    #[must_use]
    pub fn has_result_stage(&self, end: ResultPhase) -> bool {
        let judges = |stage: &Stage| matches!(stage.spec.kind, StageKind::Result(phase) if phase.covers(end)) && stage.from < stage.to;
        self.0.shape.stages.iter().any(judges)
    }

    /// An empty report for one proposal: every registration is not reached. The caller owns it, so that it tells what was called also if the future
    /// of [`Self::apply`] is dropped.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::new(Arc::clone(&self.0.shape))
    }
}

impl<C, R> Clone for Plan<C, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C, R> fmt::Debug for Plan<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("name", &self.name())
            .field("digest", &self.digest())
            .field("basis", &self.basis())
            .field("registrations", &self.registrations().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
