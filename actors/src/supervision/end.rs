//! How a child ended, in our own terms.
//!
//! The substrate reports a kill as a termination and tells it from a stop by a reason text alone:
//!
//! | substrate's event                               | end                    |
//! |-------------------------------------------------|------------------------|
//! | terminated, reason "killed"                     | `Killed`               |
//! | terminated, reason "actor_task_cancelled"       | `Cancelled`            |
//! | terminated, any other reason, or none           | `Stopped`              |
//! | failed (a handler panicked or returned an error)| `Failed`               |
//! | none: the start itself failed                   | `StartFailed`          |
//! | any of these, after its supervisor asked        | `Asked`                |
//!
//! The state that a termination may carry is dropped unread: after a kill it may be half changed, and a restarted actor rebuilds
//! its state.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::error::StartError;

/// How one incarnation of a child ended.
#[derive(Debug, Clone)]
pub enum End {
    /// It stopped without an error, and not because its supervisor asked.
    Stopped {
        /// The reason given with the stop, if any.
        reason: Option<Arc<str>>,
    },
    /// Its supervisor stopped it: as part of a group restart, by an explicit stop, or because the supervisor itself ends.
    Asked {
        /// Whether it had to be killed, since it did not stop within its stop timeout.
        killed: bool,
    },
    /// A handler panicked or returned an error.
    Failed(Cause),
    /// Somebody other than its supervisor killed it. An abnormal end.
    Killed,
    /// Its task was cancelled from outside. An abnormal end.
    Cancelled,
    /// It did not come up.
    StartFailed(StartError),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { reason: None } => f.write_str("stopped"),
            Self::Stopped { reason: Some(reason) } => write!(f, "stopped: {reason}"),
            Self::Asked { killed: false } => f.write_str("stopped by its supervisor"),
            Self::Asked { killed: true } => f.write_str("killed by its supervisor after its stop timeout"),
            Self::Failed(cause) => write!(f, "failed: {cause}"),
            Self::Killed => f.write_str("killed"),
            Self::Cancelled => f.write_str("task cancelled"),
            Self::StartFailed(error) => write!(f, "start failed: {error}"),
        }
    }
}

impl End {
    /// The table's rows for a termination.
    pub(crate) fn terminated(reason: Option<String>) -> Self {
        match reason.as_deref() {
            Some("killed") => Self::Killed,
            Some("actor_task_cancelled") => Self::Cancelled,
            reason => Self::Stopped { reason: reason.map(Arc::from) },
        }
    }
}

/// Why a child failed: its error's text, taken when it failed, and the error itself as [`source`](Error::source) where there is
/// one.
#[derive(Clone)]
pub struct Cause {
    text: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    /// Of an error.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self::boxed(Box::new(error))
    }

    /// Of an error whose type is no longer known. The text is taken here, once, since a user's `Display` may panic.
    pub(crate) fn boxed(error: Box<dyn Error + Send + Sync>) -> Self {
        let text = catch_unwind(AssertUnwindSafe(|| error.to_string()))
            .map_or_else(|_| Arc::from("(an error whose text cannot be had: its Display panicked)"), Arc::from);
        Self { text, source: Some(Arc::from(error)) }
    }

    /// Of a panic's payload.
    pub(crate) fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::text(text.unwrap_or("a panic without a text"))
    }

    /// Of a text.
    pub(crate) fn text(text: &str) -> Self {
        Self { text: Arc::from(text), source: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cause({})", self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the module's table that a reason text decides.
    #[test]
    fn a_kill_is_told_from_a_stop_by_its_reason() {
        let end = |reason: Option<&str>| End::terminated(reason.map(str::to_owned));
        assert!(matches!(end(Some("killed")), End::Killed));
        assert!(matches!(end(Some("actor_task_cancelled")), End::Cancelled));
        assert!(matches!(end(None), End::Stopped { reason: None }));
        assert!(matches!(end(Some("Drained")), End::Stopped { reason: Some(reason) } if &*reason == "Drained"));
    }

    /// A failed child's error may be hostile; asking for its text must not take its supervisor down.
    #[test]
    fn an_error_that_cannot_be_shown_is_still_a_cause() {
        #[derive(Debug)]
        struct Hostile;
        impl fmt::Display for Hostile {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("no text")
            }
        }
        impl Error for Hostile {}
        assert!(Cause::new(Hostile).to_string().contains("Display panicked"));
    }
}
