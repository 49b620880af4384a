//! The original system's dispatchers and hooks in a runtime (feature `compat`): each under its named profile, with the behaviour that was recorded of it.
//!
//! | here                                   | in the original          | profile                     | runs                                        |
//! |----------------------------------------|--------------------------|-----------------------------|---------------------------------------------|
//! | [`SchedulerBus`]                       | `SchedulerSignalBus`     | `scheduler`                 | on a dispatcher's actor                     |
//! | [`TerminalCallbacks`]                  | `TerminalCallbackRegistry` | `terminal_callback`       | on a dispatcher's actor                     |
//! | [`Broadcaster`]                        | `Broadcaster`            | `broadcaster`               | on a dispatcher's actor                     |
//! | [`SessionObserver`]                    | `SessionObserver`        | `session_observer`          | a gate's owner, then a dispatcher's actor   |
//! | [`SyncMessages`]                       | the message manager, sync | `message_added_sync`       | on the owner's thread, preflight first (F-13) |
//! | [`AsyncMessages`]                      | the message manager, async | `message_added_async`     | on a dispatcher's actor                     |
//! | [`HookPoints`]                         | `HookBus`                | blocking and observational points | a plan in the emitter's task          |
//! | [`ServiceHooks`]                       | `HookRegistry`, `HookedEvent` | the matrix of I-13     | an owner's actor, and the caller's task     |
//!
//! New code wants none of it: see [`Session::observe`](crate::Session::observe) and [`Session::perform`](crate::Session::perform).
//!
//! Hooks are what the core's page says, with a session for the records and an owner for the calls.
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::{Value, json};
//! use tipstaff::compat::{Hook, HookEnd, HookPoints, HookReturn};
//! use tipstaff::signal::legacy::HookPoint;
//! use tipstaff::Runtime;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder().spawn().await?;
//! let session = runtime.own_session().await?;
//! let points = HookPoints::<Value>::new();
//! let hook = Hook::declared_sync("looks", |call: &Arc<Value>, _token| Ok(HookReturn::Value(call["cmd"].clone())));
//! assert_eq!(points.register(HookPoint::ToolPre, hook)?.warning(), None);
//!
//! let emitted = session.emit_hook(points.emit(HookPoint::ToolPre, Arc::new(json!({ "cmd": "ls" })))).await;
//! assert_eq!(emitted.end, HookEnd::Passed);
//! # Ok(())
//! # }
//! ```

mod broadcaster;
mod cancellable;
mod messages;
mod observer;
mod scheduler;
mod terminal;

use std::sync::Arc;

use serde_json::Value;
use tipstaff_core::cancel::Cancellation;
use tipstaff_core::clock::Deadline;
pub use tipstaff_core::compat::*;
use tipstaff_core::interception::{Plan, Report};
use tipstaff_core::operation::DEFAULT_RULING_BUDGET;
use tipstaff_core::signal::Signal;

pub use broadcaster::{Broadcaster, WrongEvent};
pub use cancellable::{Cancellable, Canceller};
pub use messages::{AddError, AsyncMessages, SyncMessages};
pub use observer::{ObserveError, Observed, SessionObserver, SessionObserverBuilder};
pub use scheduler::{RunCounters, RunId, ScheduleKind, ScheduleSignal, SchedulerBus};
pub use terminal::{TerminalCallbacks, TerminalFact, TerminalFilter};

use crate::authorization::CompletionTicket;
use crate::observation::SessionAudit;
use crate::owners::OwnerHandle;
use crate::session::Session;

/// A streamed answer of a hooked call.
pub type HookedCallStream = HookedStream<SessionAudit, CompletionTicket<HookedEvent>>;

impl Session {
    /// Runs the handlers of a hook point, then submits the record of it to this session, without waiting for anyone.
    ///
    /// # Durability
    /// The record is submitted, not confirmed; a journal without room is a counted gap.
    ///
    /// # Cancel safety
    /// Dropping the future drops the handler in flight; nothing is recorded then (F-12).
    pub async fn emit_hook<A: Send + Sync + 'static>(&self, emission: HookEmission<A>) -> HookEmitted {
        let emitted = emission.run().await;
        self.record_hook(&emitted);
        emitted
    }

    /// As [`Self::emit_hook`], with the gate that the original asks before it stores the record. Here its answer is reported, and keeps nothing from
    /// being recorded (P-1, P-2).
    ///
    /// # Durability
    /// As [`Self::emit_hook`].
    ///
    /// # Cancel safety
    /// As [`Self::emit_hook`]; dropped while the gate is asked, the record is lost with the emission.
    pub async fn emit_hook_gated<A: Send + Sync + 'static>(
        &self,
        emission: HookEmission<A>,
        gate: &Plan<HookRecord>,
    ) -> (HookEmitted, Option<Report>) {
        let emitted = emission.run().await;
        let report = match emitted.record {
            Some(record) => {
                let mut report = gate.report();
                let _reported = gate.apply(Arc::new(record), Deadline::after(DEFAULT_RULING_BUDGET), &mut report).await;
                Some(report)
            }
            None => None,
        };
        self.record_hook(&emitted);
        (emitted, report)
    }

    fn record_hook(&self, emitted: &HookEmitted) {
        if let Some(record) = &emitted.record {
            let fact: Signal = record.signal(self.id().clone(), self.now());
            // Best effort: a session that has ended has journalled it, and the losses of the journal are counted there.
            let _late = self.submit(fact);
        }
    }
}

