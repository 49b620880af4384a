//! The fan-out kernel under the `observation` profile, with the subscriptions that ship with it.

use std::future::{Ready, pending};
use std::num::NonZeroUsize;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tipstaff_core::clock::{Deadline, Timestamp};
use tipstaff_core::dispatch::{
    Declared, DispatchReport, Dispatcher, HandlerError, HandlerFailure, JournalState, NotStarted, Outcome, PANIC_CODE,
    RegisterError, Subscriber,
};
use tipstaff_core::id::SessionId;
use tipstaff_core::observation::{RecentFacts, live_stream};
use tipstaff_core::signal::{DeclaredFilter, Filter, LifecycleKind, Signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Facts = Dispatcher<u32>;

async fn emit(registry: &Facts, fact: u32) -> DispatchReport {
    registry.emit(&Arc::new(fact)).await.expect("observation raises nothing")
}

async fn emit_within(registry: &Facts, budget: Duration) -> DispatchReport {
    registry.emit(&Arc::new(0)).by(Deadline::after(budget)).await.expect("observation raises nothing")
}

fn add(registry: &Facts, subscriber: Subscriber<u32>) {
    let _ = registry.register(subscriber).expect("a name of its own");
}

fn quiet(name: &str) -> Subscriber<u32> {
    Subscriber::declared_sync(name, |_: &Arc<u32>| {})
}

fn hanging(name: &str) -> Subscriber<u32> {
    Subscriber::declared_async(name, |_| pending::<()>())
}

fn outcomes(report: &DispatchReport) -> Vec<(&str, &'static str)> {
    report.entries().map(|entry| (entry.registration, entry.outcome.as_str())).collect()
}

fn code(report: &DispatchReport, registration: &str) -> String {
    match report.entry(registration).expect("it matched").outcome {
        Outcome::Isolated(failure) | Outcome::PredicateFailed(failure) => failure.code().to_owned(),
        other => panic!("{registration} did not fail: {other:?}"),
    }
}

/// A handler's panic, with the type of a handler that returns.
fn blow(text: &str) {
    panic!("{text}");
}

/// A budget on the machine's clock, for handlers that block their thread: long enough that a busy machine spends it on nothing else.
const BLOCKED: Duration = Duration::from_secs(1);

/// Blocks its thread until the budget is spent, as a handler does that waits where it must not.
fn block() {
    let begun = std::time::Instant::now();
    while begun.elapsed() < BLOCKED {
        std::thread::park_timeout(BLOCKED.saturating_sub(begun.elapsed()));
    }
}

/// F-10: the report names every matched registration once, in registration order, however they ended and in whatever order.
#[tokio::test(start_paused = true)]
async fn the_report_is_in_registration_order_and_names_every_end() {
    let registry = Facts::observation();
    add(&registry, Subscriber::declared_async("slow", |_| sleep(Duration::from_secs(5))));
    add(&registry, quiet("sync"));
    add(&registry, Subscriber::declared_sync("unmatched", |_: &Arc<u32>| blow("not called")).when(|fact: &u32| *fact > 100));
    add(&registry, Subscriber::declared_sync("failing", |_: &Arc<u32>| Err(HandlerError::failed("disk_full", "no room left"))));
    add(&registry, hanging("hanging"));
    add(&registry, Subscriber::declared_async("cancelled", |_| async { Err::<(), _>(HandlerError::Cancelled) }));
    add(&registry, quiet("unsure").when(|_: &u32| -> bool { panic!("no idea") }));
    add(&registry, Subscriber::declared_async("quick", |_| async {}));

    let report = emit(&registry, 1).await;

    assert_eq!(
        outcomes(&report),
        [
            ("slow", "returned"),
            ("sync", "returned"),
            ("failing", "isolated"),
            ("hanging", "timed_out"),
            ("cancelled", "cancelled"),
            ("unsure", "predicate_failed"),
            ("quick", "returned"),
        ]
    );
    assert_eq!(report.entry("slow").unwrap().elapsed, Duration::from_secs(5));
    assert_eq!(report.entry("hanging").unwrap().elapsed, Duration::from_secs(30));
    assert_eq!(report.elapsed(), Duration::from_secs(30));
    assert!(!report.all_returned() && report.entry("unmatched").is_none());
    assert_eq!(
        serde_json::to_value(report.with_journal(JournalState::Confirmed(7))).unwrap(),
        json!({
            "elapsed_us": 30_000_000,
            "journal": {"confirmed": 7},
            "handlers": [
                {"registration": "slow", "outcome": "returned", "elapsed_us": 5_000_000},
                {"registration": "sync", "outcome": "returned", "elapsed_us": 0},
                {"registration": "failing", "outcome": "isolated", "elapsed_us": 0, "code": "disk_full", "message": "no room left"},
                {"registration": "hanging", "outcome": "timed_out", "elapsed_us": 30_000_000},
                {"registration": "cancelled", "outcome": "cancelled", "elapsed_us": 0},
                {"registration": "unsure", "outcome": "predicate_failed", "elapsed_us": 0, "code": "panic", "message": "no idea"},
                {"registration": "quick", "outcome": "returned", "elapsed_us": 0},
            ],
        })
    );
}

/// F-16: without a journal the report says so.
#[tokio::test]
async fn an_emission_without_subscribers_is_reported_as_such() {
    let report = emit(&Facts::observation(), 1).await;
    assert!(report.is_empty());
    assert!(report.all_returned());
    assert_eq!(report.journal(), JournalState::Off);
}

/// P-3: every handler, whatever its declaration, sees the same logical fact.
#[tokio::test]
async fn every_handler_sees_the_same_shared_fact() {
    let registry = Facts::observation();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for at in 0..3 {
        let (in_sync, in_async) = (Arc::clone(&seen), Arc::clone(&seen));
        add(
            &registry,
            Subscriber::declared_sync(format!("sync {at}"), move |fact: &Arc<u32>| {
                in_sync.lock().unwrap().push(Arc::clone(fact))
            }),
        );
        add(
            &registry,
            Subscriber::declared_async(format!("async {at}"), move |fact| {
                in_async.lock().unwrap().push(fact);
                tokio::task::yield_now()
            }),
        );
    }
    let fact = Arc::new(7);
    assert!(registry.emit(&fact).await.unwrap().all_returned());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 6);
    assert!(seen.iter().all(|one| Arc::ptr_eq(one, &fact)));
}

