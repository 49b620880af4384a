//! The core of a port: lanes, places, the line of those who wait, and the bell. One file, no runtime and no task: what waits is polled.
//!
//! # Places
//! The data lane has `data` places, the completion lane has `completions`. A place is *free*, *reserved*, *granted* to one who waits, or
//! *taken* by a queued message, and it is free again when its message is popped. The control lane is bounded by its length.
//!
//! # Availability
//! | availability | offered message     | reserved message    | popped, nothing queued | wait for room    |
//! |--------------|---------------------|---------------------|------------------------|------------------|
//! | Open         | queued, or overflow | queued              | disarm, look again     | stands in line   |
//! | Suspended    | answered at once    | answered at once    | disarm, look again     | answered at once |
//! | Draining     | handed back: closed | queued              | becomes Closed         | closed           |
//! | Closed       | handed back: closed | handed back: closed | closed                 | closed           |
//!
//! # Who runs user code
//! Nobody here: messages that are dropped, evicted or answered are returned to the caller, so that neither a destructor nor an answer
//! ever runs under the lock. Wakers and the bell are called after the lock is released.
//!
//! # Why the bell is disarmed before the second look
//! A sender pushes and then rings only if it finds the bell disarmed. A consumer that finds nothing disarms the bell and must look once
//! more: a message pushed between its look and the disarming found the bell armed and rang nothing. `checks/port` runs this file and
//! reports a deadlock when the second look is deleted.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::facade::{AtomicBool, Instant, Mutex, MutexGuard, Ordering, now};

/// What a full data lane does with one more message. Fixed when the port is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The sender waits in line for a place, until its deadline.
    Wait,
    /// The message is handed back at once.
    Reject,
    /// The new message is dropped and counted.
    DropNewest,
    /// The oldest queued message is dropped and counted, and the new one takes its place.
    DropOldest,
}

/// The queues of a port, in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A few messages about the owner itself.
    Control,
    /// Ends of work that the owner has permitted; entered through a reservation only.
    Completion,
    /// Everything else.
    Data,
}

/// The bounds of a port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) overflow: Overflow,
    pub(crate) control: usize,
    pub(crate) completions: usize,
    pub(crate) data: usize,
}

impl Limits {
    /// Whether a sender who finds the data lane full may stand in line.
    pub(crate) fn waits(&self) -> bool {
        self.overflow == Overflow::Wait
    }
}

/// How a consumer is told that there is something to look at. May be called from any thread, and for nothing.
pub(crate) trait Bell: Send + Sync {
    fn ring(&self);
}

/// Which lanes a consumer can serve now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serve {
    All,
    /// Control and completions: every place of the owner's bound is taken.
    Urgent,
}

/// When those who stand in line get the places that a consumer frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grants {
    /// At each pop.
    AtOnce,
    /// When the consumer pauses or finds nothing: one wake-up for many places. Only for a consumer that is known to pause soon.
    AtPause,
}

/// Whether the one who offers can stand in line, and whether its message may be the one that is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) waits: bool,
    pub(crate) droppable: bool,
}

/// Names one queued message of one port.
pub(crate) type Ticket = u64;

/// What became of an offered message.
pub(crate) enum Offered<M> {
    Queued(Ticket),
    Evicted(Ticket, M),
    Dropped(M),
    Answer(fn(M), M),
    Full(M),
    Closed(M),
}

/// What a consumer found.
pub(crate) enum Popped<M> {
    Message(M),
    Expired(M),
    Empty,
    Closed,
    /// A newer incarnation consumes this port.
    Superseded,
}

/// What a change of availability took out of the queues, to be dropped or answered outside the lock.
pub(crate) type Removed<M> = Vec<M>;

/// Everything a port counts. `accepted` is the sum of what follows it, what is in hand and what is queued: nothing leaves uncounted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    pub(crate) handled: u64,
    pub(crate) answered: u64,
    pub(crate) dropped_newest: u64,
    pub(crate) dropped_oldest: u64,
    pub(crate) dropped_at_close: u64,
    pub(crate) coalesced: u64,
    pub(crate) expired: u64,
    pub(crate) set_aside: u64,
    pub(crate) crashed_in_hand: u64,
    pub(crate) in_hand: u64,
    pub(crate) refused: u64,
    pub(crate) waits: u64,
    pub(crate) longest_wait: Duration,
}

