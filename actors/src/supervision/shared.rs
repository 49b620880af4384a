//! What the handles and the incarnations of one supervisor share: the queue of requests, the status, and the way
//! to whichever actor runs.
//!
//! The queue belongs here and not to the actor, so that handles and waiting requests survive a restart of the supervisor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::ActorRef;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::child::ChildId;
use super::error::{EndCause, StartChildError, SupervisorEnded};
use super::handle::{ChildInfo, SupervisorPhase, SupervisorStatus};
use super::spec::{ChildSpec, SupervisorSpec};

/// How many requests to one supervisor may wait. More callers wait for room, in order, within their deadlines.
const QUEUE: usize = 64;

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

    pub(crate) fn status(&self) -> SupervisorStatus {
        self.status.borrow().clone()
    }

    /// Room for one request, in the order of asking. An error means that no request is taken any more.
    pub(crate) async fn room(&self) -> Result<mpsc::Permit<'_, Command>, SendError<()>> {
        self.commands.reserve().await
    }

    /// Ends graceful waiting: children that are being stopped, or will be, are killed.
    pub(crate) fn lose_patience(&self) {
        self.impatience.send_replace(true);
    }

    pub(crate) fn kill(&self) {
        self.bell.with_target(|target| target.kill());
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

    /// Asks for the end: of a root its actor, of a child supervisor the one above. Any number of times.
    pub(crate) async fn request_end(&self) {
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

    /// Until it has ended for good.
    pub(crate) async fn ended(&self) {
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
