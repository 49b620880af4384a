//! One emission under the `observation` policy.
//!
//! | handler | at its turn, in registration order | afterwards |
//! |---|---|---|
//! | condition does not hold | nothing, and no entry | |
//! | condition fails or panics | not called: `predicate_failed`, one warning | |
//! | any, budget spent | not called: `not_started` | |
//! | sync | called on this task, to its end | |
//! | async, ends at its first poll | called and polled | |
//! | async, pending | called and polled | polled beside the others until it ends or the budget does: `timed_out` |
//! | fails or panics, wherever | `isolated`, one warning; the next one's turn comes | |
//!
//! # Why is the clock not read for every handler?
//! A reading costs about thirty nanoseconds, several times what a small handler costs. A handler that was brief when it was last
//! measured shares a reading with its neighbours, in runs of at most [`RUN`]. A handler that was not is measured alone, and the budget is
//! looked at before its turn. The first emission measures every handler alone.

use std::future::{pending, poll_fn};
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::{FuturesUnordered, Stream};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::handler::{Begun, HandlerError, HandlerResult, Running, contained};
use super::registration::{Entry, Snapshot};
use super::report::{DispatchReport, NotStarted, Outcome, Slot};
use crate::clock::Deadline;

/// Runs one emission: every matching handler of the snapshot sees the same shared fact.
///
/// The budget is the policy's, from now on, and ends earlier if `cap` does (F-11).
///
/// # Ordering
/// All conditions are asked first. Handlers are then begun in registration order; one that waits lets the next begin. The report is in
/// registration order.
///
/// # Cancel safety
/// Dropping the future drops what is in flight; no handler is begun after that, and there is no report (F-12).
///
/// # Panics
/// Outside a tokio runtime with its timer enabled, if a handler does not end at once. A handler's own panic is caught.
pub async fn fan_out<F: 'static>(snapshot: &Snapshot<F>, fact: &Arc<F>, cap: Option<Deadline>) -> DispatchReport {
    let mut emission = Emission::begin(snapshot, cap);
    emission.admit(fact);
    let waiting = poll_fn(|cx| Poll::Ready(emission.invoke(fact, cx))).await;
    if !waiting.is_empty() {
        emission.settle(waiting).await;
    }
    emission.report()
}

/// The longest run of brief handlers that share one reading of the clock.
const RUN: usize = 16;

/// What counts as brief.
const BRIEF: Duration = Duration::from_micros(1);

struct Emission<'a, F> {
    snapshot: &'a Snapshot<F>,
    slots: Vec<Slot>,
    started: Instant,
    /// The last reading of the clock.
    read: Instant,
    limit: Option<Instant>,
}

