//! A port's owner as an actor. The actor's own mailbox carries nothing but "look", so that no message dies with an incarnation.
//!
//! | a look finds                  | it does                                                  |
//! |-------------------------------|----------------------------------------------------------|
//! | a message                     | handles it, and looks again                              |
//! | 32 messages or 100 us behind  | rings itself and returns: stop, kill and events go first |
//! | that it cannot ring itself    | ractor drains it: admits nothing new, finishes the queue |
//! | nothing, or nothing it may    | returns: the bell is disarmed and rings for the next     |
//! | a closed port, or a successor | stops                                                    |

use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use tipstaff_core::clock::Deadline;
use tokio::time::timeout_at;

use super::core::{Bell, Grants, Popped, Serve};
use super::error::{HandlerError, SpawnError};
use super::handler::{Context, Handler};
use super::mailbox::Mailbox;
use super::reply;
use super::serving::Serving;
use super::shared::Shared;

/// One look gives way to ractor's loop after this many messages ...
const LOOK_MESSAGES: u32 = 32;
/// ... or after this time, whichever comes first.
const LOOK_TIME: Duration = Duration::from_micros(100);

/// Starts an incarnation of a port's owner outside any supervision tree.
///
/// It takes over from a consumer that runs already. The value returned owns it.
///
/// # Cancel safety
/// Cancel safe: a start that was dropped leaves no actor.
///
/// # Errors
/// [`SpawnError`], when `started` fails or panics. Nothing was taken from the port.
pub async fn spawn<H: Handler>(mailbox: &Mailbox<H::Message>, handler: H) -> Result<Incarnation, SpawnError> {
    let (cell, join) = spawn_handler(mailbox, handler, None).await?;
    Ok(Incarnation { cell, join: Some(join) })
}

/// Starts an incarnation, linked to `parent` after its `started` has succeeded.
pub(crate) async fn spawn_handler<H: Handler>(
    mailbox: &Mailbox<H::Message>,
    handler: H,
    parent: Option<ActorCell>,
) -> Result<(ActorCell, JoinHandle<()>), SpawnError> {
    let shared = Arc::clone(mailbox.shared());
    let owner = Owner(PhantomData);
    let started = match parent {
        Some(parent) => Actor::spawn_linked(None, owner, (handler, shared), parent).await,
        None => Actor::spawn(None, owner, (handler, shared)).await,
    };
    match started {
        Ok((actor, join)) => Ok((actor.get_cell(), join)),
        Err(SpawnErr::StartupFailed(cause)) => {
            let port = mailbox.shared().name.to_string();
            Err(match cause.downcast::<HandlerError>() {
                Ok(source) => SpawnError::Refused { port, source: *source },
                Err(other) => SpawnError::BrokenOff { port, reason: other.to_string() },
            })
        }
        Err(other) => Err(SpawnError::BrokenOff { port: mailbox.shared().name.to_string(), reason: other.to_string() }),
    }
}

/// One incarnation of an owner. Dropped, it asks the owner to stop.
#[derive(Debug)]
pub struct Incarnation {
    cell: ActorCell,
    join: Option<JoinHandle<()>>,
}

impl Incarnation {
    /// Asks for an orderly end after the message in hand, waits for it until the deadline, then kills. Queued messages stay in the port.
    ///
    /// # Cancel safety
    /// The owner has been asked to stop; a dropped future does not kill it.
    pub async fn stop(mut self, deadline: Deadline) -> End {
        self.cell.stop(None);
        let Some(mut join) = self.join.take() else { return End::Stopped };
        if timeout_at(deadline.instant(), &mut join).await.is_ok() {
            return End::Stopped;
        }
        self.cell.kill();
        // The task reports its own panics to its supervisor; here only its end matters.
        let _ended = join.await;
        End::Killed
    }

    /// Ends the owner at its next await, without `stopping`.
    pub fn kill(&self) {
        self.cell.kill();
    }

    /// Waits for the end, whatever brings it.
    ///
    /// # Cancel safety
    /// Cancel safe: wait again.
    pub async fn ended(&mut self) {
        if let Some(join) = &mut self.join {
            let _ended = join.await;
            self.join = None;
        }
    }
}

