//! The broadcaster: one event type, one handler after the other, failures logged.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;
use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{DispatchPolicy, RegisterError, Registration, Subscriber};

use super::Cancellable;
use crate::dispatcher::{DispatcherHandle, EmissionError};
use crate::runtime::{Runtime, RuntimeError};

/// The broadcaster of one event type. Cheap to clone.
#[derive(Debug)]
pub struct Broadcaster<E>(DispatcherHandle<E, Value>);

impl<E: Send + Sync + 'static> Broadcaster<E> {
    /// Starts one under its named profile.
    ///
    /// # Errors
    /// As [`DispatcherHandle::start`].
    ///
    /// # Cancel safety
    /// As [`DispatcherHandle::start`].
    pub async fn start(runtime: &Runtime) -> Result<Self, RuntimeError> {
        Self::with_policy(runtime, compat::broadcaster()).await
    }

    pub(crate) async fn with_policy(runtime: &Runtime, policy: DispatchPolicy) -> Result<Self, RuntimeError> {
        DispatcherHandle::start(runtime, "broadcaster", policy).await.map(Self)
    }

    /// Subscribes. `Ok(None)`: a subscriber of this name is there already, and stays as it is.
    ///
    /// # Errors
    /// [`RegisterError`] when the name is not usable, or there are too many.
    pub fn subscribe(&self, subscriber: Subscriber<E, Value>) -> Result<Option<Registration>, RegisterError> {
        match self.0.register(subscriber) {
            Ok(registration) => Ok(Some(registration)),
            Err(RegisterError::NameTaken { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Ends a subscription; says whether it was there. A broadcast under way keeps its snapshot (F-8).
    pub fn unsubscribe(&self, registration: &Registration) -> bool {
        self.0.unregister(registration)
    }

    /// How many subscribers there are.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.dispatcher().snapshot().len()
    }

    /// Broadcasts an event.
    ///
    /// # Ordering
    /// Subscribers are called one after the other, in the order of their subscription; a failure is logged, and the next one's turn comes.
    pub fn broadcast(&self, event: &Arc<E>) -> Cancellable<Result<(), EmissionError<Value>>> {
        let emission = self.0.emit(event);
        let handle = emission.handle();
        Cancellable::new(move || handle.cancel(), async move { emission.await.map(drop) })
    }

    /// Broadcasts an event whose type is known at run time only.
    ///
    /// # Errors
    /// [`WrongEvent`], before anybody is called.
    pub fn broadcast_any(
        &self,
        event: Arc<dyn Any + Send + Sync>,
    ) -> Result<Cancellable<Result<(), EmissionError<Value>>>, WrongEvent> {
        match event.downcast::<E>() {
            Ok(event) => Ok(self.broadcast(&event)),
            Err(_other) => Err(WrongEvent { expected: std::any::type_name::<E>() }),
        }
    }
}

impl<E> Clone for Broadcaster<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The event is not of the broadcaster's type. Nobody was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event is no {expected}: nobody was called")]
pub struct WrongEvent {
    /// The type of the broadcaster's events.
    pub expected: &'static str,
}
