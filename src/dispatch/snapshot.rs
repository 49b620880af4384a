//! The registrations of one dispatcher as they were at one moment, and what its emissions share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::background::Background;
use super::counts::Counters;
use super::emit::Emit;
use super::handler::{Declared, Handler, HandlerError, contained};
use super::lane::Lane;
use super::offload::Offload;
use super::policy::DispatchPolicy;
use super::quick;
use super::subscriber::{Asked, Asks};

/// The registrations that one emission runs, and the policy that it runs them by.
pub struct Snapshot<F, V = ()>(pub(super) Arc<Inner<F, V>>);

impl<F, V> Snapshot<F, V> {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &DispatchPolicy {
        &self.0.build.policy
    }

    /// How many registrations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// The registrations in registration order: name and declaration.
    pub fn registrations(&self) -> impl ExactSizeIterator<Item = (&str, Declared)> {
        self.0.entries.iter().map(|entry| (&*entry.name, entry.handler.declared()))
    }

    /// Registrations made since, in registration order. Those of a dispatcher that is gone are none.
    pub(super) fn later(&self, than: u64) -> Vec<Arc<Entry<F, V>>> {
        let Some(current) = self.0.current.upgrade() else { return Vec::new() };
        let now = locked(&current).clone();
        now.0.entries.iter().filter(|entry| entry.number >= than).cloned().collect()
    }

    pub(super) fn with(&self, entries: Box<[Arc<Entry<F, V>>]>, next: u64, build: Arc<Build>) -> Self {
        let names = entries.iter().map(|entry| Arc::clone(&entry.name)).collect();
        let conditional = entries.iter().any(|entry| entry.condition.is_some());
        let ordered = entries.iter().any(|entry| entry.lane.is_some());
        let quick =
            build.quick && !entries.iter().any(|entry| entry.asks.overriding || entry.asks.offload || entry.lane.is_some());
        let (resources, current) = (Arc::clone(&self.0.resources), Weak::clone(&self.0.current));
        Self(Arc::new(Inner { entries, names, conditional, ordered, quick, next, build, resources, current }))
    }
}

impl<F: Send + Sync + 'static, V: Send + 'static> Snapshot<F, V> {
    /// As [`Dispatcher::emit`](super::Dispatcher::emit), to these registrations.
    ///
    /// # Ordering
    /// This call gives the emission its place in the queues of ordered registrations (F-18).
    pub fn emit(&self, fact: &Arc<F>) -> Emit<F, V> {
        Emit::new(self.clone(), Arc::clone(fact))
    }
}

impl<F, V> Clone for Snapshot<F, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F, V> fmt::Debug for Snapshot<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.names.iter()).finish()
    }
}

pub(super) struct Inner<F, V> {
    pub(super) entries: Box<[Arc<Entry<F, V>>]>,
    /// The names alone, so that a report can share them without holding handlers.
    pub(super) names: Arc<[Arc<str>]>,
    /// Whether anybody has a condition.
    pub(super) conditional: bool,
    /// Whether anybody has a queue.
    pub(super) ordered: bool,
    /// Whether policy and registrations are such that an emission needs no books.
    pub(super) quick: bool,
    pub(super) next: u64,
    pub(super) build: Arc<Build>,
    pub(super) resources: Arc<Resources>,
    pub(super) current: Weak<Mutex<Snapshot<F, V>>>,
}

/// One build of a dispatcher's policy: its address tells it from another.
pub(super) struct Build {
    pub(super) policy: DispatchPolicy,
    /// The policy's budget of one emission, where there is one phase.
    pub(super) budget: Option<Duration>,
    quick: bool,
}

impl Build {
    pub(super) fn new(policy: DispatchPolicy) -> Self {
        let budget = policy.phases().iter().filter_map(|phase| phase.deadline).min();
        Self { quick: quick::runs(&policy), budget, policy }
    }
}

pub(super) struct Entry<F, V> {
    /// Later registrations have greater ones.
    pub(super) number: u64,
    pub(super) name: Arc<str>,
    pub(super) condition: Option<Asked<F>>,
    pub(super) handler: Handler<F, V>,
    pub(super) asks: Asks,
    pub(super) lane: Option<Arc<Lane<F>>>,
    /// Whether its last measured call was brief, so that it may share a clock reading. A hint between emissions, no promise.
    pub(super) brief: AtomicBool,
    /// How often it returned an awaitable that was discarded.
    pub(super) discarded: AtomicU64,
}

impl<F: 'static, V> Entry<F, V> {
    /// Asks its condition; a panic is a failure.
    pub(super) fn wants(&self, fact: &F) -> Result<bool, HandlerError> {
        match &self.condition {
            None => Ok(true),
            Some(Asked::Predicate(condition) | Asked::Filter(condition)) => {
                contained(|| condition.holds(fact)).unwrap_or_else(|failure| Err(HandlerError::Failed(failure)))
            }
        }
    }
}

/// What emissions of one dispatcher share, by its address also the dispatcher's identity. It holds no registration, so that what runs in it can.
pub(super) struct Resources {
    pub(super) offload: Offload,
    pub(super) background: Background,
    pub(super) counters: Arc<Counters>,
    pub(super) stopped: AtomicBool,
}

impl Resources {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.stopped.store(true, Ordering::Release);
        self.offload.close();
        self.background.close();
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
