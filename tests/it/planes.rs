//! The planes do not touch one another: what stands still in one of them goes on in the others.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use tipstaff::clock::Deadline;
use tipstaff::dispatch::{HandlerError, JournalState, Outcome, Subscriber};
use tipstaff::interception::DenialCause;
use tipstaff::observation::live_stream;
use tipstaff::operation::{AuditMode, Unrecorded};
use tipstaff::signal::{LifecycleKind, Signal, SignalSeq};
use tipstaff::state::{MemoryStore, ReadFilter, SqliteStore};
use tipstaff::testing::{FaultAction, FaultPoint, Faults};
use tipstaff::{EmitError, Runtime, Session};

use super::rig::{self, Host, Latch, allows, call, denies, disk, done, facts, kinds, note, payload, plan, session_id, soon};

async fn recording() -> (Runtime, Session) {
    let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    (runtime, session)
}

async fn down(runtime: Runtime) {
    runtime.shutdown(soon()).await.unwrap();
}

/// A subscriber that is begun, says so, and waits at its door.
fn stands(name: &str, begun: &Latch, door: &Latch) -> Subscriber<Signal> {
    let (begun, door) = (begun.clone(), door.clone());
    Subscriber::declared_async(name, move |_: Arc<Signal>| {
        let (begun, door) = (begun.clone(), door.clone());
        async move {
            begun.open();
            door.passed().await;
        }
    })
}

fn noted(fact: &Signal) -> Option<u64> {
    fact.payload().value()["number"].as_u64()
}

fn number(fact: &Signal) -> u64 {
    noted(fact).expect("it is a note")
}

/// A subscriber that keeps the numbers of the notes that it is shown.
fn numbers(name: &str) -> (Subscriber<Signal>, Arc<Mutex<Vec<u64>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeping = Arc::clone(&kept);
    (Subscriber::declared_sync(name, move |fact: &Arc<Signal>| keeping.lock().unwrap().extend(noted(fact))), kept)
}

/// P-4: a subscriber that never ends cannot block the required audit, whichever was declared first; F-16: no emission waits for the commit, and the audit
/// waits for no emission.
#[tokio::test]
async fn a_subscriber_that_hangs_does_not_hold_the_audit() {
    let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
    let (begun, door) = (Latch::new(), Latch::new());
    let before = runtime.session(session_id("before")).observe(stands("screen", &begun, &door)).audit(AuditMode::Required);
    let before = before.open().await.unwrap();
    let after = runtime.session(session_id("after")).audit(AuditMode::Required).open().await.unwrap();
    let _registered = after.observe(stands("screen", &begun, &door)).unwrap();
    for session in [before, after] {
        for number in 0..100 {
            session.submit(note(&session, number)).unwrap();
        }
        assert!(session.perform(call("write"), done).await.result().is_some());
        begun.passed().await;
        assert_eq!(facts(&runtime, &session).await.len(), 102, "all on record while the screen hangs");
    }
    door.open_for_all();
    down(runtime).await;
}

/// P-4, F-17: an inline subscriber that blocks its thread holds its own emission, and not the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_subscriber_that_blocks_its_thread_does_not_hold_the_audit() {
    let (runtime, session) = recording().await;
    let begun = Latch::new();
    let (open, door) = mpsc::channel::<()>();
    let (door, said) = (Mutex::new(door), begun.clone());
    let _registered = session
        .observe(Subscriber::declared_sync("blocks", move |fact: &Arc<Signal>| {
            if number(fact) == 0 {
                said.open();
                // The other end is dropped when the test has seen what it wants.
                let _opened = door.lock().unwrap().recv_timeout(Duration::from_secs(20));
            }
        }))
        .unwrap();
    session.submit(note(&session, 0)).unwrap();
    begun.passed().await;
    let (seq, _) = session.emit_confirmed(note(&session, 1), soon()).await.unwrap();
    assert_eq!(seq, SignalSeq(2));
    assert_eq!(facts(&runtime, &session).await.len(), 2);
    drop(open);
    session.end(soon()).await;
    assert_eq!(session.undelivered(), 0);
    down(runtime).await;
}

