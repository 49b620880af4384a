//! Cancellation by the emitter (F-12), and what a handler is told of it (F-19).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{
    CancelledBy, DispatchPolicy, DispatchReport, GRACE, HandlerContext, HandlerError, Raised, RaisedError, Subscriber,
};
use tokio::time::{Instant, sleep};

use super::support::*;

/// An emission that is cancelled by its handle after a second.
async fn cancelled_after_a_second(registry: &Facts) -> std::result::Result<DispatchReport<u32>, Raised<u32>> {
    let mut emit = registry.emit(&Arc::new(1));
    let handle = emit.handle();
    let cancel = async {
        sleep(Duration::from_secs(1)).await;
        handle.cancel();
    };
    match futures::join!(emit.into_future(), cancel).0 {
        Ok(report) => Ok(report),
        result => Err(into_raised(result)),
    }
}

fn by_emitter() -> RaisedError {
    RaisedError::Cancelled { by: CancelledBy::Emitter, registration: None }
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A handler that hangs and says when it is dropped.
fn holding(name: &str, dropped: &Arc<AtomicBool>) -> Subscriber<u32, u32> {
    let dropped = Arc::clone(dropped);
    Subscriber::declared_async_with(name, move |_, _context: HandlerContext| {
        let on_drop = OnDrop(Arc::clone(&dropped));
        async move {
            let _on_drop = on_drop;
            std::future::pending::<Result<u32>>().await
        }
    })
}

/// F-12, F-19: under a native profile the handle drops what is in flight at once, nothing more is begun, and the cancellation is raised with the report.
#[tokio::test(start_paused = true)]
async fn a_native_emission_is_cancelled_at_once() {
    let dropped = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let registry = dispatcher(profile::observation(), [returning("done", 1), holding("in flight", &dropped)]);
    let raised = cancelled_after_a_second(&registry).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(*raised.error(), by_emitter());
    assert_eq!(ends(raised.report()), ["done: returned", "in flight: cancelled (emitter)"]);
    assert!(dropped.load(Ordering::Relaxed));

    let sequential = native(&compat::broadcaster());
    let raised = cancelled_after_a_second(&dispatcher(sequential, [hanging("first"), returning("second", 2)])).await.unwrap_err();
    assert_eq!(*raised.error(), by_emitter());
    assert_eq!(ends(raised.report()), ["first: cancelled (emitter)", "second: not_started (earlier cancellation)"]);
}

/// The values of a recorded profile, natively.
fn native(policy: &DispatchPolicy) -> DispatchPolicy {
    DispatchPolicy::new(policy.phases()).unwrap()
}

/// F-12: dropping the emit future is hard everywhere, also where the handle would be gentle.
#[tokio::test(start_paused = true)]
async fn dropping_the_future_is_hard_everywhere() {
    for policy in [profile::observation(), compat::scheduler(), compat::session_observer(), compat::broadcaster()] {
        let dropped = Arc::new(AtomicBool::new(false));
        let registry = dispatcher(policy, [holding("in flight", &dropped)]);
        let emission = registry.emit(&Arc::new(1)).into_future();
        assert!(tokio::time::timeout(Duration::from_secs(1), emission).await.is_err());
        assert!(dropped.load(Ordering::Relaxed));
    }
}

/// F-19: in a compatibility profile the token is set, the handler's own end counts within the grace, and what has not ended then is dropped.
#[tokio::test(start_paused = true)]
async fn a_recorded_emission_lets_handlers_end_in_their_own_way() {
    let dropped = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let handlers = [
        until_told("returns", || Ok(1)),
        until_told("fails", || Err(HandlerError::failed("e", "while cancelled"))),
        until_told("yields", || Err(HandlerError::Cancelled)),
        holding("deaf", &dropped),
        hanging("without a context"),
    ];
    let raised = cancelled_after_a_second(&dispatcher(compat::scheduler(), handlers)).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(1) + GRACE);
    assert_eq!(*raised.error(), by_emitter(), "the scheduler's emitter always hears of it");
    assert_eq!(
        ends(raised.report()),
        [
            "returns: returned",
            "fails: failed",
            "yields: cancelled (emitter)",
            "deaf: cancelled (emitter)",
            "without a context: cancelled (emitter)"
        ]
    );
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(raised.report().entry("without a context").unwrap().elapsed, Duration::from_secs(1), "it cannot be told");
}

/// F-19, as recorded: of a sequence the running handler decides. One that lets it pass unheeded lets the next one run; one that yields ends a broadcast, and is
/// collected by message callbacks, whose later ones run untold.
#[tokio::test(start_paused = true)]
async fn the_running_handler_of_a_recorded_sequence_decides() {
    let swallows = || [until_told("first", || Ok(1)), taking("second", Duration::from_secs(5))];
    let yields = || [until_told("first", || Err(HandlerError::Cancelled)), taking("second", Duration::from_secs(5))];
    for policy in [compat::broadcaster(), compat::message_added_async()] {
        let report = cancelled_after_a_second(&dispatcher(policy, swallows())).await.unwrap();
        assert_eq!(ends(&report), ["first: returned", "second: returned"]);
    }
    let ended = cancelled_after_a_second(&dispatcher(compat::broadcaster(), yields())).await.unwrap_err();
    assert_eq!(*ended.error(), by_emitter());
    assert_eq!(ends(ended.report()), ["first: cancelled (emitter)", "second: not_started (earlier cancellation)"]);
    let drained = cancelled_after_a_second(&dispatcher(compat::message_added_async(), yields())).await.unwrap_err();
    assert_eq!(*drained.error(), by_emitter());
    assert_eq!(ends(drained.report()), ["first: cancelled (emitter)", "second: returned"]);
}

/// As recorded: what fails while the session observer's gathering is cancelled is raised instead; what returns does not undo the cancellation.
#[tokio::test(start_paused = true)]
async fn a_gathering_that_is_cancelled_raises_its_failures_first() {
    let swallowed = dispatcher(compat::session_observer(), [until_told("a", || Ok(1))]);
    assert_eq!(*cancelled_after_a_second(&swallowed).await.unwrap_err().error(), by_emitter());
    let replaced = dispatcher(compat::session_observer(), [until_told("a", || Err(HandlerError::failed("e", "instead")))]);
    assert!(matches!(cancelled_after_a_second(&replaced).await.unwrap_err().error(), RaisedError::One(_)));
}

/// F-12: a cancellation that comes before anything waits is not lost: the next handler that waits is told, and without one the emission raises it.
#[tokio::test(start_paused = true)]
async fn an_early_cancellation_is_not_lost() {
    let early = async |registry: Facts| {
        let mut emit = registry.emit(&Arc::new(1));
        emit.handle().cancel();
        emit.await
    };
    let told =
        dispatcher(compat::message_added_async(), [returning("sync", 1), until_told("next", || Ok(2)), taking("last", LONG)]);
    assert_eq!(ends(&early(told).await.unwrap()), ["sync: returned", "next: returned", "last: returned"]);
    let nobody = into_raised(early(dispatcher(compat::message_added_async(), [returning("sync", 1)])).await);
    assert_eq!(*nobody.error(), by_emitter());
    let native = into_raised(early(dispatcher(profile::observation(), [returning("sync", 1)])).await);
    assert_eq!(ends(native.report()), ["sync: not_started (earlier cancellation)"]);
}
