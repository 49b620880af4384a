//! How far a chain came, readable from outside while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// How far the chain of one proposal came. The proposer keeps one end and its owner the other; when the proposer goes away, the closing fact
/// names what was called and what never was (AH-1), without waiting for anyone. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    names: OnceLock<Arc<[Arc<str>]>>,
    called: AtomicUsize,
}

impl Progress {
    /// The chain begins: these are its registrations before the operation, in plan order.
    pub fn begin(&self, names: Arc<[Arc<str>]>) {
        // A proposal has one chain; a second beginning would change nothing.
        let _first = self.0.names.set(names);
    }

    /// The chain calls the registration at this index, or has called it.
    pub fn called(&self, index: usize) {
        self.0.called.fetch_max(index + 1, Ordering::Relaxed);
    }

    /// The registration that was being called last.
    #[must_use]
    pub fn last_called(&self) -> Option<Arc<str>> {
        let names = self.0.names.get()?;
        names.get(self.0.called.load(Ordering::Relaxed).checked_sub(1)?).cloned()
    }

    /// The registrations that were never called. Empty also when no chain has begun: then none is known.
    #[must_use]
    pub fn never_called(&self) -> Vec<Arc<str>> {
        let called = self.0.called.load(Ordering::Relaxed);
        self.0.names.get().map(|names| names.iter().skip(called).cloned().collect()).unwrap_or_default()
    }

    /// Whether a chain has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.names.get().is_some()
    }
}
