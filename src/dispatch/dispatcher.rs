//! One dispatcher: its registrations, owned by the instance outside every actor, so that a restart loses none; its policy; and the work that outlives an
//! emission.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::background::Background;
use super::counts::{Counters, DispatcherCounts};
use super::depth::depth_in;
use super::emit::{Emit, SyncSnapshot, emit_sync};
use super::error::RegisterError;
use super::handler::Declared;
use super::lane::Lane;
use super::offload::Offload;
use super::policy::DispatchPolicy;
use super::profile;
use super::raised::{DispatchError, Refusal};
use super::report::DispatchReport;
use super::snapshot::{Build, Entry, Inner, Resources, Snapshot, locked};
use super::subscriber::Subscriber;
use super::value::SyncEntry;
use crate::clock::Deadline;

/// The most registrations of one dispatcher.
pub const MAX_REGISTRATIONS: usize = 4096;

/// The threads of a dispatcher for handlers that block, unless it is made with others (F-17).
pub const OFFLOAD_THREADS: NonZeroUsize = NonZeroUsize::new(40).expect("the literal is not zero");

/// One dispatcher: its registrations and its policy. `V` is what its handlers return: nothing, unless a compatibility profile hands values back.
///
/// It is plain async code without an actor; whoever owns it decides who may emit. Dropping it ends what it still runs, as [`stop`](Self::stop) does
/// without waiting. Emissions under way go on: each holds its own snapshot.
///
/// # Ordering
/// Registrations keep the order in which they were made. A change affects the emissions whose snapshot is taken after it (F-8).
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use tipstaff_core::dispatch::{Dispatcher, Subscriber};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dispatcher = Dispatcher::<u32>::observation();
/// let printer = dispatcher.register(Subscriber::declared_sync("printer", |fact: &Arc<u32>| assert_eq!(**fact, 7)))?;
/// let report = dispatcher.emit(&Arc::new(7)).await?;
/// assert!(report.all_returned());
/// assert!(dispatcher.unregister(&printer));
/// # Ok(())
/// # }
/// ```
pub struct Dispatcher<F, V = ()> {
    /// Locked for a few lines that never wait and call no user code.
    current: Arc<Mutex<Snapshot<F, V>>>,
    resources: Arc<Resources>,
}

impl<F, V> Dispatcher<F, V> {
    /// An empty dispatcher that runs the [`profile::observation`] policy.
    #[must_use]
    pub fn observation() -> Self {
        Self::new(profile::observation())
    }

    /// An empty dispatcher that runs a policy, with [`OFFLOAD_THREADS`] threads for handlers that block. A thread is started when a handler needs it.
    #[must_use]
    pub fn new(policy: DispatchPolicy) -> Self {
        Self::with_threads(policy, OFFLOAD_THREADS)
    }

    /// As [`Self::new`], with at most so many threads for handlers that block (F-17).
    #[must_use]
    pub fn with_threads(policy: DispatchPolicy, threads: NonZeroUsize) -> Self {
        let counters = Arc::<Counters>::default();
        let resources = Arc::new(Resources {
            offload: Offload::new(threads),
            background: Background::new(Arc::clone(&counters)),
            counters,
            stopped: AtomicBool::new(false),
        });
        let current = Arc::new_cyclic(|current| {
            Mutex::new(Snapshot(Arc::new(Inner {
                entries: Box::default(),
                names: Arc::default(),
                conditional: false,
                ordered: false,
                quick: false,
                next: 0,
                build: Arc::new(Build::new(policy)),
                resources: Arc::clone(&resources),
                current: Weak::clone(current),
            })))
        });
        let dispatcher = Self { current, resources };
        dispatcher.change(|inner| (inner.entries.iter().cloned().collect(), inner.next, Arc::clone(&inner.build)));
        dispatcher
    }

    /// Adds a subscriber at the end. It takes part from the next snapshot on.
    ///
    /// # Errors
    /// [`RegisterError`] when the name is taken or malformed, or when there are [`MAX_REGISTRATIONS`] already.
    pub fn register(&self, subscriber: Subscriber<F, V>) -> Result<Registration, RegisterError> {
        self.put(subscriber, false)
    }

