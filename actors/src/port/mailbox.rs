//! The owner's side, which outlives each of its incarnations.

use std::fmt;
use std::sync::Arc;

use super::handle::Port;
use super::metrics::PortMetrics;
use super::shared::Shared;
use super::thread::ThreadMailbox;

/// The side of a port that its supervisor holds: it starts consumers and sets the availability. Dropped, it closes the port, so that no caller
/// waits for an owner that nobody can start any more.
pub struct Mailbox<M> {
    shared: Arc<Shared<M>>,
}

impl<M> Mailbox<M> {
    pub(super) fn new(shared: Arc<Shared<M>>) -> Self {
        Self { shared }
    }

    /// One more handle for senders.
    #[must_use]
    pub fn port(&self) -> Port<M> {
        Port::new(Arc::clone(&self.shared))
    }

    /// Answers every queued message with `answer`, and every new one at once, on its sender's thread and outside the port's lock. Senders that
    /// stand in line are answered too. A closed port stays closed.
    pub fn suspend(&self, answer: fn(M)) {
        self.shared.core.suspend(answer).into_iter().for_each(answer);
    }

    /// Ends a suspension: messages are queued again.
    pub fn resume(&self) {
        self.shared.core.resume();
    }

    /// Admits nothing new, lets the owner handle what is queued, then closes the port and ends the owner.
    pub fn drain(&self) {
        self.shared.core.drain();
    }

    /// Closes the port for good. Waiting senders get `Closed`; queued messages are dropped and counted, and their callers get
    /// [`CallError::Crashed`](super::CallError::Crashed). A running owner ends after the message in hand.
    pub fn close(&self) {
        drop(self.shared.core.close());
    }

    /// What the port holds and has counted.
    #[must_use]
    pub fn metrics(&self) -> PortMetrics {
        PortMetrics::of(&self.shared)
    }

    pub(super) fn shared(&self) -> &Arc<Shared<M>> {
        &self.shared
    }
}

impl<M: Send + 'static> Mailbox<M> {
    /// A consumer for a thread of its own instead of an actor. It takes over from whatever consumed the port before.
    #[must_use]
    pub fn on_thread(&self) -> ThreadMailbox<M> {
        ThreadMailbox::new(Arc::clone(&self.shared))
    }
}

impl<M> Drop for Mailbox<M> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<M> fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("port", &self.shared.name).finish_non_exhaustive()
    }
}
