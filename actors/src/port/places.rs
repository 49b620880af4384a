//! The concurrency bound of an owner that works on several messages at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::handler::Doorbell;

/// The places of one incarnation of an owner. Those that are taken are given back by its tasks.
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    bound: usize,
}

/// One taken place. Dropped, it is free again; where it was the last one, the owner is rung to look again.
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
    bound: usize,
    doorbell: Doorbell,
}

impl Places {
    pub(crate) fn new(bound: usize) -> Self {
        Self { taken: Arc::default(), bound }
    }

    /// Whether one is free: what an owner answers in [`Handler::ready`](super::Handler::ready).
    pub(crate) fn is_free(&self) -> bool {
        self.taken.load(Ordering::Acquire) < self.bound
    }

    /// Takes one. The owner alone takes places, and only after it was ready.
    pub(crate) fn take(&self, doorbell: Doorbell) -> Place {
        self.taken.fetch_add(1, Ordering::AcqRel);
        Place { taken: Arc::clone(&self.taken), bound: self.bound, doorbell }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken.fetch_sub(1, Ordering::AcqRel) == self.bound {
            self.doorbell.ring();
        }
    }
}
