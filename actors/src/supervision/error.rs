//! What can go wrong with children and their supervisor.

use std::sync::Arc;
use std::time::Duration;

use super::end::{Cause, End};
use super::spec::ChildSpec;

/// Why a child did not come up. Counts as a failure of the child.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It did not start in time; what it had begun is dropped.
    #[error("not started within {0:?}: raise the start timeout or find what its start waits for")]
    Timeout(Duration),
    /// Its start returned an error or panicked.
    #[error("{0}")]
    Failed(#[source] Cause),
    /// It came up, but is not linked to its supervisor, so that its end would go unseen. It was killed if it still ran.
    #[error("started without a link to its supervisor: start it with `Parent::spawn`")]
    NotLinked,
    /// A child supervisor ended before its own children had started.
    #[error("the subtree {name:?} did not come up: {cause}")]
    Subtree {
        /// The child supervisor.
        name: Arc<str>,
        /// How it ended.
        cause: EndCause,
    },
}

impl StartError {
    /// The start returned this error.
    pub fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Cause::new(error))
    }
}

impl From<ractor::SpawnErr> for StartError {
    fn from(error: ractor::SpawnErr) -> Self {
        match error {
            ractor::SpawnErr::StartupFailed(error) => Self::Failed(Cause::boxed(error)),
            other => Self::failed(other),
        }
    }
}

/// Why a supervisor ended.
#[derive(Debug, Clone)]
pub enum EndCause {
    /// It was asked to: by [`SupervisorHandle::shutdown`](super::SupervisorHandle::shutdown) or by the level above.
    Asked,
    /// One of its children spent the restart budget.
    Exhausted {
        /// The child.
        child: Arc<str>,
        /// How it ended the last time.
        end: Box<End>,
    },
    /// It was killed, or its host died: its children were killed by the substrate.
    Killed,
}

impl std::fmt::Display for EndCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked => f.write_str("asked to stop"),
            Self::Exhausted { child, end } => write!(f, "child {child:?} spent the restart budget, at last it {end}"),
            Self::Killed => f.write_str("killed"),
        }
    }
}

/// The error with which a supervisor's actor fails once it has stopped its children. Its text is stable: a host sees it in its
/// own supervision event.
#[derive(Debug, Clone, thiserror::Error)]
#[error("supervisor {name:?} ended: {cause}")]
pub struct SupervisorEnded {
    /// The supervisor.
    pub name: Arc<str>,
    /// Why.
    pub cause: EndCause,
}

/// Why a supervisor could not be spawned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The host's supervisor is ending, so that nothing can be started below it.
    #[error("supervisor {name:?} not spawned: {source}")]
    Refused {
        /// The supervisor.
        name: Arc<str>,
        /// What the substrate said.
        source: Cause,
    },
}

/// Why a supervisor's children are not (all) up.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartupError {
    /// Not up by the deadline; the supervisor goes on trying.
    #[error("the children of supervisor {0:?} were not up by the deadline")]
    Deadline(Arc<str>),
    /// The supervisor has ended.
    #[error(transparent)]
    Ended(SupervisorEnded),
}

/// Why a child was not started. Where it was not tried, its specification comes back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartChildError {
    /// As many dynamic children are there as the supervisor may have.
    #[error("the supervisor has its {limit} dynamic children already: stop one first")]
    Full {
        /// The specification, untouched.
        spec: Box<ChildSpec>,
        /// The bound.
        limit: usize,
    },
    /// The supervisor is ending or has ended.
    #[error("the supervisor is ending or has ended")]
    Closed(Box<ChildSpec>),
    /// The supervisor had no room for the request before the deadline. Nothing was started.
    #[error("not admitted before the deadline")]
    NotAdmitted(Box<ChildSpec>),
    /// Admitted, but not known to be up at the deadline: it may still come up.
    /// [`SupervisorHandle::children`](super::SupervisorHandle::children) tells.
    #[error("not started by the deadline; it may still come up")]
    Deadline,
    /// Its first start failed. It is not kept.
    #[error("child not started: {0}")]
    Failed(#[source] StartError),
    /// It was stopped, or its supervisor ended, before it came up.
    #[error("stopped before it came up")]
    Stopped,
}

/// Why a child is not known to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopChildError {
    /// There is no such child: it ended for good, or never was.
    #[error("no such child")]
    Unknown,
    /// Not stopped by the deadline. If the request was admitted, the stop goes on.
    #[error("not stopped by the deadline")]
    Deadline,
    /// The supervisor ended meanwhile, and the child with it.
    #[error("the supervisor has ended")]
    Closed,
}

/// Why a question to a supervisor has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No answer by the deadline.
    #[error("no answer by the deadline")]
    Deadline,
    /// The supervisor has ended.
    #[error("the supervisor has ended")]
    Closed,
}

/// Why a shutdown is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShutdownError {
    /// Children were killed at the deadline and have not ended since: they block their thread without awaiting. They end as soon
    /// as they await.
    #[error("{children} children did not end although they were killed: they block a thread without awaiting")]
    StillAlive {
        /// How many.
        children: usize,
    },
}
