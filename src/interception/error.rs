//! Why a plan does not build, why an interceptor gave no answer, and why a chain failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::denial::{DenialCause, cut};
use super::report::Answer;
use super::stage::{OnFailure, StageKind};
use crate::declare::{CallableRef, CanonicalError};

/// The longest failure text that a report keeps, in bytes.
const MAX_FAILURE_BYTES: usize = 1024;

/// Why an interceptor gave no answer. Any error converts with `?`.
///
/// What it means for the operation is not the interceptor's to say: its stage declares it (I-3).
pub struct InterceptError(Box<Inner>);

struct Inner {
    cancelled: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl InterceptError {
    /// An error from a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self::boxed(false, message.into().into())
    }

    /// The interceptor's own work was cancelled, so that there is nothing to answer. Reported as cancelled, mapped like every failure.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::boxed(true, message.into().into())
    }

    /// Whether the interceptor's own work was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled
    }

    /// The error inside.
    #[must_use]
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0.source
    }

    fn boxed(cancelled: bool, source: Box<dyn Error + Send + Sync>) -> Self {
        Self(Box::new(Inner { cancelled, source }))
    }
}

/// `InterceptError` is no `Error` itself, so that every error can become one.
impl<E: Error + Send + Sync + 'static> From<E> for InterceptError {
    fn from(error: E) -> Self {
        Self::boxed(false, Box::new(error))
    }
}

impl fmt::Display for InterceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(f)
    }
}

impl fmt::Debug for InterceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(f)
    }
}

/// An answer that the stage does not allow (I-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A guard replaced the context.
    #[error("a guard replaced the context: only a transform may")]
    GuardReplaced,
    /// A guard stopped the chain.
    #[error("a guard answered stop: its stage does not declare that stop ends it")]
    GuardStopped,
    /// An advisory interceptor replaced the context.
    #[error("an advisory interceptor replaced the context: only a transform may")]
    AdvisoryReplaced,
    /// An advisory interceptor stopped the chain.
    #[error("an advisory interceptor answered stop: it has no vote")]
    AdvisoryStopped,
    /// An advisory interceptor denied.
    #[error("an advisory interceptor denied: it has no vote")]
    AdvisoryDenied,
    /// An advisory interceptor asked.
    #[error("an advisory interceptor asked for an approval: it has no vote")]
    AdvisoryAsked,
    /// An owner stop without a denial.
    #[error("a decision stops the owner without denying")]
    OwnerStopWithoutDenial,
    /// More remarks than a decision may carry.
    #[error("a decision carries more than {} notes, labels or evidence references", super::MAX_REMARKS)]
    TooManyRemarks,
    /// The code of a note, or a label, is empty, longer than 256 bytes or holds a control character.
    #[error("the code of a note, or a label, is not 1 to 256 printable bytes")]
    RemarkUnreadable,
}

/// How an interceptor failed.
#[derive(Debug)]
pub enum FailureKind {
    /// It answered with an error.
    Error(InterceptError),
    /// Its own work was cancelled.
    Cancelled(InterceptError),
    /// It panicked, before or while it was polled.
    Panicked {
        /// The panic's message, if it was a text.
        message: String,
    },
    /// Its answer did not come in time, or came too late to count (AH-2).
    TimedOut,
    /// It was not started: the budget was spent before its turn.
    NotStarted,
    /// It answered what its stage does not allow.
    ContractViolation(Violation),
    /// What it was to judge, or what it answered, has no canonical form.
    ContextInvalid(CanonicalError),
}

impl FailureKind {
    /// The class of a denial that the failure becomes where its stage denies.
    #[must_use]
    pub const fn cause(&self) -> DenialCause {
        match self {
            Self::Error(_) => DenialCause::InterceptorFailed,
            Self::Cancelled(_) => DenialCause::Cancelled,
            Self::Panicked { .. } => DenialCause::Panicked,
            Self::TimedOut | Self::NotStarted => DenialCause::TimedOut,
            Self::ContractViolation(_) => DenialCause::ContractViolation,
            Self::ContextInvalid(_) => DenialCause::ContextInvalid,
        }
    }

    /// The line of the report.
    pub(super) const fn answer(&self, mapping: OnFailure) -> Answer {
        match self {
            Self::Error(_) => Answer::Failed(mapping),
            Self::Cancelled(_) => Answer::Cancelled(Some(mapping)),
            Self::Panicked { .. } => Answer::Panicked(mapping),
            Self::TimedOut => Answer::TimedOut(mapping),
            Self::NotStarted => Answer::NotStarted(mapping),
            Self::ContractViolation(_) => Answer::ContractViolation(mapping),
            Self::ContextInvalid(_) => Answer::ContextInvalid(mapping),
        }
    }

    /// What happened, in at most 1 KiB.
    pub(super) fn text(&self) -> String {
        let text = match self {
            Self::Error(error) => format!("failed: {error}"),
            Self::Cancelled(error) => format!("was cancelled: {error}"),
            Self::Panicked { message } => format!("panicked: {message}"),
            Self::TimedOut => "did not answer in time".to_owned(),
            Self::NotStarted => "was not started: the budget was spent".to_owned(),
            Self::ContractViolation(violation) => format!("broke its contract: {violation}"),
            Self::ContextInvalid(error) => format!("has no judgeable value: {error}"),
        };
        cut(text, MAX_FAILURE_BYTES)
    }
}