/// What a port holds at one instant.
pub(crate) struct Snapshot {
    pub(crate) counts: Counts,
    pub(crate) control: usize,
    pub(crate) completions: usize,
    pub(crate) data: usize,
    pub(crate) reserved: usize,
    pub(crate) waiting: usize,
    pub(crate) oldest: Option<Instant>,
}

/// Whether a port takes messages.
pub(crate) enum Availability<M> {
    Open,
    Suspended(fn(M)),
    Draining,
    Closed,
}

impl<M> Clone for Availability<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Availability<M> {}

struct Entry<M> {
    message: M,
    queued: Instant,
    expires: Option<Instant>,
    ticket: Ticket,
    /// It came through a reservation, and is therefore not evicted.
    kept: bool,
}

/// Reading the clock costs as much as the rest of a push. So up to this many messages that are queued one behind the other share a reading;
/// the first in an empty port always has its own. An age is thus never told too young.
const STAMP_SHARED: u64 = 16;

struct Waiting {
    id: u64,
    need: usize,
    since: Instant,
    waker: Waker,
}

struct State<M> {
    availability: Availability<M>,
    /// Control messages of one kind are queued once.
    control: VecDeque<(Option<u64>, Entry<M>)>,
    completions: VecDeque<Entry<M>>,
    data: VecDeque<Entry<M>>,
    completions_free: usize,
    data_free: usize,
    /// First come, first served. The first `granted` of them hold their places already and have been woken.
    line: VecDeque<Waiting>,
    granted: usize,
    next_ticket: Ticket,
    stamp: Option<Instant>,
    next_waiting: u64,
    consumer: u64,
    /// The consumer serves urgent lanes only: data rings nothing until a place of the owner is free.
    gated: bool,
    counts: Counts,
}

/// One port's state. Blocking lock, held for a few lines that never wait.
pub(crate) struct Core<M> {
    limits: Limits,
    state: Mutex<State<M>>,
    armed: AtomicBool,
    bell: Mutex<Option<Box<dyn Bell>>>,
}

