//! The owner's side of a supervisor: a handle that outlives its incarnations, and what it tells.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::{timeout, timeout_at};

use super::child::ChildId;
use super::error::{AskError, EndCause, ShutdownError, StartChildError, StartupError, StopChildError};
use super::shared::{Command, Shared};
use super::spec::ChildSpec;
use super::tasks::KILL_GRACE;
use crate::clock::Deadline;

/// A supervisor, as its owner sees it. Cheap to clone; stays valid when the supervisor is restarted by a level above. Dropping
/// every handle stops nothing.
#[derive(Clone)]
pub struct SupervisorHandle {
    shared: Arc<Shared>,
}

impl SupervisorHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Waits until the children of the specification are up (under [`Strategy::Isolated`](super::Strategy::Isolated): until each
    /// has been tried).
    ///
    /// # Cancel safety
    /// Cancel safe: it only watches.
    ///
    /// # Errors
    /// [`StartupError::Deadline`]: the supervisor goes on trying. [`StartupError::Ended`]: it has ended, in this incarnation at
    /// least.
    pub async fn started(&self, deadline: Deadline) -> Result<(), StartupError> {
        match timeout_at(deadline.instant(), self.shared.settled()).await {
            Ok(settled) => settled.map_err(StartupError::Ended),
            Err(_) => Err(StartupError::Deadline(Arc::clone(self.shared.name()))),
        }
    }

    /// Starts a dynamic child, and waits until it is up. Its first start is tried once: if it fails, the child is not kept, and
    /// the error comes back. From then on it is supervised by its class.
    ///
    /// Under a group strategy the child is the last of the order; under the others it has no order.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: an admitted child is started and supervised.
    ///
    /// # Errors
    /// See [`StartChildError`]. With [`StartChildError::Deadline`] the child may still come up; with every other error it will
    /// not.
    pub async fn start_child(&self, spec: ChildSpec, deadline: Deadline) -> Result<ChildId, StartChildError> {
        let room = match timeout_at(deadline.instant(), self.shared.room()).await {
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
        self.shared.status()
    }

    /// Stops the children in reverse order and then the supervisor, for good; returns once the last task has ended. May be called
    /// any number of times, also at once; it is enough that one call is ever made.
    ///
    /// Until `deadline`, each child has its own stop timeout; from then on those that are left are killed. The handle of a child
    /// supervisor stops it through the supervisor above, as [`stop_child`](Self::stop_child) does, and `deadline` then only ends
    /// graceful waiting below it.
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
        self.shared.lose_patience();
        match timeout(KILL_GRACE * 2, ended).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ShutdownError::StillAlive { children: self.shared.status().children }),
        }
    }

    /// Kills the supervisor and everything below it, without any order or grace. Under a supervisor of ours this is an abnormal
    /// end, and is answered by a restart.
    pub fn kill(&self) {
        self.shared.kill();
    }

    async fn ask<T>(&self, deadline: Deadline, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, AskError> {
        let room = match timeout_at(deadline.instant(), self.shared.room()).await {
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
        f.debug_struct("SupervisorHandle").field("name", self.shared.name()).field("status", &self.shared.status()).finish()
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
