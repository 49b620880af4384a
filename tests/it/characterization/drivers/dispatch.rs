//! What the drivers of dispatchers share: handlers as subscribers, and ends as the trace writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::compat::Canceller;
use tipstaff::dispatch::{
    CancelledBy, Cause, Condition, DispatchError, DispatchReport, FailureKind, HandlerContext, HandlerError, HandlerFailure,
    Member, MemberEnd, Outcome as Ended, RaisedError, Refusal, Returned, Stage as Phase, Subscriber,
};
use tipstaff::dispatcher::EmissionError;

use crate::characterization::run::Stage;
use crate::characterization::scenario::{By, Handler, Kind, Outcome, Raised};
use crate::characterization::script::{Body, Called, End, Unawaited};
use crate::characterization::world::Change;

/// A handler as a subscriber of this name.
pub(super) fn subscriber<F: 'static>(body: &Arc<Body>, name: String) -> Subscriber<F, Value> {
    let body = Arc::clone(body);
    match body.handler.kind {
        Kind::Async | Kind::AsyncPartial => {
            Subscriber::declared_async_with(name, move |_fact: Arc<F>, context: HandlerContext| {
                let unawaited = body.awaitable();
                async move { awaited(unawaited, context).await }
            })
        }
        Kind::Sync | Kind::AsyncCallableObject | Kind::SyncReturnsCoroutine | Kind::SyncReturnsFuture => {
            Subscriber::declared_sync_with(name, move |_fact: &Arc<F>, context: &HandlerContext| {
                let context = context.clone();
                match body.call() {
                    Called::Ended(end) => result(end).map(Returned::Value),
                    Called::Coroutine(unawaited) => Ok(Returned::coroutine(async move { awaited(unawaited, context).await })),
                    Called::Awaitable(unawaited) => Ok(Returned::awaitable(async move { awaited(unawaited, context).await })),
                }
            })
        }
    }
}

/// The filter of mechanisms that had none in the original: a predicate, which the kernel has for all.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Filter {
    Predicate { result: String },
}

/// As [`subscriber`], with the scenario's predicate if there is one.
pub(super) fn predicated<F: Send + Sync + 'static>(body: &Arc<Body>, name: String) -> Result<Subscriber<F, Value>, String> {
    let subscriber = subscriber(body, name);
    Ok(match body.handler.filter::<Filter>()? {
        None => subscriber,
        Some(Filter::Predicate { result }) => subscriber.when(asked(body, result)),
    })
}

/// A condition of this handler that logs that it is asked.
pub(super) fn asked<F: 'static>(body: &Arc<Body>, result: String) -> impl Condition<F> {
    let body = Arc::clone(body);
    Holds(move |_fact: &F| {
        body.world.log(&body.handler.name, "predicate");
        said(&result)
    })
}

/// A condition that may fail or cancel itself.
pub(super) struct Holds<P>(pub(super) P);

impl<F, P> Condition<F> for Holds<P>
where
    P: Fn(&F) -> Result<bool, HandlerError> + Send + Sync + 'static,
{
    fn holds(&self, fact: &F) -> Result<bool, HandlerError> {
        (self.0)(fact)
    }
}

async fn awaited(unawaited: Unawaited, context: HandlerContext) -> Result<Value, HandlerError> {
    let told = async move {
        let _by = context.token().cancelled().await;
    };
    result(unawaited.until(told).await)
}

/// How a body's end is said to a dispatcher.
pub(super) fn result(end: End) -> Result<Value, HandlerError> {
    match end {
        End::Value(value) => Ok(value),
        End::Raised(name) => Err(HandlerError::failed(name, "an ordinary failure")),
        End::Fatal(name) => Err(HandlerError::fatal(name)),
        End::Refused => Err(HandlerError::store_refused("refused", "the store is of another version")),
        End::Cancelled => Err(HandlerError::Cancelled),
        End::Stop => Err(HandlerError::failed("stop", "the handler stops")),
    }
}

/// What a condition of the scenario says: `match`, `no_match`, `cancel`, `raise:E`.
pub(super) fn said(condition: &str) -> Result<bool, HandlerError> {
    match (condition, condition.strip_prefix("raise:")) {
        ("match", _) => Ok(true),
        ("no_match", _) => Ok(false),
        ("cancel", _) => Err(HandlerError::Cancelled),
        (_, Some(name)) => Err(HandlerError::failed(name.to_owned(), "a condition failed")),
        _ => panic!("a condition that says {condition:?}"),
    }
}

