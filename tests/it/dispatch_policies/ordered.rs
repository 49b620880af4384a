//! Ordered registrations (F-18).

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::profile;
use tipstaff_core::dispatch::{HandlerError, OrderedQueue, QueueOverflow, Subscriber};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::support::*;

fn queue(capacity: usize, overflow: QueueOverflow) -> OrderedQueue {
    OrderedQueue { capacity: NonZeroUsize::new(capacity).unwrap(), overflow }
}

/// An ordered handler that takes a second for each fact, and says when it has ended with one.
fn slow(queue: OrderedQueue) -> (Subscriber<u32, u32>, UnboundedReceiver<u32>) {
    let (done, told) = unbounded_channel();
    let subscriber = Subscriber::declared_async("slow", move |fact: Arc<u32>| {
        let done = done.clone();
        async move {
            sleep(Duration::from_secs(1)).await;
            let _ = done.send(*fact);
            Ok::<_, HandlerError>(1)
        }
    });
    (subscriber.ordered(queue), told)
}

async fn told(told: &mut UnboundedReceiver<u32>, facts: usize) -> Vec<u32> {
    let mut seen = Vec::new();
    while seen.len() < facts {
        seen.push(timeout(LONG, told.recv()).await.expect("it is called").expect("it is registered"));
    }
    seen
}

/// F-18: one emission at a time, in the order of admission, whichever emission runs first; the emission does not wait, and its report says `queued`.
#[tokio::test(start_paused = true)]
async fn ordered_calls_are_in_the_order_of_admission() {
    let (subscriber, mut seen) = slow(queue(16, QueueOverflow::DropNewest));
    let registry = dispatcher(profile::observation(), [subscriber, returning("other", 1)]);
    let admitted: Vec<_> = (1..=5).map(|fact| registry.emit(&Arc::new(fact))).collect();
    for emit in admitted.into_iter().rev() {
        let report = emit.await.unwrap();
        assert_eq!(ends(&report), ["slow: queued", "other: returned"]);
        assert_eq!(report.elapsed(), Duration::ZERO);
    }
    assert_eq!(told(&mut seen, 5).await, [1, 2, 3, 4, 5]);
    tokio::task::yield_now().await;
    assert_eq!(registry.counts().ordered_called, 5);
}

/// F-18: what does not want the fact, and what never runs, holds nobody up.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_not_used_holds_nobody_up() {
    let (subscriber, mut seen) = slow(queue(16, QueueOverflow::DropNewest));
    let registry = dispatcher(
        profile::observation(),
        [subscriber.when(|fact: &u32| *fact % 2 == 1), hanging("hangs").when(|fact: &u32| *fact == 2)],
    );
    let dropped = registry.emit(&Arc::new(1));
    let mut unmatched = registry.emit(&Arc::new(2)).into_future();
    let last = registry.emit(&Arc::new(3));
    assert_eq!(ends(&last.await.unwrap()), ["slow: queued"]);
    assert!(futures::poll!(&mut unmatched).is_pending(), "another handler of it hangs");
    drop(dropped);
    assert_eq!(told(&mut seen, 1).await, [3]);
}

/// F-18: the queue is bounded, its overflow is declared, and every loss is counted.
#[tokio::test(start_paused = true)]
async fn a_full_queue_gives_up_the_newest_or_the_oldest() {
    for (overflow, called, last) in [
        (QueueOverflow::DropNewest, vec![1, 2], "slow: not_started (queue full)"),
        (QueueOverflow::DropOldest, vec![3, 4], "slow: queued"),
    ] {
        let (subscriber, mut seen) = slow(queue(2, overflow));
        let registry = dispatcher(profile::observation(), [subscriber]);
        // All are admitted before the first is called.
        let admitted: Vec<_> = (1..=4).map(|fact| registry.emit(&Arc::new(fact))).collect();
        let mut reports = Vec::new();
        for emit in admitted {
            reports.extend(ends(&emit.await.unwrap()));
        }
        assert_eq!(reports.last().unwrap(), last);
        assert_eq!(told(&mut seen, 2).await, called);
        assert_eq!(registry.counts().ordered_dropped, 2);
    }
}

/// F-15, F-18: a failure or a panic costs its own emission only, and is counted; stopping counts what waited.
#[tokio::test(start_paused = true)]
async fn ordered_failures_are_counted_and_stopping_ends_the_queue() {
    let fragile = Subscriber::declared_async("fragile", |fact: Arc<u32>| async move {
        match *fact {
            1 => panic!("the first"),
            2 => Err(HandlerError::failed("e", "the second")),
            _ => std::future::pending().await,
        }
    });
    let registry = dispatcher(profile::terminal_registry(), [fragile.ordered(queue(8, QueueOverflow::DropNewest))]);
    for fact in 1..=3 {
        assert_eq!(ends(&registry.emit(&Arc::new(fact)).await.unwrap()), ["fragile: queued"]);
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!((registry.counts().ordered_called, registry.counts().ordered_failed), (2, 2));
    registry.stop(Deadline::after(LONG)).await;
    assert_eq!(registry.counts().ordered_stopped, 1);
}
