//! The observer of one session, as the original's emitters know it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{Condition, DispatchPolicy, HandlerError, RegisterError, Registration, Subscriber};
use tipstaff_core::observation::RecentFacts;
use tipstaff_core::signal::Signal;

use super::answer::{ObserveError, Observed};
use super::gate::{Gate, GateOwner, Ruled};
use super::pending::{Cancel, Owed};
use crate::compat::Cancellable;
use crate::dispatcher::{DispatcherHandle, Emission};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// How long the journal may take to confirm a fact before its emitter goes on without knowing.
const CONFIRM: Duration = Duration::from_secs(5);

/// Describes a session observer before it is started.
#[must_use = "an observer is started by `start`"]
pub struct SessionObserverBuilder {
    session: Session,
    gate: Option<Gate>,
    routes: Vec<Route>,
    policy: DispatchPolicy,
}

struct Route {
    condition: Box<dyn Condition<Signal>>,
    into: RecentFacts,
}

impl SessionObserverBuilder {
    /// Asks a gate before a fact is shown. A gate that fails denies.
    pub fn gate<F>(mut self, gate: impl Fn(Arc<Signal>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<bool, HandlerError>> + Send + 'static,
    {
        self.gate = Some(Arc::new(move |fact| gate(fact).boxed()));
        self
    }

    /// Copies the facts for which the condition holds into a ring, before any subscriber is called.
    pub fn route(mut self, condition: impl Condition<Signal>, into: RecentFacts) -> Self {
        self.routes.push(Route { condition: Box::new(condition), into });
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn policy(mut self, policy: DispatchPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// As [`DispatcherHandle::start`].
    ///
    /// # Cancel safety
    /// As [`DispatcherHandle::start`].
    pub async fn start(self) -> Result<SessionObserver, RuntimeError> {
        let Self { session, gate, routes, policy } = self;
        let gate = match gate {
            Some(gate) => Some(GateOwner::start(&session, gate).await?),
            None => None,
        };
        let handle = DispatcherHandle::start(session.runtime(), "legacy_observer", policy).await?;
        Ok(SessionObserver(Arc::new(Inner { session, gate, routes, handle })))
    }
}

/// The observer of one session. Cheap to clone.
#[derive(Clone)]
pub struct SessionObserver(Arc<Inner>);

struct Inner {
    session: Session,
    gate: Option<GateOwner>,
    routes: Vec<Route>,
    handle: DispatcherHandle<Signal, Value>,
}

impl SessionObserver {
    /// Describes an observer of a session, under its named profile.
    pub fn builder(session: &Session) -> SessionObserverBuilder {
        SessionObserverBuilder { session: session.clone(), gate: None, routes: Vec::new(), policy: compat::session_observer() }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// Registers a subscriber. Under this profile one that is registered during an emission takes part in it.
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn observe(&self, subscriber: Subscriber<Signal, Value>) -> Result<Registration, RegisterError> {
        self.0.handle.register(subscriber)
    }

    /// Ends a registration; says whether it was there.
    pub fn unobserve(&self, registration: &Registration) -> bool {
        self.0.handle.unregister(registration)
    }

    /// Lets every emission wait until the journal has its fact, as emitters of the original do: a subscriber named `journal`, in this place of the order,
    /// that returns null. The journal itself is fed before all subscribers and needs none of this (P-4).
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub fn confirm_journal(&self) -> Result<Registration, RegisterError> {
        let session = self.0.session.clone();
        self.observe(Subscriber::declared_async("journal", move |_fact: Arc<Signal>| {
            let session = session.clone();
            async move {
                // What is not confirmed is counted by the session, as its loss.
                let _confirmed = session.settled(Deadline::after(CONFIRM)).await;
                Ok::<_, HandlerError>(Value::Null)
            }
        }))
    }

    /// Stops it: what was admitted ends within the deadline, then its actors.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back.
    pub async fn stop(&self, deadline: Deadline) {
        self.0.handle.stop(deadline).await;
        if let Some(gate) = &self.0.gate {
            gate.stop(deadline).await;
        }
    }

    /// Asks the gate without showing anything. `true` without one. A gate that fails denies, with a warning.
    ///
    /// # Errors
    /// [`ObserveError::GateCancelled`], [`ObserveError::GateFatal`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the gate, and closes the record of the proposal.
    pub async fn authorize(&self, proposed: Signal) -> Result<bool, ObserveError> {
        let Some(gate) = &self.0.gate else { return Ok(true) };
        let ruled = gate.rule(&Arc::new(proposed)).await;
        if ruled.failed() {
            tracing::warn!(target: tipstaff_core::telemetry::INTERCEPTION, session = %self.0.session.id(), "the session's gate failed: it denies");
        }
        match ruled {
            Ruled::Allowed => Ok(true),
            Ruled::Denied(_) => Ok(false),
            Ruled::Cancelled => Err(ObserveError::GateCancelled),
            Ruled::Fatal(failure) => Err(ObserveError::GateFatal(failure)),
        }
    }

    /// Emits a fact: asks the gate, records it, routes it, shows it.
    ///
    /// # Ordering
    /// Without a gate the fact is recorded and its subscribers are chosen before this returns; with one, after the gate's ruling.
    ///
    /// # Cancel safety
    /// Wherever it is dropped, the fact is on record.
    pub fn emit(&self, fact: Signal) -> Cancellable<Result<Observed, ObserveError>> {
        let (cancel, inner) = (Arc::new(Cancel::default()), Arc::clone(&self.0));
        let cancelling = Arc::clone(&cancel);
        let owed = Owed::new(&self.0.session, fact);
        let rest: BoxFuture<'static, _> = match &self.0.gate {
            None => match inner.show(owed) {
                Ok(emission) => inner.shown(emission, cancel).boxed(),
                Err(error) => std::future::ready(Err(error)).boxed(),
            },
            Some(gate) => {
                let gate = gate.clone();
                async move { inner.gated(gate, owed, cancel).await }.boxed()
            }
        };
        Cancellable::new(move || cancelling.cancel(), rest)
    }
}

impl Inner {
    async fn gated(&self, gate: GateOwner, owed: Owed, cancel: Arc<Cancel>) -> Result<Observed, ObserveError> {
        let fact = Arc::new(owed.fact().clone());
        let ruled = tokio::select! {
            biased;
            () = cancel.asked() => return Err(ObserveError::Cancelled),
            ruled = gate.rule(&fact) => ruled,
        };
        match ruled {
            Ruled::Allowed => self.shown(self.show(owed)?, cancel).await,
            Ruled::Denied(denial) => Ok(Observed::Denied(denial)),
            Ruled::Cancelled => Err(ObserveError::GateCancelled),
            Ruled::Fatal(failure) => Err(ObserveError::GateFatal(failure)),
        }
    }

    /// Records a fact, routes it, and admits its emission.
    fn show(&self, owed: Owed) -> Result<Emission<Value>, ObserveError> {
        let fact = owed.pay().ok_or(ObserveError::SessionEnded)?;
        for (route, Route { condition, into }) in self.routes.iter().enumerate() {
            match condition.holds(&fact) {
                Ok(true) => into.push(Arc::clone(&fact)),
                Ok(false) => {}
                Err(error) => return Err(ObserveError::Route { route, error }),
            }
        }
        Ok(self.handle.emit(&fact))
    }

    fn shown(
        &self,
        emission: Emission<Value>,
        cancel: Arc<Cancel>,
    ) -> impl Future<Output = Result<Observed, ObserveError>> + Send + 'static {
        cancel.hand_over(emission.handle());
        async move { emission.await.map(Observed::Reported).map_err(ObserveError::Emission) }
    }
}

impl fmt::Debug for SessionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionObserver")
            .field("session", self.0.session.id())
            .field("gate", &self.0.gate)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SessionObserverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionObserverBuilder").field("session", self.session.id()).finish_non_exhaustive()
    }
}
