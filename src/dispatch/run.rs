//! One emission by any policy: the general way.
//!
//! An emission asks who wants the fact, then runs its phases in order (F-9). A phase takes those that its selector takes, in registration order, each once:
//!
//! | at its turn                                | becomes                                                                 |
//! |--------------------------------------------|-------------------------------------------------------------------------|
//! | the stage is over                          | `not started`, and why                                                  |
//! | its condition failed, and that counts as its failure | judged as a failure of the handler; not called                |
//! | it has a queue                             | `queued`, or `not started (queue full)`                                 |
//! | it has to be awaited, in a sync emission   | `not started (needs an async entry)`                                    |
//! | sync, on a thread                          | in flight, or `not started (offload saturated)`                         |
//! | sync, returns a value                      | `returned`                                                              |
//! | returns an awaitable                       | as below                                                                |
//!
//! | declared | classified by | returned        | classifier             | `returned_awaitable`       | becomes               |
//! |----------|---------------|-----------------|------------------------|----------------------------|-----------------------|
//! | async    | declaration   | its body        | any                    | any                        | awaited               |
//! | any      | any           | an `Awaitable`  | `asyncio_coroutine_only` | awaited or gathered      | `discarded unawaited` |
//! | sync     | declaration   | an awaitable    | `not_inspected`        | awaited or gathered        | `discarded unawaited` |
//! | any      | any           | an awaitable    | any                    | `discard_unawaited`        | `discarded unawaited` |
//! | any      | any           | an awaitable    | any                    | `reject`                   | a failure             |
//! | any      | any           | an awaitable    | looks, and sees one    | `await_in_invocation`      | awaited               |
//! | any      | any           | an awaitable    | looks, and sees one    | `gather_after_invocations` | gathered              |
//!
//! What is awaited is polled at its turn. In a sequential phase the next one's turn comes when it has ended; in a concurrent phase at once, and every handler
//! of the phase is begun before the first failure is acted on. Under `detach_bounded` what is to be awaited goes on without the emission instead (F-20).
//!
//! # What does a cancellation do to what is in flight?
//! It is dropped (F-19): at once under a native policy; under the recorded conduct at once only if its handler takes no context and so cannot be told. One
//! that can gets [`GRACE`] to end in its own way, and that end counts. A thread is given up at once: nobody can end it.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::background::DetachPlace;
use super::context::{CancelledBy, HandlerContext};
use super::counts::count;
use super::dispatcher::{Entry, Snapshot};
use super::emit::Cancels;
use super::flight::{Flight, Landed, OnThread, Work};
use super::handler::{Declared, HandlerError, Returned, ReturnedFuture, returned_awaitable};
use super::lane::Places;
use super::meaning::{Effect, Keep, Rules};
use super::policy::Phase;
use super::raised::{DispatchError, Member, MemberEnd, Raised, RaisedError};
use super::report::{DispatchReport, Ends, NotStarted, Outcome, Runs, Stage, Unusual, warn_isolated, warn_predicate};
use super::stage::{End, Running};
use super::subscriber::Asked;
use super::surface::{Surfaced, as_itself};
use super::value::{
    Completion, Concurrency, Conduct, HandlerClassification, LateRegistrations, PredicateFailure, ReturnedAwaitable,
    ReturnedValueClassifier, SyncHandlers,
};
use crate::clock::Deadline;

/// How long a cancelled handler of a compatibility profile may take to end in its own way (F-19).
pub const GRACE: Duration = Duration::from_secs(1);

/// What one emission is to do.
pub(super) struct Job<F: Send + Sync + 'static, V: Send + 'static> {
    pub(super) snapshot: Snapshot<F, V>,
    pub(super) fact: Arc<F>,
    pub(super) cap: Option<Deadline>,
    pub(super) cancels: Option<Cancels>,
    pub(super) places: Option<Places<F, V>>,
    /// Nothing can be awaited.
    pub(super) synchronous: bool,
}

pub(super) async fn run<F: Send + Sync + 'static, V: Send + 'static>(
    job: Job<F, V>,
) -> Result<DispatchReport<V>, DispatchError<V>> {
    let build = Arc::clone(&job.snapshot.0.build);
    let mut emission = Emission::begin(job);
    let mut end = emission.ask_everybody();
    for phase in build.policy.phases() {
        if end.is_some() {
            break;
        }
        end = emission.phase(phase).await;
    }
    emission.close(end)
}

