//! Owners of messages: they keep a message, then tell those who asked to be told. The owner's change is a closure, so that the messages stay its own.
//!
//! | owner | the callbacks are looked at        | then             | then                              |
//! |-------|------------------------------------|------------------|-----------------------------------|
//! | sync  | an async one refuses, and nothing has changed (F-13) | the owner keeps  | they are called, on its thread |
//! | async | -                                  | the owner keeps  | they are called, by the actor     |

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{
    DiscardingRegistration, DispatchError, DispatchPolicy, Dispatcher, Refusal, RegisterError, Registration, Subscriber,
};

use super::Cancellable;
use crate::dispatcher::{DispatcherHandle, EmissionError};
use crate::runtime::{Runtime, RuntimeError};

/// The callbacks of an owner that adds messages synchronously. Cheap to clone. No actor: both of its steps run on the owner's thread (F-13).
pub struct SyncMessages<M>(Arc<Dispatcher<M, Value>>);

impl<M: Send + Sync + 'static> Default for SyncMessages<M> {
    fn default() -> Self {
        Self::with_policy(compat::message_added_sync())
    }
}

impl<M: Send + Sync + 'static> SyncMessages<M> {
    /// Without callbacks, under the named profile.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_policy(policy: DispatchPolicy) -> Self {
        Self(Arc::new(Dispatcher::new(policy)))
    }

    /// Registers a callback.
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn on_added(&self, callback: Subscriber<M, Value>) -> Result<Registration, RegisterError> {
        self.0.register(callback)
    }

    /// Removes a callback; says whether it was there.
    pub fn remove(&self, registration: &Registration) -> bool {
        self.0.unregister(registration)
    }

    /// Callbacks that returned an awaitable which was discarded: they will have to change.
    #[must_use]
    pub fn discarding(&self) -> Vec<DiscardingRegistration> {
        self.0.discarding()
    }

    /// Adds a message: looks at the callbacks, lets the owner keep it, calls the callbacks.
    ///
    /// # Ordering
    /// All callbacks are called, in order; then one error is raised as itself, several as a group.
    ///
    /// # Errors
    /// [`AddError::Refused`]: nothing was kept, nobody was called. [`AddError::Raised`]: it is kept, and everybody was called.
    pub fn add(&self, message: M, keep: impl FnOnce(&Arc<M>)) -> Result<Arc<M>, AddError> {
        let ready = self.0.preflight_sync().map_err(AddError::Refused)?;
        let message = Arc::new(message);
        keep(&message);
        self.0.emit_sync(&message, &ready).map_err(AddError::Raised)?;
        Ok(message)
    }
}

impl<M> Clone for SyncMessages<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for SyncMessages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncMessages").finish_non_exhaustive()
    }
}

/// Why a synchronous owner's message is not simply added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The callbacks cannot be called synchronously. Nothing was kept.
    #[error(transparent)]
    Refused(Refusal),
    /// Callbacks failed. The message is kept.
    #[error(transparent)]
    Raised(DispatchError<Value>),
}

/// The callbacks of an owner that adds messages asynchronously. Cheap to clone.
#[derive(Debug)]
pub struct AsyncMessages<M>(DispatcherHandle<M, Value>);

impl<M: Send + Sync + 'static> AsyncMessages<M> {
    /// Starts them without callbacks, under the named profile.
    ///
    /// # Errors
    /// As [`DispatcherHandle::start`].
    ///
    /// # Cancel safety
    /// As [`DispatcherHandle::start`].
    pub async fn start(runtime: &Runtime) -> Result<Self, RuntimeError> {
        Self::with_policy(runtime, compat::message_added_async()).await
    }

    pub(crate) async fn with_policy(runtime: &Runtime, policy: DispatchPolicy) -> Result<Self, RuntimeError> {
        DispatcherHandle::start(runtime, "message_added", policy).await.map(Self)
    }

    /// Registers a callback.
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn on_added(&self, callback: Subscriber<M, Value>) -> Result<Registration, RegisterError> {
        self.0.register(callback)
    }

    /// Removes a callback; says whether it was there.
    pub fn remove(&self, registration: &Registration) -> bool {
        self.0.unregister(registration)
    }

    /// Callbacks that returned an awaitable which was discarded: they will have to change.
    #[must_use]
    pub fn discarding(&self) -> Vec<DiscardingRegistration> {
        self.0.dispatcher().discarding()
    }

    /// Adds a message: lets the owner keep it, then calls the callbacks.
    ///
    /// # Ordering
    /// The message is kept before this returns, whatever becomes of the emission.
    pub fn add(&self, message: M, keep: impl FnOnce(&Arc<M>)) -> Cancellable<Result<Arc<M>, EmissionError<Value>>> {
        let message = Arc::new(message);
        keep(&message);
        let emission = self.0.emit(&message);
        let handle = emission.handle();
        Cancellable::new(move || handle.cancel(), async move { emission.await.map(|_report| message) })
    }
}

impl<M> Clone for AsyncMessages<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
