//! The few primitives that the core of a port stands on. `checks/port` gives the core another file of this name, so that a scheduler which
//! tries many interleavings runs the very file that the crate compiles.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use tokio::time::Instant;

/// The clock of the messages' ages and of the waits.
pub(crate) fn now() -> Instant {
    Instant::now()
}
