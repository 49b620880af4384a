//! Handlers on the dispatcher's own threads (F-17).

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::profile;
use tipstaff_core::dispatch::{Dispatcher, HandlerContext, HandlerError, Returned, Subscriber};

use super::support::*;

/// A handler that blocks its thread until it is released, or the test has ended.
fn blocking(name: &str) -> (Subscriber<u32, u32>, Sender<()>) {
    let (release, held) = channel::<()>();
    let held = Mutex::new(held);
    let subscriber = Subscriber::declared_sync(name, move |_: &Arc<u32>| {
        let _released = held.lock().unwrap().recv_timeout(LONG);
        Ok::<_, HandlerError>(1)
    });
    (subscriber, release)
}

/// F-17: under `terminal_registry` a blocked thread holds nobody; at the deadline it is given up, and the entry says that its end is not known.
#[tokio::test(start_paused = true)]
async fn a_blocked_thread_is_given_up_at_the_deadline() {
    let (blocks, release) = blocking("blocks");
    let registry = dispatcher(profile::terminal_registry(), [blocks, taking("async", Duration::from_secs(1))]);
    let report = reported(&registry).await;
    assert_eq!(ends(&report), ["blocks: abandoned_unknown", "async: returned"]);
    assert_eq!(report.elapsed(), profile::TERMINAL_BUDGET);
    assert_eq!(registry.counts().abandoned, 1);
    drop(release);
}

/// F-17: the threads are bounded, and an abandoned one holds its place: none free, and a handler is not started.
#[tokio::test(start_paused = true)]
async fn no_thread_is_free_while_all_are_blocked() {
    let registry = Dispatcher::<u32, u32>::with_threads(profile::terminal_registry(), NonZeroUsize::MIN);
    let (blocks, release) = blocking("blocks");
    let _ = registry.register(blocks).unwrap();
    let _ = registry.register(returning("second", 2)).unwrap();
    for end in ["blocks: abandoned_unknown", "blocks: not_started (offload saturated)"] {
        assert_eq!(ends(&reported(&registry).await), [end, "second: not_started (offload saturated)"]);
    }
    drop(release);
}

/// F-17: `observation` is inline, and a registration may ask for a thread. The time is the machine's: a paused clock would run past the budget.
#[tokio::test]
async fn a_registration_may_ask_for_a_thread() {
    let here = std::thread::current().id();
    let thread = |name: &str| {
        Subscriber::declared_sync(name, move |_: &Arc<u32>| Ok::<_, HandlerError>(u32::from(std::thread::current().id() != here)))
    };
    let report = reported(&dispatcher(profile::observation(), [thread("inline"), thread("asks").offloaded()])).await;
    assert_eq!(report.results().collect::<Vec<_>>(), [Ok(&0), Ok(&1)]);
}

/// F-15, F-17: a panic on a thread is a failure of its handler; what a thread returns to be awaited is awaited with the emission.
#[tokio::test]
async fn a_thread_ends_like_a_handler() {
    let panics = Subscriber::declared_sync("panics", |_: &Arc<u32>| -> Result<u32> { panic!("on a thread") });
    let coroutine = Subscriber::declared_sync_with("coroutine", |_: &Arc<u32>, _| Ok(Returned::coroutine(async { Ok(3) })));
    let report = reported(&dispatcher(profile::terminal_registry(), [panics, coroutine])).await;
    assert_eq!(ends(&report), ["panics: isolated", "coroutine: returned"]);
    assert_eq!(serde_json::to_value(&report).unwrap()["handlers"][0]["code"], "panic");
}

/// F-17, F-19: a thread that is given up is told, so that it can end itself.
#[tokio::test(start_paused = true)]
async fn a_thread_that_is_given_up_is_told() {
    let (told, heard) = channel();
    let told = Mutex::new(told);
    let watches = Subscriber::declared_sync_with("watches", move |_: &Arc<u32>, context: &HandlerContext| {
        while !context.token().is_cancelled() {
            std::thread::yield_now();
        }
        told.lock().unwrap().send(context.token().cancelled_by()).unwrap();
        Ok(Returned::Value(1))
    });
    let report = reported(&dispatcher(profile::terminal_registry(), [watches])).await;
    assert_eq!(ends(&report), ["watches: abandoned_unknown"]);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Some(tipstaff_core::dispatch::CancelledBy::Deadline));
}

/// F-17: stopping does not wait for a thread that was given up.
#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_threads() {
    let (blocks, release) = blocking("blocks");
    let registry = dispatcher(profile::terminal_registry(), [blocks]);
    assert_eq!(ends(&reported(&registry).await), ["blocks: abandoned_unknown"]);
    registry.stop(Deadline::after(LONG)).await;
    drop(registry);
    // Only now may the thread end.
    release.send(()).unwrap();
}
