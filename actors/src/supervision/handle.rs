//! The owner's side of a supervisor: a handle that outlives its incarnations, and the queue and status behind it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::ActorRef;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{timeout, timeout_at};

use super::child::ChildId;
use super::error::{AskError, EndCause, ShutdownError, StartChildError, StartupError, StopChildError, SupervisorEnded};
use super::spec::{ChildSpec, SupervisorSpec};
use super::tasks::KILL_GRACE;
use crate::clock::Deadline;

/// How many requests to one supervisor may wait. More callers wait for room, in order, within their deadlines.
const QUEUE: usize = 64;

/// A supervisor, as its owner sees it. Cheap to clone; stays valid when the supervisor is restarted by a level above. Dropping every handle
/// stops nothing.
#[derive(Clone)]
pub struct SupervisorHandle {
    shared: Arc<Shared>,
}

impl SupervisorHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Waits until the children of the specification are up (under [`Strategy::Isolated`](super::Strategy::Isolated): until each has been
    /// tried).
    ///
    /// # Cancel safety
    /// Cancel safe: it only watches.
    ///
    /// # Errors
    /// [`StartupError::Deadline`]: the supervisor goes on trying. [`StartupError::Ended`]: it has ended, in this incarnation at least.
    pub async fn started(&self, deadline: Deadline) -> Result<(), StartupError> {
        match timeout_at(deadline.instant(), self.shared.settled()).await {
            Ok(settled) => settled.map_err(StartupError::Ended),
            Err(_) => Err(StartupError::Deadline(Arc::clone(self.shared.name()))),
        }
    }

    /// Starts a dynamic child, and waits until it is up. Its first start is tried once: if it fails, the child is not kept, and the error
    /// comes back. From then on it is supervised by its class.
    ///
    /// Under a group strategy the child is the last of the order; under the others it has no order.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: an admitted child is started and supervised.
    ///
    /// # Errors
    /// See [`StartChildError`]. With [`StartChildError::Deadline`] the child may still come up; with every other error it will not.
    pub async fn start_child(&self, spec: ChildSpec, deadline: Deadline) -> Result<ChildId, StartChildError> {
        let room = match timeout_at(deadline.instant(), self.shared.commands.reserve()).await {
            Ok(Ok(room)) => room,
            Ok(Err(_)) => return Err(StartChildError::Closed(Box::new(spec))),
            Err(_) => return Err(StartChildError::NotAdmitted(Box::new(spec))),
        };
        let (reply, answer) = oneshot::channel();
        room.send(Command::StartChild { spec: Box::new(spec), reply });
        self.shared.ring();
        match timeout_at(deadline.instant(), answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(StartChildError::Stopped),
            Err(_) => Err(StartChildError::Deadline),
        }
    }

    /// Stops a child for good, whatever its class, and waits until its task has ended. Acts on whichever incarnation runs.
    ///
    /// The child has its own stop timeout before it is killed; `deadline` only ends this wait.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: an admitted stop is carried out.
    ///
    /// # Errors
    /// [`StopChildError::Unknown`] when it has ended for good already. [`StopChildError::Deadline`]: ask again, it is safe.
    /// [`StopChildError::Closed`]: the supervisor has ended, and the child with it.
    pub async fn stop_child(&self, child: ChildId, deadline: Deadline) -> Result<(), StopChildError> {
        match self.ask(deadline, |reply| Command::StopChild { child, reply }).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StopChildError::Unknown),
            Err(AskError::Deadline) => Err(StopChildError::Deadline),
            Err(AskError::Closed) => Err(StopChildError::Closed),
        }
    }

    /// The children, in the order in which they were added. One that has ended for good is not among them.
    ///
    /// # Cancel safety
    /// Cancel safe: it only asks.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn children(&self, deadline: Deadline) -> Result<Vec<ChildInfo>, AskError> {
        self.ask(deadline, |reply| Command::Children { reply }).await
    }

    /// The state of the supervisor, as of its last decision.
    #[must_use]
    pub fn status(&self) -> SupervisorStatus {
        self.shared.status.borrow().clone()
    }

    /// Stops the children in reverse order and then the supervisor, for good; returns once the last task has ended. May be called any number of
    /// times, also at once; it is enough that one call is ever made.
    ///
    /// Until `deadline`, each child has its own stop timeout; from then on those that are left are killed. The handle of a child supervisor
    /// stops it through the supervisor above, as [`stop_child`](Self::stop_child) does, and `deadline` then only ends graceful waiting below it.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: the shutdown goes on, with the children's own stop timeouts.
    ///
    /// # Errors
    /// [`ShutdownError::StillAlive`] when killed children have not ended a second after the deadline.
    pub async fn shutdown(&self, deadline: Deadline) -> Result<(), ShutdownError> {
        let ended = async {
            self.shared.request_end().await;
            self.shared.ended().await;
        };
        tokio::pin!(ended);
        if timeout_at(deadline.instant(), &mut ended).await.is_ok() {
            return Ok(());
        }
        self.shared.impatience.send_replace(true);
        match timeout(KILL_GRACE * 2, ended).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ShutdownError::StillAlive { children: self.shared.status.borrow().children }),
        }
    }

    /// Kills the supervisor and everything below it, without any order or grace. Under a supervisor of ours this is an abnormal end, and is
    /// answered by a restart.
    pub fn kill(&self) {
        self.shared.bell.with_target(|target| target.kill());
    }

    async fn ask<T>(&self, deadline: Deadline, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, AskError> {
        let room = match timeout_at(deadline.instant(), self.shared.commands.reserve()).await {
            Ok(room) => room.map_err(|_| AskError::Closed)?,
            Err(_) => return Err(AskError::Deadline),
        };
        let (reply, answer) = oneshot::channel();
        room.send(command(reply));
        self.shared.ring();
        match timeout_at(deadline.instant(), answer).await {
            Ok(answer) => answer.map_err(|_| AskError::Closed),
            Err(_) => Err(AskError::Deadline),
        }
    }
}

