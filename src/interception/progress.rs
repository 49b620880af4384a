//! How far a chain came, readable from outside while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::plan::Shape;

/// How far the chain of one proposal came. The proposer keeps one end and the report of the chain holds the other: when the proposer goes away,
/// the closing fact names what was asked and what never was (AH-1), without waiting for the chain's own end. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    shape: OnceLock<Arc<Shape>>,
    settled: AtomicUsize,
}

impl Progress {
    /// The registration whose answer is awaited. `None`: no chain has begun, or every registration before the operation has answered.
    #[must_use]
    pub fn awaited(&self) -> Option<Arc<str>> {
        self.names(0).into_iter().next()
    }

    /// The registrations before the operation that were never called. Empty also when no chain has begun: then none is known.
    #[must_use]
    pub fn never_called(&self) -> Vec<Arc<str>> {
        self.names(1)
    }

    /// The registrations before the operation after the settled ones and `skip` more.
    fn names(&self, skip: usize) -> Vec<Arc<str>> {
        let Some(shape) = self.0.shape.get() else { return Vec::new() };
        let from = self.0.settled.load(Ordering::Relaxed) + skip;
        shape.registrations[..shape.before].iter().skip(from).map(|registered| Arc::clone(&registered.name)).collect()
    }

    pub(super) fn begin(&self, shape: &Arc<Shape>) {
        // A proposal has one chain: a second beginning would change nothing.
        let _first = self.0.shape.set(Arc::clone(shape));
    }

    pub(super) fn settled(&self, registrations: usize) {
        self.0.settled.store(registrations, Ordering::Relaxed);
    }
}
