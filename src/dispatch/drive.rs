//! Waiting for what is in flight: it ends, the emitter cancels it, or time is up.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::context::CancelledBy;
use super::emit::Cancels;
use super::flight::{Flight, Landed, Work};
use super::handler::{HandlerError, Returned};
use super::meaning::{Effect, Keep};
use super::policy::Phase;
use super::raised::{Member, MemberEnd, RaisedError};
use super::report::{NotStarted, Outcome, warn_isolated};
use super::run::{Emission, GRACE, Gathered, State, member_end, predicate_outcome};
use super::stage::Running;
use super::surface::as_itself;
use super::turn::Begun;
use super::value::Conduct;

impl<F: Send + Sync + 'static, V: Send + 'static> Emission<F, V> {
    /// Waits until nobody is in flight any more.
    pub(super) async fn drive(&mut self, phase: &Phase, running: &mut Running<V>, gathered: &mut Gathered<V>) {
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
    pub(super) fn land(&mut self, running: &mut Running<V>, phase: &Phase, landed: Landed<V>, gathered: &mut Gathered<V>) {
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
    pub(super) fn apply(&mut self, running: &mut Running<V>) {
        if running.effect > Effect::Nothing && running.cancelling.is_none() {
            self.cancel_flights(running, CancelledBy::Sibling);
        }
    }

    pub(super) fn cancelled_by_emitter(&mut self, running: &mut Running<V>) {
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
    pub(super) fn settle(
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
