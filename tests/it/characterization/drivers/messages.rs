//! The message manager's callbacks, through its synchronous and its asynchronous entry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::Runtime;
use tipstaff::compat::{AddError, AsyncMessages, SyncMessages, testing};
use tipstaff::dispatch::profile::compat;

use super::broadcaster::policy_of;
use super::dispatch::{cancelling, not_returned, predicated, raised_by, refused, register};
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::{Entry, Outcome};

pub(super) const SYNC: Driver = Driver {
    profile: "message_added_sync",
    policy: || serde_json::to_value(compat::message_added_sync()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| drive_sync(stage, policy).boxed_local(),
};

pub(super) const ASYNC: Driver = Driver {
    profile: "message_added_async",
    policy: || serde_json::to_value(compat::message_added_async()).expect("a policy is plain data"),
    threads: never,
    drive: |stage, policy| match stage.scenario.emit.entry {
        // An owner that is synchronous and adopts this profile.
        Entry::Sync => drive_sync(stage, Some(policy.unwrap_or_else(ASYNC.policy))).boxed_local(),
        _ => drive_async(stage, policy).boxed_local(),
    },
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {}

/// What is added.
struct Message;

/// The messages that the owner keeps.
type Pile = Arc<Mutex<Vec<Arc<Message>>>>;

async fn drive_sync(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup {} = stage.scenario.setup()?;
    let messages = match policy {
        None => SyncMessages::<Message>::new(),
        Some(policy) => testing::sync_messages(policy_of(policy)?),
    };
    let (registers, removes) = (messages.clone(), messages.clone());
    register(
        &stage,
        move |body, unique| registers.on_added(predicated(body, unique)?).map_err(|error| error.to_string()),
        move |registration| {
            removes.remove(registration);
        },
    )?;
    stage.begin();
    let pile = Pile::default();
    let outcome = match messages.add(Message, |message| keep(&pile, message)) {
        Ok(_message) => added(),
        Err(AddError::Refused(refusal)) => refused(&refusal),
        Err(AddError::Raised(error)) => raised_by(&error),
        Err(other) => return Err(other.to_string()),
    };
    stage.ended(&outcome);
    stage.settle().await;
    Ok(Driven { outcome, extra: held(&pile) })
}

async fn drive_async(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup {} = stage.scenario.setup()?;
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let messages = match policy {
        None => AsyncMessages::<Message>::start(&runtime).await,
        Some(policy) => testing::async_messages(&runtime, policy_of(policy)?).await,
    }
    .expect("a dispatcher comes up");
    let (registers, removes) = (messages.clone(), messages.clone());
    register(
        &stage,
        move |body, unique| registers.on_added(predicated(body, unique)?).map_err(|error| error.to_string()),
        move |registration| {
            removes.remove(registration);
        },
    )?;
    stage.begin();
    let pile = Pile::default();
    let emission = messages.add(Message, |message| keep(&pile, message));
    let handle = cancelling(emission.canceller());
    let outcome =
        stage.emission(handle, async { emission.await.map_or_else(|error| not_returned(&error), |_message| added()) }).await;
    stage.settle().await;
    Ok(Driven { outcome, extra: held(&pile) })
}

fn keep(pile: &Pile, message: &Arc<Message>) {
    pile.lock().expect("nobody panics with it held").push(Arc::clone(message));
}

fn added() -> Outcome {
    Outcome::Returned { value: json!({"$message": true}) }
}

fn held(pile: &Pile) -> BTreeMap<String, Value> {
    BTreeMap::from([("messages".to_owned(), json!(pile.lock().expect("nobody panics with it held").len()))])
}
