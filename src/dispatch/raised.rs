//! How an emission ends that has no report to return: refused before a handler ran, or raised.

use std::fmt;
use std::sync::Arc;

use super::context::CancelledBy;
use super::handler::{FailureKind, HandlerFailure};
use super::report::DispatchReport;

/// Why an emission did not return its report as a value.
pub enum DispatchError<V = ()> {
    /// It was refused; no handler ran.
    Refused(Refusal),
    /// Handlers ran, and the policy raises how some of them ended. The report is in it.
    Raised(Box<Raised<V>>),
}

impl<V> DispatchError<V> {
    /// What was raised, with its report.
    #[must_use]
    pub fn raised(&self) -> Option<&Raised<V>> {
        match self {
            Self::Refused(_) => None,
            Self::Raised(raised) => Some(raised),
        }
    }

    /// The report, if handlers ran.
    #[must_use]
    pub fn report(&self) -> Option<&DispatchReport<V>> {
        self.raised().map(Raised::report)
    }
}

/// Why an emission was refused before any handler ran.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The policy has no synchronous entry (F-13). Emit asynchronously.
    #[error("the dispatch policy has no synchronous entry: emit asynchronously")]
    NoSyncEntry,
    /// The policy refuses declared async registrations in a synchronous emission (F-13). Nothing was changed yet: emit asynchronously, or unregister them.
    #[error("a synchronous emission cannot await {}: emit asynchronously, or unregister them", registrations.join(", "))]
    DeclaredAsync {
        /// Their names, in registration order.
        registrations: Vec<String>,
    },
    /// The snapshot is of another dispatcher (F-13). Ask this one again.
    #[error("the snapshot is of another dispatcher: call `preflight_sync` on the one that emits")]
    ForeignSnapshot,
    /// The snapshot is of an earlier build of the dispatcher's policy (F-13). Ask again.
    #[error("the snapshot is of another build of the dispatcher's policy: call `preflight_sync` again")]
    OtherPolicyBuild,
    /// The handler that emits stands inside as many emissions of its own dispatcher as may stand inside one another (F-14).
    #[error(
        "{limit} emissions of the dispatcher stand inside one another: emit from a task of its own instead of from a handler"
    )]
    TooDeep {
        /// How many may.
        limit: usize,
    },
    /// The dispatcher was stopped.
    #[error("the dispatcher has stopped")]
    Stopped,
}

/// What an emission raised, with the report of all handlers.
pub struct Raised<V = ()> {
    pub(super) error: RaisedError,
    pub(super) cause: Option<Cause>,
    pub(super) report: DispatchReport<V>,
}

impl<V> Raised<V> {
    /// What was raised.
    #[must_use]
    pub const fn error(&self) -> &RaisedError {
        &self.error
    }

    /// What stands behind it, where the profile says so: behind a translated cancellation the ordinary failures, or else the cancellation itself; behind
    /// what the original's session observer raises from its gathering, all failures of that.
    #[must_use]
    pub const fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// The report: every matched registration.
    #[must_use]
    pub const fn report(&self) -> &DispatchReport<V> {
        &self.report
    }

    /// The report, by value.
    #[must_use]
    pub fn into_report(self) -> DispatchReport<V> {
        self.report
    }

    /// The same with what is known of the journal.
    #[must_use]
    pub fn with_journal(mut self, journal: super::report::JournalState) -> Self {
        self.report = self.report.with_journal(journal);
        self
    }
}

/// What an emission raises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaisedError {
    /// One handler's end, as itself.
    One(Member),
    /// Several, or one where the surface is a group, in registration order. It may hold cancellations beside failures, each as what it is (F-12).
    Group(Vec<Member>),
    /// A cancellation: a handler's own, or the emitter's. It is never an ordinary failure (F-12).
    Cancelled {
        /// Who cancelled.
        by: CancelledBy,
        /// The handler, if it was its own.
        registration: Option<Arc<str>>,
    },
    /// A handler's cancellation, translated; see [`Raised::cause`].
    HandlerCancelled,
    /// The budget ended, and the policy raises that.
    TimedOut,
}

/// What stands behind a raised error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// One handler's end.
    One(Member),
    /// Several, in registration order.
    Group(Vec<Member>),
}

/// One handler's end, as it is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The registration.
    pub registration: Arc<str>,
    /// How it ended.
    pub end: MemberEnd,
}

/// How a handler ended that did not return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEnd {
    /// It failed, or its condition did.
    Failed(HandlerFailure),
    /// It was cancelled.
    Cancelled(CancelledBy),
}

impl MemberEnd {
    pub(super) fn is_of(&self, kind: FailureKind) -> bool {
        matches!(self, Self::Failed(failure) if failure.kind() == kind)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            MemberEnd::Failed(failure) => write!(f, "{} failed: {failure}", self.registration),
            MemberEnd::Cancelled(by) => write!(f, "{} was cancelled by {by}", self.registration),
        }
    }
}

impl fmt::Display for RaisedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(member) => member.fmt(f),
            Self::Group(members) => Listed(members).fmt(f),
            Self::Cancelled { by: _, registration: Some(registration) } => {
                write!(f, "the emission was cancelled by its handler {registration}")
            }
            Self::Cancelled { by, registration: None } => write!(f, "the emission was cancelled by {by}"),
            Self::HandlerCancelled => f.write_str("a handler was cancelled"),
            Self::TimedOut => f.write_str("the budget of the emission was spent"),
        }
    }
}

struct Listed<'a>(&'a [Member]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handlers did not return: ", self.0.len())?;
        self.0.iter().enumerate().try_for_each(|(at, member)| {
            if at > 0 {
                f.write_str("; ")?;
            }
            member.fmt(f)
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(member) => member.fmt(f),
            Self::Group(members) => Listed(members).fmt(f),
        }
    }
}

impl std::error::Error for Cause {}

impl<V> fmt::Display for Raised<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<V> fmt::Debug for Raised<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raised").field("error", &self.error).field("cause", &self.cause).field("report", &self.report).finish()
    }
}

impl<V> std::error::Error for Raised<V> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

impl<V> fmt::Display for DispatchError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Raised(raised) => raised.fmt(f),
        }
    }
}

impl<V> fmt::Debug for DispatchError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => f.debug_tuple("Refused").field(refusal).finish(),
            Self::Raised(raised) => f.debug_tuple("Raised").field(raised).finish(),
        }
    }
}

impl<V> std::error::Error for DispatchError<V> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Raised(raised) => raised.source(),
        }
    }
}

impl<V> From<Refusal> for DispatchError<V> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