/// Calls with the service hooks of the original system.
impl OwnerHandle<HookedEvent> {
    /// Makes a call with its hooks: before it in the owner's actor, after it in the caller's time.
    ///
    /// # Cancel safety
    /// Dropping the future drops what runs. Once the call was begun, its post hook runs with the owner, shielded, and the attempt is recorded after it.
    pub async fn invoke_hooked<F, Fut>(&self, session: &Session, call: HookedCall, core: F) -> HookedAnswer
    where
        F: FnOnce(Arc<Value>, Cancellation) -> Fut + Send,
        Fut: Future<Output = HookReturned> + Send + 'static,
    {
        match self.permitted(session, call.operation()).await {
            Ok(permit) => call.invoke(permit, core).await,
            Err(answer) => call.not_made(answer),
        }
    }

    /// Makes a call that is answered in chunks.
    ///
    /// # Errors
    /// The answer, where the call must not be made.
    ///
    /// # Cancel safety
    /// As [`Self::invoke_hooked`]; dropping the stream is the same.
    pub async fn stream_hooked<F, Fut, S>(
        &self,
        session: &Session,
        call: HookedCall,
        core: F,
    ) -> Result<HookedCallStream, Box<HookedAnswer>>
    where
        F: FnOnce(Arc<Value>, Cancellation) -> Fut + Send,
        Fut: Future<Output = Result<S, HookError>> + Send,
        S: HookedChunks,
    {
        match self.permitted(session, call.operation()).await {
            Ok(permit) => Ok(call.stream(permit, core).await),
            Err(answer) => Err(Box::new(call.not_made(answer))),
        }
    }
}

/// Doors for tests: the same dispatchers under a policy that is none of the named profiles, to see that a profile's values matter.
#[cfg(feature = "testing")]
pub mod testing {
    use tipstaff_core::dispatch::DispatchPolicy;

    use super::{
        AsyncMessages, Broadcaster, SchedulerBus, SessionObserverBuilder, SyncMessages, TerminalCallbacks, TerminalFact,
    };
    use crate::runtime::{Runtime, RuntimeError};
    use crate::session::Session;

    /// A [`Broadcaster`].
    ///
    /// # Errors
    /// As [`Broadcaster::start`].
    pub async fn broadcaster<E: Send + Sync + 'static>(
        runtime: &Runtime,
        policy: DispatchPolicy,
    ) -> Result<Broadcaster<E>, RuntimeError> {
        Broadcaster::with_policy(runtime, policy).await
    }

    /// A [`SchedulerBus`].
    ///
    /// # Errors
    /// As [`SchedulerBus::start`].
    pub async fn scheduler_bus(session: &Session, policy: DispatchPolicy) -> Result<SchedulerBus, RuntimeError> {
        SchedulerBus::with_policy(session, policy).await
    }

    /// [`TerminalCallbacks`].
    ///
    /// # Errors
    /// As [`TerminalCallbacks::start`].
    pub async fn terminal_callbacks<T: TerminalFact>(
        runtime: &Runtime,
        policy: DispatchPolicy,
    ) -> Result<TerminalCallbacks<T>, RuntimeError> {
        TerminalCallbacks::with_policy(runtime, policy).await
    }

    /// [`SyncMessages`].
    #[must_use]
    pub fn sync_messages<M: Send + Sync + 'static>(policy: DispatchPolicy) -> SyncMessages<M> {
        SyncMessages::with_policy(policy)
    }

    /// [`AsyncMessages`].
    ///
    /// # Errors
    /// As [`AsyncMessages::start`].
    pub async fn async_messages<M: Send + Sync + 'static>(
        runtime: &Runtime,
        policy: DispatchPolicy,
    ) -> Result<AsyncMessages<M>, RuntimeError> {
        AsyncMessages::with_policy(runtime, policy).await
    }

    /// A [`SessionObserver`](super::SessionObserver) that is being described.
    pub fn session_observer(builder: SessionObserverBuilder, policy: DispatchPolicy) -> SessionObserverBuilder {
        builder.policy(policy)
    }
}