impl Drop for Incarnation {
    fn drop(&mut self) {
        self.cell.stop(None);
    }
}

/// How an owner came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order, or it had ended before.
    Stopped,
    /// It did not stop in time and was killed.
    Killed,
}

struct Owner<H>(PhantomData<fn() -> H>);

struct Life<H: Handler> {
    handler: H,
    context: Context<H::Message>,
    shared: Arc<Shared<H::Message>>,
    consumer: u64,
    /// The pace of the last look.
    stride: u32,
}

#[ractor::actor(message = (), state = Life<H>, arguments = (H, Arc<Shared<H::Message>>))]
impl<H: Handler> Owner<H> {
    async fn pre_start(
        &self,
        myself: ActorRef<()>,
        (mut handler, shared): (H, Arc<Shared<H::Message>>),
    ) -> Result<Life<H>, ActorProcessingErr> {
        let context = Context::new(Arc::clone(&shared), myself.get_cell());
        serving(&shared).run(handler.started(&context)).await?;
        // From here on the bell of the port is this actor's, and an earlier consumer is superseded.
        let consumer = shared.core.attach(Box::new(Look(myself)));
        Ok(Life { handler, context, shared, consumer, stride: 1 })
    }

    async fn handle(&self, myself: ActorRef<()>, _look: (), life: &mut Life<H>) -> Result<(), ActorProcessingErr> {
        Ok(serving(&life.shared).run(life.look(&myself)).await?)
    }

    /// A handler supervises nobody.
    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        _event: SupervisionEvent,
        _life: &mut Life<H>,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_stop(&self, _myself: ActorRef<()>, life: &mut Life<H>) -> Result<(), ActorProcessingErr> {
        serving(&life.shared).run(life.handler.stopping(&life.context)).await;
        Ok(())
    }
}

impl<H: Handler> Life<H> {
    async fn look(&mut self, myself: &ActorRef<()>) -> Result<(), HandlerError> {
        let mut pace = Pace::begin(self.stride);
        let mut finished = 0;
        loop {
            if pace.is_spent() {
                self.shared.core.pause(std::mem::take(&mut finished));
                self.stride = pace.stride;
                if myself.cast(()).is_ok() {
                    return Ok(());
                }
                self.shared.core.drain();
                pace = Pace::begin(pace.stride);
            }
            let handler = &self.handler;
            let serve = || if handler.ready() { Serve::All } else { Serve::Urgent };
            match self.shared.core.look(self.consumer, std::mem::take(&mut finished), serve, pace.grants()) {
                Popped::Message(message) => {
                    let in_hand = self.take_in_hand(message).await?;
                    finished = u64::from(in_hand.handled);
                    pace.served(in_hand.suspended);
                }
                Popped::Expired(message) => {
                    reply::drop_expired(message);
                    pace.served(false);
                }
                Popped::Empty => {
                    self.stride = pace.stride;
                    return Ok(());
                }
                Popped::Closed | Popped::Superseded => {
                    myself.stop(None);
                    return Ok(());
                }
            }
        }
    }

    async fn take_in_hand(&mut self, message: H::Message) -> Result<Taken, HandlerError> {
        let mut hand = InHand { shared: Some(&*self.shared), key: None };
        hand.key = self.shared.poison_key(&message);
        if self.shared.is_condemned(hand.key) {
            hand.empty();
            self.shared.set_aside(message);
            return Ok(Taken { handled: false, suspended: false });
        }
        let mut polls = 0_u32;
        let mut handling = pin!(self.handler.handle(message, &self.context));
        poll_fn(|cx| {
            polls = polls.saturating_add(1);
            let polled = handling.as_mut().poll(cx);
            if polls == 1 && polled.is_pending() {
                self.shared.core.pause(0);
            }
            polled
        })
        .await?;
        self.shared.handled_well(hand.key);
        hand.empty();
        Ok(Taken { handled: true, suspended: polls > 1 })
    }
}

/// What became of a message that was taken in hand.
struct Taken {
    /// It is to be counted as handled at the next pop.
    handled: bool,
    suspended: bool,
}

