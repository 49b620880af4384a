//! The supervision tree on one screen, and the one table of defaults (A-1, A-3).
//!
//! Children start in this order and stop in reverse. The root isolates its subtrees: one that spends its budget is restarted with capped back-off
//! and reported as degraded, and takes no sibling with it.
//!
//! ```text
//! runtime          isolated
//!   state          the store's single writer
//!   observation    isolated: session observers and dispatchers (dynamic)
//!   authorization  isolated: the action executor, other owners of operations (dynamic)
//! ```
//!
//! | role             | class     | budget      | back-off       | start / stop | port                 | overflow                | degraded means          |
//! |------------------|-----------|-------------|----------------|--------------|----------------------|-------------------------|-------------------------|
//! | state writer     | permanent | 5 in 10 s   | 50 ms .. 5 s   | 30 s / 15 s  | 4096 facts           | waits, then typed refusal | facts are counted as lost, required proposals are denied |
//! | session observer | permanent | 5 in 10 s   | 50 ms .. 5 s   | 5 s / 5 s    | 1024 emissions       | drops the newest, counted | emissions are counted as undelivered |
//! | dispatcher       | permanent | 5 in 10 s   | 50 ms .. 5 s   | 5 s / 5 s    | 1024 emissions       | typed refusal           | emissions are answered as undelivered |
//! | action executor  | permanent | 5 in 10 s   | 50 ms .. 5 s   | 5 s / 5 s    | 1024 proposals       | waits, then overloaded  | every proposal is denied |
//! | other owners     | permanent | 5 in 10 s   | 50 ms .. 5 s   | 5 s / 15 s   | 1024 proposals each  | waits, then overloaded  | every proposal of its own is denied |
//!
//! | default                               | value          |
//! |---------------------------------------|----------------|
//! | ruling of a proposal (chain deadline) | 60 s           |
//! | proposals decided at the same time    | 64             |
//! | open permits                          | 1024           |
//! | emissions in flight of one session    | 1024           |
//! | deadline of an emission               | 30 s           |
//! | facts that an observing actor holds   | 1024           |
//! | teardown of a service call            | 5 s, and 1 s to stop |
//! | teardown of a launch                  | 10 s, and 2 s to stop |
//! | emissions inside one another          | 32             |
//! | threads of a dispatcher for handlers that block | 40   |
//! | budget of terminal callbacks          | 10 s           |
//! | grace of a cancelled handler (compatibility profiles) | 1 s |
//! | group commit                          | 1024 facts or 1 MiB |
//! | quiet of the writer (idle poll)       | 500 ms, one wake-up |
//! | a new writer's wait for the last one  | 20 s           |

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ractor::Actor;
use tipstaff_core::operation::Owner;

use crate::authorization::{Decider, OpenPermits, Proposing, degraded};
use crate::crash::Doors;
use crate::dispatcher::{DispatchMessage, DispatcherActor};
use crate::journal::{Request, StateWriter, WriterArguments};
use crate::observation::{Emission, Observer};
use crate::port::actor::spawn_handler;
use crate::port::{Handler, Mailbox, Overflow, Port, PortSpec};
use crate::supervision::{
    Backoff, ChildSpec, Intensity, Restart, Standing, StartError, Strategy, SupervisorHandle, SupervisorSpec,
};

/// Restarts that a role may need before it is degraded.
const BUDGET: Intensity = Intensity::new(5, Duration::from_secs(10));
/// Waits between restarts.
const BACKOFF: Backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(5));
/// Session observers at the same time.
const MAX_SESSIONS: usize = 100_000;
/// Owners beside the action executor at the same time.
const MAX_OWNERS: usize = 1024;
/// How long an owner may take to stop: the longest teardown of a shipped one, with its grace, and some more.
pub(crate) const OWNER_STOP: Duration = Duration::from_secs(15);

/// The subtrees of a runtime.
pub(crate) struct Tree {
    pub(crate) spec: SupervisorSpec,
    pub(crate) observation: SupervisorHandle,
    pub(crate) authorization: SupervisorHandle,
}

/// Puts the subtrees together, in start order.
pub(crate) fn tree(state: Option<ChildSpec>, executors: Vec<ChildSpec>) -> Tree {
    let observers = SupervisorSpec::new("observation", Strategy::Isolated).backoff(BACKOFF).max_dynamic(MAX_SESSIONS);
    let owners = SupervisorSpec::new("authorization", Strategy::Isolated).backoff(BACKOFF).max_dynamic(MAX_OWNERS);
    let (observers, observation) = ChildSpec::supervisor(Restart::Permanent, observers);
    let (owners, authorization) =
        ChildSpec::supervisor(Restart::Permanent, executors.into_iter().fold(owners, SupervisorSpec::child));
    let root = SupervisorSpec::new("tipstaff", Strategy::Isolated).backoff(BACKOFF);
    let root = match state {
        Some(writer) => {
            let state = SupervisorSpec::new("state", Strategy::OneForOne).backoff(BACKOFF).intensity(BUDGET).child(writer);
            root.child(ChildSpec::supervisor(Restart::Permanent, state).0)
        }
        None => root,
    };
    Tree { spec: root.child(observers).child(owners), observation, authorization }
}