impl fmt::Debug for SupervisorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorHandle")
            .field("name", &self.shared.name)
            .field("status", &*self.shared.status.borrow())
            .finish()
    }
}

/// One child, as its supervisor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildInfo {
    /// The child.
    pub id: ChildId,
    /// Its name.
    pub name: Arc<str>,
    /// Whether it was added after the supervisor had been specified.
    pub dynamic: bool,
    /// Whether an incarnation runs now.
    pub running: bool,
    /// Whether it is restarted beyond its budget.
    pub degraded: bool,
    /// How often it has been started again.
    pub restarts: u64,
}

/// The state of a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorStatus {
    /// Where it stands in its life.
    pub phase: SupervisorPhase,
    /// How many children it has, those that are being restarted included.
    pub children: usize,
    /// How many restarts it has decided in this incarnation.
    pub restarts: u64,
    /// The children that are restarted beyond their budget, by name.
    pub degraded: Vec<Arc<str>>,
    /// How many starts, stops and waits are under way.
    pub tasks: usize,
}

/// Where a supervisor stands in its life.
#[derive(Debug, Clone)]
pub enum SupervisorPhase {
    /// Its children are being started for the first time.
    Starting,
    /// They have been.
    Up,
    /// It stops its children.
    Stopping,
    /// This incarnation has ended; a level above may start the next.
    Down(EndCause),
    /// It has ended for good.
    Ended(EndCause),
}

/// A request to a supervisor.
#[derive(Debug)]
pub(crate) enum Command {
    StartChild { spec: Box<ChildSpec>, reply: oneshot::Sender<Result<ChildId, StartChildError>> },
    StopChild { child: ChildId, reply: oneshot::Sender<bool> },
    Children { reply: oneshot::Sender<Vec<ChildInfo>> },
}

/// What the handles and the incarnations of one supervisor share.
pub(crate) struct Shared {
    name: Arc<str>,
    commands: mpsc::Sender<Command>,
    /// Taken for the length of one poll, by the incarnation that runs.
    inbox: Mutex<mpsc::Receiver<Command>>,
    bell: Bell,
    status: watch::Sender<SupervisorStatus>,
    next_dynamic: AtomicU64,
    impatience: watch::Sender<bool>,
    /// Of a root: ends with its task.
    task: OnceLock<futures::future::Shared<BoxFuture<'static, ()>>>,
    /// Of a child supervisor: the one above, and its place there.
    above: watch::Sender<Option<(Arc<Shared>, ChildId)>>,
}

