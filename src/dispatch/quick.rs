//! One emission under the `observation` policy, the quick way: what most emissions are, run without the general kernel's books.
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
//!
//! # Why one net for many panics?
//! All handlers are begun inside one `catch_unwind`; after a panic the loop is entered again behind the handler that panicked. A net for
//! each handler would cost more than the call itself.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::handler::{Declared, Handler, HandlerError, HandlerResult, Returned, ReturnedFuture, contained, returned_awaitable};
use super::policy::{DispatchPolicy, StagePolicy};
use super::report::{DispatchReport, Ends, Outcome, Run, Runs, Unusual};
use super::snapshot::{Entry, Snapshot};
use super::value::{
    Completion, Concurrency, Conduct, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    PredicateFailure, ReturnedAwaitable, SyncHandlers,
};
use super::waiters::Waiters;
use crate::clock::Deadline;

/// Whether a policy is one that this way runs: one concurrent phase of inline handlers that touch nobody else and are only reported.
pub(super) fn runs(policy: &DispatchPolicy) -> bool {
    let [phase] = policy.phases() else { return false };
    let reported =
        StagePolicy::new(Failure::Isolate, Completion::AwaitAll, ErrorSurface::ReturnReport, HandlerCancellation::Collect);
    policy.conduct() == Conduct::Native
        && phase.concurrency == Concurrency::Concurrent
        && phase.sync_handlers == SyncHandlers::Inline
        && phase.handler_classification == HandlerClassification::ByDeclaration
        && phase.returned_awaitable == ReturnedAwaitable::Reject
        && phase.predicate_failure == PredicateFailure::Isolate
        && phase.filter_failure.is_none()
        && phase.invocation == reported
        && phase.deadline_disposition.is_none_or(|end| end == DeadlineDisposition::ReturnReport)
}

/// Runs one emission: every matching handler of the snapshot sees the same shared fact.
///
/// The budget is the policy's, from now on, and ends earlier if `cap` does (F-11).
///
/// # Cancel safety
/// Dropping the future drops what is in flight; no handler is begun after that, and there is no report (F-12).
pub(super) async fn fan_out<F: 'static, V>(snapshot: &Snapshot<F, V>, fact: &Arc<F>, cap: Option<Deadline>) -> DispatchReport<V> {
    let mut emission = Emission::begin(snapshot, cap);
    emission.admit(fact);
    poll_fn(|cx| {
        emission.invoke(fact, cx);
        Poll::Ready(())
    })
    .await;
    if !emission.waiting.is_empty() {
        emission.settle().await;
    }
    emission.report()
}

/// The longest run of brief handlers that share one reading of the clock.
const RUN: usize = 32;

/// What counts as brief.
const BRIEF: Duration = Duration::from_micros(1);

struct Emission<'a, F, V> {
    snapshot: &'a Snapshot<F, V>,
    /// The positions in the snapshot of those that want the fact; `None` when nobody has a condition.
    wanted: Option<Vec<u32>>,
    /// The next one to be begun, as a position in `wanted`.
    turn: usize,
    /// The first one that was begun since the clock was last read, as a position in `wanted`.
    unmeasured: usize,
    waiting: Vec<Waiting<V>>,
    unusual: Vec<Unusual<V>>,
    values: Vec<V>,
    runs: Runs,
    started: Instant,
    /// The last reading of the clock.
    read: Instant,
    limit: Option<Instant>,
    /// Whether the limit had passed at the last reading.
    spent: bool,
}

