//! What an emission came to, by registration.
//!
//! Nearly every handler returns. So a report keeps who was called, what was unusual, and the readings of the clock; the entry of a handler
//! that returned is put together when somebody reads it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::context::CancelledBy;
use super::handler::{HandlerError, HandlerFailure};

/// What an emission came to. It names every matched registration, in registration order, also when they ran concurrently (F-10).
///
/// It serialises as `{elapsed_us, journal, handlers: [{registration, outcome, elapsed_us, ..}]}`; returned values are the emitter's and are left out.
#[derive(Clone)]
pub struct DispatchReport<V = ()> {
    names: Arc<[Arc<str>]>,
    ends: Ends<V>,
    elapsed: Duration,
    journal: JournalState,
}

impl<V> DispatchReport<V> {
    pub(super) fn new(names: Arc<[Arc<str>]>, ends: Ends<V>, elapsed: Duration) -> Self {
        Self { names, ends, elapsed, journal: JournalState::Off }
    }

    /// The report with what is known of the journal. The kernel itself knows no journal and says [`JournalState::Off`].
    #[must_use]
    pub fn with_journal(mut self, journal: JournalState) -> Self {
        self.journal = journal;
        self
    }

    /// The matched registrations, in registration order.
    pub fn entries(&self) -> impl Iterator<Item = ReportEntry<'_, V>> {
        let mut values = self.ends.values.iter();
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
            let stage = unusual.map_or(Stage::Invocation, |unusual| unusual.stage);
            let value = match unusual {
                Some(unusual) => unusual.value.as_ref(),
                None => (*outcome == Outcome::Returned).then(|| values.next()).flatten(),
            };
            Some(ReportEntry { registration: name, outcome, elapsed, stage, value })
        })
    }

    /// What the handlers came to, in the order in which the original system hands it to its emitter: first those that ended at their call, then those
    /// whose awaitable was gathered, each in registration order. It is the returned value, or, of one that was gathered, its collected cancellation.
    pub fn results(&self) -> impl Iterator<Item = Result<&V, CancelledBy>> {
        let of = |stage: Stage| self.entries().filter(move |entry| entry.stage == stage);
        of(Stage::Invocation).chain(of(Stage::ReturnedAwaitables)).filter_map(|entry| match (entry.value, entry.outcome) {
            (Some(value), _) => Some(Ok(value)),
            (None, Outcome::Cancelled(by)) if entry.stage == Stage::ReturnedAwaitables => Some(Err(*by)),
            (None, _) => None,
        })
    }

    /// The entry of a registration, by name, if it matched.
    #[must_use]
    pub fn entry(&self, registration: &str) -> Option<ReportEntry<'_, V>> {
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

impl<V> fmt::Debug for DispatchReport<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends: Vec<_> = self.entries().map(|entry| (entry.registration, entry.outcome)).collect();
        f.debug_struct("DispatchReport")
            .field("ends", &ends)
            .field("elapsed", &self.elapsed)
            .field("journal", &self.journal)
            .finish()
    }
}

/// How one matched registration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportEntry<'a, V = ()> {
    /// Its name.
    pub registration: &'a str,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// How long it took, at most. Handlers that were brief in earlier emissions share one reading of the clock in runs of up to thirty-two,
    /// and each of them then shows the time of its run.
    pub elapsed: Duration,
    /// In which stage it ended.
    pub stage: Stage,
    /// What it returned, if it did.
    pub value: Option<&'a V>,
}

/// A stage of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Handlers are called, and awaited unless their awaitables are gathered.
    Invocation,
    /// Returned awaitables are gathered.
    ReturnedAwaitables,
}

/// How a registration ended (F-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Returned,
    /// It failed or panicked, and its policy does not isolate that: it reaches the emitter as the stage's error surface says.
    Failed(HandlerFailure),
    /// It failed or panicked; nobody else was touched.
    Isolated(HandlerFailure),
    /// It was cancelled: by its own account, or from outside.
    Cancelled(CancelledBy),
    /// The budget ended while it ran; what was left of it was dropped.
    TimedOut,
    /// It was never called.
    NotStarted(NotStarted),
    /// Its condition failed or panicked; it was not called (F-21).
    PredicateFailed(HandlerFailure),
    /// Its condition was cancelled; it was not called.
    PredicateCancelled,
    /// Its call returned an awaitable, which the policy drops unawaited.
    DiscardedUnawaited,
    /// Its call returned an awaitable, which was dropped unawaited because the phase had ended.
    DroppedUnawaited,
    /// It goes on without its emission, within bounds (F-20).
    Detached,
    /// It is called in its turn, after those of earlier emissions (F-18).
    Queued,
    /// It runs on a thread that the emission gave up: whether it ends, and how, is not known (F-17).
    AbandonedUnknown,
}

impl Outcome {
    /// The outcome's name, as serialised.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed(_) => "failed",
            Self::Isolated(_) => "isolated",
            Self::Cancelled(_) => "cancelled",
            Self::TimedOut => "timed_out",
            Self::NotStarted(_) => "not_started",
            Self::PredicateFailed(_) => "predicate_failed",
            Self::PredicateCancelled => "predicate_cancelled",
            Self::DiscardedUnawaited => "discarded_unawaited",
            Self::DroppedUnawaited => "dropped_unawaited",
            Self::Detached => "detached",
            Self::Queued => "queued",
            Self::AbandonedUnknown => "abandoned_unknown",
        }
    }
}