/// F-8: what is registered or removed during an emission counts from the next one on.
#[tokio::test]
async fn a_change_during_an_emission_affects_the_next_one() {
    let registry = Arc::new(Facts::observation());
    let leaving = Arc::new(Mutex::new(None));
    let (inner, taken) = (Arc::clone(&registry), Arc::clone(&leaving));
    add(
        &registry,
        Subscriber::declared_sync("changer", move |_: &Arc<u32>| {
            if let Some(registration) = taken.lock().unwrap().take() {
                assert!(inner.unregister(&registration));
                add(&inner, quiet("joining"));
            }
        }),
    );
    *leaving.lock().unwrap() = Some(registry.register(quiet("leaving")).unwrap());

    let first = emit(&registry, 1).await;
    let second = emit(&registry, 2).await;

    assert_eq!(outcomes(&first), [("changer", "returned"), ("leaving", "returned")]);
    assert_eq!(outcomes(&second), [("changer", "returned"), ("joining", "returned")]);
}

/// Handlers: a registration has a unique name within its dispatcher, and a handle that is good there only.
#[test]
fn a_name_is_unique_and_a_registration_is_good_at_its_own_registry_only() {
    let (registry, other) = (Facts::observation(), Facts::observation());
    let one = registry.register(quiet("one")).unwrap();
    let others = other.register(quiet("one")).unwrap();
    assert_eq!(registry.register(quiet("one")).unwrap_err(), RegisterError::NameTaken { name: "one".into() });
    for bad in ["", "a\nb", &"x".repeat(257)] {
        assert_eq!(registry.register(quiet(bad)).unwrap_err(), RegisterError::Name { name: bad.into() });
    }
    assert_ne!(one, others);
    assert!(!registry.unregister(&others));
    assert_eq!(registry.snapshot().registrations().collect::<Vec<_>>(), [("one", Declared::Sync)]);
    assert!(registry.unregister(&one));
    assert!(!registry.unregister(&one));
    assert!(registry.snapshot().is_empty());
    let again = registry.register(quiet("one")).unwrap();
    assert_ne!(again, one, "an old handle does not name a new registration");
    assert!(!registry.unregister(&one));
}

/// F-11 and case P11: one budget for all of them, and what was never begun is told from what ran out of time.
#[tokio::test(start_paused = true)]
async fn p11_four_hanging_handlers_share_one_budget() {
    let registry = Facts::observation();
    (0..4).for_each(|at| add(&registry, hanging(&format!("hanging {at}"))));
    let begun = Instant::now();

    let report = emit_within(&registry, Duration::from_secs(1)).await;

    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(report.len(), 4);
    assert!(report.entries().all(|entry| *entry.outcome == Outcome::TimedOut && entry.elapsed == Duration::from_secs(1)));
}

