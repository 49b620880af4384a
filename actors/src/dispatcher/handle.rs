//! A dispatcher of a runtime.

use std::fmt;
use std::sync::Arc;

use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::{
    DispatchError, DispatchPolicy, DispatchReport, Dispatcher, Refusal, RegisterError, Registration, Subscriber, SyncSnapshot,
};
use tokio::sync::oneshot;

use super::actor::{DispatchMessage, running, within};
use super::emission::{Emission, State};
use crate::port::{Mailbox, Port, PortMetrics, SendError};
use crate::runtime::{Runtime, RuntimeError};
use crate::supervision::ChildId;
use crate::tree;

/// One dispatcher of a runtime, under one declared policy. Cheap to clone; handles stay valid over restarts of its actor.
pub struct DispatcherHandle<F, V = ()>(Arc<Inner<F, V>>);

struct Inner<F, V> {
    dispatcher: Arc<Dispatcher<F, V>>,
    port: Port<DispatchMessage<V>>,
    mailbox: Arc<Mailbox<DispatchMessage<V>>>,
    child: ChildId,
    runtime: Runtime,
}

impl<F, V> DispatcherHandle<F, V>
where
    F: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Starts a dispatcher in the observation plane of a runtime. The name is for people.
    ///
    /// # Errors
    /// [`RuntimeError::Supervision`] when the runtime is stopping.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an idle actor behind, which ends with the runtime.
    pub async fn start(runtime: &Runtime, name: &'static str, policy: DispatchPolicy) -> Result<Self, RuntimeError> {
        let (port, mailbox) = tree::dispatcher_port(name);
        let mailbox = Arc::new(mailbox);
        let child = runtime.start_observer(tree::dispatcher(name, Arc::clone(&mailbox), runtime.doors().clone())).await?;
        let dispatcher = Arc::new(Dispatcher::new(policy));
        Ok(Self(Arc::new(Inner { dispatcher, port, mailbox, child, runtime: runtime.clone() })))
    }

    /// The dispatcher itself: its registrations, its policy and its counts.
    #[must_use]
    pub fn dispatcher(&self) -> &Arc<Dispatcher<F, V>> {
        &self.0.dispatcher
    }

    /// Registers a subscriber; it sees the emissions that are admitted from now on (F-8).
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn register(&self, subscriber: Subscriber<F, V>) -> Result<Registration, RegisterError> {
        self.0.dispatcher.register(subscriber)
    }

    /// Ends a registration; says whether it was there. An emission under way keeps its snapshot.
    pub fn unregister(&self, registration: &Registration) -> bool {
        self.0.dispatcher.unregister(registration)
    }

    /// Emits a fact: its snapshot is taken before this returns.
    ///
    /// # Ordering
    /// Emissions are admitted in the order of these calls. They may overlap.
    pub fn emit(&self, fact: &Arc<F>) -> Emission<V> {
        let mut emit = self.0.dispatcher.emit(fact);
        let handle = emit.handle();
        let identity = Arc::as_ptr(&self.0.dispatcher).cast::<()>() as usize;
        let emission = running(identity, emit.into_future());
        if within(identity) {
            return Emission { handle, state: State::Here(emission) };
        }
        let (answer, answered) = oneshot::channel();
        let state = match self.0.port.try_send(DispatchMessage::Emit { emission, answer }) {
            Ok(_admitted) => State::There(answered),
            Err(SendError::Full(_) | SendError::Deadline(_)) => State::Overloaded,
            Err(SendError::Closed(_)) => State::Stopped,
        };
        Emission { handle, state }
    }

    /// What a synchronous owner asks before it changes anything (F-13). On the caller's thread.
    ///
    /// # Errors
    /// [`Refusal`]: the policy has no synchronous entry, or refuses what is registered.
    pub fn preflight_sync(&self) -> Result<SyncSnapshot<F, V>, Refusal> {
        self.0.dispatcher.preflight_sync()
    }

    /// Emits for a synchronous owner, to those that its preflight saw (F-13). On the caller's thread.
    ///
    /// # Errors
    /// [`DispatchError`].
    pub fn emit_sync(&self, fact: &Arc<F>, snapshot: &SyncSnapshot<F, V>) -> Result<DispatchReport<V>, DispatchError<V>> {
        self.0.dispatcher.emit_sync(fact, snapshot)
    }

    /// What the port holds and has counted.
    #[must_use]
    pub fn port(&self) -> PortMetrics {
        self.0.port.metrics()
    }

    /// Stops it: what was admitted ends within the deadline, then its actor and the work that it owns.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back.
    pub async fn stop(&self, deadline: Deadline) {
        self.0.mailbox.drain();
        self.0.runtime.stop_observer(self.0.child, deadline).await;
        self.0.dispatcher.stop(deadline).await;
    }
}

impl<F, V> Clone for DispatcherHandle<F, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F, V> fmt::Debug for DispatcherHandle<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatcherHandle").field("port", &self.0.port).finish_non_exhaustive()
    }
}
