//! Facts into the mailbox of a user's actor: bounded, lossy, and honest about it.
//!
//! | a fact comes                       | it is                                                                     |
//! |------------------------------------|---------------------------------------------------------------------------|
//! | while a place is free              | sent, and takes one                                                       |
//! | while none is                      | dropped and counted; the next one that is sent says how many before it     |
//! | after the actor has ended          | refused: the subscriber fails with the code `actor_gone`                   |
//!
//! An actor's own mailbox is unbounded, so the bound is on what the actor has not let go of: a place is free again when the [`Observed`] that took it
//! is dropped. What was sent cannot be called back, so the newest fact is dropped, where a live stream drops the oldest.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::{ActorRef, Message};
use tipstaff_core::dispatch::{HandlerError, Subscriber};
use tipstaff_core::signal::Signal;

/// Delivers facts to an actor whose message is made of them. Cheap to clone.
pub struct ActorFeed<M: Message> {
    actor: ActorRef<M>,
    places: Arc<Places>,
}

/// One fact on its way to an actor. It holds a place until it is dropped.
#[derive(Debug)]
pub struct Observed {
    fact: Arc<Signal>,
    missed: u64,
    _place: Place,
}

struct Places {
    bound: usize,
    /// Locked for a few lines that never wait and call no other code.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// Dropped since the last fact that was sent.
    unreported: u64,
    /// Dropped in all.
    missed: u64,
}

struct Place(Arc<Places>);

impl<M: Message + From<Observed>> ActorFeed<M> {
    /// A feed of at most `bound` facts that the actor has not let go of.
    #[must_use]
    pub fn new(actor: ActorRef<M>, bound: NonZeroUsize) -> Self {
        Self { actor, places: Arc::new(Places { bound: bound.get(), state: Mutex::default() }) }
    }

    /// The subscriber that feeds the actor. Once the actor has ended, it fails with the code `actor_gone`.
    #[must_use]
    pub fn subscriber(&self, name: impl Into<Arc<str>>) -> Subscriber<Signal> {
        let feed = self.clone();
        Subscriber::declared_sync(name, move |fact: &Arc<Signal>| feed.push(fact))
    }

    /// How many facts the actor has missed in all.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.places.lock().missed
    }

    /// Sends a fact, or counts it. Never waits.
    fn push(&self, fact: &Arc<Signal>) -> Result<(), HandlerError> {
        let Some((missed, place)) = self.places.take() else { return Ok(()) };
        let observed = Observed { fact: Arc::clone(fact), missed, _place: place };
        match self.actor.cast(M::from(observed)) {
            Ok(()) => Ok(()),
            Err(_gone) => Err(HandlerError::failed("actor_gone", "the observing actor has ended: unregister its subscriber")),
        }
    }
}

impl Places {
    /// A place, with how many facts were dropped before it; `None`: this one is dropped as well.
    fn take(self: &Arc<Self>) -> Option<(u64, Place)> {
        let mut state = self.lock();
        if state.taken == self.bound {
            state.unreported += 1;
            state.missed += 1;
            return None;
        }
        state.taken += 1;
        Some((std::mem::take(&mut state.unreported), Place(Arc::clone(self))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
    }
}

impl Observed {
    /// The fact.
    #[must_use]
    pub fn fact(&self) -> &Arc<Signal> {
        &self.fact
    }

    /// How many facts were dropped between the one sent before and this one.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

impl Deref for Observed {
    type Target = Signal;

    fn deref(&self) -> &Signal {
        &self.fact
    }
}

impl<M: Message> Clone for ActorFeed<M> {
    fn clone(&self) -> Self {
        Self { actor: self.actor.clone(), places: Arc::clone(&self.places) }
    }
}

impl<M: Message> fmt::Debug for ActorFeed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorFeed").field("actor", &self.actor.get_id()).field("places", &self.places).finish()
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "{} of {} taken, {} missed", state.taken, self.bound, state.missed)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}
