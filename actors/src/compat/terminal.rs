//! Terminal callbacks as the original calls them: side by side, under one shared budget, heard of by nobody.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{DispatchPolicy, RegisterError, Registration, Subscriber};

use super::Cancellable;
use crate::dispatcher::{DispatcherHandle, EmissionError};
use crate::runtime::{Runtime, RuntimeError};

/// A fact about an entity that has reached its end.
pub trait TerminalFact: Send + Sync + 'static {
    /// The entity's kind.
    fn kind(&self) -> &str;

    /// The entity's identity.
    fn id(&self) -> &str;
}

/// Which entities a callback is for. A list that is absent takes all, an empty one none; with two lists, both must take it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalFilter {
    /// Kinds.
    pub kinds: Option<BTreeSet<String>>,
    /// Identities.
    pub ids: Option<BTreeSet<String>>,
}

impl TerminalFilter {
    /// Whether it takes the entity.
    #[must_use]
    pub fn takes(&self, kind: &str, id: &str) -> bool {
        let takes = |list: &Option<BTreeSet<String>>, name: &str| list.as_ref().is_none_or(|list| list.contains(name));
        takes(&self.kinds, kind) && takes(&self.ids, id)
    }
}

/// The registry of terminal callbacks. Cheap to clone.
#[derive(Debug)]
pub struct TerminalCallbacks<T>(DispatcherHandle<T, Value>);

impl<T: TerminalFact> TerminalCallbacks<T> {
    /// Starts one under its named profile, with the budget of 10 s.
    ///
    /// # Errors
    /// As [`DispatcherHandle::start`].
    ///
    /// # Cancel safety
    /// As [`DispatcherHandle::start`].
    pub async fn start(runtime: &Runtime) -> Result<Self, RuntimeError> {
        Self::with_policy(runtime, compat::terminal_callback()).await
    }

    /// As [`Self::start`], with another budget.
    ///
    /// # Errors
    /// [`RuntimeError::Policy`] when the budget is zero, not whole milliseconds or longer than thirty days; otherwise as [`Self::start`].
    ///
    /// # Cancel safety
    /// As [`Self::start`].
    pub async fn within(runtime: &Runtime, budget: Duration) -> Result<Self, RuntimeError> {
        Self::with_policy(runtime, compat::terminal_callback_within(budget)?).await
    }

    pub(crate) async fn with_policy(runtime: &Runtime, policy: DispatchPolicy) -> Result<Self, RuntimeError> {
        DispatcherHandle::start(runtime, "terminal_callbacks", policy).await.map(Self)
    }

    /// Registers a callback; one of the same name is replaced in its place. An [overriding](Subscriber::overriding) one that matches silences all others,
    /// also when it fails.
    ///
    /// # Errors
    /// [`RegisterError`]: the name is not usable, or there are too many.
    pub fn register(&self, filter: TerminalFilter, callback: Subscriber<T, Value>) -> Result<Registration, RegisterError> {
        let callback = callback.when(move |fact: &T| filter.takes(fact.kind(), fact.id()));
        self.0.dispatcher().register_or_replace(callback)
    }

    /// Removes a callback; says whether it was there.
    pub fn remove(&self, registration: &Registration) -> bool {
        self.0.unregister(registration)
    }

    /// Calls the callbacks, and comes back within the budget. What they do never reaches the emitter.
    pub fn emit(&self, fact: &Arc<T>) -> Cancellable<Result<(), EmissionError<Value>>> {
        let emission = self.0.emit(fact);
        let handle = emission.handle();
        Cancellable::new(move || handle.cancel(), async move { emission.await.map(drop) })
    }
}

impl<T> Clone for TerminalCallbacks<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
