//! Dispatchers as actors: what their mailbox, their supervision and their emitters may expect of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tipstaff::dispatch::{DispatchError, NotStarted, Outcome, Refusal, Subscriber, profile};
use tipstaff::dispatcher::{DispatcherHandle, Emission, EmissionError};
use tipstaff::{CrashPoints, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use crate::rig::soon;

/// Emissions in flight of one dispatcher, and emissions that wait beside them.
const PLACES: usize = 1024;
/// How deep a handler may emit on its own dispatcher at least.
const DEEP: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    /// Every handler waits for the latch.
    Waits,
    /// The handler emits the next one on the same dispatcher, down to zero, and awaits its report.
    Nests(usize),
    /// Nothing special.
    Plain,
}

type Handle = DispatcherHandle<Fact>;

async fn runtime() -> Runtime {
    Runtime::builder().spawn().await.unwrap()
}

async fn dispatcher(runtime: &Runtime) -> Handle {
    Handle::start(runtime, "tested", profile::observation()).await.unwrap()
}

fn add(handle: &Handle, subscriber: Subscriber<Fact>) {
    let _ = handle.register(subscriber).unwrap();
}

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    timeout_at(soon().instant(), future).await.expect("it ends by itself")
}

/// Emits until the dispatcher takes no more. What it gives back holds the places.
async fn fill(handle: &Handle) -> Vec<Emission<()>> {
    let fact = Arc::new(Fact::Waits);
    let mut held = Vec::new();
    loop {
        let mut emission = handle.emit(&fact);
        // A refusal is told at the first poll; what was taken waits.
        match futures::poll!(&mut emission) {
            std::task::Poll::Ready(Err(EmissionError::Overloaded)) => return held,
            std::task::Poll::Ready(ended) => panic!("an emission that waits has ended: {ended:?}"),
            std::task::Poll::Pending => held.push(emission),
        }
        // The actor takes up to its bound in flight; the rest stands in its port.
        yield_now().await;
        assert!(held.len() <= 2 * PLACES, "there is a bound");
    }
}

/// F-24: a dispatcher has at most 1,024 emissions in flight and as many waiting; one more is refused with a type, nobody is called for it, and what holds
/// the places ends undisturbed.
#[tokio::test]
async fn a_full_dispatcher_refuses_one_more_emission() {
    let runtime = runtime().await;
    let handle = dispatcher(&runtime).await;
    let (gate, called) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (waits, counts) = (Arc::clone(&gate), Arc::clone(&called));
    add(
        &handle,
        Subscriber::declared_async("waits", move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            let waits = Arc::clone(&waits);
            async move { drop(waits.acquire().await.unwrap()) }
        }),
    );

    let held = fill(&handle).await;

    assert_eq!((held.len(), called.load(Ordering::SeqCst)), (2 * PLACES, PLACES));
    gate.add_permits(1);
    for emission in held {
        assert!(bounded(emission).await.unwrap().all_returned());
    }
    assert_eq!(called.load(Ordering::SeqCst), 2 * PLACES);
}

/// F-14: a handler emits on its own dispatcher and awaits the report, sixteen deep, while the mailbox is full, without deadlock; past the limit it gets a
/// typed error.
#[tokio::test]
async fn a_handler_emits_on_its_own_full_dispatcher() {
    let runtime = runtime().await;
    let handle = dispatcher(&runtime).await;
    let (go, gone) = watch::channel(false);
    let deepest = Arc::new(AtomicUsize::new(0));
    let (own, seen) = (handle.clone(), Arc::clone(&deepest));
    add(
        &handle,
        Subscriber::declared_async("nests", move |fact: Arc<Fact>| {
            let (own, seen, mut gone) = (own.clone(), Arc::clone(&seen), gone.clone());
            async move {
                gone.wait_for(|go| *go || matches!(*fact, Fact::Plain)).await?;
                if let Fact::Nests(left @ 1..) = *fact {
                    seen.fetch_add(1, Ordering::SeqCst);
                    match own.emit(&Arc::new(Fact::Nests(left - 1))).await {
                        Ok(report) if report.all_returned() => {}
                        Ok(report) => return Err(tipstaff::dispatch::HandlerError::failed("inside", format!("{report:?}"))),
                        Err(error) => return Err(tipstaff::dispatch::HandlerError::failed("refused", error)),
                    }
                }
                Ok(())
            }
        }),
    );
    // It has its place before the others take all that are left.
    let mut outermost = handle.emit(&Arc::new(Fact::Nests(DEEP)));
    assert!(futures::poll!(&mut outermost).is_pending());
    yield_now().await;
    let held = fill(&handle).await;

    go.send_replace(true);

    assert!(bounded(outermost).await.unwrap().all_returned());
    assert_eq!(deepest.load(Ordering::SeqCst), DEEP);
    drop(held);

    // Without a bottom, the limit is told to the handler that meets it, and all the handlers around it fail with it.
    let report = loop {
        match bounded(handle.emit(&Arc::new(Fact::Nests(10_000)))).await {
            // The actor has not seen yet that the others are gone.
            Err(EmissionError::Overloaded) => yield_now().await,
            ended => break ended.unwrap(),
        }
    };
    let Outcome::Isolated(failure) = report.entry("nests").unwrap().outcome else { panic!("{report:?}") };
    assert!(failure.code() == "inside" && deepest.load(Ordering::SeqCst) < 1_000, "{failure:?}");
    let refused = Refusal::TooDeep { limit: tipstaff::dispatch::MAX_DEPTH }.to_string();
    assert!(tipstaff::dispatch::MAX_DEPTH >= DEEP && refused.contains("inside one another"));
}