/// P-5: keeping in memory, routing to subscribers, and durable persistence are three subscriptions; each of the eight combinations does what it says
/// and no more.
#[tokio::test]
async fn memory_routing_and_persistence_are_independent() {
    for combination in 0..8_u8 {
        let [ring, routed, stored] = [1, 2, 4].map(|bit| combination & bit != 0);
        let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
        let (watcher, kept) = numbers("watcher");
        let mut builder = runtime.session(session_id("s")).audit(if stored { AuditMode::Required } else { AuditMode::Off });
        if ring {
            builder = builder.recent(NonZeroUsize::new(2).unwrap());
        }
        if routed {
            builder = builder.observe(watcher);
        }
        let session = builder.open().await.unwrap();
        for number in 0..3 {
            session.emit(note(&session, number)).await.unwrap();
        }
        assert!(session.perform(call("write"), done).await.result().is_some(), "{combination}");
        let recent = session.recent().map(|recent| (recent.facts.len(), recent.overwritten));
        assert_eq!(recent, ring.then_some((2, 3)), "{combination}: memory");
        let recorded = if stored { facts(&runtime, &session).await.len() } else { 0 };
        assert_eq!(recorded, if stored { 5 } else { 0 }, "{combination}: journal");
        let reader = runtime.reader().unwrap();
        assert_eq!(rig::read(&**reader, session.id(), &ReadFilter::all()).len(), recorded, "{combination}");
        session.end(soon()).await;
        let shown = kept.lock().unwrap().len();
        assert_eq!(shown, if routed { 3 } else { 0 }, "{combination}: subscribers");
        down(runtime).await;
    }
}

/// P-8: without an authorization plane proposals are denied with a reason that says so, and observation goes on recording and showing.
#[tokio::test]
async fn without_authorization_everything_is_denied_and_on_record() {
    let host = Host::spawn(Runtime::builder().store(MemoryStore::new()).actions(plan([allows("yes")]))).await;
    let session = host.runtime.session(session_id("s")).open().await.unwrap();
    host.stop_subtree("authorization").await;
    for _ in 0..3 {
        let answer = session.perform(call("write"), done).await;
        assert_eq!(answer.denial().unwrap().cause, DenialCause::AuthorizationUnavailable);
    }
    let report = session.emit(note(&session, 0)).await.unwrap();
    assert_eq!(report.journal(), JournalState::Pending);
    let recorded = facts(&host.runtime, &session).await;
    assert_eq!(recorded.len(), 7);
    assert_eq!(kinds(&recorded).iter().filter(|kind| **kind == "operation_denied").count(), 3);
    assert!(payload(&recorded[1])["denial"]["reason"].as_str().unwrap().contains("has stopped"));
    host.shutdown().await;
}

/// P-8: without an observation tree authorization goes on deciding, and the journal, which is not of that tree, goes on recording.
#[tokio::test]
async fn without_observers_authorization_goes_on() {
    let host = Host::spawn(Runtime::builder().store(MemoryStore::new()).actions(plan([denies("no")]))).await;
    let (watcher, _kept) = numbers("watcher");
    let session = host.runtime.session(session_id("s")).observe(watcher).open().await.unwrap();
    host.stop_subtree("observation").await;
    for _ in 0..3 {
        let answer = session.perform(call("write"), done).await;
        assert_eq!(answer.denial().unwrap().cause, DenialCause::Policy);
    }
    assert_eq!(session.emit(note(&session, 0)).await.unwrap_err(), EmitError::Undelivered);
    assert_eq!(facts(&host.runtime, &session).await.len(), 7, "on record");
    assert!(session.losses().is_none(), "nothing is lost");
    assert_eq!(session.undelivered(), 7, "and what nobody was shown is counted");
    host.shutdown().await;
}

/// P-8: an observer that is killed while operations run takes none of them with it, and the subscribers are there again after its restart.
#[tokio::test]
async fn a_killed_observer_costs_no_decision_and_no_record() {
    let host = Host::spawn(Runtime::builder().store(MemoryStore::new()).actions(plan([allows("yes")]))).await;
    let shown = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&shown);
    let watcher = Subscriber::declared_sync("watcher", move |_: &Arc<Signal>| {
        counting.fetch_add(1, Ordering::SeqCst);
    });
    let session = host.runtime.session(session_id("s")).observe(watcher).open().await.unwrap();
    for round in 0..30 {
        if round % 10 == 5 {
            let observer = loop {
                match host.observers(1).pop() {
                    Some(observer) => break observer,
                    None => tokio::task::yield_now().await,
                }
            };
            observer.kill();
        }
        assert!(session.perform(call("write"), done).await.result().is_some());
    }
    // Answered by the next incarnation, whose registrations are the same.
    assert!(session.emit(note(&session, 0)).await.unwrap().all_returned());
    assert_eq!(facts(&host.runtime, &session).await.len(), 61);
    session.end(soon()).await;
    assert_eq!(shown.load(Ordering::SeqCst) + session.undelivered(), 61, "shown, or counted");
    host.shutdown().await;
}

