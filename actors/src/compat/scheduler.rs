//! The scheduler's bus: side by side, all failures as one group, counted by run.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{DispatchPolicy, DispatchReport, Outcome, RegisterError, Registration, Subscriber};
use tipstaff_core::signal::{Payload, PayloadType, SignalKind};

use super::Cancellable;
use crate::dispatcher::{DispatcherHandle, EmissionError};
use crate::runtime::RuntimeError;
use crate::session::Session;

/// Runs that are counted at the same time; further ones are dispatched and not counted.
const MAX_RUNS: usize = 4096;

/// The identity of a scheduled run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RunId(Arc<str>);

impl RunId {
    /// An identity; `None` for the empty text, which names no run.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What happened to a scheduled run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum ScheduleKind {
    /// It succeeded.
    #[serde(rename = "ScheduleRunSucceeded")]
    Succeeded,
    /// It failed.
    #[serde(rename = "ScheduleRunFailed")]
    Failed,
    /// It was cancelled.
    #[serde(rename = "ScheduleRunCancelled")]
    Cancelled,
}

/// A fact about a scheduled run.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSignal {
    /// The run, by which it is counted.
    pub run: Option<RunId>,
    /// What happened.
    pub kind: ScheduleKind,
    /// What there is to say.
    pub payload: Value,
}

/// What was counted of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunCounters {
    /// Emissions, by kind.
    pub emitted: BTreeMap<ScheduleKind, u64>,
    /// Handlers that were called.
    pub received: u64,
    /// Handlers that returned something that is not empty, zero, false or null.
    pub acted_on: u64,
}

/// The bus. Cheap to clone.
#[derive(Clone)]
pub struct SchedulerBus(Arc<Inner>);

struct Inner {
    handle: DispatcherHandle<ScheduleSignal, Value>,
    session: Session,
    /// Locked for a few lines that never wait.
    counted: Mutex<HashMap<RunId, RunCounters>>,
}

impl SchedulerBus {
    /// Starts one under its named profile. Dispatches that failed are recorded in the session (F-22).
    ///
    /// # Errors
    /// As [`DispatcherHandle::start`].
    ///
    /// # Cancel safety
    /// As [`DispatcherHandle::start`].
    pub async fn start(session: &Session) -> Result<Self, RuntimeError> {
        Self::with_policy(session, compat::scheduler()).await
    }

    pub(crate) async fn with_policy(session: &Session, policy: DispatchPolicy) -> Result<Self, RuntimeError> {
        let handle = DispatcherHandle::start(session.runtime(), "scheduler_bus", policy).await?;
        Ok(Self(Arc::new(Inner { handle, session: session.clone(), counted: Mutex::default() })))
    }

    /// Registers a handler.
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn register(&self, subscriber: Subscriber<ScheduleSignal, Value>) -> Result<Registration, RegisterError> {
        self.0.handle.register(subscriber)
    }

    /// Ends a registration; says whether it was there.
    pub fn unregister(&self, registration: &Registration) -> bool {
        self.0.handle.unregister(registration)
    }

    /// Emits a signal; the results of the handlers that it matched, in registration order. They are lost if any of them failed.
    ///
    /// # Cancel safety
    /// Dropped, it drops the handlers in flight. The signal is counted as emitted, and what its handlers did is not counted.
    pub fn emit(&self, signal: ScheduleSignal) -> Cancellable<Result<Vec<Value>, EmissionError<Value>>> {
        self.0.count(&signal, |run| *run.emitted.entry(signal.kind).or_default() += 1);
        let signal = Arc::new(signal);
        let emission = self.0.handle.emit(&signal);
        let inner = Arc::clone(&self.0);
        let handle = emission.handle();
        Cancellable::new(move || handle.cancel(), async move {
            let dispatched = emission.await;
            match &dispatched {
                Ok(report) => inner.count_report(&signal, report),
                Err(error) => {
                    if let Some(report) = error.dispatch().and_then(|error| error.report()) {
                        inner.count_report(&signal, report);
                    }
                    inner.record(&signal, error);
                }
            }
            dispatched.map(|report| report.entries().filter_map(|entry| entry.value.cloned()).collect())
        })
    }

    /// Takes a run's counters: the first who asks gets them, and nobody after.
    #[must_use]
    pub fn pop_counters(&self, run: &RunId) -> Option<RunCounters> {
        self.0.counted().remove(run)
    }
}

impl Inner {
    fn counted(&self) -> MutexGuard<'_, HashMap<RunId, RunCounters>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, signal: &ScheduleSignal, add: impl FnOnce(&mut RunCounters)) {
        let Some(run) = &signal.run else { return };
        let mut counted = self.counted();
        if counted.len() < MAX_RUNS || counted.contains_key(run) {
            add(counted.entry(run.clone()).or_default());
        }
    }

    fn count_report(&self, signal: &ScheduleSignal, report: &DispatchReport<Value>) {
        let received = report.entries().filter(|entry| was_called(entry.outcome)).count();
        let acted_on = report.entries().filter(|entry| entry.value.is_some_and(acts)).count();
        self.count(signal, |run| {
            run.received += received as u64;
            run.acted_on += acted_on as u64;
        });
    }

    /// One durable record of a dispatch that failed (F-22).
    fn record(&self, signal: &ScheduleSignal, error: &EmissionError<Value>) {
        let Ok(kind) = SignalKind::user("scheduler.dispatch_failed") else { return };
        let Ok(shape) = PayloadType::new("scheduler.dispatch_failed", 1) else { return };
        let failures: Vec<Value> = error.dispatch().and_then(|error| error.report()).into_iter().flat_map(failures).collect();
        let run = signal.run.as_ref().map(RunId::as_str);
        let payload = serde_json::json!({"run": run, "kind": signal.kind, "failures": failures, "error": error.to_string()});
        let fact = self.session.signal(kind).payload(Payload::from_value(shape, payload)).build();
        if let Err(error) = self.session.submit(fact) {
            tracing::debug!(target: tipstaff_core::telemetry::DISPATCH, %error, "a failed dispatch was recorded late, or not");
        }
    }
}

fn failures(report: &DispatchReport<Value>) -> Vec<Value> {
    let failed = report.entries().filter_map(|entry| {
        let code = match entry.outcome {
            Outcome::Failed(failure) | Outcome::Isolated(failure) | Outcome::PredicateFailed(failure) => failure.code(),
            Outcome::Cancelled(_) | Outcome::PredicateCancelled => "cancelled",
            _ => return None,
        };
        Some(serde_json::json!({"registration": entry.registration, "code": code}))
    });
    failed.collect()
}

/// Whether the handler itself was called.
fn was_called(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::PredicateFailed(_) | Outcome::PredicateCancelled | Outcome::NotStarted(_))
}

/// Whether a result says that something was done: in the original, whether it counts as true.
fn acts(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(said) => *said,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

impl fmt::Debug for SchedulerBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerBus").field("session", self.0.session.id()).finish_non_exhaustive()
    }
}
