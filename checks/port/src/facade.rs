//! What the core of a port stands on, here: the scheduler's locks and atomics, and a clock that stands still.

use std::time::Duration;

pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

/// An instant on a clock of milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

pub(crate) fn now() -> Instant {
    Instant(0)
}