    /// Adds a subscriber, in the place of the one that has its name, if there is one. The replaced registration is gone.
    ///
    /// # Errors
    /// As [`Self::register`], but for the name being taken.
    pub fn register_or_replace(&self, subscriber: Subscriber<F, V>) -> Result<Registration, RegisterError> {
        self.put(subscriber, true)
    }

    fn put(&self, subscriber: Subscriber<F, V>, replace: bool) -> Result<Registration, RegisterError> {
        let Subscriber { name, condition, handler, asks } = subscriber;
        if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return Err(RegisterError::Name { name: name.to_string() });
        }
        let mut current = self.lock();
        let place = current.0.names.iter().position(|taken| *taken == name);
        if place.is_some() && !replace {
            return Err(RegisterError::NameTaken { name: name.to_string() });
        }
        if place.is_none() && current.0.entries.len() >= MAX_REGISTRATIONS {
            return Err(RegisterError::Full { name: name.to_string() });
        }
        let number = current.0.next;
        let lane = asks.ordered.map(|queue| Lane::new(queue, Arc::clone(&self.resources.counters)));
        let entry = Arc::new(Entry {
            number,
            name: Arc::clone(&name),
            condition,
            handler,
            asks,
            lane,
            brief: AtomicBool::new(false),
            discarded: AtomicU64::new(0),
        });
        let mut entries: Vec<_> = current.0.entries.to_vec();
        match place {
            Some(at) => entries[at] = entry,
            None => entries.push(entry),
        }
        let after = current.with(entries.into(), number + 1, Arc::clone(&current.0.build));
        let before = std::mem::replace(&mut *current, after);
        drop(current);
        drop(before);
        Ok(Registration { identity: Arc::downgrade(&self.resources), number, name })
    }

    /// Removes a registration; says whether it was there. Emissions that have their snapshot go on with it (F-8).
    ///
    /// A registration of another dispatcher is not there.
    pub fn unregister(&self, registration: &Registration) -> bool {
        if !std::ptr::eq(Arc::as_ptr(&self.resources), registration.identity.as_ptr()) {
            return false;
        }
        self.change(|inner| {
            let entries = inner.entries.iter().filter(|entry| entry.number != registration.number).cloned().collect();
            (entries, inner.next, Arc::clone(&inner.build))
        })
    }

    /// Gives the dispatcher another policy; its registrations stay. Emissions that have their snapshot go on by the policy of that, and what
    /// [`preflight_sync`](Self::preflight_sync) answered before is refused (F-13).
    pub fn replace_policy(&self, policy: DispatchPolicy) {
        let build = Arc::new(Build::new(policy));
        self.change(|inner| (inner.entries.iter().cloned().collect(), inner.next, build));
    }

    /// The registrations as they are now, immutable (F-8). It costs one reference count.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<F, V> {
        self.lock().clone()
    }

    /// Those registrations that have returned an awaitable which their policy drops unawaited (`discard_unawaited`), with how often they did. The day on
    /// which such awaitables are awaited or refused changes what these do: until then this list says whom it concerns. A sync handler is not known to be one
    /// of them before it has returned an awaitable once.
    #[must_use]
    pub fn discarding(&self) -> Vec<DiscardingRegistration> {
        let of = |entry: &Arc<Entry<F, V>>| {
            let times = entry.discarded.load(Ordering::Relaxed);
            (times > 0).then(|| DiscardingRegistration { name: entry.name.to_string(), times })
        };
        self.snapshot().0.entries.iter().filter_map(of).collect()
    }

    /// What became of work that no report tells of.
    #[must_use]
    pub fn counts(&self) -> DispatcherCounts {
        self.resources.counters.read()
    }

    /// How deep the caller stands in emissions of this dispatcher: 0 in a handler of an emission that stands in no other. `None`: the caller is no handler of
    /// it, or runs on a task that a handler started (F-14).
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        depth_in(&self.resources)
    }

    /// Ends the dispatcher: detached and ordered work is dropped and counted, idle threads end, and later emissions are refused. Threads whose handler does
    /// not end are not waited for (F-17, F-20).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the dispatcher stopped; it only does not wait.
    pub async fn stop(&self, deadline: Deadline) {
        self.resources.close();
        self.resources.background.ended(deadline).await;
    }

    fn change(&self, to: impl FnOnce(&Inner<F, V>) -> (Box<[Arc<Entry<F, V>>]>, u64, Arc<Build>)) -> bool {
        let mut current = self.lock();
        let (entries, next, build) = to(&current.0);
        let removed = entries.len() < current.0.entries.len();
        let after = current.with(entries, next, build);
        // The removed handler is dropped after the lock: its destructor is user code.
        let before = std::mem::replace(&mut *current, after);
        drop(current);
        drop(before);
        removed
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot<F, V>> {
        locked(&self.current)
    }
}

