//! Hooks of the original system by their tables (I-13); the recorded traces are run elsewhere.

mod points;
mod service;

use std::sync::Arc;

use serde_json::{Value, json};
use tipstaff::cancel::Cancellation;
use tipstaff::compat::{Hook, HookError, HookReturn, HookReturned};

use super::rig::{Latch, Log, soon};

/// A wait that fails instead of hanging.
async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout_at(soon().instant(), work).await.expect("it ends in time")
}

/// How a scripted handler ends.
#[derive(Clone)]
enum Way {
    Returns,
    Fails,
    Panics,
    Fatal,
    Refused,
    Stops,
    CancelsItself,
    /// Waits to be asked, then ends so.
    Asked(Box<Way>),
    /// Waits for ever, and does not look at its token.
    Hangs,
}

fn end(name: &str, way: &Way) -> HookReturned {
    match way {
        Way::Returns => Ok(json!(name)),
        Way::Fails => Err(HookError::failed("E1", "told to")),
        Way::Panics => panic!("told to"),
        Way::Fatal => Err(HookError::fatal("X1", "told to")),
        Way::Refused => Err(HookError::store_refused("told to")),
        Way::Stops => Err(HookError::Stop),
        Way::CancelsItself => Err(HookError::Cancelled),
        Way::Asked(_) | Way::Hangs => unreachable!("these wait"),
    }
}

async fn body(name: String, way: Way, log: Log, begun: Latch, token: Cancellation) -> HookReturned {
    log.note(&*name);
    begun.open();
    match way {
        Way::Asked(then) => {
            token.cancelled().await;
            log.note(format!("{name} asked"));
            end(&name, &then)
        }
        Way::Hangs => std::future::pending().await,
        way => end(&name, &way),
    }
}

/// A declared async handler; `begun` is opened when it begins.
fn scripted(name: &str, way: Way, log: &Log, begun: &Latch) -> Hook<Value> {
    let (own, log, begun) = (name.to_owned(), log.clone(), begun.clone());
    Hook::declared_async(name, move |_: Arc<Value>, token| body(own.clone(), way.clone(), log.clone(), begun.clone(), token))
}

/// A declared sync handler that returns what it makes.
fn plain(name: &str, make: impl Fn(&Log) -> Result<HookReturn, HookError> + Send + Sync + 'static, log: &Log) -> Hook<Value> {
    let (own, log) = (name.to_owned(), log.clone());
    Hook::declared_sync(name, move |_: &Arc<Value>, _: &Cancellation| {
        log.note(&*own);
        make(&log)
    })
}
