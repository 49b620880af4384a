//! `SchedulerSignalBus.emit`. The emitted signal is `failed`.

use std::collections::BTreeMap;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::Runtime;
use tipstaff::compat::{RunId, ScheduleKind, ScheduleSignal, SchedulerBus, testing};
use tipstaff::dispatch::profile::compat;

use super::broadcaster::policy_of;
use super::dispatch::{Holds, cancelling, not_returned, register, said, subscriber};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::Outcome;
use crate::rig::session_id;

pub(super) const DRIVER: Driver = Driver {
    profile: "scheduler_signal_bus",
    policy: || serde_json::to_value(compat::scheduler()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive(stage, policy).boxed_local(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Setup {
    run_id: String,
}

impl Default for Setup {
    fn default() -> Self {
        Self { run_id: "run".to_owned() }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Filter {
    types: Vec<Type>,
    predicates: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Failed,
    Succeeded,
    Cancelled,
}

impl Type {
    const fn kind(self) -> ScheduleKind {
        match self {
            Self::Failed => ScheduleKind::Failed,
            Self::Succeeded => ScheduleKind::Succeeded,
            Self::Cancelled => ScheduleKind::Cancelled,
        }
    }
}

async fn drive(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup { run_id } = stage.scenario.setup()?;
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let session = runtime.session(session_id("s1")).open().await.expect("a session opens");
    let bus = match policy {
        None => SchedulerBus::start(&session).await,
        Some(policy) => testing::scheduler_bus(&session, policy_of(policy)?).await,
    }
    .expect("a dispatcher comes up");
    let (registers, unregisters) = (bus.clone(), bus.clone());
    let world = std::sync::Arc::clone(&stage.world);
    register(
        &stage,
        move |body, unique| {
            let filter: Option<Filter> = body.handler.filter()?;
            let subscriber = subscriber(body, unique);
            let subscriber = match filter {
                None => subscriber,
                Some(Filter { types, predicates }) => {
                    let (world, name) = (std::sync::Arc::clone(&world), body.handler.name.clone());
                    subscriber.when(Holds(move |signal: &ScheduleSignal| {
                        // Types are compared before any predicate is asked; the first that does not hold ends it.
                        if types.iter().any(|of| of.kind() != signal.kind) {
                            return Ok(false);
                        }
                        for predicate in &predicates {
                            world.log(&name, "predicate");
                            if !said(predicate)? {
                                return Ok(false);
                            }
                        }
                        Ok(true)
                    }))
                }
            };
            registers.register(subscriber).map_err(|error| error.to_string())
        },
        move |registration| {
            unregisters.unregister(registration);
        },
    )?;
    stage.begin();
    let run = RunId::new(run_id);
    let emission = bus.emit(ScheduleSignal { run: run.clone(), kind: ScheduleKind::Failed, payload: Value::Null });
    let handle = cancelling(emission.canceller());
    let outcome = stage
        .emission(handle, async {
            emission.await.map_or_else(|error| not_returned(&error), |results| Outcome::Returned { value: json!(results) })
        })
        .await;
    stage.settle().await;
    let counters = run.as_ref().and_then(|run| bus.pop_counters(run));
    assert!(run.as_ref().is_none_or(|run| bus.pop_counters(run).is_none()), "counters are popped once");
    Ok(Driven { outcome, extra: BTreeMap::from([("counters".to_owned(), json!(counters))]) })
}