/// When a look gives way to ractor's loop.
///
/// Reading the clock costs as much as handling a small message. So it is read after every message while messages are slow, and after up to
/// [`STRIDE`](Self::STRIDE) of them while they are fast. A handler that was suspended has waited for something: the look is over. The clock
/// is the machine's: a test that halts tokio's does not halt what a handler computes.
struct Pace {
    read: Option<Instant>,
    spent: Duration,
    served: u32,
    unread: u32,
    stride: u32,
}

impl Pace {
    const STRIDE: u32 = 8;

    fn begin(stride: u32) -> Self {
        let read = (stride == 1).then(Instant::now);
        Self { read, spent: Duration::ZERO, served: 0, unread: 0, stride }
    }

    fn is_spent(&self) -> bool {
        self.served >= LOOK_MESSAGES || self.spent >= LOOK_TIME
    }

    /// While messages are fast, the look ends soon: those who wait for room are woken then, and not once for each message.
    fn grants(&self) -> Grants {
        if self.stride == Self::STRIDE { Grants::AtPause } else { Grants::AtOnce }
    }

    fn served(&mut self, suspended: bool) {
        self.served += 1;
        self.unread += 1;
        if suspended {
            (self.spent, self.stride) = (LOOK_TIME, 1);
        } else if self.unread >= self.stride {
            let now = Instant::now();
            if let Some(before) = self.read {
                let passed = now.saturating_duration_since(before);
                self.spent += passed;
                let fast = passed * LOOK_MESSAGES < LOOK_TIME * self.unread;
                self.stride = if fast { (self.stride * 2).min(Self::STRIDE) } else { 1 };
            }
            (self.read, self.unread) = (Some(now), 0);
        }
    }
}

/// The message in hand. Dropped before it was handled, by a panic, an error or a kill, it is counted as lost, once.
struct InHand<'a, M> {
    shared: Option<&'a Shared<M>>,
    key: Option<u64>,
}

impl<M> InHand<'_, M> {
    fn empty(mut self) {
        self.shared = None;
    }
}

impl<M> Drop for InHand<'_, M> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared {
            shared.crashed(1, self.key.as_slice());
        }
    }
}

/// The bell of an actor.
struct Look(ActorRef<()>);

impl Bell for Look {
    fn ring(&self) {
        // An actor that has ended cannot look; its successor rings for itself.
        let _gone = self.0.cast(());
    }
}

fn serving<M>(shared: &Arc<Shared<M>>) -> Serving {
    Serving { identity: shared.identity(), name: Arc::clone(&shared.name) }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::port::{Overflow, PortSpec, SendError};

    struct Idle;

    impl Handler for Idle {
        type Message = u64;

        async fn handle(&mut self, _message: u64, _context: &Context<u64>) -> Result<(), HandlerError> {
            Ok(())
        }
    }

    /// If ractor drains the actor, the look under way finishes the queue: 300 of 300, and nothing new is admitted.
    #[tokio::test]
    async fn a_drain_by_ractor_finishes_the_queue() {
        let (port, mailbox) = PortSpec::new("idle", NonZeroUsize::new(300).unwrap(), Overflow::Reject).open();
        for number in 0..300 {
            port.try_send(number).unwrap();
        }
        let (cell, join) = spawn_handler(&mailbox, Idle, None).await.unwrap();
        cell.drain().unwrap();
        join.await.unwrap();
        assert_eq!((port.metrics().handled, port.metrics().depth()), (300, 0));
        assert!(matches!(port.try_send(1), Err(SendError::Closed(1))));
    }

    /// A child is linked to its parent: the parent's end is its end, and what is queued stays in the port.
    #[tokio::test]
    async fn a_child_ends_with_its_parent() {
        let (parent_port, parent_box) = PortSpec::<u64>::new("parent", NonZeroUsize::MIN, Overflow::Reject).open();
        let (port, mailbox) = PortSpec::new("child", NonZeroUsize::MIN, Overflow::Reject).open();
        let (parent, parent_join) = spawn_handler(&parent_box, Idle, None).await.unwrap();
        let (_child, child_join) = spawn_handler(&mailbox, Idle, Some(parent.clone())).await.unwrap();
        parent.stop(None);
        parent_join.await.unwrap();
        child_join.await.unwrap();
        port.try_send(1).unwrap();
        assert_eq!((port.metrics().data_depth, parent_port.metrics().depth()), (1, 0));
    }
}
