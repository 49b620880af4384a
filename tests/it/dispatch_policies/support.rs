//! Handlers, changed policies, and reports as short texts.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::{
    DispatchError, DispatchPolicy, DispatchReport, Dispatcher, HandlerContext, HandlerError, Raised, Subscriber,
};
use tokio::time::sleep;

pub(super) type Facts = Dispatcher<u32, u32>;
pub(super) type Result<T> = std::result::Result<T, HandlerError>;

/// Longer than anything here may take, so that a test which waits for what never comes fails instead of hanging.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// A policy with other values at these places of its stored form; `null` removes one.
pub(super) fn changed(policy: &DispatchPolicy, values: &[(&str, Value)]) -> DispatchPolicy {
    let mut stored = serde_json::to_value(policy).unwrap();
    for (path, value) in values {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = stored.pointer_mut(&format!("/phases{parent}")).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(name)),
            value => drop(parent.insert(name.to_owned(), value.clone())),
        }
    }
    serde_json::from_value(stored).unwrap()
}

pub(super) fn dispatcher(policy: DispatchPolicy, subscribers: impl IntoIterator<Item = Subscriber<u32, u32>>) -> Facts {
    let dispatcher = Facts::new(policy);
    for subscriber in subscribers {
        let _ = dispatcher.register(subscriber).unwrap();
    }
    dispatcher
}

pub(super) fn returning(name: &str, value: u32) -> Subscriber<u32, u32> {
    Subscriber::declared_sync(name, move |_: &Arc<u32>| Ok::<_, HandlerError>(value))
}

pub(super) fn failing(name: &'static str) -> Subscriber<u32, u32> {
    Subscriber::declared_sync(name, move |_: &Arc<u32>| Err::<u32, _>(HandlerError::failed("e", name)))
}

pub(super) fn cancelling(name: &str) -> Subscriber<u32, u32> {
    Subscriber::declared_sync(name, |_: &Arc<u32>| Err::<u32, _>(HandlerError::Cancelled))
}

/// Takes so long, by the clock of the runtime.
pub(super) fn taking(name: &str, long: Duration) -> Subscriber<u32, u32> {
    Subscriber::declared_async(name, move |_| async move {
        sleep(long).await;
        Ok::<_, HandlerError>(7)
    })
}

pub(super) fn hanging(name: &str) -> Subscriber<u32, u32> {
    Subscriber::declared_async(name, |_| pending::<Result<u32>>())
}

/// Hangs until it is told that it is cancelled, and then ends like this.
pub(super) fn until_told(name: &str, ends: fn() -> Result<u32>) -> Subscriber<u32, u32> {
    Subscriber::declared_async_with(name, move |_, context: HandlerContext| async move {
        context.token().cancelled().await;
        ends()
    })
}

/// Takes no notice of being told.
pub(super) fn deaf(name: &str) -> Subscriber<u32, u32> {
    Subscriber::declared_async_with(name, |_, _context: HandlerContext| pending::<Result<u32>>())
}

/// Ends after so long, whatever is left.
pub(super) fn by(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

pub(super) async fn reported(dispatcher: &Facts) -> DispatchReport<u32> {
    dispatcher.emit(&Arc::new(1)).await.expect("nothing is raised")
}

pub(super) async fn raised(dispatcher: &Facts) -> Raised<u32> {
    into_raised(dispatcher.emit(&Arc::new(1)).await)
}

#[track_caller]
pub(super) fn into_raised(result: std::result::Result<DispatchReport<u32>, DispatchError<u32>>) -> Raised<u32> {
    match result {
        Err(DispatchError::Raised(raised)) => *raised,
        other => panic!("expected that something is raised: {other:?}"),
    }
}

/// Registration and outcome, with the reason of one that was not started.
pub(super) fn ends(report: &DispatchReport<u32>) -> Vec<String> {
    let stored = serde_json::to_value(report).unwrap();
    let entry = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        let why = if entry["why"].is_null() { String::new() } else { format!(" ({})", text("why")) };
        format!("{}: {}{why}", text("registration"), text("outcome"))
    };
    stored["handlers"].as_array().unwrap().iter().map(entry).collect()
}

/// What handlers did, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(super) fn push(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(super) fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
