//! One emission, as its emitter holds it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::sync::watch;

use super::depth::{MAX_DEPTH, Standing};
use super::lane::Places;
use super::quick;
use super::raised::{DispatchError, Refusal};
use super::report::DispatchReport;
use super::run::{Job, run};
use super::snapshot::Snapshot;
use crate::clock::Deadline;

/// An admitted emission. Awaiting it runs it.
///
/// # Ordering
/// Phases run in the policy's order (F-9). Handlers are begun in registration order; under a concurrent policy one that waits lets the next begin. The report
/// is in registration order.
///
/// # Cancel safety
/// Dropping the future drops what is in flight; no handler is begun after that, and there is no report. A handler on a thread goes on unheard. Detached and
/// queued work goes on (F-12). [`EmissionHandle::cancel`] cancels and yields the report.
///
/// # Errors
/// [`DispatchError::Refused`]: too deep, or the dispatcher has stopped. [`DispatchError::Raised`]: what the policy raises, with the report.
///
/// # Panics
/// Outside a tokio runtime with its timer enabled, if a handler does not end at once. A handler's own panic is caught.
#[must_use = "an emission runs when it is awaited"]
pub struct Emit<F: Send + Sync + 'static, V: Send + 'static = ()> {
    snapshot: Snapshot<F, V>,
    fact: Arc<F>,
    cap: Option<Deadline>,
    cancels: Option<Arc<watch::Sender<u64>>>,
    places: Option<Places<F, V>>,
}

impl<F: Send + Sync + 'static, V: Send + 'static> Emit<F, V> {
    pub(super) fn new(snapshot: Snapshot<F, V>, fact: Arc<F>) -> Self {
        let places = snapshot.0.ordered.then(|| Places::reserve(&snapshot));
        Self { snapshot, fact, cap: None, cancels: None, places }
    }

    /// Ends the emission at this deadline, if its policy does not earlier (F-11).
    pub fn by(mut self, deadline: Deadline) -> Self {
        self.cap = Some(self.cap.map_or(deadline, |cap| cap.earlier(deadline)));
        self
    }

    /// A handle that cancels it.
    pub fn handle(&mut self) -> EmissionHandle {
        EmissionHandle(Arc::clone(self.cancels.get_or_insert_with(|| Arc::new(watch::Sender::new(0)))))
    }

    async fn run(self) -> Result<DispatchReport<V>, DispatchError<V>> {
        let Self { snapshot, fact, cap, cancels, places } = self;
        let resources = &snapshot.0.resources;
        if resources.is_stopped() {
            return Err(Refusal::Stopped.into());
        }
        let standing = Standing::here().inside(resources).ok_or(Refusal::TooDeep { limit: MAX_DEPTH })?;
        if snapshot.0.quick && cancels.is_none() {
            return Ok(standing.scope(quick::fan_out(&snapshot, &fact, cap)).await);
        }
        // From the value before the first cancellation: one that came before the emission began counts.
        let cancels = cancels.map(|cancels| Cancels { seen: 0, told: cancels.subscribe(), _handle: cancels });
        let job = Job { snapshot: snapshot.clone(), fact, cap, cancels, places, synchronous: false };
        // Boxed: emissions stand inside one another on one stack (F-14), and the general way's future is large.
        standing.scope(Box::pin(run(job))).await
    }
}

impl<F: Send + Sync + 'static, V: Send + 'static> IntoFuture for Emit<F, V> {
    type Output = Result<DispatchReport<V>, DispatchError<V>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<F: Send + Sync + 'static, V: Send + 'static> fmt::Debug for Emit<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emit").field("registrations", &self.snapshot).field("cap", &self.cap).finish_non_exhaustive()
    }
}

/// Cancels one emission (F-12). Cheap to clone; it does nothing once the emission has ended.
#[derive(Clone)]
pub struct EmissionHandle(Arc<watch::Sender<u64>>);

impl EmissionHandle {
    /// Cancels the handlers that run now, or the next one that waits.
    ///
    /// Under a native profile they are dropped, nothing more is begun, and the emission raises the cancellation. Under a compatibility profile their tokens
    /// are set and each may end in its own way within [`GRACE`](super::GRACE); what that means to the emission is as recorded: of a sequential profile, one
    /// that lets the cancellation pass unheeded goes on with the next handler. Each call is one cancellation.
    pub fn cancel(&self) {
        self.0.send_modify(|times| *times += 1);
    }
}

impl fmt::Debug for EmissionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EmissionHandle").field(&*self.0.borrow()).finish()
    }
}

/// The cancellations of one emission that have come, and those that have been acted on.
pub(super) struct Cancels {
    seen: u64,
    told: watch::Receiver<u64>,
    _handle: Arc<watch::Sender<u64>>,
}

impl Cancels {
    /// Whether one has come that was not acted on.
    pub(super) fn is_due(&self) -> bool {
        *self.told.borrow() > self.seen
    }

    /// Waits for one.
    pub(super) async fn due(&mut self) {
        let seen = self.seen;
        // The handle is held here, so that waiting never ends for the lack of one.
        let _held = self.told.wait_for(|times| *times > seen).await;
    }

    /// All that have come are acted on now.
    pub(super) fn act(&mut self) {
        self.seen = *self.told.borrow_and_update();
    }
}

/// The registrations of one preflight, to be emitted to synchronously (F-13).
pub struct SyncSnapshot<F, V = ()>(pub(super) Snapshot<F, V>);

impl<F, V> SyncSnapshot<F, V> {
    /// The registrations.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot<F, V> {
        &self.0
    }
}

impl<F, V> Clone for SyncSnapshot<F, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F, V> fmt::Debug for SyncSnapshot<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SyncSnapshot").field(&self.0).finish()
    }
}

pub(super) fn emit_sync<F: Send + Sync + 'static, V: Send + 'static>(
    snapshot: &Snapshot<F, V>,
    fact: &Arc<F>,
) -> Result<DispatchReport<V>, DispatchError<V>> {
    let resources = &snapshot.0.resources;
    if resources.is_stopped() {
        return Err(Refusal::Stopped.into());
    }
    let standing = Standing::here().inside(resources).ok_or(Refusal::TooDeep { limit: MAX_DEPTH })?;
    let places = snapshot.0.ordered.then(|| Places::reserve(snapshot));
    let job = Job { snapshot: snapshot.clone(), fact: Arc::clone(fact), cap: None, cancels: None, places, synchronous: true };
    // Without a deadline and with nothing to await, an emission never waits.
    standing.sync_scope(|| run(job).now_or_never()).expect("a synchronous emission awaits nothing")
}
