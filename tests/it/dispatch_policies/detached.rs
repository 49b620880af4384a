//! Detached work (F-20).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::profile;
use tipstaff_core::dispatch::{
    Completion, DetachBounds, DispatchError, DispatchPolicy, HandlerError, Phase, Refusal, StagePolicy, Subscriber,
};
use tokio::time::{Instant, sleep};

use super::support::*;

const SECOND: Duration = Duration::from_secs(1);

fn detaching(max_running: u32) -> DispatchPolicy {
    let [all] = *profile::observation().phases() else { panic!("one phase") };
    let bounds = DetachBounds { max_running: NonZeroU32::new(max_running).unwrap(), max_age: 10 * SECOND };
    let invocation = StagePolicy { completion: Completion::DetachBounded, detach: Some(bounds), ..all.invocation };
    DispatchPolicy::new([Phase { invocation, ..all }]).unwrap()
}

/// F-20: the emission does not wait, the report says `detached`, and how the work ended is counted. What is sync has ended with its call.
#[tokio::test(start_paused = true)]
async fn detached_work_goes_on_and_is_counted() {
    let fails = Subscriber::declared_async("fails", |_| async { Err::<u32, _>(HandlerError::failed("e", "")) });
    let cancels = Subscriber::declared_async("cancels", |_| async { Err::<u32, _>(HandlerError::Cancelled) });
    let registry = dispatcher(detaching(8), [taking("returns", SECOND), fails, cancels, hanging("hangs"), returning("sync", 1)]);
    let begun = Instant::now();
    let report = reported(&registry).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(ends(&report), ["returns: detached", "fails: detached", "cancels: detached", "hangs: detached", "sync: returned"]);
    sleep(11 * SECOND).await;
    let counts = registry.counts();
    assert_eq!((counts.detached, counts.detached_returned, counts.detached_failed), (4, 1, 1));
    assert_eq!((counts.detached_cancelled, counts.detached_expired, counts.detached_stopped), (1, 1, 0));
}

/// F-20: at the limit a handler is not started; a place is free again when work has ended.
#[tokio::test(start_paused = true)]
async fn detached_work_is_bounded_over_emissions() {
    let registry = dispatcher(detaching(2), [taking("a", 2 * SECOND), hanging("b").when(|fact: &u32| *fact == 1)]);
    assert_eq!(ends(&registry.emit(&Arc::new(1)).await.unwrap()), ["a: detached", "b: detached"]);
    assert_eq!(ends(&registry.emit(&Arc::new(2)).await.unwrap()), ["a: not_started (detach limit)"]);
    sleep(3 * SECOND).await;
    assert_eq!(ends(&registry.emit(&Arc::new(3)).await.unwrap()), ["a: detached"]);
}

/// F-12, F-20: detached work survives its emitter, and nothing else does; it ends with its dispatcher, and that is counted.
#[tokio::test(start_paused = true)]
async fn detached_work_survives_its_emitter_and_ends_with_its_dispatcher() {
    let registry = dispatcher(detaching(8), [taking("a", 2 * SECOND), hanging("b")]);
    let mut emission = registry.emit(&Arc::new(1)).into_future();
    assert!(futures::poll!(&mut emission).is_ready());
    drop(emission);
    sleep(3 * SECOND).await;
    assert_eq!(registry.counts().detached_returned, 1);
    registry.stop(Deadline::after(SECOND)).await;
    assert_eq!(registry.counts().detached_stopped, 1);
    let refused = registry.emit(&Arc::new(1)).await;
    assert!(matches!(refused, Err(DispatchError::Refused(Refusal::Stopped))), "{refused:?}");
}

/// F-20: a dispatcher that is dropped ends what it let go on.
#[tokio::test(start_paused = true)]
async fn a_dropped_dispatcher_ends_its_work() {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let holds = Subscriber::declared_async("holds", move |_| {
        let held = Arc::clone(&held);
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok::<u32, HandlerError>(1)
        }
    });
    let registry = dispatcher(detaching(8), [holds]);
    assert_eq!(ends(&reported(&registry).await), ["holds: detached"]);
    assert_eq!(Arc::strong_count(&alive), 3, "the test's, the handler's, and that of its work");
    drop(registry);
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&alive), 1);
}
