//! One registration's turn: what it becomes, by the tables of [`run`](super::run).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::background::DetachPlace;
use super::context::{CancelledBy, HandlerContext};
use super::counts::count;
use super::flight::{Flight, OnThread, Work};
use super::handler::{Declared, HandlerError, Returned, ReturnedFuture, returned_awaitable};
use super::policy::Phase;
use super::report::{NotStarted, Outcome, Stage};
use super::run::{Emission, Gathered, Slot, State};
use super::snapshot::Entry;
use super::stage::{End, Running};
use super::value::{Completion, HandlerClassification, ReturnedAwaitable, ReturnedValueClassifier, SyncHandlers};

/// What became of a handler at its turn.
pub(super) enum Begun<V> {
    Ended(Result<V, HandlerError>),
    Reported(Outcome),
    InFlight(Work<V>),
    Gathered(ReturnedFuture<V>),
}

impl<F: Send + Sync + 'static, V: Send + 'static> Emission<F, V> {
    /// One registration's turn.
    pub(super) async fn turn(
        &mut self,
        at: usize,
        phase: &Phase,
        running: &mut Running<V>,
        gathered: &mut Gathered<V>,
    ) -> Option<End> {
        if matches!(self.slots[at].state, State::Unasked)
            && let Some(end) = self.ask(at)
        {
            return Some(end);
        }
        let State::Matched(condition) = &mut self.slots[at].state else { return None };
        if let Some(error) = condition.take() {
            self.settle(running, at, Duration::ZERO, Err(error), CancelledBy::Itself, true);
            return None;
        }
        let (since, context) = (Instant::now(), self.slots[at].entry.handler.context());
        match self.call(at, phase, running, context.as_ref()) {
            Begun::Ended(result) => self.settle(running, at, since.elapsed(), result, CancelledBy::Itself, false),
            Begun::Reported(outcome) => self.report(at, outcome, since.elapsed(), running.stage),
            Begun::Gathered(body) => {
                self.slots[at].state = State::Called;
                gathered.push((at, context, body));
            }
            Begun::InFlight(work) => {
                self.begin_flight(running, phase, Flight { index: at, since, context, work }, gathered).await;
                if running.rules.sequential {
                    self.drive(phase, running, gathered).await;
                }
            }
        }
        None
    }

    /// Calls a handler, or says why not.
    fn call(&mut self, at: usize, phase: &Phase, running: &Running<V>, context: Option<&HandlerContext>) -> Begun<V> {
        let Slot { entry, .. } = &self.slots[at];
        let declared = entry.handler.declared();
        let offload = declared == Declared::Sync && (phase.sync_handlers == SyncHandlers::Offload || entry.asks.offload);
        if entry.lane.is_some() {
            return Begun::Reported(self.queue(at).map_or_else(Outcome::NotStarted, |()| Outcome::Queued));
        }
        if self.job.synchronous && (declared == Declared::Async || offload) {
            return Begun::Reported(Outcome::NotStarted(NotStarted::NeedsAsyncEntry));
        }
        if offload {
            return self.call_on_thread(at, running, context);
        }
        let returned = entry.handler.call(&self.job.fact, context);
        self.returned(at, phase, returned)
    }

    /// Puts the fact into the queue of an ordered registration.
    fn queue(&mut self, at: usize) -> Result<(), NotStarted> {
        let Some(places) = &mut self.job.places else { return Err(NotStarted::QueueFull) };
        if self.job.synchronous && tokio::runtime::Handle::try_current().is_err() {
            places.give_up(at);
            return Err(NotStarted::NeedsAsyncEntry);
        }
        places.fill(at, &self.slots[at].entry, &self.job.fact)
    }

    /// What a call returned, by the table above.
    pub(super) fn returned(&self, at: usize, phase: &Phase, returned: Result<Returned<V>, HandlerError>) -> Begun<V> {
        let entry = &self.slots[at].entry;
        let (body, coroutine) = match returned {
            Err(error) => return Begun::Ended(Err(error)),
            Ok(Returned::Value(value)) => return Begun::Ended(Ok(value)),
            Ok(Returned::Coroutine(body)) => (body, true),
            Ok(Returned::Awaitable(body)) => (body, false),
        };
        let by_declaration = phase.handler_classification == HandlerClassification::ByDeclaration;
        if by_declaration && entry.handler.declared() == Declared::Async {
            return Begun::InFlight(Work::Body(body));
        }
        let seen = match phase.returned_value_classifier {
            ReturnedValueClassifier::InspectAwaitable => true,
            ReturnedValueClassifier::CoroutineOnly => coroutine,
            ReturnedValueClassifier::NotInspected => false,
        };
        match phase.returned_awaitable {
            ReturnedAwaitable::Reject => Begun::Ended(Err(returned_awaitable())),
            ReturnedAwaitable::AwaitInInvocation if seen && !self.job.synchronous => Begun::InFlight(Work::Body(body)),
            ReturnedAwaitable::GatherAfterInvocations if seen => Begun::Gathered(body),
            ReturnedAwaitable::AwaitInInvocation
            | ReturnedAwaitable::GatherAfterInvocations
            | ReturnedAwaitable::DiscardUnawaited => {
                drop(body);
                self.discarded(entry);
                Begun::Reported(Outcome::DiscardedUnawaited)
            }
        }
    }