impl<F: Send + Sync + 'static, V: Send + 'static> Dispatcher<F, V> {
    /// Begins an emission of a fact: [`Emit`] is awaited for its report.
    ///
    /// # Ordering
    /// This call admits the emission: its snapshot is taken, and it has its place in the queues of ordered registrations (F-8, F-18).
    pub fn emit(&self, fact: &Arc<F>) -> Emit<F, V> {
        self.snapshot().emit(fact)
    }

    /// Asks, before a synchronous owner changes anything, whether it will be able to emit, and with what (F-13). Registrations made after this are not in the
    /// answer and do not invalidate it.
    ///
    /// # Errors
    /// [`Refusal::NoSyncEntry`] when the policy has no synchronous entry; [`Refusal::DeclaredAsync`] names the declared async registrations where the policy
    /// refuses those; [`Refusal::Stopped`].
    pub fn preflight_sync(&self) -> Result<SyncSnapshot<F, V>, Refusal> {
        if self.resources.is_stopped() {
            return Err(Refusal::Stopped);
        }
        let snapshot = self.snapshot();
        let mut refused = Vec::new();
        for phase in snapshot.policy().phases() {
            match phase.sync_entry {
                SyncEntry::Unavailable => return Err(Refusal::NoSyncEntry),
                SyncEntry::Allow => {}
                SyncEntry::RejectDeclaredAsyncBeforeOwnerEffect => refused.extend(
                    snapshot
                        .registrations()
                        .filter(|(_, declared)| phase.selector.takes(*declared) && *declared == Declared::Async)
                        .map(|(name, _)| name.to_owned()),
                ),
            }
        }
        if refused.is_empty() { Ok(SyncSnapshot(snapshot)) } else { Err(Refusal::DeclaredAsync { registrations: refused }) }
    }

    /// Emits on the caller's thread, to the registrations of a preflight (F-13). It needs no runtime.
    ///
    /// # Errors
    /// [`DispatchError::Refused`] with [`Refusal::ForeignSnapshot`] or [`Refusal::OtherPolicyBuild`] when the snapshot is not of this dispatcher as it
    /// is now; otherwise as [`Emit`].
    pub fn emit_sync(&self, fact: &Arc<F>, ready: &SyncSnapshot<F, V>) -> Result<DispatchReport<V>, DispatchError<V>> {
        let SyncSnapshot(snapshot) = ready;
        if !Arc::ptr_eq(&self.resources, &snapshot.0.resources) {
            return Err(Refusal::ForeignSnapshot.into());
        }
        if !Arc::ptr_eq(&self.lock().0.build, &snapshot.0.build) {
            return Err(Refusal::OtherPolicyBuild.into());
        }
        emit_sync(snapshot, fact)
    }
}

impl<F, V> Drop for Dispatcher<F, V> {
    fn drop(&mut self) {
        self.resources.close();
    }
}

impl<F, V> fmt::Debug for Dispatcher<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dispatcher").field(&self.snapshot()).finish()
    }
}

/// A registration that relies on its returned awaitables being dropped unawaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscardingRegistration {
    /// Its name.
    pub name: String,
    /// How often it returned one.
    pub times: u64,
}

/// The name of one registration at its dispatcher. Plain data: dropping it changes nothing.
#[derive(Clone)]
#[must_use = "without its registration a subscriber cannot be unregistered"]
pub struct Registration {
    identity: Weak<Resources>,
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
        Weak::ptr_eq(&self.identity, &other.identity) && self.number == other.number
    }
}

impl Eq for Registration {}

impl Hash for Registration {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
