//! Awaitables that nobody awaits: who relies on it, and what is said (F-7).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{DiscardingRegistration, Outcome, PANIC_CODE, RETURNED_AWAITABLE_CODE, Returned, Subscriber};

use super::support::*;

fn coroutine(name: &str) -> Subscriber<u32, u32> {
    Subscriber::declared_sync_with(name, |_: &Arc<u32>, _| Ok(Returned::coroutine(async { Ok(1) })))
}

fn awaitable(name: &str) -> Subscriber<u32, u32> {
    Subscriber::declared_sync_with(name, |_: &Arc<u32>, _| Ok(Returned::awaitable(async { Ok(2) })))
}

/// F-7, `discard_unawaited`: the registrations that rely on it are listed, with how often, until they are gone; a declared async callback is awaited.
#[tokio::test]
async fn registrations_that_rely_on_discarding_are_listed() {
    let registry = dispatcher(
        compat::message_added_async(),
        [awaitable("a"), returning("b", 1), coroutine("c").when(|fact: &u32| *fact > 1)],
    );
    let last = registry.register(taking("d", std::time::Duration::ZERO)).unwrap();
    assert_eq!(registry.discarding(), []);
    assert_eq!(ends(&registry.emit(&Arc::new(1)).await.unwrap()), ["a: discarded_unawaited", "b: returned", "d: returned"]);
    registry.emit(&Arc::new(2)).await.unwrap();
    let listed = |name: &str, times| DiscardingRegistration { name: name.into(), times };
    assert_eq!(registry.discarding(), [listed("a", 2), listed("c", 1)]);
    assert_eq!(registry.counts().discarded_unawaited, 3);
    assert!(registry.unregister(&last));
}

/// `broadcaster`: native async bodies are awaited, any other awaitable is dropped and reported so.
#[tokio::test]
async fn the_broadcaster_awaits_native_bodies_only() {
    let registry = dispatcher(compat::broadcaster(), [coroutine("a"), awaitable("b")]);
    let report = reported(&registry).await;
    assert_eq!(ends(&report), ["a: returned", "b: discarded_unawaited"]);
    assert_eq!(registry.counts().discarded_unawaited, 1);
}

/// `observation` rejects a returned awaitable: it is a failure with a code of its own, for a declared async handler is at hand.
#[tokio::test]
async fn observation_rejects_a_returned_awaitable() {
    let report = reported(&dispatcher(profile::observation(), [coroutine("a"), returning("b", 1)])).await;
    let Outcome::Isolated(failure) = report.entry("a").unwrap().outcome else { panic!("{report:?}") };
    assert_eq!(failure.code(), RETURNED_AWAITABLE_CODE);
    assert_ne!(failure.code(), PANIC_CODE);
}

/// The diagnostic of dropped awaitables: reported, counted, and said below the level of a warning, once each.
#[test]
fn dropped_awaitables_are_said_below_a_warning() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let registry = dispatcher(compat::session_observer(), [coroutine("a"), awaitable("b"), failing("c")]);
    let told = Arc::new(Told::default());
    let raised = tracing::subscriber::with_default(Listener(Arc::clone(&told)), || runtime.block_on(raised(&registry)));
    assert_eq!(ends(raised.report()), ["a: dropped_unawaited", "b: dropped_unawaited", "c: failed"]);
    assert_eq!(registry.counts().dropped_unawaited, 2);
    assert_eq!((told.warnings.load(Ordering::Relaxed), told.infos.load(Ordering::Relaxed)), (0, 2));
}

/// F-21: `log_and_stop` logs once, `silent_stop` nothing, and an isolated failure once.
#[test]
fn a_deadline_is_logged_as_its_disposition_says() {
    for (disposition, warnings) in [("log_and_stop", 2), ("silent_stop", 1), ("return_report", 1)] {
        let values = [("/0/deadline_ms", json!(1000)), ("/0/deadline_disposition", json!(disposition))];
        let policy = changed(&profile::observation(), &values);
        let registry = dispatcher(policy, [hanging("a"), hanging("b"), failing("c")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let told = Arc::new(Told::default());
        tracing::subscriber::with_default(Listener(Arc::clone(&told)), || runtime.block_on(reported(&registry)));
        assert_eq!(told.warnings.load(Ordering::Relaxed), warnings, "{disposition}");
    }
}

#[derive(Default)]
struct Told {
    warnings: AtomicUsize,
    infos: AtomicUsize,
}

struct Listener(Arc<Told>);

impl tracing::Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO && metadata.target() == tipstaff_core::telemetry::DISPATCH
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let counter = if *event.metadata().level() <= tracing::Level::WARN { &self.0.warnings } else { &self.0.infos };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