impl<M> Core<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            availability: Availability::Open,
            control: VecDeque::new(),
            completions: VecDeque::new(),
            data: VecDeque::new(),
            completions_free: limits.completions,
            data_free: limits.data,
            line: VecDeque::new(),
            granted: 0,
            next_ticket: 0,
            stamp: None,
            next_waiting: 0,
            consumer: 0,
            gated: false,
            counts: Counts::default(),
        };
        Self { limits, state: Mutex::new(state), armed: AtomicBool::new(false), bell: Mutex::new(None) }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn availability(&self) -> Availability<M> {
        lock(&self.state).availability
    }

    /// Offers a message to the data lane. Never waits; `Full` with a manner that waits is not yet a refusal.
    pub(crate) fn offer(&self, message: M, expires: Option<Instant>, manner: Manner) -> Offered<M> {
        let mut state = lock(&self.state);
        match state.availability {
            Availability::Open => {}
            Availability::Suspended(answer) => return state.answer(answer, message),
            Availability::Draining | Availability::Closed => return state.refuse_closed(message),
        }
        if state.take_places(1) {
            let ticket = state.push_data(message, expires, false);
            return self.queued(state, ticket);
        }
        match self.limits.overflow {
            Overflow::Wait if manner.waits => Offered::Full(message),
            Overflow::Wait | Overflow::Reject => state.refuse_full(message),
            Overflow::DropNewest if manner.droppable => {
                state.counts.accepted += 1;
                state.counts.dropped_newest += 1;
                Offered::Dropped(message)
            }
            Overflow::DropNewest => state.refuse_full(message),
            Overflow::DropOldest => match state.data.iter().position(|entry| !entry.kept) {
                // Every place is reserved, granted, or holds a message that was promised its place.
                None => state.refuse_full(message),
                // The place passes from the old message to the new one.
                Some(oldest) => {
                    let evicted = state.data.remove(oldest).expect("the position was just found");
                    state.counts.dropped_oldest += 1;
                    let ticket = state.push_data(message, expires, false);
                    self.queued(state, ticket);
                    Offered::Evicted(ticket, evicted.message)
                }
            },
        }
    }

    /// Offers a message to the control lane. A kind that is queued already is not queued twice.
    pub(crate) fn offer_control(&self, message: M, kind: Option<u64>) -> Offered<M> {
        let mut state = lock(&self.state);
        match state.availability {
            Availability::Open => {}
            Availability::Suspended(answer) => return state.answer(answer, message),
            Availability::Draining | Availability::Closed => return state.refuse_closed(message),
        }
        if kind.is_some() && state.control.iter().any(|(queued, _)| *queued == kind) {
            state.counts.accepted += 1;
            state.counts.coalesced += 1;
            return Offered::Dropped(message);
        }
        if state.control.len() >= self.limits.control {
            return state.refuse_full(message);
        }
        let entry = state.entry(message, None, true);
        let ticket = entry.ticket;
        state.control.push_back((kind, entry));
        self.queued(state, ticket)
    }

    /// Offers the message of one who stands in line, or puts it there. The message is taken when this is ready.
    pub(crate) fn poll_offer(
        &self,
        line: &mut Option<u64>,
        message: &mut Option<M>,
        expires: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Offered<M>> {
        let mut state = lock(&self.state);
        if matches!(state.availability, Availability::Open) && !state.stand(line, 1, cx.waker()) {
            return Poll::Pending;
        }
        let message = message.take().expect("a message is offered until it is taken");
        Poll::Ready(match state.availability {
            Availability::Open => {
                let ticket = state.push_data(message, expires, false);
                self.queued(state, ticket)
            }
            Availability::Suspended(answer) => state.answer(answer, message),
            Availability::Draining | Availability::Closed => state.refuse_closed(message),
        })
    }

    /// Takes `places` of a lane at once, or none. `None`: the port takes nothing any more.
    pub(crate) fn try_reserve(&self, lane: Lane, places: usize) -> Option<bool> {
        let mut state = lock(&self.state);
        if matches!(state.availability, Availability::Draining | Availability::Closed) {
            return None;
        }
        let taken = match lane {
            Lane::Data => state.take_places(places),
            Lane::Completion if state.completions_free >= places => {
                state.completions_free -= places;
                true
            }
            Lane::Completion | Lane::Control => false,
        };
        if !taken {
            state.counts.refused += 1;
        }
        Some(taken)
    }

    /// Takes places of the data lane for one who stands in line. `Ready(false)`: the port takes nothing any more.
    pub(crate) fn poll_reserve(&self, line: &mut Option<u64>, places: usize, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = lock(&self.state);
        if matches!(state.availability, Availability::Draining | Availability::Closed) {
            return Poll::Ready(false);
        }
        if state.stand(line, places, cx.waker()) { Poll::Ready(true) } else { Poll::Pending }
    }

    /// Leaves the line. A place that was granted meanwhile goes to the next.
    pub(crate) fn leave(&self, line: u64) {
        let mut state = lock(&self.state);
        let Some(at) = state.in_line(line) else { return };
        state.step_out(at, |state, need| state.data_free += need);
        let wakes = state.grant();
        drop(state);
        wakes.wake();
    }

    /// Counts a message that is handed back after its wait.
    pub(crate) fn count_refusal(&self) {
        lock(&self.state).counts.refused += 1;
    }

    /// Puts a message into a reserved place. `Closed` hands it back, and the place with it.
    pub(crate) fn fill(&self, lane: Lane, message: M) -> Offered<M> {
        let mut state = lock(&self.state);
        let offered = match (state.availability, lane) {
            (Availability::Suspended(answer), _) => state.answer(answer, message),
            (Availability::Closed, _) => state.refuse_closed(message),
            (Availability::Open | Availability::Draining, Lane::Data) => {
                let ticket = state.push_data(message, None, true);
                return self.queued(state, ticket);
            }
            (Availability::Open | Availability::Draining, Lane::Completion | Lane::Control) => {
                let entry = state.entry(message, None, true);
                let ticket = entry.ticket;
                state.completions.push_back(entry);
                return self.queued(state, ticket);
            }
        };
        self.give_back(state, lane, 1);
        offered
    }

    /// Returns reserved places that were not used.
    pub(crate) fn release(&self, lane: Lane, places: usize) {
        self.give_back(lock(&self.state), lane, places);
    }

    /// Takes back a data message that the consumer has not taken yet.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> Option<M> {
        let mut state = lock(&self.state);
        let at = state.data.binary_search_by_key(&ticket, |entry| entry.ticket).ok()?;
        let entry = state.data.remove(at)?;
        state.counts.expired += 1;
        self.give_back(state, Lane::Data, 1);
        Some(entry.message)
    }

    /// A new consumer. The one before it, if it still looks, finds itself superseded.
    pub(crate) fn attach(&self, bell: Box<dyn Bell>) -> u64 {
        let consumer = {
            let mut state = lock(&self.state);
            state.consumer += 1;
            state.consumer
        };
        *lock(&self.bell) = Some(bell);
        self.armed.swap(true, Ordering::AcqRel);
        self.toll();
        consumer
    }

    /// The next message of the lanes that can be served, or nothing: then the bell is disarmed, and rings for the next push.
    ///
    /// `finished` messages, popped before, are counted as handled. `serve` is asked again after the disarming, because what it asks about
    /// may have changed together with a ring that found the bell still armed.
    pub(crate) fn look(&self, consumer: u64, finished: u64, serve: impl Fn() -> Serve, grants: Grants) -> Popped<M> {
        match self.pop(consumer, finished, serve(), grants) {
            Popped::Empty => {}
            found => return found,
        }
        self.armed.swap(false, Ordering::AcqRel);
        match self.pop(consumer, 0, serve(), grants) {
            nothing @ (Popped::Empty | Popped::Superseded) => nothing,
            found => {
                self.armed.swap(true, Ordering::AcqRel);
                found
            }
        }
    }

    /// The next message, without touching the bell. Its place is free from here on.
    pub(crate) fn pop(&self, consumer: u64, finished: u64, serve: Serve, grants: Grants) -> Popped<M> {
        let mut wakes = None;
        let popped = {
            let mut state = lock(&self.state);
            state.finish(finished);
            if state.consumer != consumer {
                return Popped::Superseded;
            }
            state.gated = serve == Serve::Urgent;
            if let Some((_, entry)) = state.control.pop_front() {
                state.hand_over(entry)
            } else if let Some(entry) = state.completions.pop_front() {
                state.completions_free += 1;
                state.hand_over(entry)
            } else if serve == Serve::All
                && let Some(entry) = state.data.pop_front()
            {
                state.data_free += 1;
                if grants == Grants::AtOnce && state.somebody_waits() {
                    wakes = Some(state.grant());
                }
                state.hand_over(entry)
            } else {
                if state.somebody_waits() {
                    wakes = Some(state.grant());
                }
                match state.availability {
                    Availability::Open | Availability::Suspended(_) => Popped::Empty,
                    Availability::Draining if !state.data.is_empty() => Popped::Empty,
                    Availability::Draining | Availability::Closed => {
                        state.availability = Availability::Closed;
                        Popped::Closed
                    }
                }
            }
        };
        if let Some(wakes) = wakes {
            wakes.wake();
        }
        popped
    }

    /// Counts messages in hand as handled, and gives those in line the places that were freed since the last pause.
    pub(crate) fn pause(&self, finished: u64) {
        let mut state = lock(&self.state);
        state.finish(finished);
        let wakes = state.grant();
        drop(state);
        wakes.wake();
    }

    /// Counts messages in hand as lost to a crash.
    pub(crate) fn crashed(&self, messages: u64) {
        let mut state = lock(&self.state);
        state.counts.in_hand -= messages;
        state.counts.crashed_in_hand += messages;
        let wakes = state.grant();
        drop(state);
        wakes.wake();
    }

    /// Counts a message in hand as set aside.
    pub(crate) fn set_aside(&self) {
        let mut state = lock(&self.state);
        state.counts.in_hand -= 1;
        state.counts.set_aside += 1;
    }

    /// From here on every message is answered at once; returns the answer that the queued ones are due. A closed port stays closed.
    pub(crate) fn suspend(&self, answer: fn(M)) -> Removed<M> {
        let mut state = lock(&self.state);
        if matches!(state.availability, Availability::Draining | Availability::Closed) {
            return Removed::new();
        }
        state.availability = Availability::Suspended(answer);
        let removed = state.empty();
        state.counts.answered += removed.len() as u64;
        let wakes = state.dissolve();
        drop(state);
        wakes.wake();
        removed
    }

    /// Ends a suspension.
    pub(crate) fn resume(&self) {
        let mut state = lock(&self.state);
        if let Availability::Suspended(_) = state.availability {
            state.availability = Availability::Open;
        }
    }

    /// Admits nothing new, and closes when what is queued has been popped.
    pub(crate) fn drain(&self) {
        let mut state = lock(&self.state);
        if matches!(state.availability, Availability::Draining | Availability::Closed) {
            return;
        }
        state.availability = Availability::Draining;
        let wakes = state.dissolve();
        drop(state);
        wakes.wake();
        self.toll();
    }

    /// Closes for good; returns what was queued.
    pub(crate) fn close(&self) -> Removed<M> {
        let mut state = lock(&self.state);
        state.availability = Availability::Closed;
        let removed = state.empty();
        state.counts.dropped_at_close += removed.len() as u64;
        let wakes = state.dissolve();
        drop(state);
        wakes.wake();
        self.toll();
        removed
    }

    /// Rings, unless the consumer has been told already.
    pub(crate) fn ring(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            self.toll();
        }
    }

    /// Rings after a push. The lock of the push orders this load behind a disarming whose second look came before the push, so a bell that is
    /// seen armed here belongs to a consumer that has yet to look: nothing needs to be written on the fast path.
    fn ring_after_push(&self) {
        if !self.armed.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = lock(&self.state);
        let fronts = [state.control.front().map(|(_, entry)| entry), state.completions.front(), state.data.front()];
        let granted: usize = state.line.iter().take(state.granted).map(|waiting| waiting.need).sum();
        Snapshot {
            counts: state.counts,
            control: state.control.len(),
            completions: state.completions.len(),
            data: state.data.len(),
            reserved: self.limits.data - state.data_free - state.data.len() - granted + self.limits.completions
                - state.completions_free
                - state.completions.len(),
            waiting: state.line.len(),
            oldest: fronts.into_iter().flatten().map(|entry| entry.queued).min(),
        }
    }

    fn toll(&self) {
        // Under its own lock, which nothing else takes: a bell wakes, and runs no user code.
        if let Some(bell) = &*lock(&self.bell) {
            bell.ring();
        }
    }

    /// Ends a push: the lock is released before the bell rings.
    fn queued(&self, state: MutexGuard<'_, State<M>>, ticket: Ticket) -> Offered<M> {
        // A gated consumer is not told about data; it looks again when a place of its bound is free.
        let silent = state.gated && state.control.is_empty() && state.completions.is_empty();
        drop(state);
        if !silent {
            self.ring_after_push();
        }
        Offered::Queued(ticket)
    }

    fn give_back(&self, mut state: MutexGuard<'_, State<M>>, lane: Lane, places: usize) {
        let wakes = match lane {
            Lane::Data => {
                state.data_free += places;
                state.grant()
            }
            Lane::Completion | Lane::Control => {
                state.completions_free += places;
                Wakes::default()
            }
        };
        drop(state);
        wakes.wake();
    }
}

