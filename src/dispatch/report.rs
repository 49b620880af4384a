//! What an emission came to, by registration.
//!
//! Nearly every handler returns. So a report keeps who was called, what was unusual, and the readings of the clock; the entry of a handler
//! that returned is put together when somebody reads it.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::handler::{HandlerError, HandlerFailure};

/// What an emission came to. It names every matched registration, in registration order, also when they ran concurrently (F-10).
///
/// It serialises as `{elapsed_us, journal, handlers: [{registration, outcome, elapsed_us, ..}]}`.
#[derive(Debug, Clone)]
pub struct DispatchReport {
    names: Arc<[Arc<str>]>,
    ends: Ends,
    elapsed: Duration,
    journal: JournalState,
}

impl DispatchReport {
    pub(super) fn new(names: Arc<[Arc<str>]>, ends: Ends, elapsed: Duration) -> Self {
        Self { names, ends, elapsed, journal: JournalState::Off }
    }

    /// The report with what is known of the journal. The kernel itself knows no journal and says [`JournalState::Off`].
    #[must_use]
    pub fn with_journal(mut self, journal: JournalState) -> Self {
        self.journal = journal;
        self
    }

    /// The matched registrations, in registration order.
    pub fn entries(&self) -> impl Iterator<Item = ReportEntry<'_>> {
        let mut wanted = self.ends.wanted.as_ref().map(|wanted| wanted.iter().copied().peekable());
        let mut unusual = self.ends.unusual.iter().peekable();
        let mut runs = self.ends.runs.iter().peekable();
        (0u32..).zip(&*self.names).filter_map(move |(index, name)| {
            let wants = wanted.as_mut().is_none_or(|wanted| wanted.next_if_eq(&index).is_some());
            let unusual = unusual.next_if(|unusual| unusual.index == index);
            while runs.next_if(|run| run.end <= index).is_some() {}
            let outcome = match unusual {
                Some(unusual) => &unusual.outcome,
                None if !wants => return None,
                None if index >= self.ends.begun => &BUDGET_SPENT,
                None => &RETURNED,
            };
            let measured = runs.peek().filter(|_| wants).map(|run| run.elapsed);
            let elapsed = unusual.and_then(|unusual| unusual.elapsed).or(measured).unwrap_or_default();
            Some(ReportEntry { registration: name, outcome, elapsed })
        })
    }

    /// The entry of a registration, by name, if it matched.
    #[must_use]
    pub fn entry(&self, registration: &str) -> Option<ReportEntry<'_>> {
        self.entries().find(|entry| entry.registration == registration)
    }

    /// How many registrations matched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().count()
    }

    /// Whether no registration matched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Whether every matched handler returned.
    #[must_use]
    pub fn all_returned(&self) -> bool {
        self.entries().all(|entry| *entry.outcome == Outcome::Returned)
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
}

/// How one matched registration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportEntry<'a> {
    /// Its name.
    pub registration: &'a str,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// How long it took, at most. Handlers that were brief in earlier emissions share one reading of the clock in runs of up to thirty-two,
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

static RETURNED: Outcome = Outcome::Returned;
static BUDGET_SPENT: Outcome = Outcome::NotStarted(NotStarted::BudgetSpent);

/// How the handlers ended, as the kernel gathers it. Positions are those of the snapshot.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// Those that wanted the fact, ascending; `None` when all did.
    pub(super) wanted: Option<Vec<u32>>,
    /// Those from this position on were never begun.
    pub(super) begun: u32,
    /// Those that did not return at their turn, ascending.
    pub(super) unusual: Vec<Unusual>,
    pub(super) runs: Runs,
}

/// The runs of one emission, ascending. The first, which is most often the only one, needs no heap.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    first: Option<Run>,
    more: Vec<Run>,
}

impl Runs {
    pub(super) fn push(&mut self, run: Run) {
        match self.first {
            None => self.first = Some(run),
            Some(_) => self.more.push(run),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Run> {
        self.first.iter().chain(&self.more)
    }
}

/// Handlers that were begun between two readings of the clock: those before `end` that are in no earlier run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) end: u32,
    pub(super) elapsed: Duration,
}

/// A handler that did not return at its turn.
#[derive(Debug, Clone)]
pub(super) struct Unusual {
    index: u32,
    outcome: Outcome,
    /// How long it took, if it waited.
    elapsed: Option<Duration>,
}

impl Unusual {
    pub(super) fn new(index: u32, outcome: Outcome) -> Self {
        Self { index, outcome, elapsed: None }
    }

    pub(super) fn after(mut self, elapsed: Duration) -> Self {
        self.elapsed = Some(elapsed);
        self
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// One warning for each failure. The message stays in the report: it may quote the payload, which is never logged.
    pub(super) fn warn(&self, names: &[Arc<str>]) {
        let registration = &*names[self.index as usize];
        match &self.outcome {
            Outcome::Isolated(failure) => {
                tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "subscriber failed; others are not touched");
            }
            Outcome::PredicateFailed(failure) => {
                tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "condition failed; its subscriber was not called");
            }
            Outcome::Returned | Outcome::Cancelled | Outcome::TimedOut | Outcome::NotStarted(_) => {}
        }
    }
}

impl From<HandlerError> for Outcome {
    fn from(error: HandlerError) -> Self {
        match error {
            HandlerError::Failed(failure) => Self::Isolated(failure),
            HandlerError::Cancelled => Self::Cancelled,
        }
    }
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
