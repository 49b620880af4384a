//! Whose turn it is to write: one thread at a time.
//!
//! A kill takes the writer's actor and not its thread, which may be in the middle of a commit. Two threads on one queue would commit their groups in
//! any order, a closing fact before its proposal, and answer for what the other still holds. So a successor waits until the one before it has ended,
//! and the one before it, that sees somebody wait, ends after its group.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// The turns of one runtime's writers. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    held: Arc<Mutex<()>>,
    waiting: Arc<AtomicUsize>,
}

impl Turns {
    /// Waits for the turn; `None` when it was not free within that time.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future waits no longer, and who has the turn goes on.
    pub(super) async fn take(&self, within: Duration) -> Option<Turn> {
        let _waits = Waits::begin(&self.waiting);
        let held = timeout(within, Arc::clone(&self.held).lock_owned()).await.ok()?;
        Some(Turn { _held: held, waiting: Arc::clone(&self.waiting) })
    }
}

/// The turn of one thread, until it is dropped, also by a panic.
pub(super) struct Turn {
    _held: OwnedMutexGuard<()>,
    waiting: Arc<AtomicUsize>,
}

impl Turn {
    /// Whether another waits for it.
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

struct Waits<'t>(&'t AtomicUsize);

impl<'t> Waits<'t> {
    fn begin(waiting: &'t AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound that is there to fail, not to be waited for.
    const SOON: Duration = Duration::from_secs(60);

    /// One holds it and sees who waits; the next gets it afterwards; who gave up waits no longer.
    #[tokio::test]
    async fn one_has_the_turn_and_sees_who_waits() {
        let turns = Turns::default();
        let first = turns.take(SOON).await.unwrap();
        assert!(!first.is_wanted());
        assert!(turns.take(Duration::ZERO).await.is_none());
        assert!(!first.is_wanted(), "it gave up");

        let mut next = Box::pin(turns.take(SOON));
        assert!(futures::poll!(&mut next).is_pending());
        assert!(first.is_wanted());
        drop(first);
        assert!(!next.await.unwrap().is_wanted());
    }
}
