//! `HookBus`, at the scenario's point.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::cancel::Cancellation;
use tipstaff::compat::{
    Hook, HookCanceller, HookEmission, HookEnd, HookError, HookPoint, HookPoints, HookPolicy, HookRecord, HookReturn,
};
use tipstaff::declare::CallableRef;
use tipstaff::interception::{Decision, DenialCode, InterceptError, Plan, PlanBuilder, Registration, StageSpec, Turn};
use tipstaff::{Runtime, Session};

use super::broadcaster::NOTHING;
use super::dispatch::{failed, library, register};
use super::observer::{GateKind, GateSetup, open};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::{By, Entry, Kind, Outcome, Raised};
use crate::characterization::script::{Body, Called, End, Unawaited};
use crate::characterization::world::World;

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
    let point = point.map_or(Ok(default), |name| HookPoint::parse(&name).ok_or(format!("setup.point: {name:?}")))?;
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let session = open(&runtime).await;
    let points = match policy {
        None => HookPoints::<()>::new(),
        Some(policy) => {
            let policy: HookPolicy = serde_json::from_value(policy).map_err(|error| error.to_string())?;
            HookPoints::with_policies(policy, policy)
        }
    };
    // The original warns in its log; here the registration's answer does.
    let warned = register_hooks(&stage, &points, point)?;
    stage.begin();
    let emission = match stage.scenario.emit.entry {
        Entry::Emit => points.emit(point, Arc::new(())),
        Entry::BlockingEmit => points.blocking_emit(point, Arc::new(())),
        other => return Err(format!("emit.entry: {other:?}")),
    };
    let handle = emission.handle();
    let gate = gate.filter(|gate| gate.kind != GateKind::Absent).map(|gate| gate_plan(gate, &stage.world));
    let ended = async { outcome(run(emission, observer.then_some(&session), gate.as_ref()).await) };
    let outcome = stage.emission(move || handle.cancel(), ended).await;
    stage.settle().await;
    let mut extra = BTreeMap::from([("registration_warnings".to_owned(), json!(warned))]);
    if observer {
        let recent = session.recent().expect("the session keeps its recent facts");
        let recorded = recent.facts.iter().filter_map(|fact| HookRecord::from_signal(fact));
        extra.insert("recorded".to_owned(), recorded.map(|record| json!(record)).collect());
    }
    Ok(Driven { outcome, extra })
}

/// Registers the hooks; how many of them were warned of.
fn register_hooks(stage: &Stage, points: &HookPoints<()>, point: HookPoint) -> Result<usize, String> {
    let warned = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (registers, unregisters, warnings) = (points.clone(), points.clone(), Arc::clone(&warned));
    register(
        stage,
        move |body, unique| {
            registers.register(point, hook(body, unique.clone())).map(|registered| {
                warnings.fetch_add(usize::from(registered.warning().is_some()), std::sync::atomic::Ordering::SeqCst);
                unique
            })
        },
        move |name: &String| {
            unregisters.unregister(point, name);
        },
    )?;
    Ok(warned.load(std::sync::atomic::Ordering::SeqCst))
}

async fn run(emission: HookEmission<()>, observer: Option<&Session>, gate: Option<&Plan<HookRecord>>) -> HookEnd {
    match (observer, gate) {
        (None, _) => emission.run().await.end,
        (Some(session), None) => session.emit_hook(emission).await.end,
        (Some(session), Some(gate)) => session.emit_hook_gated(emission, gate).await.0.end,
    }
}

/// The gate that the observer of the records has.
fn gate_plan(gate: GateSetup, world: &Arc<World>) -> Plan<HookRecord> {
    let world = Arc::clone(world);
    let callable = CallableRef::from_static("tests::gate@1");
    let guard = Registration::decide("gate", "gate", callable, move |_record: &HookRecord, _turn: &Turn| {
        world.log("gate", "call");
        match gate.kind {
            GateKind::Absent | GateKind::Allow | GateKind::Truthy => Ok(Decision::proceed()),
            GateKind::Deny | GateKind::None => Ok(Decision::deny(DenialCode::from_static("test.gate"), "no")),
            GateKind::Raise | GateKind::RaiseFatal => Err(InterceptError::new("the gate failed")),
            GateKind::Cancel => Err(InterceptError::cancelled("the gate was cancelled")),
        }
    });
    PlanBuilder::new("gate", &[StageSpec::guard("gate")]).register(guard).build().expect("one guard at a declared stage")
}

/// A handler as a hook of this name.
pub(super) fn hook<A: Send + Sync + 'static>(body: &Arc<Body>, name: String) -> Hook<A> {
    let body = Arc::clone(body);
    match body.handler.kind {
        Kind::Async | Kind::AsyncPartial => Hook::declared_async(name, move |_arguments, asked: Cancellation| {
            let unawaited = body.awaitable();
            async move { awaited(unawaited, asked).await }
        }),
        Kind::Sync | Kind::AsyncCallableObject | Kind::SyncReturnsCoroutine | Kind::SyncReturnsFuture => {
            Hook::declared_sync(name, move |_arguments, asked: &Cancellation| {
                let asked = asked.clone();
                match body.call() {
                    Called::Ended(end) => hook_result(end).map(HookReturn::Value),
                    Called::Coroutine(unawaited) => Ok(HookReturn::coroutine(async move { awaited(unawaited, asked).await })),
                    Called::Awaitable(unawaited) => Ok(HookReturn::awaitable(async move { awaited(unawaited, asked).await })),
                }
            })
        }
    }
}

/// Awaits a body until it ends, or is asked to.
pub(super) async fn awaited(unawaited: Unawaited, asked: Cancellation) -> Result<Value, HookError> {
    hook_result(unawaited.until(async move { asked.cancelled().await }).await)
}

/// How a body's end is said to a hook point.
pub(super) fn hook_result(end: End) -> Result<Value, HookError> {
    match end {
        End::Value(value) => Ok(value),
        End::Raised(name) => Err(HookError::failed(name, "an ordinary failure")),
        End::Fatal(name) => Err(HookError::fatal(name, "a fatal failure")),
        End::Refused => Err(HookError::store_refused("the store is of another version")),
        End::Cancelled => Err(HookError::Cancelled),
        End::Stop => Err(HookError::Stop),
    }
}

/// An error that reached the emitter.
pub(super) fn raised(error: &HookError) -> Outcome {
    let error = match error {
        HookError::Failed(failure) => failed(failure),
        HookError::Fatal(failure) => Raised::Fatal { name: failure.code().to_owned(), cause: None },
        HookError::StoreRefused(_) => Raised::StoreRefused { cause: None },
        HookError::Stop => return library("StopHook"),
        HookError::Cancelled => Raised::Cancelled { by: By::Other, cause: None },
    };
    Outcome::Raised { error }
}

/// A cancellation that reached the emitter. The number of a further registration is ours.
pub(super) fn cancelled(by: &HookCanceller) -> Outcome {
    let by = match by {
        HookCanceller::Emitter => By::Emitter,
        HookCanceller::Hook(name) => By::Handler(name.split('#').next().unwrap_or_default().to_owned()),
    };
    Outcome::Raised { error: Raised::Cancelled { by, cause: None } }
}

fn outcome(end: HookEnd) -> Outcome {
    match end {
        HookEnd::Passed | HookEnd::Stopped { .. } => NOTHING,
        HookEnd::Raised { error, .. } => raised(&error),
        HookEnd::Cancelled { by } => cancelled(&by),
        HookEnd::TimedOut { .. } => library("TimeoutError"),
    }
}
