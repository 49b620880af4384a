//! The session's recent facts, in memory.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dispatch::Subscriber;
use crate::signal::Signal;

/// The newest facts of a session, in memory and bounded: a subscription of its own, which neither needs nor replaces the journal (P-5).
///
/// Cheap to clone; all clones are one ring. It shares the facts and copies none. It is bounded by their number, not by their size.
#[derive(Debug, Clone)]
pub struct RecentFacts(Arc<Ring>);

#[derive(Debug)]
struct Ring {
    capacity: NonZeroUsize,
    /// Locked for a few lines that never wait.
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    facts: VecDeque<Arc<Signal>>,
    overwritten: u64,
}

impl RecentFacts {
    /// An empty ring for the `capacity` newest facts.
    #[must_use]
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self(Arc::new(Ring { capacity, kept: Mutex::default() }))
    }

    /// Keeps a fact, in place of the oldest one if the ring is full.
    pub fn push(&self, fact: Arc<Signal>) {
        let mut kept = self.lock();
        let oldest = if kept.facts.len() == self.0.capacity.get() {
            kept.overwritten += 1;
            kept.facts.pop_front()
        } else {
            None
        };
        kept.facts.push_back(fact);
        drop(kept);
        drop(oldest);
    }

    /// The facts that are kept, oldest first, and how many were overwritten before them.
    #[must_use]
    pub fn snapshot(&self) -> Recent {
        let kept = self.lock();
        Recent { facts: kept.facts.iter().cloned().collect(), overwritten: kept.overwritten }
    }

    /// The subscriber that fills this ring.
    #[must_use]
    pub fn subscriber(&self, name: impl Into<Arc<str>>) -> Subscriber<Signal> {
        let ring = self.clone();
        Subscriber::declared_sync(name, move |fact: &Arc<Signal>| ring.push(Arc::clone(fact)))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a ring held at one moment.
#[derive(Debug, Clone)]
pub struct Recent {
    /// The facts, oldest first.
    pub facts: Vec<Arc<Signal>>,
    /// How many facts were overwritten before the oldest of these.
    pub overwritten: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::id::SessionId;
    use crate::signal::LifecycleKind;

    fn fact(at: i64) -> Arc<Signal> {
        let session = SessionId::new("s").unwrap();
        Arc::new(Signal::builder(session, LifecycleKind::NodeStarted, Timestamp::from_micros(at)).build())
    }

    /// P-5: the ring keeps the newest facts and counts every one that it gave up.
    #[test]
    fn the_newest_facts_are_kept_and_the_rest_is_counted() {
        let ring = RecentFacts::new(NonZeroUsize::new(3).unwrap());
        for at in 0..8 {
            ring.push(fact(at));
        }
        let recent = ring.snapshot();
        assert_eq!(recent.facts.iter().map(|fact| fact.occurred_at().as_micros()).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(recent.overwritten, 5);
    }
}
