//! One registration's line of a report.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Entry, Report, Subject};
use crate::declare::{CallableRef, Digest};
use crate::interception::decision::{AskRequest, Note};
use crate::interception::denial::DenialCode;
use crate::interception::evidence::EvidenceRef;
use crate::interception::plan::Registered;
use crate::interception::stage::OnFailure;

/// What a registration answered. A failure carries what its stage declares it to mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Its turn did not come.
    NotReached,
    /// It was passed over.
    Skipped(SkipReason),
    /// There is room.
    Admitted,
    /// There is no room now.
    Deferred,
    /// Go on.
    Continued,
    /// Go on with another context; of a result, hand on another.
    Replaced,
    /// Skip what I-14 lets it skip.
    Stopped,
    /// Refused.
    Denied,
    /// Go on, and ask.
    Asked,
    /// Hand on the result.
    Kept,
    /// Hand on no result.
    Withheld,
    /// It answered with an error.
    Failed(OnFailure),
    /// It panicked.
    Panicked(OnFailure),
    /// Its answer did not come in time, or came too late to count.
    TimedOut(OnFailure),
    /// It was not started: the budget was spent before its turn (P11).
    NotStarted(OnFailure),
    /// It answered what its stage does not allow.
    ContractViolation(OnFailure),
    /// Its replacement has no canonical form.
    ContextInvalid(OnFailure),
    /// It was running when the proposal was dropped; with a mapping: it says that its own work was cancelled.
    Cancelled(Option<OnFailure>),
}

/// Why a registration was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// An earlier one stopped (I-14).
    Stopped,
    /// A guard that is due to run again has judged this digest already (I-5).
    Unchanged,
    /// It stands at a result stage for the other end of the operation.
    OtherEnd,
}

impl Answer {
    /// The name, as it is written into records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotReached => "not_reached",
            Self::Skipped(_) => "skipped",
            Self::Admitted => "admitted",
            Self::Deferred => "deferred",
            Self::Continued => "continued",
            Self::Replaced => "replaced",
            Self::Stopped => "stopped",
            Self::Denied => "denied",
            Self::Asked => "asked",
            Self::Kept => "kept",
            Self::Withheld => "withheld",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::TimedOut(_) => "timed_out",
            Self::NotStarted(_) => "not_started",
            Self::ContractViolation(_) => "contract_violation",
            Self::ContextInvalid(_) => "context_invalid",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// What the failure meant, if it was one.
    #[must_use]
    pub const fn mapping(self) -> Option<OnFailure> {
        match self {
            Self::Failed(mapping)
            | Self::Panicked(mapping)
            | Self::TimedOut(mapping)
            | Self::NotStarted(mapping)
            | Self::ContractViolation(mapping)
            | Self::ContextInvalid(mapping) => Some(mapping),
            Self::Cancelled(mapping) => mapping,
            Self::NotReached
            | Self::Skipped(_)
            | Self::Admitted
            | Self::Deferred
            | Self::Continued
            | Self::Replaced
            | Self::Stopped
            | Self::Denied
            | Self::Asked
            | Self::Kept
            | Self::Withheld => None,
        }
    }

    /// Whether the interceptor's code was entered.
    #[must_use]
    pub const fn was_called(self) -> bool {
        !matches!(self, Self::NotReached | Self::Skipped(_) | Self::NotStarted(_))
    }

    /// Whether the answer lets the operation go on.
    pub(super) const fn permits(self) -> bool {
        matches!(self, Self::Continued | Self::Replaced | Self::Stopped | Self::Asked)
    }
}

impl SkipReason {
    /// The name, as it is written into records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Unchanged => "unchanged",
            Self::OtherEnd => "other_end",
        }
    }
}

/// What an answer carried beside itself. Most carry nothing.
#[derive(Debug, Default)]
pub(in crate::interception) struct Details {
    /// The digest of the replacement, applied or, where the plan only evaluates, not.
    pub(in crate::interception) replacement: Option<Digest>,
    pub(in crate::interception) code: Option<DenialCode>,
    pub(in crate::interception) reason: Option<String>,
    pub(in crate::interception) ask: Option<AskRequest>,
    pub(in crate::interception) owner_stop: bool,
    pub(in crate::interception) notes: Vec<Note>,
    pub(in crate::interception) labels: Vec<Arc<str>>,
    pub(in crate::interception) evidence: Vec<EvidenceRef>,
}

/// One registration's line of a report.
#[derive(Clone, Copy)]
pub struct Step<'r> {
    report: &'r Report,
    registered: &'r Registered,
    entry: Option<&'r Entry>,
}

impl<'r> Step<'r> {
    pub(super) const fn of(report: &'r Report, registered: &'r Registered, entry: Option<&'r Entry>) -> Self {
        Self { report, registered, entry }
    }

    fn details(&self) -> Option<&'r Details> {
        self.entry?.details.as_deref()
    }

    /// The stage.
    #[must_use]
    pub fn stage(&self) -> &'r str {
        &self.registered.stage
    }

    /// The registration.
    #[must_use]
    pub fn registration(&self) -> &'r str {
        &self.registered.name
    }

    /// The durable name of its code.
    #[must_use]
    pub fn callable(&self) -> &'r CallableRef {
        &self.registered.callable
    }

    /// What it answered.
    #[must_use]
    pub fn answer(&self) -> Answer {
        self.entry.map_or(Answer::NotReached, |entry| entry.answer)
    }

    /// How long it took, with the digest of its replacement.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.entry.map_or(0, |entry| entry.elapsed_ns))
    }

    /// The digest that it judged; absent if it was not called.
    #[must_use]
    pub fn judged(&self) -> Option<Digest> {
        match self.entry?.subject {
            Subject::Judged(place) => self.report.digest_at(place).copied(),
            Subject::Nothing | Subject::StoppedBy(_) => None,
        }
    }

    /// The digest of its replacement.
    #[must_use]
    pub fn replaced_by(&self) -> Option<Digest> {
        self.details()?.replacement
    }

    /// Who stopped it from being called.
    #[must_use]
    pub fn stopped_by(&self) -> Option<&'r str> {
        match self.entry?.subject {
            Subject::StoppedBy(at) => Some(&self.report.shape.registrations[at as usize].name),
            Subject::Nothing | Subject::Judged(_) => None,
        }
    }

    /// The code of its denial or ask.
    #[must_use]
    pub fn code(&self) -> Option<&'r DenialCode> {
        let details = self.details()?;
        details.code.as_ref().or_else(|| details.ask.as_ref().map(AskRequest::code))
    }

    /// Its reason, or how it failed.
    #[must_use]
    pub fn reason(&self) -> Option<&'r str> {
        let details = self.details()?;
        details.reason.as_deref().or_else(|| details.ask.as_ref().map(AskRequest::reason))
    }

    /// Whether it asked the owner to stop altogether.
    #[must_use]
    pub fn stops_owner(&self) -> bool {
        self.details().is_some_and(|details| details.owner_stop)
    }

    /// Its notes.
    #[must_use]
    pub fn notes(&self) -> &'r [Note] {
        self.details().map_or(&[], |details| &details.notes)
    }

    /// Its labels.
    #[must_use]
    pub fn labels(&self) -> &'r [Arc<str>] {
        self.details().map_or(&[], |details| &details.labels)
    }

    /// Its evidence.
    #[must_use]
    pub fn evidence(&self) -> &'r [EvidenceRef] {
        self.details().map_or(&[], |details| &details.evidence)
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {:?}", self.stage(), self.registration(), self.answer())
    }
}