/// P10 (telemetry 8): a handler that failed once was detached for good, in silence. Ours panics on the third of thirteen facts: the report says so, it
/// gets the other twelve, and its neighbour all of them.
#[tokio::test]
async fn p10_a_subscriber_that_panicked_is_shown_the_next_fact() {
    let (runtime, session) = recording().await;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeping = Arc::clone(&kept);
    let fragile = Subscriber::declared_sync("fragile", move |fact: &Arc<Signal>| {
        assert_ne!(number(fact), 3, "the third is too much");
        keeping.lock().unwrap().push(number(fact));
    });
    let (steady, all) = numbers("steady");
    let _registered = (session.observe(fragile).unwrap(), session.observe(steady).unwrap());
    for number in 1..=13 {
        let report = session.emit(note(&session, number)).await.unwrap();
        assert_eq!(report.all_returned(), number != 3);
        if number == 3 {
            let Outcome::Isolated(failure) = report.entry("fragile").unwrap().outcome else { panic!("isolated") };
            assert_eq!(failure.code(), "panic");
        }
    }
    assert_eq!(*kept.lock().unwrap(), [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(all.lock().unwrap().len(), 13);
    down(runtime).await;
}

/// P11 (kubernetes 128162): four optional hooks that hang took four budgets. Here one emission has one: at its end all four are reported as timed out, and
/// the operation beside it never waited.
#[tokio::test(start_paused = true)]
async fn p11_hanging_subscribers_share_one_budget() {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    for name in ["one", "two", "three", "four"] {
        let hangs = Subscriber::declared_async(name, |_: Arc<Signal>| std::future::pending::<()>());
        let _registered = session.observe(hangs).unwrap();
    }
    let began = tokio::time::Instant::now();
    let (report, answer) = tokio::join!(session.emit(note(&session, 0)), async {
        let answer = session.perform(call("write"), done).await;
        (answer, began.elapsed())
    });
    let report = report.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(30) && took < Duration::from_millis(30_100), "one budget, not four: {took:?}");
    assert_eq!(report.entries().filter(|entry| *entry.outcome == Outcome::TimedOut).count(), 4);
    assert!(answer.0.result().is_some() && answer.1 < Duration::from_secs(1), "the operation did not wait");
    down(runtime).await;
}

/// P12 (NeMo-Relay 571): a flush from inside the awaited work waited for itself and stalled everybody. A handler emits on its own session and awaits the
/// report, settles the journal, and asks for the end of its own session, which comes back at its deadline; all the while another session delivers a
/// thousand facts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_a_drain_from_inside_a_handler_stalls_nobody() {
    let (runtime, session) = recording().await;
    let other = runtime.session(session_id("other")).open().await.unwrap();
    let own = Arc::new(OnceLock::<Session>::new());
    let (inside, delivered) = (Latch::new(), Latch::new());
    let came_back = Arc::new(AtomicBool::new(false));
    let handler = {
        let (own, inside, delivered, came_back) = (Arc::clone(&own), inside.clone(), delivered.clone(), Arc::clone(&came_back));
        Subscriber::declared_async("drains", move |fact: Arc<Signal>| {
            let (own, inside, delivered, came_back) =
                (Arc::clone(&own), inside.clone(), delivered.clone(), Arc::clone(&came_back));
            async move {
                if number(&fact) != 0 {
                    return;
                }
                let session = own.get().expect("it is open");
                assert!(session.emit(note(session, 1)).await.expect("re-entrant").all_returned());
                session.settled(soon()).await.expect("settled from inside");
                inside.open();
                delivered.passed().await;
                session.end(Deadline::after(Duration::from_millis(20))).await;
                came_back.store(true, Ordering::SeqCst);
            }
        })
    };
    let _registered = session.observe(handler).unwrap();
    own.set(session.clone()).ok().unwrap();
    let (watcher, kept) = numbers("watcher");
    let _registered = other.observe(watcher).unwrap();

    let burst = async {
        inside.passed().await;
        let mut took = Vec::new();
        for number in 0..1000 {
            let began = Instant::now();
            assert!(other.emit(note(&other, number)).await.unwrap().all_returned());
            took.push(began.elapsed());
        }
        took.sort_unstable();
        delivered.open();
        took[989]
    };
    let (report, p99) = tokio::join!(session.emit(note(&session, 0)), burst);
    assert!(report.expect("it ends in order").all_returned());
    assert!(came_back.load(Ordering::SeqCst), "the drain came back at its deadline");
    assert_eq!(kept.lock().unwrap().len(), 1000, "delivered while the other handler was inside its drain");
    rig::show(&format!("P12: p99 of the unrelated session: {p99:?}"));
    down(runtime).await;
}