struct Emission<F: Send + Sync + 'static, V: Send + 'static> {
    job: Job<F, V>,
    /// By registration: those of the snapshot, then those that joined.
    slots: Vec<Slot<F, V>>,
    started: Instant,
    /// Registrations from this number on are not in the slots.
    next: u64,
}

struct Slot<F, V> {
    entry: Arc<Entry<F, V>>,
    state: State<V>,
}

enum State<V> {
    /// It is asked at its turn.
    Unasked,
    Unmatched,
    /// It wants the fact, or its condition ended in a way that counts as its handler's.
    Matched(Option<HandlerError>),
    /// Its call returned an awaitable that is to be gathered.
    Called,
    InFlight,
    Ended { outcome: Outcome, value: Option<V>, elapsed: Duration, stage: Stage },
}

/// What became of a handler at its turn.
enum Begun<V> {
    Ended(Result<V, HandlerError>),
    Reported(Outcome),
    InFlight(Work<V>),
    Gathered(ReturnedFuture<V>),
}

/// What is to be gathered once every handler was called.
type Gathered<V> = Vec<(usize, Option<HandlerContext>, ReturnedFuture<V>)>;

impl<F: Send + Sync + 'static, V: Send + 'static> Emission<F, V> {
    fn begin(job: Job<F, V>) -> Self {
        let slot = |entry: &Arc<Entry<F, V>>| Slot { entry: Arc::clone(entry), state: State::Unasked };
        let slots = job.snapshot.0.entries.iter().map(slot).collect();
        Self { slots, started: Instant::now(), next: job.snapshot.0.next, job }
    }

    /// Asks all conditions that are not asked at their turn.
    fn ask_everybody(&mut self) -> Option<End> {
        for at in 0..self.slots.len() {
            let entry = &self.slots[at].entry;
            let late = self.phase_of(entry).late_registrations == LateRegistrations::ThisEmission;
            if late && entry.condition.is_some() {
                continue;
            }
            if let Some(end) = self.ask(at) {
                return Some(end);
            }
        }
        self.override_others();
        self.give_up_places();
        None
    }

    fn ask(&mut self, at: usize) -> Option<End> {
        let entry = Arc::clone(&self.slots[at].entry);
        let phase = self.phase_of(&entry);
        let means = match &entry.condition {
            Some(Asked::Filter(_)) => phase.filter_failure.unwrap_or(phase.predicate_failure),
            Some(Asked::Predicate(_)) | None => phase.predicate_failure,
        };
        let (state, end) = match (entry.wants(&self.job.fact), means) {
            (Ok(true), _) => (State::Matched(None), None),
            (Ok(false), _) | (Err(HandlerError::Failed(_)), PredicateFailure::NoMatch) => (State::Unmatched, None),
            (Err(error), PredicateFailure::Propagate) => {
                let why = match &error {
                    HandlerError::Failed(_) => NotStarted::EarlierFailure,
                    HandlerError::Cancelled => NotStarted::EarlierCancellation,
                };
                let member = Member { registration: Arc::clone(&entry.name), end: member_end(&error, CancelledBy::Itself) };
                let raised = Surfaced::plain(as_itself(member));
                (State::of(predicate_outcome(error)), Some(End { why, raised: Some(raised) }))
            }
            (Err(HandlerError::Failed(failure)), PredicateFailure::Isolate) => {
                warn_predicate(&entry.name, &failure);
                (State::of(Outcome::PredicateFailed(failure)), None)
            }
            (Err(error), _) => (State::Matched(Some(error)), None),
        };
        self.slots[at].state = state;
        end
    }

    fn override_others(&mut self) {
        let overriding = |slot: &Slot<F, V>| slot.entry.asks.overriding && matches!(slot.state, State::Matched(_));
        if !self.slots.iter().any(overriding) {
            return;
        }
        for slot in &mut self.slots {
            if matches!(slot.state, State::Matched(_)) && !slot.entry.asks.overriding {
                slot.state = State::of(Outcome::NotStarted(NotStarted::Overridden));
            }
        }
    }