    /// The diagnostic of a discarded awaitable: counted, listed by [`Dispatcher::discarding`](super::Dispatcher::discarding), and said.
    fn discarded(&self, entry: &Entry<F, V>) {
        entry.discarded.fetch_add(1, Ordering::Relaxed);
        count(&self.job.snapshot.0.resources.counters.discarded_unawaited);
        tracing::info!(target: crate::telemetry::DISPATCH, registration = &*entry.name, "a returned awaitable was discarded unawaited");
    }

    /// The diagnostic of dropped awaitables: reported, counted, and said.
    pub(super) fn drop_unawaited(&mut self, gathered: Gathered<V>) {
        for (at, _, body) in gathered {
            drop(body);
            self.dropped_unawaited(at);
        }
    }

    fn dropped_unawaited(&mut self, at: usize) {
        count(&self.job.snapshot.0.resources.counters.dropped_unawaited);
        let registration = &*self.slots[at].entry.name;
        tracing::info!(target: crate::telemetry::DISPATCH, registration, "a returned awaitable was dropped unawaited");
        self.report(at, Outcome::DroppedUnawaited, Duration::ZERO, Stage::Invocation);
    }

    /// Polls what has begun, once; detached work goes its own way.
    pub(super) async fn begin_flight(
        &mut self,
        running: &mut Running<V>,
        phase: &Phase,
        flight: Flight<V>,
        gathered: &mut Gathered<V>,
    ) {
        if running.rules.stage.completion == Completion::DetachBounded {
            let Flight { index: at, since, work, .. } = flight;
            return match self.job.snapshot.0.resources.background.place(running.rules.detach_bounds()) {
                Ok(place) => self.report(at, self.detach(at, running, place, work), since.elapsed(), running.stage),
                // Its body was never begun. What a sync handler returned was: its call has ended.
                Err(_limit) if self.slots[at].entry.handler.declared() == Declared::Async => {
                    self.report(at, Outcome::NotStarted(NotStarted::DetachLimit), since.elapsed(), running.stage);
                }
                Err(_limit) => self.dropped_unawaited(at),
            };
        }
        let mut flight = flight;
        self.slots[flight.index].state = State::InFlight;
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut flight).poll(cx))).await {
            Poll::Ready(landed) => self.land(running, phase, landed, gathered),
            Poll::Pending => running.flights.push(flight),
        }
    }

    /// Calls a handler on a thread. One that is to go on without its emission has its place before it is called.
    fn call_on_thread(&self, at: usize, running: &Running<V>, context: Option<&HandlerContext>) -> Begun<V> {
        let detaches = running.rules.stage.completion == Completion::DetachBounded;
        let place = match detaches.then(|| self.job.snapshot.0.resources.background.place(running.rules.detach_bounds())) {
            None => None,
            Some(Ok(place)) => Some(place),
            Some(Err(_limit)) => return Begun::Reported(Outcome::NotStarted(NotStarted::DetachLimit)),
        };
        match (OnThread::call(&self.job.snapshot, &self.slots[at].entry, &self.job.fact, context), place) {
            (Ok(thread), None) => Begun::InFlight(Work::Thread(thread)),
            (Ok(thread), Some(place)) => Begun::Reported(self.detach(at, running, place, Work::Thread(thread))),
            (Err(_saturated), _) => Begun::Reported(Outcome::NotStarted(NotStarted::OffloadSaturated)),
        }
    }

    fn detach(&self, at: usize, running: &Running<V>, place: DetachPlace, work: Work<V>) -> Outcome {
        let name = Arc::clone(&self.slots[at].entry.name);
        let background = &self.job.snapshot.0.resources.background;
        match background.detach(name, running.rules.detach_bounds(), place, work.finish()) {
            Ok(()) => Outcome::Detached,
            Err(_stopped) => Outcome::NotStarted(NotStarted::Stopped),
        }
    }
}
