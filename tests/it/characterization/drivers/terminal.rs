//! `TerminalCallbackRegistry.emit`, for the entity `session`/`s1`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::Runtime;
use tipstaff::compat::{TerminalCallbacks, TerminalFact, TerminalFilter, testing};
use tipstaff::dispatch::profile::compat;

use super::broadcaster::{NOTHING, policy_of};
use super::dispatch::{cancelling, not_returned, register, subscriber};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};

pub(super) const DRIVER: Driver = Driver {
    profile: "terminal_callbacks",
    policy: || serde_json::to_value(compat::terminal_callback()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive(stage, policy).boxed_local(),
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    kinds: Option<BTreeSet<String>>,
    ids: Option<BTreeSet<String>>,
}

struct Ended;

impl TerminalFact for Ended {
    fn kind(&self) -> &str {
        "session"
    }

    fn id(&self) -> &str {
        "s1"
    }
}

async fn drive(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup {} = stage.scenario.setup()?;
    let budget = stage.scenario.deadline_ms.map(|ms| stage.world.pace.span(ms));
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let callbacks = match (policy, budget) {
        (None, None) => TerminalCallbacks::<Ended>::start(&runtime).await,
        (None, Some(budget)) => TerminalCallbacks::within(&runtime, budget).await,
        (Some(mut policy), budget) => {
            if let (Some(budget), Some(deadline)) = (budget, policy.pointer_mut("/phases/0/deadline_ms")) {
                *deadline = json!(budget.as_millis() as u64);
            }
            testing::terminal_callbacks(&runtime, policy_of(policy)?).await
        }
    }
    .expect("a dispatcher comes up");
    let (registers, removes) = (callbacks.clone(), callbacks.clone());
    register(
        &stage,
        move |body, unique| {
            let Filter { kinds, ids } = body.handler.filter()?.unwrap_or_default();
            let callback = subscriber(body, body.handler.registration.clone().unwrap_or(unique));
            let callback = if body.handler.overrides { callback.overriding() } else { callback };
            registers.register(TerminalFilter { kinds, ids }, callback).map_err(|error| error.to_string())
        },
        move |registration| {
            removes.remove(registration);
        },
    )?;
    stage.begin();
    let emission = callbacks.emit(&Arc::new(Ended));
    let handle = cancelling(emission.canceller());
    let outcome = stage.emission(handle, async { emission.await.map_or_else(|error| not_returned(&error), |()| NOTHING) }).await;
    stage.settle().await;
    Ok(Driven { outcome, extra: BTreeMap::new() })
}