impl<M> State<M> {
    fn entry(&mut self, message: M, expires: Option<Instant>, kept: bool) -> Entry<M> {
        self.counts.accepted += 1;
        self.next_ticket += 1;
        let nothing_queued = self.data.is_empty() && self.completions.is_empty() && self.control.is_empty();
        if nothing_queued || self.next_ticket.is_multiple_of(STAMP_SHARED) {
            self.stamp = Some(now());
        }
        let queued = *self.stamp.get_or_insert_with(now);
        Entry { message, queued, expires, ticket: self.next_ticket, kept }
    }

    fn push_data(&mut self, message: M, expires: Option<Instant>, kept: bool) -> Ticket {
        let entry = self.entry(message, expires, kept);
        let ticket = entry.ticket;
        self.data.push_back(entry);
        ticket
    }

    fn answer(&mut self, answer: fn(M), message: M) -> Offered<M> {
        self.counts.accepted += 1;
        self.counts.answered += 1;
        Offered::Answer(answer, message)
    }

    fn refuse_full(&mut self, message: M) -> Offered<M> {
        self.counts.refused += 1;
        Offered::Full(message)
    }

    fn refuse_closed(&mut self, message: M) -> Offered<M> {
        self.counts.refused += 1;
        Offered::Closed(message)
    }

