//! What a dispatcher does with its handlers, as plain data: an ordered list of validated phases.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::PolicyError;
use super::validate::validate;
use super::value::{
    Completion, Concurrency, Conduct, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};
use crate::declare::{Digest, digest_of};

/// A validated, immutable dispatch policy. Phases run in this order (F-9).
///
/// It serialises as its list of phases, with its conduct unless that is native; reading one back validates it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchPolicy {
    phases: Box<[Phase]>,
    conduct: Conduct,
}

impl DispatchPolicy {
    /// A policy of these phases, of native conduct.
    ///
    /// # Errors
    /// [`PolicyError`] names the phase, the field and the rule (F-1 to F-8, F-20) that the list breaks.
    pub fn new(phases: impl Into<Box<[Phase]>>) -> Result<Self, PolicyError> {
        Self::of(phases.into(), Conduct::Native)
    }

    pub(super) fn of(phases: Box<[Phase]>, conduct: Conduct) -> Result<Self, PolicyError> {
        validate(&phases, conduct)?;
        Ok(Self { phases, conduct })
    }

    /// The phases, in the order in which they run.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// How cancellations from outside, fatal failures and the store's refusals are treated.
    #[must_use]
    pub const fn conduct(&self) -> Conduct {
        self.conduct
    }

    /// The digest of the policy's canonical JSON. Equal policies have equal digests; any other value changes it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(self).expect("a validated policy holds names and whole numbers only")
    }

    /// The policy as rows of a table, one line a phase, with the columns of the specification separated by ` | `. A conduct other than
    /// native has a column of its own.
    #[must_use]
    pub fn describe(&self) -> String {
        let conduct = match self.conduct {
            Conduct::Native => "",
            Conduct::Recorded => " | as recorded",
        };
        let rows: Vec<String> = self.phases.iter().map(|phase| format!("{phase}{conduct}")).collect();
        rows.join("\n")
    }
}

/// One phase: which handlers it takes, how they run, and what their ends mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Which registrations.
    pub selector: Selector,
    /// Whether they wait for one another.
    pub concurrency: Concurrency,
    /// Where sync handlers run.
    pub sync_handlers: SyncHandlers,
    /// How sync and async are told apart.
    pub handler_classification: HandlerClassification,
    /// What counts as a returned awaitable.
    pub returned_value_classifier: ReturnedValueClassifier,
    /// What becomes of a returned awaitable.
    pub returned_awaitable: ReturnedAwaitable,
    /// Whether a synchronous owner may emit.
    pub sync_entry: SyncEntry,
    /// What a failed predicate means.
    pub predicate_failure: PredicateFailure,
    /// What a failed filter means; without this, what a failed predicate means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_failure: Option<PredicateFailure>,
    /// Whether a registration made while the phase runs takes part in it.
    #[serde(default = "next_emission", skip_serializing_if = "is_next_emission")]
    pub late_registrations: LateRegistrations,
    /// The stage in which handlers are invoked.
    pub invocation: StagePolicy,
    /// The stage in which returned awaitables are gathered, if they are (F-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_awaitables: Option<StagePolicy>,
    /// One budget for the whole phase, from its start (F-11). Whole milliseconds, at least one, at most thirty days.
    #[serde(rename = "deadline_ms", default, skip_serializing_if = "Option::is_none", with = "optional_millis")]
    pub deadline: Option<Duration>,
    /// What the end of that budget means (F-6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_disposition: Option<DeadlineDisposition>,
}

/// What the ends of handlers mean within one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagePolicy {
    /// What becomes of a failure.
    pub failure: Failure,
    /// When the stage is over.
    pub completion: Completion,
    /// How failures reach the emitter.
    pub error_surface: ErrorSurface,
    /// What becomes of a handler's cancellation.
    pub handler_cancellation: HandlerCancellation,
    /// The bounds of detached work, with [`Completion::DetachBounded`] only (F-20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detach: Option<DetachBounds>,
}

impl StagePolicy {
    /// A stage without detached work.
    #[must_use]
    pub const fn new(
        failure: Failure,
        completion: Completion,
        error_surface: ErrorSurface,
        handler_cancellation: HandlerCancellation,
    ) -> Self {
        Self { failure, completion, error_surface, handler_cancellation, detach: None }
    }
}

/// How much work may go on after its emission, and how long (F-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetachBounds {
    /// How many handlers at once.
    pub max_running: NonZeroU32,
    /// How long each may go on. Whole milliseconds, at least one, at most thirty days.
    #[serde(rename = "max_age_ms", with = "millis")]
    pub max_age: Duration,
}

fn next_emission() -> LateRegistrations {
    LateRegistrations::NextEmission
}

fn is_next_emission(late: &LateRegistrations) -> bool {
    *late == LateRegistrations::NextEmission
}

impl fmt::Display for Phase {
    /// The row of the specification's table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {} | ", self.selector, self.concurrency, self.sync_handlers)?;
        write!(f, "{} / {} / {} | ", self.handler_classification, self.returned_value_classifier, self.returned_awaitable)?;
        write!(f, "{} | ", self.invocation)?;
        match &self.returned_awaitables {
            Some(stage) => write!(f, "{stage} | ")?,
            None => f.write_str("- | ")?,
        }
        write!(f, "{} | ", self.sync_entry)?;
        match self.deadline {
            Some(budget) => write!(f, "{budget:?}")?,
            None => f.write_str("-")?,
        }
        if let Some(disposition) = self.deadline_disposition {
            write!(f, ", {disposition}")?;
        }
        write!(f, " | {}", self.predicate_failure)?;
        if let Some(filter) = self.filter_failure {
            write!(f, ", filters {filter}")?;
        }
        match self.late_registrations {
            LateRegistrations::NextEmission => Ok(()),
            LateRegistrations::ThisEmission => f.write_str(", late registrations join"),
        }
    }
}

impl fmt::Display for StagePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}, {}", self.failure, self.completion, self.error_surface, self.handler_cancellation)?;
        match self.detach {
            Some(DetachBounds { max_running, max_age }) => write!(f, " (at most {max_running} for {max_age:?})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for DispatchPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Serialize for DispatchPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire { phases: &self.phases, conduct: self.conduct }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DispatchPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::<Box<[Phase]>>::deserialize(deserializer)?;
        Self::of(wire.phases, wire.conduct).map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<P> {
    phases: P,
    #[serde(default = "native", skip_serializing_if = "is_native")]
    conduct: Conduct,
}

fn native() -> Conduct {
    Conduct::Native
}

fn is_native(conduct: &Conduct) -> bool {
    *conduct == Conduct::Native
}

/// Durations as whole milliseconds. What does not fit is refused by validation, so that writing cannot cut.
mod millis {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_millis()).map_err(serde::ser::Error::custom)?)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

mod optional_millis {
    use super::{Deserialize, Deserializer, Duration, Serializer, millis};

    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => millis::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(deserializer).map(|millis| millis.map(Duration::from_millis))
    }
}
