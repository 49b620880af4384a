//! Stages: what an owner declares.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One stage of an owner, by name and place in the owner's list (I-1).
///
/// # Examples
/// ```
/// use tipstaff_core::interception::{OnFailure, ResultOn, StageSpec};
/// use std::time::Duration;
///
/// let stages = [
///     StageSpec::admission("capacity"),
///     StageSpec::own_step("start"),
///     StageSpec::guard("policy").deadline(Duration::from_secs(5)),
///     StageSpec::transform("rewrite").on_failure(OnFailure::Deny),
///     StageSpec::own_step("perform"),
///     StageSpec::result("post", ResultOn::Returned),
/// ];
/// # let _ = stages;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSpec {
    pub(super) name: Arc<str>,
    pub(super) kind: StageKind,
    pub(super) on_failure: OnFailure,
    pub(super) deadline: Option<Duration>,
    pub(super) stop_ends_stage: bool,
    pub(super) shielded: bool,
    pub(super) unreachable: Option<Arc<str>>,
}

/// What a stage may do (I-5, I-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The owner's own step: takes no registration (I-18).
    OwnStep,
    /// Admits or defers (I-9).
    Admission,
    /// Decides; runs again after a change.
    Guard,
    /// May replace the context; runs once.
    Transform,
    /// May do neither.
    Advisory,
    /// Runs after the operation; keeps, replaces or withholds its result.
    Result(ResultOn),
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnStep => "a step of the owner",
            Self::Admission => "an admission stage",
            Self::Guard => "a guard stage",
            Self::Transform => "a transform stage",
            Self::Advisory => "an advisory stage",
            Self::Result(ResultOn::Returned) => "a result stage for returned operations",
            Self::Result(ResultOn::Error) => "a result stage for operations that did not return",
            Self::Result(ResultOn::Both) => "a result stage",
        })
    }
}

/// After which ends of an operation a result stage runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultOn {
    /// It returned.
    Returned,
    /// It failed, was cancelled or timed out.
    Error,
    /// Either.
    Both,
}

/// How an operation ended, for its result stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultEnd {
    /// It returned.
    Returned,
    /// It failed, was cancelled or timed out.
    Error,
}

impl ResultOn {
    /// Whether a stage runs after this end.
    #[must_use]
    pub const fn covers(self, end: ResultEnd) -> bool {
        match (self, end) {
            (Self::Both, _) | (Self::Returned, ResultEnd::Returned) | (Self::Error, ResultEnd::Error) => true,
            (Self::Returned, ResultEnd::Error) | (Self::Error, ResultEnd::Returned) => false,
        }
    }
}

/// What an interceptor's error, panic, timeout or contract violation means (I-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The operation is denied; in a result stage, the result is withheld.
    Deny,
    /// The operation fails with that error.
    Propagate,
    /// It is logged and reported, and the chain goes on. Only for stages that cannot veto.
    Isolate,
}

impl StageSpec {
    fn new(name: impl Into<Arc<str>>, kind: StageKind, on_failure: OnFailure) -> Self {
        Self { name: name.into(), kind, on_failure, deadline: None, stop_ends_stage: false, shielded: false, unreachable: None }
    }

    /// A step of the owner's own. It takes no registration (I-18).
    #[must_use]
    pub fn own_step(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, StageKind::OwnStep, OnFailure::Propagate)
    }

    /// Capacity: admits or defers. A failure denies, unless declared otherwise.
    #[must_use]
    pub fn admission(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, StageKind::Admission, OnFailure::Deny)
    }

    /// Guards. A failure denies, unless declared otherwise.
    #[must_use]
    pub fn guard(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, StageKind::Guard, OnFailure::Deny)
    }

    /// Transforms. A failure fails the operation, unless declared otherwise.
    #[must_use]
    pub fn transform(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, StageKind::Transform, OnFailure::Propagate)
    }

    /// Advisers without a vote. A failure is isolated, unless declared otherwise.
    #[must_use]
    pub fn advisory(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, StageKind::Advisory, OnFailure::Isolate)
    }

    /// Judges of the result. A failure fails the operation's answer, unless declared otherwise.
    #[must_use]
    pub fn result(name: impl Into<Arc<str>>, on: ResultOn) -> Self {
        Self::new(name, StageKind::Result(on), OnFailure::Propagate)
    }

    /// Declares what a failure means.
    #[must_use]
    pub fn on_failure(mut self, meaning: OnFailure) -> Self {
        self.on_failure = meaning;
        self
    }

    /// Declares one deadline for the whole stage, inside the proposal's. When guards run again (I-5), they have it once more.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Declares that a guard may answer stop, which then skips what I-14 lets it skip. For the hook compatibility profile.
    #[must_use]
    pub fn stop_ends_stage(mut self) -> Self {
        self.stop_ends_stage = true;
        self
    }

    /// Declares that a step of the owner survives its caller, for at most this long (I-4). Only a step of the owner may.
    #[must_use]
    pub fn shielded(mut self, bound: Duration) -> Self {
        self.shielded = true;
        self.deadline = Some(bound);
        self
    }

    /// Declares that no path executes the stage, and why. A registration for it does not build (I-18).
    #[must_use]
    pub fn unreachable(mut self, why: impl Into<Arc<str>>) -> Self {
        self.unreachable = Some(why.into());
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> StageKind {
        self.kind
    }
}