    fn hand_over(&mut self, entry: Entry<M>) -> Popped<M> {
        if entry.expires.is_some_and(|expires| expires <= now()) {
            self.counts.expired += 1;
            return Popped::Expired(entry.message);
        }
        self.counts.in_hand += 1;
        Popped::Message(entry.message)
    }

    fn finish(&mut self, messages: u64) {
        self.counts.in_hand -= messages;
        self.counts.handled += messages;
    }

    /// Takes free places, unless others wait for them.
    fn take_places(&mut self, places: usize) -> bool {
        if !self.somebody_waits() && self.data_free >= places {
            self.data_free -= places;
            return true;
        }
        false
    }

    fn somebody_waits(&self) -> bool {
        self.line.len() > self.granted
    }

    /// Whether one who stands in line, or comes to it, holds its places now.
    fn stand(&mut self, line: &mut Option<u64>, need: usize, waker: &Waker) -> bool {
        // A line that was dissolved by a suspension is joined afresh.
        if let Some(at) = line.and_then(|id| self.in_line(id)) {
            if at < self.granted {
                self.step_out(at, |_, _| {});
                *line = None;
                return true;
            }
            self.line[at].waker.clone_from(waker);
            return false;
        }
        if self.take_places(need) {
            *line = None;
            return true;
        }
        self.next_waiting += 1;
        self.counts.waits += 1;
        self.line.push_back(Waiting { id: self.next_waiting, need, since: now(), waker: waker.clone() });
        *line = Some(self.next_waiting);
        false
    }

