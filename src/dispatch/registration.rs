//! The registrations of one dispatcher: owned by the instance, outside every actor, so that a restart loses none.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::RegisterError;
use super::handler::{Condition, Handler, HandlerReturn};
use super::policy::DispatchPolicy;
use super::profile;

/// The most registrations of one dispatcher.
pub const MAX_REGISTRATIONS: usize = 4096;

/// The registrations of one dispatcher, with its policy.
///
/// # Ordering
/// Registrations keep the order in which they were made. A change affects the emissions whose snapshot is taken after it (F-8).
pub struct Registry<F> {
    /// Locked for a few lines that never wait and call no user code.
    current: Mutex<Snapshot<F>>,
    identity: Arc<Identity>,
}

impl<F> Registry<F> {
    /// An empty registry that runs the [`profile::observation`] policy.
    #[must_use]
    pub fn observation() -> Self {
        let policy = profile::observation();
        let budget = policy.phases().iter().filter_map(|phase| phase.deadline).min();
        let inner = Inner {
            entries: Box::default(),
            names: Arc::default(),
            conditional: false,
            next: 0,
            policy: Arc::new(policy),
            budget,
        };
        Self { current: Mutex::new(Snapshot(Arc::new(inner))), identity: Arc::new(Identity) }
    }

    /// Adds a subscriber at the end. It takes part from the next snapshot on.
    ///
    /// # Errors
    /// [`RegisterError`] when the name is taken or malformed, or when there are [`MAX_REGISTRATIONS`] already.
    pub fn register(&self, subscriber: Subscriber<F>) -> Result<Registration, RegisterError> {
        let Subscriber { name, condition, handler } = subscriber;
        if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return Err(RegisterError::Name { name: name.to_string() });
        }
        let mut current = self.lock();
        if current.0.names.contains(&name) {
            return Err(RegisterError::NameTaken { name: name.to_string() });
        }
        if current.0.entries.len() >= MAX_REGISTRATIONS {
            return Err(RegisterError::Full { name: name.to_string() });
        }
        let number = current.0.next;
        let entry = Entry { number, name: Arc::clone(&name), condition, handler, brief: AtomicBool::new(false) };
        let entries = current.0.entries.iter().cloned().chain([Arc::new(entry)]).collect();
        let after = current.with(entries, number + 1);
        let before = std::mem::replace(&mut *current, after);
        drop(current);
        drop(before);
        Ok(Registration { identity: Arc::clone(&self.identity), number, name })
    }

    /// Removes a registration; says whether it was there. Emissions that have their snapshot go on with it (F-8).
    ///
    /// A registration of another registry is not there.
    pub fn unregister(&self, registration: &Registration) -> bool {
        if !Arc::ptr_eq(&self.identity, &registration.identity) {
            return false;
        }
        let mut current = self.lock();
        let entries: Box<[_]> = current.0.entries.iter().filter(|entry| entry.number != registration.number).cloned().collect();
        let removed = entries.len() < current.0.entries.len();
        let next = current.0.next;
        // The removed handler is dropped after the lock: its destructor is user code.
        let after = current.with(entries, next);
        let before = std::mem::replace(&mut *current, after);
        drop(current);
        drop(before);
        removed
    }

    /// The registrations as they are now, immutable (F-8). It costs one reference count.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<F> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot<F>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> fmt::Debug for Registry<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.snapshot()).finish()
    }
}

/// A subscriber to be registered: a name, a condition, and a handler that is declared sync or async.
pub struct Subscriber<F> {
    name: Arc<str>,
    condition: Option<Box<dyn Condition<F>>>,
    handler: Handler<F>,
}

impl<F: 'static> Subscriber<F> {
    /// A subscriber whose handler runs on the emission's task. It must not block: while it does, it holds that emission and that worker
    /// thread (F-17).
    #[must_use]
    pub fn declared_sync<H, R>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(&Arc<F>) -> R + Send + Sync + 'static,
        R: HandlerReturn + 'static,
    {
        let handler = Handler::Sync(Box::new(move |fact| handler(fact).into_result()));
        Self { name: name.into(), condition: None, handler }
    }

    /// A subscriber whose handler is awaited. It is dropped at the emission's deadline, or with the emission.
    #[must_use]
    pub fn declared_async<H, A, R>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(Arc<F>) -> A + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
        R: HandlerReturn + 'static,
    {
        let handler = Handler::Async(Box::new(move |fact| {
            let ending = handler(fact);
            Box::pin(async move { ending.await.into_result() })
        }));
        Self { name: name.into(), condition: None, handler }
    }

    /// Takes only the facts for which the condition holds. The last condition given stands.
    #[must_use]
    pub fn when(mut self, condition: impl Condition<F>) -> Self {
        self.condition = Some(Box::new(condition));
        self
    }
}

impl<F> fmt::Debug for Subscriber<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The name of one registration at its dispatcher. Plain data: dropping it changes nothing.
#[derive(Clone)]
#[must_use = "without its registration a subscriber cannot be unregistered"]
pub struct Registration {
    identity: Arc<Identity>,
    number: u64,
    name: Arc<str>,
}

impl Registration {
    /// The subscriber's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({} {:?})", self.number, self.name)
    }
}

impl PartialEq for Registration {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity) && self.number == other.number
    }
}

impl Eq for Registration {}

impl Hash for Registration {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// How a handler is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declared {
    /// It runs on the emission's task.
    Sync,
    /// It is awaited.
    Async,
}

/// The registrations that one emission runs, and the policy that it runs them by.
pub struct Snapshot<F>(pub(super) Arc<Inner<F>>);

impl<F> Snapshot<F> {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &DispatchPolicy {
        &self.0.policy
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
        self.0.entries.iter().map(|entry| {
            let declared = match entry.handler {
                Handler::Sync(_) => Declared::Sync,
                Handler::Async(_) => Declared::Async,
            };
            (&*entry.name, declared)
        })
    }

    fn with(&self, entries: Box<[Arc<Entry<F>>]>, next: u64) -> Self {
        let names = entries.iter().map(|entry| Arc::clone(&entry.name)).collect();
        let conditional = entries.iter().any(|entry| entry.condition.is_some());
        Self(Arc::new(Inner { entries, names, conditional, next, policy: Arc::clone(&self.0.policy), budget: self.0.budget }))
    }
}

impl<F> Clone for Snapshot<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for Snapshot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.names.iter()).finish()
    }
}

pub(super) struct Inner<F> {
    pub(super) entries: Box<[Arc<Entry<F>>]>,
    /// The names alone, so that a report can share them without holding handlers.
    pub(super) names: Arc<[Arc<str>]>,
    /// Whether anybody has a condition.
    pub(super) conditional: bool,
    next: u64,
    policy: Arc<DispatchPolicy>,
    /// The policy's budget of one emission.
    pub(super) budget: Option<Duration>,
}

pub(super) struct Entry<F> {
    number: u64,
    name: Arc<str>,
    pub(super) condition: Option<Box<dyn Condition<F>>>,
    pub(super) handler: Handler<F>,
    /// Whether its last measured call was brief, so that it may share a clock reading. A hint between emissions, no promise.
    pub(super) brief: AtomicBool,
}

/// What makes the registrations of two registries differ: its address.
struct Identity;