/// Registers the handlers of the scenario, and carries out what bodies ask for. The name of a further registration of one handler has a number.
pub(super) fn register<R: Send + 'static, E: fmt::Display>(
    stage: &Stage,
    register: impl Fn(&Arc<Body>, String) -> Result<R, E> + Send + Sync + 'static,
    unregister: impl Fn(&R) + Send + Sync + 'static,
) -> Result<(), String> {
    let bodies: BTreeMap<String, Arc<Body>> =
        stage.scenario.handlers.iter().map(|handler| (handler.name.clone(), Body::new(handler, &stage.world))).collect();
    let mut registered = BTreeMap::<String, Vec<R>>::new();
    for Handler { name, times, .. } in stage.scenario.registered() {
        for time in 0..*times {
            let unique = if time == 0 { name.clone() } else { format!("{name}#{time}") };
            let registration = register(&bodies[name], unique).map_err(|error| format!("{name}: {error}"))?;
            registered.entry(name.clone()).or_default().push(registration);
        }
    }
    let registered = Mutex::new(registered);
    stage.world.registrar(move |change| match change {
        Change::Register(name) => {
            let registration = register(&bodies[name], name.to_owned()).unwrap_or_else(|error| panic!("{name}: {error}"));
            registered.lock().expect("nobody panics with it held").entry(name.to_owned()).or_default().push(registration);
        }
        Change::Unregister(name) => {
            let registrations = registered.lock().expect("nobody panics with it held").remove(name).unwrap_or_default();
            registrations.iter().for_each(&unregister);
        }
    });
    Ok(())
}

/// What cancels an emission of an adapter.
pub(super) fn cancelling(handle: Canceller) -> impl Fn() {
    move || handle.cancel()
}

/// The results of a report as the original returned them: those that ended in their call first, then the gathered ones.
pub(super) fn results(report: &DispatchReport<Value>) -> Value {
    let of = |phase| report.entries().filter(move |entry| entry.stage == phase);
    let results =
        of(Phase::Invocation).chain(of(Phase::ReturnedAwaitables)).filter_map(|entry| match (entry.value, entry.outcome) {
            (Some(value), _) => Some(value.clone()),
            (None, Ended::Cancelled(by)) => Some(json!({"$cancelled": by_whom(*by, entry.registration).to_string()})),
            (None, _) => None,
        });
    results.collect()
}

/// An emission that did not return.
pub(super) fn not_returned(error: &EmissionError<Value>) -> Outcome {
    match error {
        EmissionError::Dispatch(error) => raised_by(error),
        other => library(&other.to_string()),
    }
}

/// What a dispatcher refused or raised.
pub(super) fn raised_by(error: &DispatchError<Value>) -> Outcome {
    let DispatchError::Raised(raised) = error else {
        let DispatchError::Refused(refusal) = error else { unreachable!("there are two variants") };
        return refused(refusal);
    };
    let error = match raised.error() {
        RaisedError::One(member) => member_error(member),
        RaisedError::Group(members) => group(members),
        RaisedError::Cancelled { by, registration } => {
            Raised::Cancelled { by: by_whom(*by, registration.as_deref().unwrap_or_default()), cause: None }
        }
        RaisedError::HandlerCancelled => Raised::HandlerCancelled { cause: None },
        RaisedError::TimedOut => Raised::Library { class: "TimeoutError".to_owned(), cause: None },
    };
    let error = match raised.cause() {
        None => error,
        Some(Cause::One(member)) => error.caused_by(member_error(member)),
        Some(Cause::Group(members)) => error.caused_by(group(members)),
    };
    Outcome::Raised { error }
}

pub(super) fn refused(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::DeclaredAsync { .. } => library("RuntimeError"),
        Refusal::NoSyncEntry => library("NoSyncEntry"),
        other => library(&other.to_string()),
    }
}

pub(super) fn library(class: &str) -> Outcome {
    Outcome::Raised { error: Raised::Library { class: class.to_owned(), cause: None } }
}

fn group(members: &[Member]) -> Raised {
    Raised::Group { members: members.iter().map(member_error).collect(), cause: None }
}

fn member_error(member: &Member) -> Raised {
    match &member.end {
        MemberEnd::Failed(failure) => failed(failure),
        MemberEnd::Cancelled(by) => Raised::Cancelled { by: by_whom(*by, &member.registration), cause: None },
    }
}

/// A failure of a handler.
pub(super) fn failed(failure: &HandlerFailure) -> Raised {
    match failure.kind() {
        FailureKind::Ordinary => Raised::Ordinary { name: failure.code().to_owned(), cause: None },
        FailureKind::Fatal => Raised::Fatal { name: failure.message().to_owned(), cause: None },
        FailureKind::StoreRefused => Raised::StoreRefused { cause: None },
    }
}

/// Whose cancellation it was. A registration's number is ours.
pub(super) fn by_whom(by: CancelledBy, registration: &str) -> By {
    match by {
        CancelledBy::Itself => By::Handler(registration.split('#').next().unwrap_or_default().to_owned()),
        CancelledBy::Emitter => By::Emitter,
        CancelledBy::Sibling | CancelledBy::Deadline => By::Other,
    }
}