    fn in_line(&self, id: u64) -> Option<usize> {
        self.line.binary_search_by_key(&id, |waiting| waiting.id).ok()
    }

    fn step_out(&mut self, at: usize, granted: impl FnOnce(&mut Self, usize)) {
        let waiting = self.line.remove(at).expect("the position was just found");
        self.counts.longest_wait = self.counts.longest_wait.max(now().saturating_duration_since(waiting.since));
        if at < self.granted {
            self.granted -= 1;
            granted(self, waiting.need);
        }
    }

    /// Gives free places to the first in line, in order: one who needs many is not overtaken by one who needs few.
    fn grant(&mut self) -> Wakes {
        let mut wakes = Wakes::default();
        while let Some(waiting) = self.line.get_mut(self.granted) {
            if self.data_free < waiting.need {
                break;
            }
            self.data_free -= waiting.need;
            wakes.add(std::mem::replace(&mut waiting.waker, Waker::noop().clone()));
            self.granted += 1;
        }
        wakes
    }

    /// Sends the whole line away: each will ask afresh and find the new availability.
    fn dissolve(&mut self) -> Wakes {
        let mut wakes = Wakes::default();
        for (at, waiting) in self.line.drain(..).enumerate() {
            if at < self.granted {
                self.data_free += waiting.need;
            }
            wakes.add(waiting.waker);
        }
        self.granted = 0;
        wakes
    }

    fn empty(&mut self) -> Removed<M> {
        self.completions_free += self.completions.len();
        self.data_free += self.data.len();
        let control = self.control.drain(..).map(|(_, entry)| entry);
        let entries = control.chain(self.completions.drain(..)).chain(self.data.drain(..));
        entries.map(|entry| entry.message).collect()
    }
}

/// Wakers to be called after the lock is released. One is the rule, and needs no allocation.
#[derive(Default)]
struct Wakes {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakes {
    fn add(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    fn wake(self) {
        if let Some(first) = self.first {
            first.wake();
            self.more.into_iter().for_each(Waker::wake);
        }
    }
}

/// No user code runs under these locks, so a poisoned one still holds a whole state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
