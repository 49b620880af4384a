//! What a handler is told while it runs: that it is cancelled, and by whom (F-19).

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// The context of one call of one handler. Cheap to clone; a body that was returned may keep it.
#[derive(Debug, Clone, Default)]
pub struct HandlerContext {
    token: CancellationToken,
}

impl HandlerContext {
    /// The token that is set when the handler is cancelled from outside.
    ///
    /// In the compatibility profiles the handler may then end in its own way within [`GRACE`](super::GRACE). In native profiles what is awaited is
    /// dropped at once, so that the token is of use to a thread only.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }
}

/// Whether one handler is cancelled, and by whom. Cheap to clone.
#[derive(Clone)]
pub struct CancellationToken(Arc<watch::Sender<Option<CancelledBy>>>);

impl CancellationToken {
    /// By whom the handler is cancelled, if it is. A handler on a thread of its own looks at this now and then.
    #[must_use]
    pub fn cancelled_by(&self) -> Option<CancelledBy> {
        *self.0.borrow()
    }

    /// Whether the handler is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled_by().is_some()
    }

    /// Waits until the handler is cancelled.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn cancelled(&self) -> CancelledBy {
        let mut set = self.0.subscribe();
        let by = set.wait_for(Option::is_some).await.ok().and_then(|by| *by);
        match by {
            Some(by) => by,
            // The sender is this token's own, so that it cannot have gone.
            None => std::future::pending().await,
        }
    }

    /// Sets it. The first who sets it stands.
    pub(super) fn set(&self, by: CancelledBy) {
        self.0.send_if_modified(|set| {
            let first = set.is_none();
            set.get_or_insert(by);
            first
        });
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancellationToken").field(&self.cancelled_by()).finish()
    }
}

/// Who cancelled a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelledBy {
    /// The handler itself: it said that it was cancelled, or its task was.
    Itself,
    /// The emitter, through the emission's handle.
    Emitter,
    /// Another handler of the same stage, whose end cancelled the others.
    Sibling,
    /// The end of the budget.
    Deadline,
}

impl CancelledBy {
    /// The name, as serialised.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::Emitter => "emitter",
            Self::Sibling => "sibling",
            Self::Deadline => "deadline",
        }
    }
}

impl fmt::Display for CancelledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-19: the token says who set it, the first one stands, and a waiter that comes late is told as well.
    #[tokio::test]
    async fn a_token_is_set_once_and_tells_everybody() {
        let context = HandlerContext::default();
        let waiting = context.clone();
        assert!(!context.token().is_cancelled());
        let mut told = std::pin::pin!(waiting.token().cancelled());
        assert!(futures::poll!(&mut told).is_pending());
        context.token().set(CancelledBy::Deadline);
        context.token().set(CancelledBy::Emitter);
        assert_eq!(told.await, CancelledBy::Deadline);
        assert_eq!(context.token().cancelled().await, CancelledBy::Deadline);
    }
}