/// F-11, F-17 and case P11: a handler that blocks past the budget cannot be ended, but nothing is begun after it, and that says so.
#[tokio::test]
async fn p11_what_was_never_begun_is_not_started() {
    let registry = Facts::observation();
    add(&registry, hanging("waits"));
    add(&registry, Subscriber::declared_sync("blocks", |_: &Arc<u32>| block()));
    add(&registry, Subscriber::declared_sync("late", |_: &Arc<u32>| blow("begun after the budget")));
    add(&registry, Subscriber::declared_async("late too", |_| async { blow("begun after the budget") }));

    let report = emit_within(&registry, BLOCKED).await;

    assert_eq!(
        outcomes(&report),
        [("waits", "timed_out"), ("blocks", "returned"), ("late", "not_started"), ("late too", "not_started")]
    );
    assert_eq!(*report.entry("late").unwrap().outcome, Outcome::NotStarted(NotStarted::BudgetSpent));
    assert_eq!(serde_json::to_value(&report).unwrap()["handlers"][2]["why"], "budget spent");
    assert!(report.entry("blocks").unwrap().elapsed >= BLOCKED);
}

/// F-11: an emission whose budget is spent before it begins still names who would have been called.
#[tokio::test(start_paused = true)]
async fn a_spent_budget_begins_nobody() {
    let registry = Facts::observation();
    add(&registry, quiet("one"));
    add(&registry, quiet("other fact").when(|fact: &u32| *fact == 9));
    let report = emit_within(&registry, Duration::ZERO).await;
    assert_eq!(outcomes(&report), [("one", "not_started")]);
}

/// F-11, F-15: a handler that is always ready to go on, for seconds, and uses up its task's share at each poll does not keep the deadline
/// away.
#[tokio::test]
async fn a_flooding_handler_cannot_outrun_the_deadline() {
    let registry = Facts::observation();
    add(
        &registry,
        Subscriber::declared_async("flood", |_| async {
            for _ in 0..100_000_000 {
                tokio::task::consume_budget().await;
            }
        }),
    );
    add(&registry, Subscriber::declared_async("polite", |_| tokio::task::yield_now()));
    let report = emit_within(&registry, BLOCKED).await;
    assert_eq!(outcomes(&report), [("flood", "timed_out"), ("polite", "returned")]);
}

/// F-10, F-11: many handlers that wait are all driven, and each entry shows its own time.
#[tokio::test(start_paused = true)]
async fn a_hundred_waiting_handlers_are_all_driven() {
    for size in [1, 31, 32, 33, 100] {
        let registry = Facts::observation();
        for at in 0..size {
            add(&registry, Subscriber::declared_async(format!("waits {at}"), move |_| sleep(Duration::from_secs(size - at))));
        }
        add(&registry, hanging("hanging"));
        let budget = Duration::from_secs(size);
        let report = emit_within(&registry, budget).await;
        assert_eq!(report.elapsed(), budget.min(Duration::from_secs(30)));
        for (at, entry) in (0..size).zip(report.entries()) {
            let expected = Duration::from_secs(size - at);
            let (outcome, elapsed) =
                if expected <= report.elapsed() { (Outcome::Returned, expected) } else { (Outcome::TimedOut, report.elapsed()) };
            assert_eq!((entry.outcome, entry.elapsed), (&outcome, elapsed), "{at} of {size}");
        }
        assert_eq!(*report.entry("hanging").unwrap().outcome, Outcome::TimedOut);
    }
}