/// P13 (librefang 3630), the best-effort part: a burst of ten thousand over a reader that stands still. What it read and what it missed make ten thousand,
/// at the stream, and at the observer when its own port overflows; the journal has them all.
#[tokio::test]
async fn p13_a_burst_over_a_slow_reader_is_counted_to_the_last_fact() {
    const BURST: u64 = 10_000;
    let (runtime, session) = recording().await;
    let (feed, mut stream) = live_stream(NonZeroUsize::new(8).unwrap());
    let _registered = session.observe(feed.subscriber("screen")).unwrap();
    for number in 0..BURST {
        // Nobody yields in between: the observer cannot keep up, and its port holds what it may.
        session.submit_in_turn(note(&session, number), soon()).await.unwrap();
    }
    session.settled(soon()).await.unwrap();
    session.end(soon()).await;
    let mut read = 0;
    while let Some(next) = stream.try_next() {
        read += 1;
        assert_eq!(next.fact.kind().as_str(), "test.note");
    }
    assert_eq!(read, 8);
    assert_eq!(read + stream.missed() + session.undelivered(), BURST, "read, missed, or never shown");
    assert_eq!(facts(&runtime, &session).await.len() as u64, BURST);
    assert!(session.losses().is_none());
    down(runtime).await;
}

/// F-16: an emission waits for its handlers and not for the commit; a confirmed one waits for the commit too; one that is dropped is submitted all the
/// same; and without a journal a confirmation fails before any handler runs.
#[tokio::test]
async fn emissions_do_not_wait_for_the_commit() {
    let faults = Faults::new();
    let store = MemoryStore::with_faults(Arc::new(tipstaff::clock::SystemClock), faults.clone());
    let runtime = Runtime::builder().store(store).spawn().await.unwrap();
    let (watcher, kept) = numbers("watcher");
    let session = runtime.session(session_id("s")).observe(watcher).open().await.unwrap();
    faults.always(FaultPoint::AppendBeforeCommit, FaultAction::Hold);

    let report = session.emit(note(&session, 0)).await.unwrap();
    assert_eq!(report.journal(), JournalState::Pending);
    {
        let mut confirmed = std::pin::pin!(session.emit_confirmed(note(&session, 1), soon()));
        while kept.lock().unwrap().len() < 2 {
            assert!(futures::poll!(&mut confirmed).is_pending(), "not confirmed while the store holds");
            tokio::task::yield_now().await;
        }
        assert!(futures::poll!(&mut confirmed).is_pending());
    }
    faults.clear(FaultPoint::AppendBeforeCommit);
    let (seq, report) = session.emit_confirmed(note(&session, 2), soon()).await.unwrap();
    assert_eq!((seq, report.journal()), (SignalSeq(3), JournalState::Confirmed(3)), "the dropped one was not withdrawn");
    assert_eq!(facts(&runtime, &session).await.len(), 3);

    let (watcher, kept) = numbers("watcher");
    let off = runtime.session(session_id("off")).audit(AuditMode::Off).observe(watcher).open().await.unwrap();
    let refused = off.emit_confirmed(note(&off, 0), soon()).await;
    assert_eq!(refused.unwrap_err(), EmitError::Unrecorded(Unrecorded::NoJournal));
    off.end(soon()).await;
    assert!(kept.lock().unwrap().is_empty(), "no handler ran");
    down(runtime).await;
}