impl<'a, F: 'static, V> Emission<'a, F, V> {
    fn begin(snapshot: &'a Snapshot<F, V>, cap: Option<Deadline>) -> Self {
        let started = Instant::now();
        let budget = snapshot.0.build.budget.map(|budget| Deadline::at(started + budget));
        let limit = match (budget, cap) {
            (Some(budget), Some(cap)) => Some(budget.earlier(cap).instant()),
            (budget, cap) => budget.or(cap).map(Deadline::instant),
        };
        Self {
            snapshot,
            wanted: None,
            turn: 0,
            unmeasured: 0,
            waiting: Vec::new(),
            unusual: Vec::new(),
            values: Vec::new(),
            runs: Runs::default(),
            started,
            read: started,
            limit,
            spent: limit.is_some_and(|limit| started >= limit),
        }
    }

    /// Asks every condition who wants the fact.
    fn admit(&mut self, fact: &F) {
        if !self.snapshot.0.conditional {
            return;
        }
        let mut wanted = Vec::with_capacity(self.snapshot.len());
        for (index, entry) in (0..).zip(&self.snapshot.0.entries) {
            match entry.wants(fact) {
                Ok(true) => wanted.push(index),
                Ok(false) => {}
                Err(HandlerError::Failed(failure)) => self.unusual.push(Unusual::new(index, Outcome::PredicateFailed(failure))),
                Err(HandlerError::Cancelled) => self.unusual.push(Unusual::new(index, Outcome::PredicateCancelled)),
            }
        }
        self.wanted = Some(wanted);
        self.read_clock();
    }

    /// Begins every handler that wants the fact, while there is budget.
    fn invoke(&mut self, fact: &Arc<F>, cx: &mut Context<'_>) {
        while let Err(failure) = contained(|| self.take_turns(fact, cx)) {
            self.unusual.push(Unusual::new(self.position(self.turn), Outcome::Isolated(failure)));
            self.turn += 1;
            self.measure();
        }
        self.measure();
    }

    /// Takes turns until nobody is left or the budget is spent. A panic leaves the turn at the handler that panicked.
    fn take_turns(&mut self, fact: &Arc<F>, cx: &mut Context<'_>) {
        let turns = self.wanted.as_ref().map_or(self.snapshot.len(), Vec::len);
        // The budget can be found spent only where the clock is read.
        if self.spent {
            return;
        }
        while self.turn < turns {
            let index = self.position(self.turn);
            let entry = &*self.snapshot.0.entries[index as usize];
            let alone = !entry.brief.load(Ordering::Relaxed);
            if alone || self.turn - self.unmeasured >= RUN {
                self.measure();
                if self.spent {
                    return;
                }
            }
            match &entry.handler {
                Handler::Sync(call) => {
                    let result = call(fact);
                    self.ended(index, result);
                }
                Handler::Async(call) => {
                    let body = ReturnedFuture::new(call(Arc::clone(fact)));
                    self.begun(index, body, cx);
                }
                Handler::SyncWith(_) | Handler::AsyncWith(_) => self.call_with_context(index, entry, fact, cx),
            }
            self.turn += 1;
            if alone {
                self.measure();
            }
        }
    }

    fn call_with_context(&mut self, index: u32, entry: &Entry<F, V>, fact: &Arc<F>, cx: &mut Context<'_>) {
        match (entry.handler.call(fact, None), entry.handler.declared()) {
            (Ok(Returned::Value(value)), _) => self.ended(index, Ok(value)),
            (Ok(Returned::Coroutine(body)), Declared::Async) => self.begun(index, body, cx),
            (Ok(Returned::Coroutine(_) | Returned::Awaitable(_)), _) => self.ended(index, Err(returned_awaitable())),
            (Err(error), _) => self.ended(index, Err(error)),
        }
    }

    fn begun(&mut self, index: u32, mut body: ReturnedFuture<V>, cx: &mut Context<'_>) {
        match Pin::new(&mut body).poll(cx) {
            Poll::Ready(result) => self.ended(index, result),
            Poll::Pending => self.waiting.push(Waiting { index, since: self.read, body }),
        }
    }

    #[inline]
    fn ended(&mut self, index: u32, result: HandlerResult<V>) {
        match result {
            Ok(value) => self.values.push(value),
            Err(error) => self.unusual.push(Unusual::ended(index, Err(error))),
        }
    }

    /// Polls the handlers that wait, until all have ended or the budget has.
    async fn settle(&mut self) {
        let mut waiting = Waiters::from(std::mem::take(&mut self.waiting));
        let limit = self.limit;
        // Unconstrained: a handler that uses up its task's share at every poll must not keep the deadline from being seen.
        let mut expiry = pin!(unconstrained(async move {
            match limit {
                Some(limit) => sleep_until(limit).await,
                None => pending().await,
            }
        }));
        let mut wave = Vec::new();
        poll_fn(|cx| {
            let next = match waiting.poll(cx, &mut wave) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => expiry.as_mut().poll(cx),
            };
            if next.is_ready() || !wave.is_empty() {
                self.read_clock();
            }
            for (index, since, result) in wave.drain(..) {
                self.unusual.push(Unusual::ended(index, result).after(self.read - since));
            }
            next
        })
        .await;
        let read = self.read;
        self.unusual.extend(waiting.late().map(|late| Unusual::new(late.index, Outcome::TimedOut).after(read - late.since)));
    }

    fn report(self) -> DispatchReport<V> {
        let begun = if self.turn == 0 { 0 } else { self.position(self.turn - 1) + 1 };
        let mut ends = Ends { wanted: self.wanted, begun, unusual: self.unusual, values: self.values, runs: self.runs };
        ends.unusual.sort_unstable_by_key(Unusual::index);
        ends.unusual.iter().for_each(|unusual| unusual.warn(&self.snapshot.0.names));
        DispatchReport::new(Arc::clone(&self.snapshot.0.names), ends, self.read - self.started)
    }

    /// Where in the snapshot the one stands whose turn it is.
    #[inline]
    fn position(&self, turn: usize) -> u32 {
        match &self.wanted {
            Some(wanted) => wanted[turn],
            None => u32::try_from(turn).expect("a dispatcher has at most a few thousand registrations"),
        }
    }

    /// Reads the clock for the handlers begun since the last reading.
    fn measure(&mut self) {
        if self.unmeasured == self.turn {
            return;
        }
        let elapsed = self.read_clock();
        let begun = self.unmeasured..self.turn;
        let brief = elapsed <= BRIEF * u32::try_from(begun.len()).expect("a run is at most a few dozen handlers");
        // Those that share a reading are brief already: a hint changes only for one that was measured alone, or when a run was slow.
        if begun.len() == 1 || !brief {
            for turn in begun {
                self.snapshot.0.entries[self.position(turn) as usize].brief.store(brief, Ordering::Relaxed);
            }
        }
        self.runs.push(Run { end: self.position(self.turn - 1) + 1, elapsed });
        self.unmeasured = self.turn;
    }

    /// Reads the clock; the time since the last reading.
    fn read_clock(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.read, Instant::now());
        self.spent = self.limit.is_some_and(|limit| self.read >= limit);
        self.read - before
    }
}

/// A handler that has begun and waits.
struct Waiting<V> {
    index: u32,
    since: Instant,
    body: ReturnedFuture<V>,
}

impl<V> Future for Waiting<V> {
    type Output = (u32, Instant, HandlerResult<V>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.body).poll(cx);
        ended.map(|result| (self.index, self.since, result))
    }
}
