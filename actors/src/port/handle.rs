//! The sender's side.

use std::fmt;
use std::sync::Arc;

use tipstaff_core::clock::Deadline;
use tipstaff_core::telemetry;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::core::{Availability as CoreAvailability, Lane, Manner, Offered, Ticket};
use super::error::{CallError, ReserveError, SendError};
use super::metrics::PortMetrics;
use super::reply::{self, Lost, Reply};
use super::reservation::Reservation;
use super::serving;
use super::shared::Shared;
use super::wait::InLine;

/// A handle on a role: a bounded queue in front of an owner that may be restarted behind it.
///
/// A clone is one reference count. Handles and queued messages survive a restart of the owner; dropping handles ends nothing.
///
/// # Ordering
/// Messages of one sender are handled in the order in which its sends completed, lane by lane. Control is served before completions, and
/// both before data.
///
/// # Durability
/// The queue is memory. A crash of the owner loses the one message in hand; what must not be lost is in the store before it is sent.
pub struct Port<M> {
    shared: Arc<Shared<M>>,
}

impl<M> Port<M> {
    pub(super) fn new(shared: Arc<Shared<M>>) -> Self {
        Self { shared }
    }

    /// Sends a message. What happens when the port is full was fixed by [`Overflow`](super::Overflow) when the port was made: wait until the
    /// deadline, hand back, or drop and count. The deadline ends the wait only: once accepted, the message does not expire.
    ///
    /// A handler that sends to its own full port would wait for itself; it gets [`SendError::Full`] at once.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future has sent nothing, holds no place, and its message is dropped with it.
    ///
    /// # Errors
    /// Each hands the message back. [`SendError::Full`] when the rule is not to wait: try again later. [`SendError::Deadline`] when no place
    /// became free in time. [`SendError::Closed`]: do not try again.
    pub async fn send(&self, message: M, deadline: Deadline) -> Result<Admission, SendError<M>> {
        let core = &self.shared.core;
        let admitted = match core.offer(message, None, Manner { waits: true, droppable: true }) {
            Offered::Full(message) if core.limits().waits() => self.wait_for_room(message, None, deadline).await,
            decided => carry_out(decided),
        };
        admitted.map(|(admission, _)| admission)
    }

    /// Sends a message without waiting. It does not overtake those who wait in line.
    ///
    /// # Errors
    /// As [`send`](Self::send), without the deadline; a full port that lets senders wait answers [`SendError::Full`].
    pub fn try_send(&self, message: M) -> Result<Admission, SendError<M>> {
        let offered = self.shared.core.offer(message, None, Manner { waits: false, droppable: true });
        carry_out(offered).map(|(admission, _)| admission)
    }

    /// Sends a message through the small lane that is served first. Never waits. A message whose kind is queued already is dropped and
    /// counted ([`Admission::Coalesced`]).
    ///
    /// # Errors
    /// [`SendError::Full`] when the lane is full, whatever the overflow rule of the data lane; [`SendError::Closed`].
    pub fn try_send_control(&self, message: M) -> Result<Admission, SendError<M>> {
        let kind = self.shared.kind.and_then(|kind| kind(&message));
        match carry_out(self.shared.core.offer_control(message, kind))? {
            (Admission::DroppedNewest, _) => Ok(Admission::Coalesced),
            (admission, _) => Ok(admission),
        }
    }

    /// Sends a message that carries a [`Reply`], and waits for the answer. One deadline covers the wait for room and for the answer, and
    /// travels with the message: what it finds still queued is not handled any more.
    ///
    /// A handler that calls its own port would wait for itself; it gets [`CallError::NotAdmitted`] at once. A port that drops the newest
    /// message hands a call back instead.
    ///
    /// # Cancel safety
    /// Not cancel safe: a message that was queued when the future was dropped is handled unless its deadline passes first. Its handler can
    /// see that nobody waits ([`Reply::is_closed`]).
    ///
    /// # Errors
    /// See [`CallError`]: each says whether the work may have happened, and hands the message back where it cannot.
    pub async fn call<R>(&self, deadline: Deadline, make: impl FnOnce(Reply<R>) -> M) -> Result<R, CallError<M>> {
        let (reply, answer) = reply::pair();
        let message = make(reply);
        if serving::serves(self.shared.identity()) {
            self.shared.core.count_refusal();
            self.report_self_wait("call");
            return Err(CallError::NotAdmitted(message));
        }
        let core = &self.shared.core;
        let expires = Some(deadline.instant());
        let admitted = match core.offer(message, expires, Manner { waits: true, droppable: false }) {
            Offered::Full(message) if core.limits().waits() => self.wait_for_room(message, expires, deadline).await,
            decided => carry_out(decided),
        };
        let ticket = match admitted {
            Ok((_, ticket)) => ticket,
            Err(SendError::Full(message)) => return Err(CallError::Full(message)),
            Err(SendError::Deadline(message)) => return Err(CallError::NotAdmitted(message)),
            Err(SendError::Closed(message)) => return Err(CallError::Closed(message)),
        };
        self.answer(answer, ticket, deadline).await
    }

    /// Takes `places` of the data lane, all or none, without waiting. Each later accepts one message at once, however full the lane is then.
    pub fn try_reserve(&self, places: usize) -> Option<Reservation<M>> {
        self.reserve_now(Lane::Data, places)
    }