/// F-23: a fact that comes after the end of its session is journalled, answered with `SessionEnded`, and shown to nobody; a proposal is denied; an
/// attempt that was under way still gets its closing fact.
#[tokio::test]
async fn a_late_fact_is_journalled_and_shown_to_nobody() {
    let (runtime, session) = recording().await;
    let (watcher, kept) = numbers("watcher");
    let proposed = session.propose(call("write")).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    session.emit(note(&session, 0)).await.unwrap();
    let _registered = session.observe(watcher).unwrap();
    session.end(soon()).await;

    assert_eq!(session.emit(note(&session, 1)).await.unwrap_err(), EmitError::SessionEnded);
    assert_eq!(session.submit(note(&session, 2)).unwrap_err(), EmitError::SessionEnded);
    assert_eq!(session.perform(call("write"), done).await.denial().unwrap().cause, DenialCause::AuditUnavailable);
    assert!(permit.perform(done).await.review().await.record().await.result().is_some());

    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "test.note", "test.note", "test.note", "operation_completed"]);
    assert!(kept.lock().unwrap().is_empty());
    assert_eq!(session.undelivered(), 0, "late is not undelivered");
    let again = runtime.session(session_id("s")).open().await.unwrap();
    assert!(again.emit(note(&again, 3)).await.is_ok(), "the identity is free again");
    down(runtime).await;
}

