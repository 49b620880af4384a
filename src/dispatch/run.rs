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

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::context::{CancelledBy, HandlerContext};
use super::emit::Cancels;
use super::flight::{Flight, Work};
use super::handler::{HandlerError, ReturnedFuture};
use super::lane::Places;
use super::meaning::{Effect, Rules};
use super::policy::Phase;
use super::raised::{DispatchError, Member, MemberEnd, Raised};
use super::report::{DispatchReport, Ends, NotStarted, Outcome, Runs, Stage, Unusual};
use super::snapshot::{Entry, Snapshot};
use super::stage::{End, Running};
use super::value::{Concurrency, Conduct, LateRegistrations};
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

pub(super) struct Emission<F: Send + Sync + 'static, V: Send + 'static> {
    pub(super) job: Job<F, V>,
    /// By registration: those of the snapshot, then those that joined.
    pub(super) slots: Vec<Slot<F, V>>,
    started: Instant,
    /// Registrations from this number on are not in the slots.
    next: u64,
}

pub(super) struct Slot<F, V> {
    pub(super) entry: Arc<Entry<F, V>>,
    pub(super) state: State<V>,
}

pub(super) enum State<V> {
    /// It is asked at its turn.
    Unasked,
    Unmatched,
    /// It wants the fact, or its condition ended in a way that counts as its handler's.
    Matched(Option<HandlerError>),
    /// Its call returned an awaitable that is to be gathered.
    Called,
    InFlight,
    Ended {
        outcome: Outcome,
        value: Option<V>,
        elapsed: Duration,
        stage: Stage,
    },
}

/// What is to be gathered once every handler was called.
pub(super) type Gathered<V> = Vec<(usize, Option<HandlerContext>, ReturnedFuture<V>)>;

impl<F: Send + Sync + 'static, V: Send + 'static> Emission<F, V> {
    fn begin(job: Job<F, V>) -> Self {
        let slot = |entry: &Arc<Entry<F, V>>| Slot { entry: Arc::clone(entry), state: State::Unasked };
        let slots = job.snapshot.0.entries.iter().map(slot).collect();
        Self { slots, started: Instant::now(), next: job.snapshot.0.next, job }
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
        let (mut at, mut end) = (0, None);
        while end.is_none() && (at < self.slots.len() || self.let_join(phase)) {
            if running.is_over() || self.is_cancelled_natively(running) {
                break;
            }
            if phase.selector.takes(self.slots[at].entry.handler.declared()) {
                end = self.turn(at, phase, running, gathered).await;
            }
            at += 1;
        }
        if end.is_some() {
            running.effect = Effect::End;
        }
        self.apply(running);
        self.drive(phase, running, gathered).await;
        end
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
        self.next = last.number + 1;
        self.slots.extend(later.into_iter().map(|entry| Slot { entry, state: State::Unasked }));
        true
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

    pub(super) fn report(&mut self, at: usize, outcome: Outcome, elapsed: Duration, stage: Stage) {
        self.slots[at].state = State::Ended { outcome, value: None, elapsed, stage };
    }

    pub(super) fn phase_of(&self, entry: &Entry<F, V>) -> &Phase {
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
    pub(super) fn of(outcome: Outcome) -> Self {
        Self::Ended { outcome, value: None, elapsed: Duration::ZERO, stage: Stage::Invocation }
    }
}

fn warn_overruled(member: &Member) {
    if let MemberEnd::Failed(failure) = &member.end {
        let registration = &*member.registration;
        tracing::warn!(target: crate::telemetry::DISPATCH, registration, code = failure.code(), "subscriber failed; the store's refusal is raised instead");
    }
}

pub(super) fn member_end(error: &HandlerError, by: CancelledBy) -> MemberEnd {
    match error {
        HandlerError::Failed(failure) => MemberEnd::Failed(failure.clone()),
        HandlerError::Cancelled => MemberEnd::Cancelled(by),
    }
}

pub(super) fn predicate_outcome(error: HandlerError) -> Outcome {
    match error {
        HandlerError::Failed(failure) => Outcome::PredicateFailed(failure),
        HandlerError::Cancelled => Outcome::PredicateCancelled,
    }
}
