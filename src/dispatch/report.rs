//! What an emission came to, by registration.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::handler::HandlerFailure;

/// What an emission came to. It names every matched registration, in registration order, also when they ran concurrently (F-10).
///
/// It serialises as `{elapsed_us, journal, handlers: [{registration, outcome, elapsed_us, ..}]}`.
#[derive(Debug, Clone)]
pub struct DispatchReport {
    names: Arc<[Arc<str>]>,
    slots: Vec<Slot>,
    elapsed: Duration,
    journal: JournalState,
}

impl DispatchReport {
    pub(super) fn new(names: Arc<[Arc<str>]>, slots: Vec<Slot>, elapsed: Duration) -> Self {
        Self { names, slots, elapsed, journal: JournalState::Off }
    }

    /// The report with what is known of the journal. The kernel itself knows no journal and says [`JournalState::Off`].
    #[must_use]
    pub fn with_journal(mut self, journal: JournalState) -> Self {
        self.journal = journal;
        self
    }

    /// The matched registrations, in registration order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = ReportEntry<'_>> {
        self.slots.iter().map(|slot| self.entry_of(slot))
    }

    /// The entry of a registration, by name, if it matched.
    #[must_use]
    pub fn entry(&self, registration: &str) -> Option<ReportEntry<'_>> {
        self.entries().find(|entry| entry.registration == registration)
    }

    /// Whether every matched handler returned.
    #[must_use]
    pub fn all_returned(&self) -> bool {
        self.slots.iter().all(|slot| slot.outcome == Outcome::Returned)
    }

    /// How long the emission took.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What is known of the fact's row in the journal (F-16).
    #[must_use]
    pub const fn journal(&self) -> JournalState {
        self.journal
    }

    fn entry_of<'a>(&'a self, slot: &'a Slot) -> ReportEntry<'a> {
        ReportEntry {
            registration: &self.names[slot.index as usize],
            outcome: &slot.outcome,
            elapsed: Duration::from_nanos(slot.nanos),
        }
    }
}

/// How one matched registration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportEntry<'a> {
    /// Its name.
    pub registration: &'a str,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// How long it took, at most. Handlers that were brief in earlier emissions share one reading of the clock in runs of up to sixteen,
    /// and each of them then shows the time of its run.
    pub elapsed: Duration,
}

/// How a registration ended (F-10, as far as the `observation` profile can end).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Returned,
    /// It failed or panicked; nobody else was touched.
    Isolated(HandlerFailure),
    /// It was cancelled, by its own account.
    Cancelled,
    /// The budget ended while it ran; what was left of it was dropped.
    TimedOut,
    /// It was never called.
    NotStarted(NotStarted),
    /// Its condition failed or panicked; it was not called (F-21).
    PredicateFailed(HandlerFailure),
}

impl Outcome {
    /// The outcome's name, as serialised.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Isolated(_) => "isolated",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::NotStarted(_) => "not_started",
            Self::PredicateFailed(_) => "predicate_failed",
        }
    }
}

/// Why a matched handler was never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStarted {
    /// The emission's budget was spent before its turn (F-11).
    BudgetSpent,
}

impl NotStarted {
    /// The reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BudgetSpent => "budget spent",
        }
    }
}

/// What is known of the fact's row in the journal when the report is made (F-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// The session has no journal.
    Off,
    /// The fact is in the journal's queue; its commit was not waited for.
    Pending,
    /// The row is committed under this position of its session.
    Confirmed(u64),
    /// The fact is counted as a gap: whether its row exists is not known, or it does not. The reason's code.
    Unconfirmed(&'static str),
}

/// An entry as the kernel keeps it.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) outcome: Outcome,
    pub(super) nanos: u64,
    /// Position in the snapshot.
    pub(super) index: u32,
}

impl Serialize for DispatchReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("DispatchReport", 3)?;
        report.serialize_field("elapsed_us", &micros(self.elapsed))?;
        report.serialize_field("journal", &self.journal)?;
        report.serialize_field("handlers", &self.entries().map(WireEntry::from).collect::<Vec<_>>())?;
        report.end()
    }
}

#[derive(Serialize)]
struct WireEntry<'a> {
    registration: &'a str,
    outcome: &'static str,
    elapsed_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

impl<'a> From<ReportEntry<'a>> for WireEntry<'a> {
    fn from(entry: ReportEntry<'a>) -> Self {
        let (failure, why) = match entry.outcome {
            Outcome::Isolated(failure) | Outcome::PredicateFailed(failure) => (Some(failure), None),
            Outcome::NotStarted(why) => (None, Some(why.as_str())),
            Outcome::Returned | Outcome::Cancelled | Outcome::TimedOut => (None, None),
        };
        Self {
            registration: entry.registration,
            outcome: entry.outcome.as_str(),
            elapsed_us: micros(entry.elapsed),
            code: failure.map(HandlerFailure::code),
            message: failure.map(HandlerFailure::message),
            why,
        }
    }
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