    /// Those that do not want the fact do not hold up what comes after it in their queues.
    fn give_up_places(&mut self) {
        let Some(places) = &mut self.job.places else { return };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.entry.lane.is_some() && !matches!(slot.state, State::Matched(None) | State::Unasked) {
                places.give_up(at);
            }
        }
    }

    async fn phase(&mut self, phase: &Phase) -> Option<End> {
        let limit = self.limit(phase);
        let rules = Rules {
            stage: phase.invocation,
            conduct: self.job.snapshot.policy().conduct(),
            sequential: phase.concurrency == Concurrency::Sequential,
        };
        let mut running = Running::new(rules, Stage::Invocation, limit);
        let mut gathered = Vec::new();
        if let Some(end) = self.invoke(phase, &mut running, &mut gathered).await {
            self.drop_unawaited(gathered);
            return Some(end);
        }
        if let Some(end) = running.end(phase.deadline_disposition) {
            self.drop_unawaited(gathered);
            return Some(end);
        }
        let stage = phase.returned_awaitables?;
        let mut running = Running::new(Rules { stage, sequential: false, ..rules }, Stage::ReturnedAwaitables, limit);
        self.gather(phase, &mut running, gathered).await;
        running.end(phase.deadline_disposition)
    }

    /// The budget of a phase, from now on, within that of the emission.
    fn limit(&self, phase: &Phase) -> Option<Instant> {
        let budget = phase.deadline.map(|budget| Instant::now() + budget);
        let cap = self.job.cap.map(Deadline::instant);
        match (budget, cap) {
            (Some(budget), Some(cap)) => Some(budget.min(cap)),
            (budget, cap) => budget.or(cap),
        }
    }

    /// The invocation stage.
    async fn invoke(&mut self, phase: &Phase, running: &mut Running<V>, gathered: &mut Gathered<V>) -> Option<End> {
        let mut at = 0;
        loop {
            while at < self.slots.len() {
                if running.is_over() || self.is_cancelled_natively(running) {
                    break;
                }
                if phase.selector.takes(self.slots[at].entry.handler.declared())
                    && let Some(end) = self.turn(at, phase, running, gathered).await
                {
                    return Some(end);
                }
                at += 1;
            }
            if at < self.slots.len() || !self.let_join(phase) {
                break;
            }
        }
        self.apply(running);
        self.drive(phase, running, gathered).await;
        None
    }

    /// Under a native policy the emitter's cancellation ends everything, also between two handlers.
    fn is_cancelled_natively(&mut self, running: &mut Running<V>) -> bool {
        if running.rules.conduct == Conduct::Recorded || !self.job.cancels.as_ref().is_some_and(Cancels::is_due) {
            return false;
        }
        self.cancelled_by_emitter(running);
        true
    }

    /// Takes in what was registered since, where the policy lets it join. Whether anything was.
    fn let_join(&mut self, phase: &Phase) -> bool {
        if phase.late_registrations == LateRegistrations::NextEmission {
            return false;
        }
        let later = self.job.snapshot.later(self.next);
        let Some(last) = later.last() else { return false };
        self.next = last.number() + 1;
        self.slots.extend(later.into_iter().map(|entry| Slot { entry, state: State::Unasked }));
        true
    }

    /// One registration's turn.
    async fn turn(&mut self, at: usize, phase: &Phase, running: &mut Running<V>, gathered: &mut Gathered<V>) -> Option<End> {
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
        if running.rules.stage.completion == Completion::DetachBounded && (declared == Declared::Async || offload) {
            return self.call_detached(at, offload, running, context);
        }
        if offload {
            return match OnThread::call(&self.job.snapshot, entry, &self.job.fact, context) {
                Ok(thread) => Begun::InFlight(Work::Thread(thread)),
                Err(_saturated) => Begun::Reported(Outcome::NotStarted(NotStarted::OffloadSaturated)),
            };
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
    fn returned(&self, at: usize, phase: &Phase, returned: Result<Returned<V>, HandlerError>) -> Begun<V> {
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
    fn drop_unawaited(&mut self, gathered: Gathered<V>) {
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

    /// The stage of returned awaitables: each is begun, in the order of their calls, then all are awaited.
    async fn gather(&mut self, phase: &Phase, running: &mut Running<V>, gathered: Gathered<V>) {
        let mut none = Vec::new();
        for (at, context, body) in gathered {
            let flight = Flight { index: at, since: Instant::now(), context, work: Work::Body(body) };
            self.begin_flight(running, phase, flight, &mut none).await;
        }
        self.apply(running);
        self.drive(phase, running, &mut none).await;
    }

    /// Polls what has begun, once; detached work goes its own way.
    async fn begin_flight(&mut self, running: &mut Running<V>, phase: &Phase, flight: Flight<V>, gathered: &mut Gathered<V>) {
        if running.rules.stage.completion == Completion::DetachBounded {
            let Flight { index: at, since, work, .. } = flight;
            return match self.job.snapshot.0.resources.background.place(running.rules.detach_bounds()) {
                Ok(place) => self.report(at, self.detach(at, running, place, work), since.elapsed(), running.stage),
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

    /// An async or offloaded handler that goes on without its emission: it has its place before it is called.
    fn call_detached(&self, at: usize, offload: bool, running: &Running<V>, context: Option<&HandlerContext>) -> Begun<V> {
        let Slot { entry, .. } = &self.slots[at];
        let Ok(place) = self.job.snapshot.0.resources.background.place(running.rules.detach_bounds()) else {
            return Begun::Reported(Outcome::NotStarted(NotStarted::DetachLimit));
        };
        let work = if offload {
            match OnThread::call(&self.job.snapshot, entry, &self.job.fact, context) {
                Ok(thread) => Work::Thread(thread),
                Err(_saturated) => return Begun::Reported(Outcome::NotStarted(NotStarted::OffloadSaturated)),
            }
        } else {
            match entry.handler.call(&self.job.fact, context) {
                Ok(Returned::Coroutine(body) | Returned::Awaitable(body)) => Work::Body(body),
                Ok(Returned::Value(value)) => return Begun::Ended(Ok(value)),
                Err(error) => return Begun::Ended(Err(error)),
            }
        };
        Begun::Reported(self.detach(at, running, place, work))
    }

    fn detach(&self, at: usize, running: &Running<V>, place: DetachPlace, work: Work<V>) -> Outcome {
        let name = Arc::clone(&self.slots[at].entry.name);
        let background = &self.job.snapshot.0.resources.background;
        match background.detach(name, running.rules.detach_bounds(), place, work.to_its_end()) {
            Ok(()) => Outcome::Detached,
            Err(_stopped) => Outcome::NotStarted(NotStarted::Stopped),
        }
    }

    /// Waits until nobody is in flight any more.
    async fn drive(&mut self, phase: &Phase, running: &mut Running<V>, gathered: &mut Gathered<V>) {
        while !running.flights.is_empty() {
            match next(running, self.job.cancels.as_mut()).await {
                Event::Landed(wave) => {
                    wave.into_iter().for_each(|landed| self.land(running, phase, landed, gathered));
                    self.apply(running);
                }
                Event::EmitterCancelled => self.cancelled_by_emitter(running),
                Event::TimeIsUp => self.time_is_up(running),
            }
        }
        // The next one of a sequence was cancelled by nobody.
        running.cancelling = None;
    }

    /// One that was in flight came down.
    fn land(&mut self, running: &mut Running<V>, phase: &Phase, landed: Landed<V>, gathered: &mut Gathered<V>) {
        let Landed { index: at, since, context, returned } = landed;
        let by = context.as_ref().and_then(|context| context.token().cancelled_by()).unwrap_or(CancelledBy::Itself);
        let begun = match returned {
            Ok(Returned::Value(value)) => Begun::Ended(Ok(value)),
            other => self.returned(at, phase, other),
        };
        match begun {
            Begun::Ended(result) => self.settle(running, at, since.elapsed(), result, by, false),
            Begun::Reported(outcome) => self.report(at, outcome, since.elapsed(), running.stage),
            Begun::InFlight(work) => running.flights.push(Flight { index: at, since, context, work }),
            Begun::Gathered(body) => {
                self.slots[at].state = State::Called;
                gathered.push((at, context, body));
            }
        }
    }

    /// Does to the others what the ends so far do to them.
    fn apply(&mut self, running: &mut Running<V>) {
        if running.effect > Effect::Nothing && running.cancelling.is_none() {
            self.cancel_flights(running, CancelledBy::Sibling);
        }
    }

    fn cancelled_by_emitter(&mut self, running: &mut Running<V>) {
        if let Some(cancels) = &mut self.job.cancels {
            cancels.act();
        }
        if running.rules.conduct == Conduct::Native {
            running.effect = Effect::End;
            let error = RaisedError::Cancelled { by: CancelledBy::Emitter, registration: None };
            running.raised.get_or_insert((NotStarted::EarlierCancellation, error));
        }
        // A group is cancelled as a whole; of a sequence, the one that runs.
        running.emitter_cancelled |= !running.rules.sequential;
        self.cancel_flights(running, CancelledBy::Emitter);
    }

    fn time_is_up(&mut self, running: &mut Running<V>) {
        match running.cancelling {
            None => {
                running.expired = true;
                self.cancel_flights(running, CancelledBy::Deadline);
            }
            Some((by, _)) => {
                let late = running.flights.take();
                late.into_iter().for_each(|flight| self.cut(running, flight, by));
            }
        }
    }

    /// Cancels what is in flight: what can be told gets its grace, everything else is dropped.
    fn cancel_flights(&mut self, running: &mut Running<V>, by: CancelledBy) {
        let mut told = Vec::new();
        for flight in running.flights.take() {
            if let Some(context) = &flight.context {
                context.token().set(by);
            }
            match (running.rules.conduct, &flight.work, &flight.context) {
                (Conduct::Recorded, Work::Body(_), Some(_)) => told.push(flight),
                _ => self.cut(running, flight, by),
            }
        }
        running.flights = told.into();
        if !running.flights.is_empty() && running.cancelling.is_none() {
            running.cancelling = Some((by, Instant::now() + GRACE));
        }
    }

    /// Drops one that is in flight.
    fn cut(&mut self, running: &mut Running<V>, flight: Flight<V>, by: CancelledBy) {
        let Flight { index: at, since, work, context } = flight;
        let by = context.and_then(|context| context.token().cancelled_by()).unwrap_or(by);
        let on_thread = matches!(work, Work::Thread(_));
        drop(work);
        self.settle(running, at, since.elapsed(), Err(HandlerError::Cancelled), by, false);
        if on_thread {
            self.report(at, Outcome::AbandonedUnknown, since.elapsed(), running.stage);
        }
    }

    /// Judges how a handler ended, or how its condition did, and writes it down.
    fn settle(
        &mut self,
        running: &mut Running<V>,
        at: usize,
        elapsed: Duration,
        result: Result<V, HandlerError>,
        by: CancelledBy,
        of_condition: bool,
    ) {
        let stage = running.stage;
        let error = match result {
            Ok(value) => {
                self.slots[at].state = State::Ended { outcome: Outcome::Returned, value: Some(value), elapsed, stage };
                return;
            }
            Err(error) => error,
        };
        let member = Member { registration: Arc::clone(&self.slots[at].entry.name), end: member_end(&error, by) };
        let condition = of_condition.then(|| predicate_outcome(error.clone()));
        let meaning = running.rules.judge(error, by);
        if let Outcome::Isolated(failure) = &meaning.outcome {
            warn_isolated(&member.registration, failure);
        }
        running.effect = running.effect.max(meaning.effect);
        running.quiet |= meaning.effect == Effect::End && meaning.keep == Keep::Reported;
        match meaning.keep {
            Keep::Reported => {}
            Keep::Surfaced => running.kept.surfaced.push((at, member)),
            Keep::Translated => running.kept.translated.push((at, member)),
            Keep::Raised => {
                let why = match member.end {
                    MemberEnd::Failed(_) => NotStarted::EarlierFailure,
                    MemberEnd::Cancelled(_) => NotStarted::EarlierCancellation,
                };
                running.raised.get_or_insert((why, as_itself(member)));
            }
        }
        self.report(at, condition.unwrap_or(meaning.outcome), elapsed, stage);
    }

    fn report(&mut self, at: usize, outcome: Outcome, elapsed: Duration, stage: Stage) {
        self.slots[at].state = State::Ended { outcome, value: None, elapsed, stage };
    }

    fn phase_of(&self, entry: &Entry<F, V>) -> &Phase {
        let phases = self.job.snapshot.policy().phases();
        let takes = |phase: &&Phase| phase.selector.takes(entry.handler.declared());
        phases.iter().find(takes).expect("the phases of a policy take every registration (F-1)")
    }

    /// The report of all that matched, and what is raised.
    fn close(mut self, end: Option<End>) -> Result<DispatchReport<V>, DispatchError<V>> {
        let End { why, mut raised } = end.unwrap_or(End { why: NotStarted::EarlierFailure, raised: None });
        // One that came while no handler waited was not heard by any.
        if raised.is_none() && self.job.cancels.as_ref().is_some_and(Cancels::is_due) {
            raised = End::cancelled_by_emitter().raised;
        }
        let names = self.names();
        let mut unusual = Vec::with_capacity(self.slots.len());
        for (index, slot) in (0..).zip(self.slots.drain(..)) {
            let (outcome, value, elapsed, stage) = match slot.state {
                State::Unmatched => continue,
                // Whether it wanted the fact was never asked.
                State::Unasked if slot.entry.condition.is_some() => continue,
                State::Ended { outcome, value, elapsed, stage } => (outcome, value, elapsed, stage),
                State::Unasked | State::Matched(_) | State::Called | State::InFlight => {
                    (Outcome::NotStarted(why), None, Duration::ZERO, Stage::Invocation)
                }
            };
            unusual.push(Unusual::new(index, outcome).after(elapsed).within(stage).handing(value));
        }
        let ends = Ends { wanted: Some(Vec::new()), begun: 0, unusual, values: Vec::new(), runs: Runs::default() };
        let report = DispatchReport::new(names, ends, self.started.elapsed());
        match raised {
            None => Ok(report),
            Some(surfaced) => {
                surfaced.overruled.iter().for_each(warn_overruled);
                Err(DispatchError::Raised(Box::new(Raised { error: surfaced.error, cause: surfaced.cause, report })))
            }
        }
    }

    fn names(&self) -> Arc<[Arc<str>]> {
        let names = &self.job.snapshot.0.names;
        if self.slots.len() == names.len() {
            return Arc::clone(names);
        }
        self.slots.iter().map(|slot| Arc::clone(&slot.entry.name)).collect()
    }
}

impl<V> State<V> {
    fn of(outcome: Outcome) -> Self {
        Self::Ended { outcome, value: None, elapsed: Duration::ZERO, stage: Stage::Invocation }
    }
}

fn member_end(error: &HandlerError, by: CancelledBy) -> MemberEnd {
    match error {
        HandlerError::Failed(failure) => MemberEnd::Failed(failure.clone()),
        HandlerError::Cancelled => MemberEnd::Cancelled(by),
    }
}

fn predicate_outcome(error: HandlerError) -> Outcome {
    match error {
        HandlerError::Failed(failure) => Outcome::PredicateFailed(failure),
        HandlerError::Cancelled => Outcome::PredicateCancelled,
    }
}

fn warn_overruled(member: &Member) {
    if let MemberEnd::Failed(failure) = &member.end {
        let registration = &*member.registration;
        tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "subscriber failed; the store's refusal is raised instead");
    }
}

enum Event<V> {
    Landed(Vec<Landed<V>>),
    EmitterCancelled,
    /// The budget has ended, or the grace.
    TimeIsUp,
}

/// What comes next of those in flight, of the emitter, and of the clock. Handlers come first: one that ends in the moment of its deadline has ended.
async fn next<V>(running: &mut Running<V>, cancels: Option<&mut Cancels>) -> Event<V> {
    let (mut wave, at) = (Vec::new(), running.wakes_at());
    // Unconstrained: a handler that uses up its task's share at every poll must not keep these from being seen.
    let mut cancelled = pin!(unconstrained(async move {
        match cancels {
            Some(cancels) => cancels.due().await,
            None => pending().await,
        }
    }));
    let mut time = pin!(unconstrained(async move {
        match at {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }));
    poll_fn(|cx| {
        if running.flights.poll(cx, &mut wave).is_ready() || !wave.is_empty() {
            return Poll::Ready(Event::Landed(std::mem::take(&mut wave)));
        }
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Event::EmitterCancelled);
        }
        time.as_mut().poll(cx).map(|()| Event::TimeIsUp)
    })
    .await
}