/// Why a matched handler was never called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStarted {
    /// The emission's budget was spent before its turn (F-11).
    BudgetSpent,
    /// An earlier failure had ended the emission.
    EarlierFailure,
    /// A cancellation had ended the emission: a handler's, or the emitter's.
    EarlierCancellation,
    /// No thread was free (F-17).
    OffloadSaturated,
    /// As much detached work ran as may (F-20).
    DetachLimit,
    /// Its queue was full, and gives up the newest (F-18).
    QueueFull,
    /// Another registration overrides it.
    Overridden,
    /// It has to be awaited, or asks for a thread, and the emission is synchronous (F-13).
    NeedsAsyncEntry,
    /// The dispatcher was stopped.
    Stopped,
}

impl NotStarted {
    /// The reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BudgetSpent => "budget spent",
            Self::EarlierFailure => "earlier failure",
            Self::EarlierCancellation => "earlier cancellation",
            Self::OffloadSaturated => "offload saturated",
            Self::DetachLimit => "detach limit",
            Self::QueueFull => "queue full",
            Self::Overridden => "overridden",
            Self::NeedsAsyncEntry => "needs an async entry",
            Self::Stopped => "dispatcher stopped",
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
#[derive(Clone)]
pub(super) struct Ends<V> {
    /// Those that wanted the fact, ascending; `None` when all did.
    pub(super) wanted: Option<Vec<u32>>,
    /// Those from this position on were never begun.
    pub(super) begun: u32,
    /// Those that did not return at their turn, ascending.
    pub(super) unusual: Vec<Unusual<V>>,
    /// What those returned that did at their turn, ascending.
    pub(super) values: Vec<V>,
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
#[derive(Clone)]
pub(super) struct Unusual<V> {
    index: u32,
    outcome: Outcome,
    /// How long it took, if it waited.
    elapsed: Option<Duration>,
    stage: Stage,
    value: Option<V>,
}

impl<V> Unusual<V> {
    pub(super) fn new(index: u32, outcome: Outcome) -> Self {
        Self { index, outcome, elapsed: None, stage: Stage::Invocation, value: None }
    }

    /// How a handler ended that was awaited; a failure of it is isolated.
    pub(super) fn ended(index: u32, result: Result<V, HandlerError>) -> Self {
        match result {
            Ok(value) => Self { value: Some(value), ..Self::new(index, Outcome::Returned) },
            Err(HandlerError::Failed(failure)) => Self::new(index, Outcome::Isolated(failure)),
            Err(HandlerError::Cancelled) => Self::new(index, Outcome::Cancelled(CancelledBy::Itself)),
        }
    }

    pub(super) fn after(mut self, elapsed: Duration) -> Self {
        self.elapsed = Some(elapsed);
        self
    }

    pub(super) fn within(mut self, stage: Stage) -> Self {
        self.stage = stage;
        self
    }

    pub(super) fn handing(mut self, value: Option<V>) -> Self {
        self.value = value;
        self
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// One warning for each isolated failure. The message stays in the report: it may quote the payload, which is never logged.
    pub(super) fn warn(&self, names: &[Arc<str>]) {
        let registration = &*names[self.index as usize];
        if let Outcome::Isolated(failure) = &self.outcome {
            warn_isolated(registration, failure);
        }
        if let Outcome::PredicateFailed(failure) = &self.outcome {
            warn_predicate(registration, failure);
        }
    }
}

pub(super) fn warn_isolated(registration: &str, failure: &HandlerFailure) {
    tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "subscriber failed; others are not touched");
}

pub(super) fn warn_predicate(registration: &str, failure: &HandlerFailure) {
    tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "condition failed; its subscriber was not called");
}

impl<V> Serialize for DispatchReport<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("DispatchReport", 3)?;
        report.serialize_field("elapsed_us", &micros(self.elapsed))?;
        report.serialize_field("journal", &self.journal)?;
        report.serialize_field("handlers", &self.entries().map(WireEntry::of).collect::<Vec<_>>())?;
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

impl<'a> WireEntry<'a> {
    fn of<V>(entry: ReportEntry<'a, V>) -> Self {
        let (failure, why) = match entry.outcome {
            Outcome::Failed(failure) | Outcome::Isolated(failure) | Outcome::PredicateFailed(failure) => (Some(failure), None),
            Outcome::NotStarted(why) => (None, Some(why.as_str())),
            Outcome::Cancelled(CancelledBy::Itself) => (None, None),
            Outcome::Cancelled(by) => (None, Some(by.as_str())),
            Outcome::Returned
            | Outcome::TimedOut
            | Outcome::PredicateCancelled
            | Outcome::DiscardedUnawaited
            | Outcome::DroppedUnawaited
            | Outcome::Detached
            | Outcome::Queued
            | Outcome::AbandonedUnknown => (None, None),
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
