//! `HookBus`, at the scenario's point.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::compat::{
    Hook, HookBus, HookContext, HookError, HookPoint, HookPolicy, HookRaised, HookReturned, RUN_KIND, SessionObserver, testing,
};
use tipstaff::Runtime;

use super::broadcaster::NOTHING;
use super::dispatch::{by_whom, cancelling, failed, library, register, result};
use super::observer::{GateSetup, gated, open};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::{Entry, Kind, Outcome, Raised};
use crate::characterization::script::{Body, Called, End, Unawaited};

pub(super) const BLOCKING: Driver = Driver {
    profile: "hookbus_blocking",
    policy: || serde_json::to_value(HookPolicy::blocking()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive(stage, HookPoint::ToolPre, policy).boxed_local(),
};

pub(super) const OBSERVATIONAL: Driver = Driver {
    profile: "hookbus_observational",
    policy: || serde_json::to_value(HookPolicy::observational()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive(stage, HookPoint::ToolPost, policy).boxed_local(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Setup {
    point: Option<String>,
    observer: bool,
    gate: Option<GateSetup>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { point: None, observer: true, gate: None }
    }
}

async fn drive(stage: Stage, default: HookPoint, policy: Option<Value>) -> Result<Driven, String> {
    let Setup { point, observer, gate } = stage.scenario.setup()?;
    let point = point.map_or(Ok(default), |name| HookPoint::named(&name).ok_or(format!("setup.point: {name:?}")))?;
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let session = open(&runtime).await;
    let gated = gated(SessionObserver::builder(&session), gate.as_ref(), &stage.world);
    let observer = if observer { Some(gated.start().await.expect("a dispatcher comes up")) } else { None };
    let bus = match (policy, observer.clone()) {
        (None, None) => HookBus::<()>::new(),
        (None, Some(observer)) => HookBus::observed_by(observer),
        (Some(policy), observer) => {
            let policy: HookPolicy = serde_json::from_value(policy).map_err(|error| error.to_string())?;
            testing::hook_bus(observer, policy, policy)
        }
    };
    let (on, off) = (bus.clone(), bus.clone());
    register(&stage, move |body, _unique| on.on(point, hook(body)), move |registration| {
        off.off(*registration);
    })?;
    let warnings = stage.begin();
    let emission = match stage.scenario.emit.entry {
        Entry::Emit => bus.emit(point, Arc::new(())),
        Entry::BlockingEmit => bus.blocking_emit(point, Arc::new(())),
        other => return Err(format!("emit.entry: {other:?}")),
    };
    let handle = cancelling(emission.handle());
    let outcome = stage.emission(handle, async { emission.await.map_or_else(|raised| outcome(&raised), |()| NOTHING) }).await;
    stage.settle().await;
    let mut extra = BTreeMap::from([("registration_warnings".to_owned(), json!(warnings))]);
    if observer.is_some() {
        let recent = session.recent().expect("the session keeps its recent facts");
        let runs = recent.facts.iter().filter(|fact| fact.kind().as_str() == RUN_KIND);
        extra.insert("recorded".to_owned(), runs.map(|fact| fact.payload().value().clone()).collect());
    }
    Ok(Driven { outcome, extra })
}

fn hook(body: &Arc<Body>) -> Hook<()> {
    let (name, body) = (body.handler.name.clone(), Arc::clone(body));
    match body.handler.kind {
        Kind::Async | Kind::AsyncPartial => Hook::declared_async(name, move |_payload, context: HookContext| {
            let unawaited = body.awaitable();
            async move { awaited(unawaited, context).await }
        }),
        Kind::Sync | Kind::AsyncCallableObject | Kind::SyncReturnsCoroutine | Kind::SyncReturnsFuture => {
            Hook::declared_sync(name, move |_payload, context: &HookContext| {
                let context = context.clone();
                match body.call() {
                    Called::Ended(end) => hook_result(end).map(|()| HookReturned::Done),
                    Called::Coroutine(unawaited) | Called::Awaitable(unawaited) => {
                        Ok(HookReturned::future(async move { awaited(unawaited, context).await }))
                    }
                }
            })
        }
    }
}

async fn awaited(unawaited: Unawaited, context: HookContext) -> Result<(), HookError> {
    hook_result(unawaited.until(async move { context.cancellation().cancelled().await }).await)
}

fn hook_result(end: End) -> Result<(), HookError> {
    match end {
        End::Stop => Err(HookError::Stop),
        end => result(end).map(drop).map_err(HookError::from),
    }
}

fn outcome(raised: &HookRaised) -> Outcome {
    match raised {
        HookRaised::Failed { failure, .. } => Outcome::Raised { error: failed(failure) },
        HookRaised::Cancelled { hook, by } => Outcome::Raised { error: Raised::Cancelled { by: by_whom(*by, hook), cause: None } },
        HookRaised::TimedOut { .. } => library("TimeoutError"),
        other => library(&other.to_string()),
    }
}