/// The operation fails with an interceptor's failure, because its stage declares `Propagate` (I-3). It was not denied, and it was not performed.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChainFailure {
    /// The stage.
    pub stage: Arc<str>,
    /// The registration.
    pub registration: Arc<str>,
    /// How it failed.
    pub kind: FailureKind,
}

impl ChainFailure {
    pub(super) fn new(stage: &Arc<str>, registration: &Arc<str>, kind: FailureKind) -> Self {
        Self { stage: Arc::clone(stage), registration: Arc::clone(registration), kind }
    }
}

impl fmt::Display for ChainFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interceptor {} of stage {} {}", self.registration, self.stage, self.kind.text())
    }
}

impl Error for ChainFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            FailureKind::Error(error) | FailureKind::Cancelled(error) => Some(error.as_error()),
            FailureKind::ContractViolation(violation) => Some(violation),
            FailureKind::ContextInvalid(error) => Some(error),
            FailureKind::Panicked { .. } | FailureKind::TimedOut | FailureKind::NotStarted => None,
        }
    }
}

/// Why a plan does not build. Each names the thing at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A name is empty, too long or holds a control character.
    #[error("the {what} {name:?} must be 1 to 256 printable bytes")]
    Name {
        /// Which name.
        what: &'static str,
        /// The refused text.
        name: String,
    },
    /// Two stages have one name.
    #[error("stage {stage:?} is declared twice")]
    DuplicateStage {
        /// The stage.
        stage: Arc<str>,
    },
    /// Two registrations have one name (I-2, AH-6).
    #[error("registration {registration:?} stands twice in plan {plan:?}: names are unique in a plan")]
    DuplicateRegistration {
        /// The plan.
        plan: Arc<str>,
        /// The registration.
        registration: Arc<str>,
    },
    /// A registration names a stage that its owner does not declare (I-1).
    #[error("registration {registration:?} names stage {stage:?}, which its owner does not declare")]
    UnknownStage {
        /// The registration.
        registration: Arc<str>,
        /// The stage.
        stage: Arc<str>,
    },
    /// A registration stands at a step of the owner (I-18).
    #[error("registration {registration:?} stands at {stage:?}, a step of the owner that takes none")]
    OwnStep {
        /// The registration.
        registration: Arc<str>,
        /// The stage.
        stage: Arc<str>,
    },
    /// A registration stands at a stage that no path executes (I-18).
    #[error("registration {registration:?} stands at stage {stage:?}, which no path executes: {why}")]
    Unreachable {
        /// The registration.
        registration: Arc<str>,
        /// The stage.
        stage: Arc<str>,
        /// Why it is not executed.
        why: Arc<str>,
    },
    /// An evaluator gives other answers than its stage takes.
    #[error("registration {registration:?} {evaluator}, but stage {stage:?} is {kind}")]
    WrongEvaluator {
        /// The registration.
        registration: Arc<str>,
        /// What its evaluator does.
        evaluator: &'static str,
        /// The stage.
        stage: Arc<str>,
        /// Its kind.
        kind: StageKind,
    },
    /// A stage that can veto declares that failures are isolated: it would fail open (I-3).
    #[error("stage {stage:?} is {kind} and isolates failures: only an advisory stage may")]
    IsolateWithVeto {
        /// The stage.
        stage: Arc<str>,
        /// Its kind.
        kind: StageKind,
    },
    /// A stage that is no guard declares that stop ends it (I-14).
    #[error("stage {stage:?} is {kind} and declares that stop ends it: only a guard stage may")]
    StopEndsStage {
        /// The stage.
        stage: Arc<str>,
        /// Its kind.
        kind: StageKind,
    },
    /// A stage that takes registrations declares that it survives its caller (I-4).
    #[error("stage {stage:?} is {kind} and declares that it survives its caller: only a step of the owner may")]
    Shielded {
        /// The stage.
        stage: Arc<str>,
        /// Its kind.
        kind: StageKind,
    },
    /// Stages stand in an order that no operation can keep.
    #[error("stage {stage:?} is {kind} and stands after {after:?}: admission comes first, results come last")]
    StageOrder {
        /// The stage.
        stage: Arc<str>,
        /// Its kind.
        kind: StageKind,
        /// The stage before it.
        after: Arc<str>,
    },
    /// A deadline or bound is zero, so that nothing could ever be answered in time.
    #[error("the {what} of {name:?} is zero")]
    ZeroDuration {
        /// Deadline or bound.
        what: &'static str,
        /// Whose.
        name: Arc<str>,
    },
    /// Two registrations have one place: the same stage, explicit order and composition order.
    #[error("registrations {one:?} and {other:?} have the same place in stage {stage:?}: give one of them another order")]
    SamePlace {
        /// The one.
        one: Arc<str>,
        /// The other.
        other: Arc<str>,
        /// Their stage.
        stage: Arc<str>,
    },
    /// The composition root offers no handler of this reference (I-7).
    #[error("registration {registration:?} refers to {callable}, which the registry does not hold")]
    Unresolved {
        /// The registration.
        registration: Arc<str>,
        /// The reference.
        callable: CallableRef,
    },
    /// More stages or registrations than a plan may hold.
    #[error("plan {plan:?} holds {count} {what}: at most {max} are allowed")]
    TooMany {
        /// The plan.
        plan: Arc<str>,
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The bound.
        max: usize,
    },
}