impl<'a, F: 'static> Emission<'a, F> {
    fn begin(snapshot: &'a Snapshot<F>, cap: Option<Deadline>) -> Self {
        let started = Instant::now();
        let budget = snapshot.0.budget.map(|budget| Deadline::at(started + budget));
        let limit = match (budget, cap) {
            (Some(budget), Some(cap)) => Some(budget.earlier(cap)),
            (budget, cap) => budget.or(cap),
        };
        Self { snapshot, slots: Vec::with_capacity(snapshot.len()), started, read: started, limit: limit.map(Deadline::instant) }
    }

    /// Gives every matching registration its slot.
    fn admit(&mut self, fact: &F) {
        for (index, entry) in (0u32..).zip(&self.snapshot.0.entries) {
            if let Some(outcome) = admitted(entry, fact) {
                self.slots.push(Slot { outcome, nanos: 0, index });
            }
        }
    }

    /// Begins every admitted handler while there is budget; returns those that wait.
    fn invoke(&mut self, fact: &Arc<F>, cx: &mut Context<'_>) -> Vec<Waiting> {
        let snapshot = self.snapshot;
        let mut waiting = Vec::new();
        let mut unmeasured = 0..0;
        for at in 0..self.slots.len() {
            if matches!(self.slots[at].outcome, Outcome::PredicateFailed(_)) {
                continue;
            }
            let entry = &snapshot.0.entries[self.slots[at].index as usize];
            let alone = !entry.brief.load(Ordering::Relaxed);
            if alone || unmeasured.len() >= RUN {
                self.measure(&mut unmeasured, at);
            }
            if self.is_spent() {
                break;
            }
            self.slots[at].outcome = match entry.handler.begin(fact, cx) {
                Begun::Ended(result) => ended(entry, result),
                Begun::Pending(running) => {
                    waiting.push(Waiting { slot: at, since: self.read, running });
                    // What it is unless it ends in time.
                    Outcome::TimedOut
                }
            };
            unmeasured.end = at + 1;
            if alone {
                self.measure(&mut unmeasured, at + 1);
            }
        }
        let end = unmeasured.end;
        self.measure(&mut unmeasured, end);
        waiting
    }

    /// Polls the handlers that wait, until all have ended or the budget has.
    async fn settle(&mut self, waiting: Vec<Waiting>) {
        let snapshot = self.snapshot;
        let mut running: FuturesUnordered<Waiting> = waiting.into_iter().collect();
        let limit = self.limit;
        // Unconstrained: a handler that uses up its task's share at every poll must not keep the deadline from being seen.
        let mut expiry = pin!(unconstrained(async move {
            match limit {
                Some(limit) => sleep_until(limit).await,
                None => pending().await,
            }
        }));
        let mut next = async || {
            poll_fn(|cx| match Pin::new(&mut running).poll_next(cx) {
                Poll::Pending => expiry.as_mut().poll(cx).map(|()| None),
                ended => ended,
            })
            .await
        };
        while let Some((slot, since, result)) = next().await {
            self.read = Instant::now();
            let slot = &mut self.slots[slot];
            slot.nanos = nanos(self.read - since);
            slot.outcome = ended(&snapshot.0.entries[slot.index as usize], result);
        }
        self.read = Instant::now();
        for late in &running {
            self.slots[late.slot].nanos = nanos(self.read - late.since);
        }
    }

    fn report(self) -> DispatchReport {
        DispatchReport::new(Arc::clone(&self.snapshot.0.names), self.slots, self.read - self.started)
    }

    fn is_spent(&self) -> bool {
        self.limit.is_some_and(|limit| self.read >= limit)
    }

    /// Reads the clock for the handlers begun since the last reading, and begins a new run before `next`.
    fn measure(&mut self, unmeasured: &mut Range<usize>, next: usize) {
        if unmeasured.start < unmeasured.end {
            let before = std::mem::replace(&mut self.read, Instant::now());
            let elapsed = self.read - before;
            let brief = elapsed <= BRIEF * u32::try_from(unmeasured.len()).expect("a run is at most sixteen handlers");
            for slot in &mut self.slots[unmeasured.clone()] {
                if matches!(slot.outcome, Outcome::PredicateFailed(_)) {
                    continue;
                }
                slot.nanos = nanos(elapsed);
                let hint = &self.snapshot.0.entries[slot.index as usize].brief;
                if hint.load(Ordering::Relaxed) != brief {
                    hint.store(brief, Ordering::Relaxed);
                }
            }
        }
        *unmeasured = next..next;
    }
}

/// The slot's first outcome, or `None` for a registration that does not want the fact.
#[inline]
fn admitted<F: 'static>(entry: &Entry<F>, fact: &F) -> Option<Outcome> {
    let not_started = Outcome::NotStarted(NotStarted::BudgetSpent);
    let Some(condition) = &entry.condition else { return Some(not_started) };
    match contained(|| condition.holds(fact)) {
        Ok(Ok(true)) => Some(not_started),
        Ok(Ok(false)) => None,
        Ok(Err(failure)) | Err(failure) => {
            tracing::warn!(registration = entry.name(), code = failure.code(), "condition failed; its subscriber is not called");
            Some(Outcome::PredicateFailed(failure))
        }
    }
}

#[inline]
fn ended<F>(entry: &Entry<F>, result: HandlerResult) -> Outcome {
    match result {
        Ok(()) => Outcome::Returned,
        Err(HandlerError::Cancelled) => Outcome::Cancelled,
        Err(HandlerError::Failed(failure)) => {
            // The message stays in the report: it may quote the payload, which is never logged.
            tracing::warn!(registration = entry.name(), code = failure.code(), "subscriber failed; others are not touched");
            Outcome::Isolated(failure)
        }
    }
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// A handler that has begun and waits.
struct Waiting {
    slot: usize,
    since: Instant,
    running: Running,
}

impl Future for Waiting {
    type Output = (usize, Instant, HandlerResult);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.running.poll(cx));
        Poll::Ready((self.slot, self.since, result))
    }
}