/// F-11: which handlers share a reading of the clock changes nobody's end: brief handlers in runs, some fail, one blocks all of a sudden.
#[tokio::test]
async fn a_run_of_brief_handlers_is_measured_together_and_loses_nothing() {
    let registry = Facts::observation();
    for at in 0..100u32 {
        let name = format!("{at:02}");
        add(
            &registry,
            Subscriber::declared_sync(name, move |fact: &Arc<u32>| match (at, **fact) {
                (50, 7) => {
                    block();
                    Ok(())
                }
                (_, 8) if at % 7 == 0 => Err(HandlerError::failed("seventh", at)),
                (_, 9) if at % 11 == 0 => panic!("eleventh"),
                _ => Ok(()),
            }),
        );
    }
    for fact in 0..10 {
        let cap = (fact == 7).then(|| Deadline::after(BLOCKED));
        let emit = registry.emit(&Arc::new(fact));
        let report = match cap {
            Some(cap) => emit.by(cap).await.unwrap(),
            None => emit.await.unwrap(),
        };
        assert_eq!(report.len(), 100);
        for (at, entry) in (0..).zip(report.entries()) {
            assert_eq!(entry.registration, format!("{at:02}"));
            match (fact, entry.outcome) {
                (7, Outcome::Returned) if at <= 50 => {}
                // Those in the same run have begun; the next run has not.
                (7, Outcome::Returned | Outcome::NotStarted(_)) if at < 50 + 32 => {}
                (7, Outcome::NotStarted(NotStarted::BudgetSpent)) => {}
                (8, Outcome::Isolated(failure)) => assert_eq!((failure.code(), at % 7), ("seventh", 0)),
                (9, Outcome::Isolated(failure)) => assert_eq!((failure.code(), at % 11), (PANIC_CODE, 0)),
                (8, Outcome::Returned) => assert_ne!(at % 7, 0),
                (9, Outcome::Returned) => assert_ne!(at % 11, 0),
                (0..7, Outcome::Returned) => {}
                unexpected => panic!("{at}: {unexpected:?}"),
            }
        }
        if fact == 7 {
            assert!(report.entry("50").unwrap().elapsed >= BLOCKED);
            assert_eq!(report.entry("99").unwrap().elapsed, Duration::ZERO);
        }
    }
}

/// F-12: a cancellation stays one, also when it comes as the error of a task that the handler awaited.
#[tokio::test]
async fn a_cancellation_is_never_an_ordinary_failure() {
    let registry = Facts::observation();
    add(&registry, Subscriber::declared_sync("says so", |_: &Arc<u32>| Err(HandlerError::Cancelled)));
    add(
        &registry,
        Subscriber::declared_async("aborted", |_| async {
            let mut tasks = JoinSet::new();
            tasks.spawn(pending::<()>());
            tasks.abort_all();
            tasks.join_next().await.expect("one task")?;
            Ok::<_, HandlerError>(())
        }),
    );
    add(
        &registry,
        Subscriber::declared_async("its task panicked", |_| async {
            let mut tasks = JoinSet::new();
            tasks.spawn(async { blow("in a task") });
            tasks.join_next().await.expect("one task")?;
            Ok::<_, HandlerError>(())
        }),
    );
    let report = emit(&registry, 1).await;
    assert_eq!(outcomes(&report), [("says so", "cancelled"), ("aborted", "cancelled"), ("its task panicked", "isolated")]);
    assert_eq!(code(&report, "its task panicked"), "failed");
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// F-12: dropping the emission drops what is in flight.
#[tokio::test(start_paused = true)]
async fn dropping_the_emission_drops_its_handlers() {
    let registry = Facts::observation();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    add(
        &registry,
        Subscriber::declared_async("in flight", move |_| {
            let flag = Arc::clone(&flag);
            async move {
                let _on_drop = OnDrop(|| flag.store(true, Ordering::Relaxed));
                pending::<()>().await;
            }
        }),
    );
    assert!(tokio::time::timeout(Duration::from_secs(1), emit(&registry, 1)).await.is_err());
    assert!(dropped.load(Ordering::Relaxed));
}

/// F-15: a panic, wherever a handler can place one, is a failure with the code `panic`, and touches nobody else.
#[tokio::test(start_paused = true)]
async fn no_panic_leaves_its_handler() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }
    let registry = Facts::observation();
    add(&registry, Subscriber::declared_sync("in a sync call", |_: &Arc<u32>| blow("in the call")));
    add(&registry, Subscriber::declared_async("in an async call", |_| -> Ready<()> { panic!("call") }));
    add(&registry, Subscriber::declared_async("at the first poll", |_| async { blow("first") }));
    add(
        &registry,
        Subscriber::declared_async("at a later poll", |_| async {
            tokio::task::yield_now().await;
            blow("later");
        }),
    );
    add(&registry, Subscriber::declared_sync("with a bomb", |_: &Arc<u32>| -> () { panic_any(Bomb) }));
    add(
        &registry,
        Subscriber::declared_async("dropped in flight", |_| async {
            let _bomb = Bomb;
            pending::<()>().await;
        }),
    );
    add(&registry, quiet("others"));

    for fact in 0..2 {
        let report = emit(&registry, fact).await;
        let names = ["in a sync call", "in an async call", "at the first poll", "at a later poll", "with a bomb"];
        for name in names {
            assert_eq!(code(&report, name), PANIC_CODE, "{name}");
        }
        assert_eq!(*report.entry("dropped in flight").unwrap().outcome, Outcome::TimedOut);
        assert_eq!(*report.entry("others").unwrap().outcome, Outcome::Returned);
    }
}