/// F-15: a handler that never ends, one that panics and one that emits without end stop nobody: the dispatcher goes on serving other emissions.
#[tokio::test(start_paused = true)]
async fn a_hang_a_panic_and_a_flood_stop_nobody() {
    let runtime = runtime().await;
    let handle = dispatcher(&runtime).await;
    let (own, flooded) = (handle.clone(), Arc::new(AtomicUsize::new(0)));
    let floods = Arc::clone(&flooded);
    add(&handle, Subscriber::declared_async("hangs", |_| std::future::pending::<()>()));
    add(&handle, Subscriber::declared_sync("panics", |_: &Arc<Fact>| assert!(false_(), "it panics")));
    add(
        &handle,
        Subscriber::declared_async("floods", move |fact: Arc<Fact>| {
            let (own, floods) = (own.clone(), Arc::clone(&floods));
            async move {
                if matches!(*fact, Fact::Waits) {
                    for _ in 0..10 * PLACES {
                        // Nobody waits for it: it is dropped, and so cancelled.
                        let _dropped = own.emit(&Arc::new(Fact::Plain));
                        floods.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        }),
    );

    let report = bounded_paused(handle.emit(&Arc::new(Fact::Waits))).await.unwrap();

    let ends: Vec<_> = report.entries().map(|entry| (entry.registration, entry.outcome.as_str())).collect();
    assert_eq!(ends, [("hangs", "timed_out"), ("panics", "isolated"), ("floods", "returned")]);
    assert_eq!(flooded.load(Ordering::SeqCst), 10 * PLACES);
    let report = bounded_paused(handle.emit(&Arc::new(Fact::Plain))).await.unwrap();
    assert_eq!(report.entry("floods").unwrap().outcome, &Outcome::Returned);
}

fn false_() -> bool {
    false
}

async fn bounded_paused<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(300), future).await.expect("it ends by itself")
}

/// F-15: a dispatcher whose actor is killed answers what it had in hand with a type, and comes back with all of its registrations; handles stay valid.
#[tokio::test]
async fn a_restart_loses_no_registration() {
    let points = CrashPoints::new();
    let runtime = Runtime::builder().crash_points(points.clone()).spawn().await.unwrap();
    let handle = dispatcher(&runtime).await;
    let (begun, mut began) = watch::channel(0_usize);
    add(
        &handle,
        Subscriber::declared_async("waits", move |fact: Arc<Fact>| {
            begun.send_modify(|times| *times += 1);
            async move {
                if *fact == Fact::Waits {
                    std::future::pending::<()>().await;
                }
            }
        }),
    );
    let lost = handle.emit(&Arc::new(Fact::Waits));
    bounded(began.wait_for(|times| *times == 1)).await.unwrap();

    assert_eq!(points.kill("tested"), 1);

    assert!(matches!(bounded(lost).await, Err(EmissionError::Undelivered)));
    // What is emitted meanwhile waits in the port for the next incarnation.
    let report = bounded(handle.emit(&Arc::new(Fact::Plain))).await.unwrap();
    assert!(report.all_returned() && report.len() == 1);
}

/// F-12: dropping an emission drops what is in flight, and nothing more is begun; the handle of another one is its own.
#[tokio::test]
async fn a_dropped_emission_drops_its_handlers() {
    struct Told(watch::Sender<bool>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send_replace(true);
        }
    }
    let runtime = runtime().await;
    let handle = dispatcher(&runtime).await;
    let (dropped, mut told) = watch::channel(false);
    let (begun, mut began) = watch::channel(false);
    add(
        &handle,
        Subscriber::declared_async("waits", move |_| {
            let told = Told(dropped.clone());
            begun.send_replace(true);
            async move {
                let _told = told;
                std::future::pending::<()>().await;
            }
        }),
    );
    let emission = handle.emit(&Arc::new(Fact::Plain));
    bounded(began.wait_for(|begun| *begun)).await.unwrap();

    drop(emission);

    bounded(told.wait_for(|told| *told)).await.unwrap();
}

/// F-23, as far as a dispatcher goes: one that was stopped takes nothing more, and says so; no handler runs.
#[tokio::test]
async fn a_stopped_dispatcher_says_so() {
    let runtime = runtime().await;
    let handle = dispatcher(&runtime).await;
    let called = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&called);
    add(
        &handle,
        Subscriber::declared_sync("counts", move |_: &Arc<Fact>| {
            counts.fetch_add(1, Ordering::SeqCst);
        }),
    );
    assert!(bounded(handle.emit(&Arc::new(Fact::Plain))).await.unwrap().all_returned());

    bounded(handle.stop(soon())).await;

    match bounded(handle.emit(&Arc::new(Fact::Plain))).await {
        Err(EmissionError::Stopped | EmissionError::Dispatch(DispatchError::Refused(Refusal::Stopped))) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(called.load(Ordering::SeqCst), 1);
    assert_ne!(NotStarted::Stopped.as_str(), NotStarted::BudgetSpent.as_str());
}