/// F-24: at most 1,024 emissions of a session are in flight; as many wait; the next is not shown, and counted. All that were taken are shown.
#[tokio::test]
async fn emissions_in_flight_are_bounded() {
    let (runtime, session) = recording().await;
    let (begun, door) = (Latch::new(), Latch::new());
    let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let watcher = {
        let (started, ended, begun, door) = (Arc::clone(&started), Arc::clone(&ended), begun.clone(), door.clone());
        Subscriber::declared_async("watcher", move |_: Arc<Signal>| {
            started.fetch_add(1, Ordering::SeqCst);
            begun.open();
            let (ended, door) = (Arc::clone(&ended), door.clone());
            async move {
                door.passed().await;
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let _registered = session.observe(watcher).unwrap();
    for number in 0..1024 {
        session.submit(note(&session, number)).unwrap();
    }
    for _ in 0..1024 {
        begun.passed().await;
    }
    for number in 0..1024 {
        session.submit(note(&session, number)).unwrap();
    }
    assert_eq!(session.undelivered(), 0);
    session.submit(note(&session, 0)).unwrap();
    assert_eq!(session.undelivered(), 1, "one more than fits");
    let report = session.emit(note(&session, 0)).await;
    assert_eq!(report.unwrap_err(), EmitError::Undelivered);
    assert_eq!((started.load(Ordering::SeqCst), session.undelivered()), (1024, 2));
    door.open_for_all();
    session.end(soon()).await;
    assert_eq!((ended.load(Ordering::SeqCst), session.undelivered()), (2048, 2));
    assert_eq!(facts(&runtime, &session).await.len(), 2050, "the journal has them all");
    down(runtime).await;
}

/// F-14: a handler may emit on its own session and await the report, sixteen deep and more.
#[tokio::test]
async fn handlers_may_emit_on_their_own_session() {
    const DEPTH: u64 = 32;
    let (runtime, session) = recording().await;
    let own = Arc::new(OnceLock::<Session>::new());
    let within = Arc::clone(&own);
    let deeper = Subscriber::declared_async("deeper", move |fact: Arc<Signal>| {
        let within = Arc::clone(&within);
        async move {
            let session = within.get().expect("it is open");
            let next = number(&fact) + 1;
            if next < DEPTH {
                session.emit(note(session, next)).await.map_err(|error| HandlerError::failed("test.deeper", error))?;
            }
            Ok::<(), HandlerError>(())
        }
    });
    let _registered = session.observe(deeper).unwrap();
    own.set(session.clone()).ok().unwrap();
    assert!(session.emit(note(&session, 0)).await.unwrap().all_returned());
    let recorded = facts(&runtime, &session).await;
    let order: Vec<_> = recorded.iter().map(|recorded| number(&recorded.signal)).collect();
    assert_eq!(order, (0..DEPTH).collect::<Vec<_>>());
    down(runtime).await;
}

/// F-14: also while the observer's port is full and every place is taken; and past the bound of depth the handler gets a typed error.
#[tokio::test]
async fn a_handler_emits_also_while_the_observer_is_full() {
    let (runtime, session) = recording().await;
    let own = Arc::new(OnceLock::<Session>::new());
    let deepest = Arc::new(AtomicU64::new(0));
    let handler = {
        let (own, deepest) = (Arc::clone(&own), Arc::clone(&deepest));
        Subscriber::declared_async("deeper", move |fact: Arc<Signal>| {
            let (own, deepest) = (Arc::clone(&own), Arc::clone(&deepest));
            async move {
                let session = own.get().expect("it is open");
                let at = number(&fact);
                if at == 0 {
                    // Nobody yields in between: the port is full from here on.
                    while session.undelivered() == 0 {
                        session.submit(note(session, 1_000)).unwrap();
                    }
                }
                if at < 1_000 {
                    match session.emit(note(session, at + 1)).await {
                        Ok(_) => {}
                        Err(EmitError::TooDeep { limit }) => deepest.store(limit as u64, Ordering::SeqCst),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        })
    };
    let _registered = session.observe(handler).unwrap();
    own.set(session.clone()).ok().unwrap();
    assert!(session.emit(note(&session, 0)).await.unwrap().all_returned());
    assert_eq!(deepest.load(Ordering::SeqCst), tipstaff::dispatch::MAX_DEPTH as u64);
    let recorded = facts(&runtime, &session).await;
    let noted: Vec<_> = recorded.iter().map(|recorded| number(&recorded.signal)).filter(|at| *at < 1_000).collect();
    assert_eq!(noted, (0..=tipstaff::dispatch::MAX_DEPTH as u64 + 1).collect::<Vec<_>>(), "the one too deep is on record too");
    down(runtime).await;
}

/// F-12, F-16: an emission whose emitter goes away drops its handlers, is counted, and keeps its place in the journal.
#[tokio::test]
async fn an_emission_goes_with_its_emitter() {
    struct Dropped(Latch);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.open();
        }
    }
    let (runtime, session) = recording().await;
    let (begun, dropped) = (Latch::new(), Latch::new());
    let hangs = {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        Subscriber::declared_async("hangs", move |_: Arc<Signal>| {
            begun.open();
            let held = Dropped(dropped.clone());
            async move {
                let _held = held;
                std::future::pending::<()>().await;
            }
        })
    };
    let _registered = session.observe(hangs).unwrap();
    tokio::select! {
        biased;
        _ = session.emit(note(&session, 0)) => panic!("the handler never ends"),
        () = begun.passed() => {}
    }
    dropped.passed().await;
    assert_eq!(session.undelivered(), 1);
    assert_eq!(facts(&runtime, &session).await.len(), 1);
    down(runtime).await;
}

/// A session that ends twice does not take the identity from the one that has it by now.
#[tokio::test]
async fn a_second_end_is_not_the_end_of_another_session() {
    let (runtime, first) = recording().await;
    first.end(soon()).await;
    let second = runtime.session(session_id("s")).open().await.unwrap();
    first.end(soon()).await;
    assert!(runtime.find_session(second.id()).is_some());
    assert!(runtime.session(session_id("s")).open().await.is_err(), "the identity is taken");
    down(runtime).await;
}

/// No process-global state: runtimes of one process, with sessions of one name, see nothing of one another, and the end of one is not the end of another.
#[tokio::test]
async fn runtimes_of_one_process_do_not_see_each_other() {
    let (left_disk, right_disk) = (disk(), disk());
    let open = |store: SqliteStore, guard| async move {
        let runtime = Runtime::builder().store(store).actions(plan([guard])).spawn().await.unwrap();
        let session = runtime.session(session_id("same")).open().await.unwrap();
        (runtime, session)
    };
    let (left, left_session) = open(left_disk.store.clone(), allows("gate")).await;
    let (right, right_session) = open(right_disk.store.clone(), denies("gate")).await;
    let (watcher, kept) = numbers("watcher");
    let _registered = right_session.observe(watcher).unwrap();

    left_session.emit(note(&left_session, 0)).await.unwrap();
    assert!(left_session.perform(call("write"), done).await.result().is_some());
    assert!(right_session.perform(call("write"), done).await.denial().is_some());

    assert_eq!(kinds(&facts(&left, &left_session).await), ["test.note", "operation_proposed", "operation_completed"]);
    assert_eq!(kinds(&facts(&right, &right_session).await), ["operation_proposed", "operation_denied"]);
    down(left).await;
    assert!(right_session.perform(call("write"), done).await.denial().is_some(), "the other goes on");
    let foreign =
        tipstaff::signal::Signal::builder(session_id("elsewhere"), LifecycleKind::RunStarted, right_session.now()).build();
    assert!(matches!(right_session.emit(foreign).await, Err(EmitError::OtherSession { .. })));
    assert_eq!(facts(&right, &right_session).await.len(), 4);
    drop(kept);
    down(right).await;
}