/// A failure keeps its sources, and is bounded.
#[tokio::test]
async fn a_failure_is_told_with_its_sources_and_bounded() {
    let registry = Facts::observation();
    add(&registry, Subscriber::declared_sync("passed on", |_: &Arc<u32>| "x".parse::<u32>().map(|_| ())));
    add(
        &registry,
        Subscriber::declared_sync("long", |_: &Arc<u32>| Err(HandlerError::failed("é".repeat(100), "é".repeat(5000)))),
    );
    let report = emit(&registry, 1).await;
    let failure = |name: &str| match report.entry(name).unwrap().outcome {
        Outcome::Isolated(failure) => failure.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(failure("passed on"), HandlerFailure::new("failed", "invalid digit found in string"));
    assert_eq!((failure("long").code().len(), failure("long").message().len()), (64, 2048));
}

/// F-21, `isolate`: a predicate that fails means unmatched, with a report entry and one warning; a handler's failure is one warning, too.
#[test]
fn a_failed_predicate_is_isolated_and_warned_of_once() {
    let warnings = Arc::new(Warnings::default());
    let counted = Warned(Arc::clone(&warnings));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let registry = Dispatcher::<Signal>::observation();
    let unsure = Filter::all().and_fallible_predicate(|_| Err(tipstaff_core::signal::PredicateError::new("the table is locked")));
    let never = |_: &Arc<Signal>| blow("not called");
    let _ = registry.register(Subscriber::declared_sync("unsure", never).when(unsure)).unwrap();
    let _ = registry
        .register(Subscriber::declared_sync("raising", never).when(Filter::all().and_predicate(|_| panic!("raised"))))
        .unwrap();
    let other_kind =
        Filter::matching(DeclaredFilter::all().kind(LifecycleKind::RunEnded)).and_predicate(|_| panic!("asked in vain"));
    let _ = registry.register(Subscriber::declared_sync("other kind", never).when(other_kind)).unwrap();
    let _ = registry.register(Subscriber::declared_sync("matched", |_: &Arc<Signal>| {}).when(Filter::all())).unwrap();

    let report = tracing::subscriber::with_default(counted, || {
        runtime.block_on(registry.emit(&signal(LifecycleKind::RunStarted)).into_future()).unwrap()
    });

    assert_eq!(outcomes(&report), [("unsure", "predicate_failed"), ("raising", "predicate_failed"), ("matched", "returned")]);
    assert_eq!((code(&report, "unsure"), code(&report, "raising")), ("predicate".into(), PANIC_CODE.into()));
    assert_eq!(warnings.0.load(Ordering::Relaxed), 2);
}

#[derive(Default)]
struct Warnings(AtomicUsize);

struct Warned(Arc<Warnings>);

impl tracing::Subscriber for Warned {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// F-15 and case P10, kernel part: a subscriber that fails once is not detached; it gets every later fact, and the others get all.
#[tokio::test]
async fn p10_a_subscriber_that_panicked_once_gets_the_later_facts() {
    let registry = Facts::observation();
    let (received, all) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (log, count) = (Arc::clone(&received), Arc::clone(&all));
    add(
        &registry,
        Subscriber::declared_sync("fragile", move |fact: &Arc<u32>| {
            assert_ne!(**fact, 3, "the third fact is too much");
            log.lock().unwrap().push(**fact);
        }),
    );
    add(
        &registry,
        Subscriber::declared_sync("metrics", move |_: &Arc<u32>| {
            count.fetch_add(1, Ordering::Relaxed);
        }),
    );
    for fact in 1..=13 {
        let report = emit(&registry, fact).await;
        assert_eq!(report.all_returned(), fact != 3, "silence would be a failure");
    }
    assert_eq!(*received.lock().unwrap(), [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(all.load(Ordering::Relaxed), 13);
}

/// F-14 and case P12, kernel part: a handler may emit on its own dispatcher and await the report, sixteen deep, also while other handlers
/// hang and registrations change.
#[tokio::test(start_paused = true)]
async fn p12_a_handler_may_emit_on_its_own_dispatcher() {
    let registry = Arc::new(Facts::observation());
    let inner = Arc::downgrade(&registry);
    let deepest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&deepest);
    add(
        &registry,
        Subscriber::declared_async("re-entrant", move |fact: Arc<u32>| {
            let (registry, seen) = (inner.upgrade().expect("the registry outlives the emission"), Arc::clone(&seen));
            Box::pin(async move {
                seen.fetch_max(*fact as usize, Ordering::Relaxed);
                let added = registry.register(quiet(&format!("added at {fact}"))).unwrap();
                if *fact < 16 {
                    let report = emit(&registry, *fact + 1).await;
                    assert_eq!(*report.entry("re-entrant").unwrap().outcome, Outcome::Returned);
                }
                assert!(registry.unregister(&added));
            }) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        })
        .when(|fact: &u32| *fact <= 16),
    );
    add(&registry, hanging("stalled").when(|fact: &u32| *fact == 99));

    let (stalled, nested) = futures::join!(emit(&registry, 99), async {
        let begun = Instant::now();
        let nested = emit(&registry, 1).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the stalled emission holds nobody");
        nested
    });

    assert!(nested.all_returned());
    assert_eq!(deepest.load(Ordering::Relaxed), 16);
    assert_eq!(*stalled.entry("stalled").unwrap().outcome, Outcome::TimedOut);
}

fn signal(kind: LifecycleKind) -> Arc<Signal> {
    Arc::new(Signal::builder(SessionId::new("s").expect("a fine name"), kind, Timestamp::from_micros(0)).build())
}

/// Case P13, kernel part: a best-effort reader with a queue of 8 and a burst of 10,000: received + dropped is 10,000, by API, and no
/// emission waits for it.
#[tokio::test(start_paused = true)]
async fn p13_a_lossy_stream_accounts_for_every_fact() {
    let registry = Dispatcher::<Signal>::observation();
    let (feed, mut reader) = live_stream(NonZeroUsize::new(8).unwrap());
    let ui = registry.register(feed.subscriber("ui")).unwrap();
    drop(feed);
    let begun = Instant::now();
    for _ in 0..10_000 {
        let report = registry.emit(&signal(LifecycleKind::NodeStarted)).await.unwrap();
        assert!(report.all_returned());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(registry.unregister(&ui));

    let (mut received, mut missed) = (0, 0);
    while let Some(next) = reader.next().await {
        received += 1;
        missed += next.missed;
    }

    assert_eq!((received, missed, reader.missed()), (8, 9_992, 9_992));
}

/// Live stream: once its reader is gone, its subscriber says so in every report.
#[tokio::test]
async fn a_stream_without_a_reader_is_a_visible_failure() {
    let registry = Dispatcher::<Signal>::observation();
    let (feed, reader) = live_stream(NonZeroUsize::MIN);
    let _ = registry.register(feed.subscriber("ui")).unwrap();
    drop(reader);
    let report = registry.emit(&signal(LifecycleKind::NodeStarted)).await.unwrap();
    assert_eq!(code(&report, "ui"), "stream_closed");
}

/// P-5: the ring and the stream are subscriptions of their own: each works without the other.
#[tokio::test]
async fn ring_and_stream_are_independent_subscriptions() {
    for (with_ring, with_stream) in [(false, false), (true, false), (false, true), (true, true)] {
        let registry = Dispatcher::<Signal>::observation();
        let ring = RecentFacts::new(NonZeroUsize::new(4).unwrap());
        let (feed, mut reader) = live_stream(NonZeroUsize::new(4).unwrap());
        if with_ring {
            let _ = registry.register(ring.subscriber("ring")).unwrap();
        }
        if with_stream {
            let _ = registry.register(feed.subscriber("stream")).unwrap();
        }
        let fact = signal(LifecycleKind::RunEnded);
        assert!(registry.emit(&fact).await.unwrap().all_returned());
        assert_eq!(ring.snapshot().facts.len(), usize::from(with_ring));
        assert_eq!(reader.try_next().is_some(), with_stream);
    }
}

/// Every public future is `Send`, and a registry may be shared between threads.
#[test]
fn futures_are_send_and_registries_are_shared() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Facts>();
    is_shared::<DispatchReport>();
    is_shared::<RecentFacts>();
    let registry = Facts::observation();
    let (snapshot, fact) = (registry.snapshot(), Arc::new(1));
    is_send(&snapshot.emit(&fact).into_future());
    let (_feed, mut reader) = live_stream(NonZeroUsize::MIN);
    is_send(&reader.next());
}