/// The store's single writer.
pub(crate) fn state_writer(arguments: WriterArguments) -> ChildSpec {
    let (mailbox, health) = (Arc::clone(&arguments.mailbox), arguments.health.clone());
    ChildSpec::new("state_writer", Restart::Permanent, move |parent| {
        let arguments = arguments.clone();
        async move {
            let doors = arguments.doors.clone();
            let (actor, task) = Actor::spawn_linked(None, StateWriter, arguments, parent.cell()).await?;
            doors.born("state_writer", &actor.get_cell());
            Ok((actor.get_cell(), task))
        }
    })
    .start_timeout(Duration::from_secs(30))
    .stop_timeout(Duration::from_secs(15))
    .on_standing(move |standing| match standing {
        Standing::Up => {
            health.accepted();
            mailbox.resume();
        }
        Standing::Restarting => {}
        // A request that is dropped counts itself as lost.
        Standing::Degraded => {
            health.refused("the store's writer has spent its restart budget".to_owned());
            mailbox.suspend(drop);
        }
        Standing::Gone => {
            health.refused("the store's writer has stopped".to_owned());
            mailbox.close();
        }
    })
}

/// The port of the store's writer.
pub(crate) fn journal_port(capacity: NonZeroUsize) -> (Port<Request>, Mailbox<Request>) {
    PortSpec::new("journal", capacity, Overflow::Wait).open()
}

/// The observer of one session.
pub(crate) fn session_observer(mailbox: Arc<Mailbox<Emission>>, doors: Doors) -> ChildSpec {
    let born = doors.clone();
    serving("session_observer", mailbox, doors, drop, move || Observer::new(born.clone()))
}

/// The port of one session's observer.
pub(crate) fn observer_port() -> (Port<Emission>, Mailbox<Emission>) {
    let capacity = NonZeroUsize::new(1024).expect("the literal is not zero");
    PortSpec::new("session_observer", capacity, Overflow::DropNewest).open()
}

/// The actor of one dispatcher.
pub(crate) fn dispatcher<V: Send + Sync + 'static>(
    name: &'static str,
    mailbox: Arc<Mailbox<DispatchMessage<V>>>,
    doors: Doors,
) -> ChildSpec {
    serving(name, mailbox, doors, drop, DispatcherActor::new)
}

/// A child that serves a port with the handlers that `handler` makes, one each start. While it is degraded `refuse` answers what is sent.
fn serving<H: Handler>(
    name: &'static str,
    mailbox: Arc<Mailbox<H::Message>>,
    doors: Doors,
    refuse: fn(H::Message),
    handler: impl Fn() -> H + Send + Sync + 'static,
) -> ChildSpec {
    let standing = Arc::clone(&mailbox);
    ChildSpec::new(name, Restart::Permanent, move |parent| {
        let (mailbox, doors, handler) = (Arc::clone(&mailbox), doors.clone(), handler());
        async move {
            let started = spawn_handler(&mailbox, handler, Some(parent.cell())).await.map_err(StartError::failed)?;
            doors.born(name, &started.0);
            Ok(started)
        }
    })
    .intensity(BUDGET)
    .on_standing(move |now| match now {
        Standing::Up => standing.resume(),
        Standing::Restarting => {}
        Standing::Degraded => standing.suspend(refuse),
        Standing::Gone => standing.close(),
    })
}

/// The port of one dispatcher.
pub(crate) fn dispatcher_port<V>(name: &'static str) -> (Port<DispatchMessage<V>>, Mailbox<DispatchMessage<V>>) {
    let capacity = NonZeroUsize::new(1024).expect("the literal is not zero");
    PortSpec::new(name, capacity, Overflow::Reject).open()
}

/// The bounds of one owner of operations.
#[derive(Debug, Clone, Copy)]
pub struct OwnerBounds {
    /// Proposals that wait in its port.
    pub waiting: NonZeroUsize,
    /// Proposals that are decided at the same time.
    pub deciding: NonZeroUsize,
    /// Permits that are open at the same time.
    pub permits: NonZeroUsize,
}

impl Default for OwnerBounds {
    /// 1024 waiting, 64 deciding, 1024 open permits.
    fn default() -> Self {
        let size = |size| NonZeroUsize::new(size).expect("the literals are not zero");
        Self { waiting: size(1024), deciding: size(64), permits: size(1024) }
    }
}

/// The actor of one owner of operations, and its port.
pub(crate) fn owner<O: Owner>(
    plan: tipstaff_core::operation::OwnerPlan<O>,
    bounds: OwnerBounds,
    open: OpenPermits,
    doors: Doors,
) -> (ChildSpec, Port<Proposing<O>>) {
    let (port, mailbox) = PortSpec::new(O::NAME, bounds.waiting, Overflow::Wait).completions(bounds.permits).open();
    let (own, born) = (port.clone(), doors.clone());
    let child = serving(O::NAME, Arc::new(mailbox), doors, degraded, move || {
        Decider::new(plan.clone(), own.clone(), open.clone(), bounds.deciding.get(), born.clone())
    });
    (child, port)
}
