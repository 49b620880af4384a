//! A child and its supervisor, as each sees the other. The bridge to the actor substrate: nothing else of supervision shows its
//! types.

use std::fmt;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorRef};
use tokio::task::JoinHandle;

use super::error::StartError;
use super::event::ReportSink;
use super::shared::Shared;

/// A child among the children of its supervisor. Stays the same over restarts, and is never given to another child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildId(u64);

impl ChildId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for records.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How a child stands towards those who send it work: told to the hook of its specification, so that the owner of its queue can
/// keep it open, answer for it, or close it.
///
/// | standing   | what waits in the queue | new work              |
/// |------------|-------------------------|-----------------------|
/// | Up         | is served               | is taken              |
/// | Restarting | waits                   | waits                 |
/// | Degraded   | is answered at once     | is answered at once   |
/// | Gone       | is dropped or answered  | is refused, for good  |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// An incarnation runs.
    Up,
    /// The last incarnation has ended and another will follow.
    Restarting,
    /// Its restart budget, or that of a supervisor above it, is spent; the level above goes on trying.
    Degraded,
    /// There will be no other incarnation. Nothing follows.
    Gone,
}

/// The supervisor, as the start of one of its children sees it.
#[derive(Clone)]
pub struct Parent {
    pub(crate) cell: ActorCell,
    pub(crate) shared: Arc<Shared>,
    pub(crate) child: ChildId,
    pub(crate) reports: Option<ReportSink>,
}

impl Parent {
    /// Spawns an actor without a name, linked to the supervisor.
    ///
    /// # Cancel safety
    /// Dropping the future drops an actor that has not started, and kills one that has.
    ///
    /// # Errors
    /// [`StartError::Failed`] when `pre_start` panics or returns an error, or the supervisor ends meanwhile.
    pub async fn spawn<A: Actor>(&self, actor: A, arguments: A::Arguments) -> Result<Started, StartError> {
        let spawned = Actor::spawn_linked(None, actor, arguments, self.cell.clone()).await?;
        Ok(spawned.into())
    }

    /// The supervisor's actor, for a start that must link its actor itself. Such a start returns the actor as soon as it is
    /// linked: a linked actor whose start goes on waiting, and is then given up, would be an orphan.
    #[must_use]
    pub fn cell(&self) -> ActorCell {
        self.cell.clone()
    }
}

impl fmt::Debug for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parent").field("name", &self.shared.name()).field("child", &self.child).finish()
    }
}

/// A child that has come up. Dropped before its supervisor has taken it over, it kills the actor.
#[derive(Debug)]
#[must_use = "dropping it kills the actor"]
pub struct Started {
    parts: Option<(ActorCell, Option<JoinHandle<()>>)>,
}

impl Started {
    /// Hands over the actor and its task; nothing is killed any more.
    pub(crate) fn take(mut self) -> Option<(ActorCell, Option<JoinHandle<()>>)> {
        self.parts.take()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some((cell, _)) = &self.parts {
            cell.kill();
        }
    }
}

impl From<ActorCell> for Started {
    /// Without its task a supervisor knows only that the actor has stopped, not that its state has been dropped. Prefer the pair
    /// that a spawn returns.
    fn from(cell: ActorCell) -> Self {
        Self { parts: Some((cell, None)) }
    }
}

impl From<(ActorCell, JoinHandle<()>)> for Started {
    fn from((cell, task): (ActorCell, JoinHandle<()>)) -> Self {
        Self { parts: Some((cell, Some(task))) }
    }
}

impl<M> From<(ActorRef<M>, JoinHandle<()>)> for Started {
    fn from((actor, task): (ActorRef<M>, JoinHandle<()>)) -> Self {
        Self { parts: Some((actor.get_cell(), Some(task))) }
    }
}