impl Shared {
    pub(crate) fn new(spec: &SupervisorSpec) -> Arc<Self> {
        let (commands, inbox) = mpsc::channel(QUEUE);
        let status =
            SupervisorStatus { phase: SupervisorPhase::Starting, children: 0, restarts: 0, degraded: Vec::new(), tasks: 0 };
        Arc::new(Self {
            name: Arc::clone(&spec.name),
            commands,
            inbox: Mutex::new(inbox),
            bell: Bell::new(),
            status: watch::Sender::new(status),
            next_dynamic: AtomicU64::new(spec.children.len() as u64),
            impatience: watch::Sender::new(false),
            task: OnceLock::new(),
            above: watch::Sender::new(None),
        })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// An identifier that no child of this supervisor, in whatever incarnation, has had.
    pub(crate) fn next_dynamic(&self) -> ChildId {
        ChildId::new(self.next_dynamic.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn impatience(&self) -> watch::Receiver<bool> {
        self.impatience.subscribe()
    }

    pub(crate) fn publish(&self, change: impl FnOnce(&mut SupervisorStatus)) {
        self.status.send_modify(change);
    }

    /// Wakes the incarnation that runs; the next one is woken by its start.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    pub(crate) fn disarm(&self) {
        self.bell.armed.swap(false, Ordering::AcqRel);
    }

    /// Makes an incarnation the one that is woken and stopped.
    pub(crate) fn take_over(&self, actor: ActorRef<()>) {
        self.bell.target.send_replace(Some(actor));
        self.bell.armed.store(false, Ordering::Release);
    }

    pub(crate) fn leave(&self) {
        self.bell.target.send_replace(None);
    }

    /// Until no incarnation is left. One that was killed while it started may take until its next await.
    pub(crate) async fn vacant(&self) {
        let _ = self.bell.target.subscribe().wait_for(Option::is_none).await;
    }

    pub(crate) fn stands_below(&self, above: &Arc<Shared>, place: ChildId) {
        self.above.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some((Arc::clone(above), place));
            }
            first
        });
    }

    pub(crate) fn owns_task(&self, task: JoinHandle<()>) {
        // A root is spawned once, with a desk made for it.
        let _ = self.task.set(task.map(|_| ()).boxed().shared());
    }

    pub(crate) fn poll_command(&self, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).poll_recv(cx)
    }

    pub(crate) fn try_command(&self) -> Option<Command> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
    }

    /// Whatever still waits is refused, and nothing more is taken.
    pub(crate) fn close(&self) {
        let refused: Vec<Command> = {
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            inbox.close();
            std::iter::from_fn(|| inbox.try_recv().ok()).collect()
        };
        refused.into_iter().for_each(Command::refuse);
        self.publish(|status| {
            status.phase = match std::mem::replace(&mut status.phase, SupervisorPhase::Stopping) {
                SupervisorPhase::Down(cause) | SupervisorPhase::Ended(cause) => SupervisorPhase::Ended(cause),
                SupervisorPhase::Starting => SupervisorPhase::Ended(EndCause::Asked),
                SupervisorPhase::Up | SupervisorPhase::Stopping => SupervisorPhase::Ended(EndCause::Killed),
            };
        });
    }

    /// Until the children are up, or this incarnation has ended.
    pub(crate) async fn settled(&self) -> Result<(), SupervisorEnded> {
        let mut status = self.status.subscribe();
        let settled = status.wait_for(|status| !matches!(status.phase, SupervisorPhase::Starting)).await;
        let cause = match settled.as_deref() {
            Ok(SupervisorStatus { phase: SupervisorPhase::Up, .. }) => return Ok(()),
            Ok(SupervisorStatus { phase: SupervisorPhase::Down(cause) | SupervisorPhase::Ended(cause), .. }) => cause.clone(),
            Ok(_) | Err(_) => EndCause::Asked,
        };
        Err(SupervisorEnded { name: Arc::clone(&self.name), cause })
    }

    async fn request_end(&self) {
        if self.task.get().is_some() {
            self.bell.with_target(|target| target.stop(Some("shutdown".to_owned())));
            return;
        }
        let mut above = self.above.subscribe();
        let place = above.wait_for(Option::is_some).await.map(|place| place.clone());
        if let Ok(Some((above, child))) = place {
            let (reply, _) = oneshot::channel();
            // A supervisor above that takes no more requests is ending, and this one with it.
            if above.commands.send(Command::StopChild { child, reply }).await.is_ok() {
                above.ring();
            }
        }
    }

    async fn ended(&self) {
        if let Some(task) = self.task.get() {
            return task.clone().await;
        }
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|status| matches!(status.phase, SupervisorPhase::Ended(_))).await;
    }
}

impl Command {
    /// Answers a request that comes too late.
    pub(crate) fn refuse(self) {
        match self {
            Self::StartChild { spec, reply } => drop(reply.send(Err(StartChildError::Closed(spec)))),
            // Dropping the reply says that the supervisor has ended.
            Self::StopChild { .. } | Self::Children { .. } => {}
        }
    }
}

/// Wakes the actor that runs: at most one unrequited wake message is in its mailbox, which has no bound of its own.
struct Bell {
    armed: AtomicBool,
    target: watch::Sender<Option<ActorRef<()>>>,
}

impl Bell {
    fn new() -> Self {
        Self { armed: AtomicBool::new(false), target: watch::Sender::new(None) }
    }

    fn ring(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            // A refusal means that the actor ends; the next one rings for itself, and looks at everything.
            self.with_target(|target| drop(target.cast(())));
        }
    }

    fn with_target(&self, act: impl FnOnce(&ActorRef<()>)) {
        let target = self.target.borrow().clone();
        if let Some(target) = target {
            act(&target);
        }
    }
}
