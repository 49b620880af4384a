//! `Broadcaster.broadcast`.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::Runtime;
use tipstaff::compat::{Broadcaster, testing};
use tipstaff::dispatch::profile::compat;

use super::dispatch::{cancelling, library, not_returned, predicated, register};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::Outcome;

pub(super) const DRIVER: Driver = Driver {
    profile: "broadcaster",
    policy: || serde_json::to_value(compat::broadcaster()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive(stage, policy).boxed_local(),
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {}

/// The event type.
struct Event;

async fn drive(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup {} = stage.scenario.setup()?;
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let broadcaster = match policy {
        None => Broadcaster::<Event>::start(&runtime).await,
        Some(policy) => testing::broadcaster(&runtime, policy_of(policy)?).await,
    }
    .expect("a dispatcher comes up");
    let (subscribes, unsubscribes) = (broadcaster.clone(), broadcaster.clone());
    register(
        &stage,
        // A callback is known by what it is: its second subscription has the same name.
        move |body, _unique| {
            let subscriber = predicated(body, body.handler.name.clone())?;
            subscribes.subscribe(subscriber).map_err(|error| error.to_string())
        },
        move |registration| {
            if let Some(registration) = registration {
                unsubscribes.unsubscribe(registration);
            }
        },
    )?;
    stage.begin();
    let outcome = match stage.scenario.emit.event.as_deref() {
        None => {
            let emission = broadcaster.broadcast(&Arc::new(Event));
            stage
                .emission(cancelling(emission.canceller()), async {
                    emission.await.map_or_else(|e| not_returned(&e), |()| NOTHING)
                })
                .await
        }
        Some("wrong_type") => {
            let refused =
                broadcaster.broadcast_any(Arc::new("no event")).map_or_else(|_wrong| library("ValueError"), |_| NOTHING);
            stage.ended(&refused);
            refused
        }
        Some(other) => return Err(format!("emit.event: {other:?}")),
    };
    stage.settle().await;
    Ok(Driven { outcome, extra: BTreeMap::from([("subscribers".to_owned(), json!(broadcaster.subscribers()))]) })
}

/// What an emission returns that returns nothing.
pub(super) const NOTHING: Outcome = Outcome::Returned { value: Value::Null };

/// A policy of the dispatch kernel.
pub(super) fn policy_of(policy: Value) -> Result<tipstaff::dispatch::DispatchPolicy, String> {
    serde_json::from_value(policy).map_err(|error| error.to_string())
}
