//! Crash points: the named places where a test may crash an actor of a runtime, and the way to kill one. This file is the list.
//!
//! A [`CrashPoints`] belongs to one runtime (it is handed over with its builder) and never to the process. Without the feature `testing` nothing of
//! it is compiled: what the actors hold instead is empty, and looking at a point does nothing.

#[cfg(feature = "testing")]
pub use switchboard::CrashPoints;

/// A place where an actor looks whether it is to crash.
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "public with the feature `testing` only"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrashPoint {
    /// The action executor starts; it has taken nothing from its port. A panic here is a failed start.
    AuthorizerStarting,
    /// The action executor has a proposal in hand, and no chain has begun for it. A panic here ends the actor, with all proposals in flight.
    AuthorizerInHand,
    /// A proposal's chain is about to run, on a task of its own. A panic here ends that task alone.
    AuthorizerBeforeRule,
    /// A proposal's ruling is made, a permit may be in it, and it is not sent. A panic here ends the proposal's task alone.
    AuthorizerAfterRule,
    /// A session's observer has an emission in hand that nobody has seen. A panic here ends the actor, with all emissions in flight.
    ObserverInHand,
    /// An emission's fan-out is about to begin, on a task of its own. A panic here ends that task alone.
    ObserverBeforeFanOut,
}

#[cfg(feature = "testing")]
impl CrashPoint {
    /// Every point.
    pub const ALL: &'static [Self] = &[
        Self::AuthorizerStarting,
        Self::AuthorizerInHand,
        Self::AuthorizerBeforeRule,
        Self::AuthorizerAfterRule,
        Self::ObserverInHand,
        Self::ObserverBeforeFanOut,
    ];
}

/// What the actors of one runtime hold of its crash points: nothing, unless a test has handed some over.
#[derive(Clone, Default)]
pub(crate) struct Doors {
    #[cfg(feature = "testing")]
    points: Option<CrashPoints>,
}

impl Doors {
    /// An actor is at a point.
    ///
    /// # Panics
    /// Where a test has armed the point.
    #[cfg(feature = "testing")]
    pub(crate) fn pass(&self, point: CrashPoint) {
        if let Some(points) = &self.points {
            points.pass(point);
        }
    }

    #[cfg(not(feature = "testing"))]
    #[inline]
    pub(crate) fn pass(&self, _point: CrashPoint) {}

    /// An actor has come up, under the name of its role.
    #[cfg(feature = "testing")]
    pub(crate) fn born(&self, role: &'static str, actor: &ractor::ActorCell) {
        if let Some(points) = &self.points {
            points.born(role, actor);
        }
    }

    #[cfg(not(feature = "testing"))]
    #[inline]
    pub(crate) fn born(&self, _role: &'static str, _actor: &ractor::ActorCell) {}
}

#[cfg(feature = "testing")]
impl From<CrashPoints> for Doors {
    fn from(points: CrashPoints) -> Self {
        Self { points: Some(points) }
    }
}

#[cfg(feature = "testing")]
mod switchboard {
    use std::fmt;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use ractor::{ActorCell, ActorStatus};

    use super::CrashPoint;

    /// The switchboard of one runtime's crash points. Clones share it. Everything is off at first.
    #[derive(Clone, Default)]
    pub struct CrashPoints(Arc<Inner>);

    #[derive(Default)]
    struct Inner {
        armed: [Armed; CrashPoint::ALL.len()],
        actors: Mutex<Vec<(&'static str, ActorCell)>>,
    }

    #[derive(Default)]
    struct Armed {
        /// Crash at each passage that this divides; zero is never.
        every: AtomicU64,
        passed: AtomicU64,
    }

    impl CrashPoints {
        /// A switchboard with everything off.
        #[must_use]
        pub fn new() -> Self {
            Self::default()
        }

        /// Makes a point crash at every passage, until it is cleared.
        pub fn always(&self, point: CrashPoint) {
            self.every(point, 1);
        }

        /// Makes a point crash at each `nth` passage, until it is cleared.
        pub fn every(&self, point: CrashPoint, nth: u64) {
            self.0.armed[point as usize].every.store(nth, Ordering::SeqCst);
        }

        /// Turns a point off.
        pub fn clear(&self, point: CrashPoint) {
            self.every(point, 0);
        }

        /// How often a point was passed, armed or not: a point that a test never reached proves nothing.
        #[must_use]
        pub fn passed(&self, point: CrashPoint) -> u64 {
            self.0.armed[point as usize].passed.load(Ordering::SeqCst)
        }

        /// Kills every living actor of a role, named as in the tree: `state_writer`, `session_observer`, `action_executor`. Returns how many.
        ///
        /// It is the substrate's kill: the actor ends at its next await, without any word of farewell.
        pub fn kill(&self, role: &str) -> usize {
            let mut actors = self.actors();
            prune(&mut actors);
            let of_role = actors.iter().filter(|(name, _)| *name == role);
            of_role.map(|(_, actor)| actor.kill()).count()
        }

        pub(crate) fn pass(&self, point: CrashPoint) {
            let armed = &self.0.armed[point as usize];
            let passed = armed.passed.fetch_add(1, Ordering::SeqCst) + 1;
            let every = armed.every.load(Ordering::SeqCst);
            if every != 0 && passed.is_multiple_of(every) {
                panic!("crash point {point:?}");
            }
        }

        pub(crate) fn born(&self, role: &'static str, actor: &ActorCell) {
            let mut actors = self.actors();
            // Only when the list would grow, so that a birth costs the same however many live.
            if actors.len() == actors.capacity() {
                prune(&mut actors);
            }
            actors.push((role, actor.clone()));
        }

        fn actors(&self) -> MutexGuard<'_, Vec<(&'static str, ActorCell)>> {
            // Held for these few lines only. The list is whole after each of them.
            self.0.actors.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn prune(actors: &mut Vec<(&'static str, ActorCell)>) {
        actors.retain(|(_, actor)| !matches!(actor.get_status(), ActorStatus::Stopping | ActorStatus::Stopped));
    }

    impl fmt::Debug for CrashPoints {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let armed = |point: &CrashPoint| match self.0.armed[*point as usize].every.load(Ordering::SeqCst) {
                0 => None,
                every => Some((*point, every)),
            };
            f.debug_map().entries(CrashPoint::ALL.iter().filter_map(armed)).finish()
        }
    }
}