    /// Takes `places` of the data lane, waiting in line for them whatever the overflow rule. One who waits for many is not overtaken.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future holds no place.
    ///
    /// # Errors
    /// [`ReserveError::TooMany`] when the lane has fewer places, [`ReserveError::Deadline`], [`ReserveError::Closed`].
    pub async fn reserve(&self, places: usize, deadline: Deadline) -> Result<Reservation<M>, ReserveError> {
        let capacity = self.capacity();
        if places > capacity {
            return Err(ReserveError::TooMany { wanted: places, capacity });
        }
        if serving::serves(self.shared.identity()) {
            self.report_self_wait("reservation");
            return self.try_reserve(places).ok_or(ReserveError::Deadline);
        }
        let core = &self.shared.core;
        let wait = InLine::new(&self.shared).wait(deadline, |line, cx| core.poll_reserve(line, places, cx));
        match wait.await {
            Some(true) => Ok(Reservation::new(Arc::clone(&self.shared), Lane::Data, places)),
            Some(false) => Err(ReserveError::Closed),
            None => {
                core.count_refusal();
                Err(ReserveError::Deadline)
            }
        }
    }

    /// Takes one place of the completion lane, for the end of work that is about to be permitted. `None`: the owner has as many permits open
    /// as it may, or the port is closed.
    pub fn try_reserve_completion(&self) -> Option<Reservation<M>> {
        self.reserve_now(Lane::Completion, 1)
    }

    /// The port's name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Places of the data lane.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.core.limits().data
    }

    /// Whether the port takes messages now.
    #[must_use]
    pub fn availability(&self) -> Availability<M> {
        match self.shared.core.availability() {
            CoreAvailability::Open => Availability::Open,
            CoreAvailability::Suspended(answer) => Availability::Suspended(answer),
            CoreAvailability::Draining | CoreAvailability::Closed => Availability::Closed,
        }
    }

    /// What the port holds and has counted.
    #[must_use]
    pub fn metrics(&self) -> PortMetrics {
        PortMetrics::of(&self.shared)
    }

    fn reserve_now(&self, lane: Lane, places: usize) -> Option<Reservation<M>> {
        let taken = self.shared.core.try_reserve(lane, places)?;
        taken.then(|| Reservation::new(Arc::clone(&self.shared), lane, places))
    }

    async fn wait_for_room(
        &self,
        message: M,
        expires: Option<Instant>,
        deadline: Deadline,
    ) -> Result<(Admission, Option<Ticket>), SendError<M>> {
        let core = &self.shared.core;
        if serving::serves(self.shared.identity()) {
            core.count_refusal();
            self.report_self_wait("send");
            return Err(SendError::Full(message));
        }
        let mut message = Some(message);
        let wait = InLine::new(&self.shared).wait(deadline, |line, cx| core.poll_offer(line, &mut message, expires, cx)).await;
        match wait {
            Some(decided) => carry_out(decided),
            None => {
                core.count_refusal();
                Err(SendError::Deadline(message.take().expect("a message that was not offered is still here")))
            }
        }
    }

    async fn answer<R>(
        &self,
        mut answer: oneshot::Receiver<Result<R, Lost>>,
        ticket: Option<Ticket>,
        deadline: Deadline,
    ) -> Result<R, CallError<M>> {
        let late = tokio::time::timeout_at(deadline.instant(), &mut answer).await;
        let heard = match late {
            Ok(heard) => heard.unwrap_or(Err(Lost::InHand)),
            Err(_deadline) => match ticket.and_then(|ticket| self.shared.core.withdraw(ticket)) {
                Some(message) => return Err(CallError::NotAdmitted(message)),
                // The owner took it; it may have answered at this very moment.
                None => match answer.try_recv() {
                    Ok(heard) => heard,
                    Err(_) => return Err(CallError::Deadline { admitted: true }),
                },
            },
        };
        heard.map_err(|lost| match lost {
            Lost::InHand => CallError::Crashed,
            Lost::Expired => CallError::Deadline { admitted: false },
        })
    }

    fn report_self_wait(&self, what: &'static str) {
        tracing::error!(target: telemetry::PORT, port = self.name(), what, "a handler would wait for its own port: refused at once");
    }
}

impl<M> Clone for Port<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M> fmt::Debug for Port<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("name", &self.shared.name).field("limits", self.shared.core.limits()).finish_non_exhaustive()
    }
}

/// What a port did with a message that it took. Only [`Queued`](Self::Queued) and [`EvictedOldest`](Self::EvictedOldest) will be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It is queued.
    Queued,
    /// It is queued, and the oldest queued message was dropped and counted.
    EvictedOldest,
    /// It was dropped and counted: the port is full.
    DroppedNewest,
    /// It was dropped and counted: a control message of its kind is queued already.
    Coalesced,
    /// The port is suspended, and has answered it.
    Answered,
}

/// Whether a port takes messages. Set by the supervisor, through the port's [`Mailbox`](super::Mailbox).
pub enum Availability<M> {
    /// Messages are queued. The owner may be between two incarnations: then they wait.
    Open,
    /// Every message, queued or new, is given to this function at once.
    Suspended(fn(M)),
    /// Nothing is taken any more, for good.
    Closed,
}

impl<M> fmt::Debug for Availability<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Suspended(_) => "Suspended",
            Self::Closed => "Closed",
        })
    }
}

/// Does, outside the lock, what the core decided. The ticket names a message that is queued.
pub(super) fn carry_out<M>(offered: Offered<M>) -> Result<(Admission, Option<Ticket>), SendError<M>> {
    match offered {
        Offered::Queued(ticket) => Ok((Admission::Queued, Some(ticket))),
        Offered::Evicted(ticket, evicted) => {
            drop(evicted);
            Ok((Admission::EvictedOldest, Some(ticket)))
        }
        Offered::Dropped(message) => {
            drop(message);
            Ok((Admission::DroppedNewest, None))
        }
        Offered::Answer(answer, message) => {
            answer(message);
            Ok((Admission::Answered, None))
        }
        Offered::Full(message) => Err(SendError::Full(message)),
        Offered::Closed(message) => Err(SendError::Closed(message)),
    }
}
