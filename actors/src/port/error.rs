//! Why a message, a call, a reservation or a start was refused.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a message was not accepted. The message comes back untouched.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The queue is full, and its rule is not to wait. Nothing was lost; try again after other work has been handled.
    #[error("message refused: the port is full, try again after other work has been handled")]
    Full(M),
    /// No room before the deadline. The message was not admitted.
    #[error("message refused: no room in the port before the deadline")]
    Deadline(M),
    /// The port is closed for good. Do not try again.
    #[error("message refused: the port is closed for good")]
    Closed(M),
}

impl<M> SendError<M> {
    /// The message that was refused.
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Deadline(message) | Self::Closed(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Deadline(_) => "Deadline(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

/// Why a call has no answer. The message comes back wherever it was not admitted; the variant says whether its work may still happen.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CallError<M> {
    /// The queue is full, and its rule is not to wait. The work will not happen; try again after other work has been handled.
    #[error("call refused: the port is full, try again after other work has been handled")]
    Full(M),
    /// The port is closed for good. The work will not happen.
    #[error("call refused: the port is closed for good")]
    Closed(M),
    /// The deadline has passed after the message was queued, and it cannot be handed back.
    #[error("no answer before the deadline (taken in hand by the owner: {admitted})")]
    Deadline {
        /// `true`: the owner had taken the message in hand, so the work has happened, or is happening. `false`: it expired in the queue,
        /// and the owner skipped it.
        admitted: bool,
    },
    /// The message was admitted and dropped without an answer: its owner crashed with it in hand, or it was evicted by a newer one, set
    /// aside as poison, or still queued when the port was closed.
    #[error("the message was dropped without an answer: its owner crashed or ended")]
    Crashed,
    /// The deadline passed before the owner took the message in hand, or the call would have waited for its own caller. The work will not
    /// happen.
    #[error("call withdrawn: the owner had not taken the message in hand before the deadline")]
    NotAdmitted(M),
}

impl<M> CallError<M> {
    /// The message, where it was not admitted.
    pub fn into_message(self) -> Option<M> {
        match self {
            Self::Full(message) | Self::Closed(message) | Self::NotAdmitted(message) => Some(message),
            Self::Deadline { .. } | Self::Crashed => None,
        }
    }

    /// Whether the work may have been done, wholly or in part.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Deadline { admitted } => *admitted,
            Self::Crashed => true,
            Self::Full(_) | Self::Closed(_) | Self::NotAdmitted(_) => false,
        }
    }
}

impl<M> fmt::Debug for CallError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::Deadline { admitted } => write!(f, "Deadline {{ admitted: {admitted} }}"),
            Self::Crashed => f.write_str("Crashed"),
            Self::NotAdmitted(_) => f.write_str("NotAdmitted(..)"),
        }
    }
}

/// Why places were not reserved. Nothing is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// More places than the lane has. No wait would help.
    #[error("reservation refused: {wanted} places wanted of a lane that has {capacity}")]
    TooMany {
        /// Places asked for.
        wanted: usize,
        /// Places of the lane.
        capacity: usize,
    },
    /// The places did not become free before the deadline, or could not, because the caller is the port's own handler.
    #[error("reservation refused: the places did not become free before the deadline")]
    Deadline,
    /// The port is closed for good.
    #[error("reservation refused: the port is closed for good")]
    Closed,
}

/// Why a handler gives up its incarnation: the supervisor decides what comes next.
///
/// It is made from a cause on purpose, never by `?` on a refused send: a full peer must not restart its sender.
///
/// ```compile_fail,E0277
/// use tipstaff::port::{HandlerError, Port};
///
/// fn forward(peer: &Port<u8>) -> Result<(), HandlerError> {
///     peer.try_send(1)?;
///     Ok(())
/// }
/// ```
pub struct HandlerError {
    context: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl HandlerError {
    /// A failure that has no deeper cause.
    pub fn new(context: impl Into<Cow<'static, str>>) -> Self {
        Self { context: context.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused_by(context: impl Into<Cow<'static, str>>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { context: context.into(), source: Some(Box::new(source)) }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError").field("context", &self.context).field("source", &self.source).finish()
    }
}

impl Error for HandlerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}

/// Why an incarnation of an owner did not start. No event of its end follows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// `started` failed.
    #[error("start refused by the owner of port {port}")]
    Refused {
        /// The port's name.
        port: String,
        /// What `started` returned.
        source: HandlerError,
    },
    /// `started` panicked, the actor was killed during its start, or its parent is ending.
    #[error("start of the owner of port {port} broken off: {reason}")]
    BrokenOff {
        /// The port's name.
        port: String,
        /// What the actor runtime says.
        reason: String,
    },
}
