//! The dispatchers of the original system, as hosts use them: what the recorded traces do not show.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tipstaff::Runtime;
use tipstaff::compat::{
    AddError, Broadcaster, Observed, RunId, ScheduleKind, ScheduleSignal, SchedulerBus, SessionObserver, SyncMessages,
    TerminalFilter,
};
use tipstaff::dispatch::{Declared, HandlerContext, HandlerError, Refusal, Returned, Subscriber};
use tipstaff::signal::{LifecycleKind, SignalKind};
use tipstaff::state::{MemoryStore, ReadFilter};
use tokio::sync::watch;
use tokio::time::timeout_at;

use crate::rig::{facts, kinds, payload, read, session_id, soon};

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    timeout_at(soon().instant(), future).await.expect("it ends by itself")
}

fn returns<F: 'static>(name: &str, value: Value) -> Subscriber<F, Value> {
    Subscriber::declared_sync(name, move |_: &Arc<F>| Ok::<_, HandlerError>(value.clone()))
}

fn fails<F: 'static>(name: &str, code: &'static str) -> Subscriber<F, Value> {
    Subscriber::declared_sync(name, move |_: &Arc<F>| Err::<Value, _>(HandlerError::failed(code, "on purpose")))
}

fn failed(run: &str) -> ScheduleSignal {
    ScheduleSignal { run: RunId::new(run), kind: ScheduleKind::Failed, payload: Value::Null }
}

/// The scheduler's row: counters are by run, and popped exactly once, by whoever asks first.
#[tokio::test]
async fn the_counters_of_a_run_are_popped_once() {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let session = runtime.own_session().await.unwrap();
    let bus = SchedulerBus::start(&session).await.unwrap();
    let _ = bus.register(returns("acts", json!(1))).unwrap();
    let _ = bus.register(returns("does nothing", json!(0))).unwrap();

    for run in ["a", "b", "a"] {
        assert_eq!(bounded(bus.emit(failed(run))).await.unwrap(), [json!(1), json!(0)]);
    }

    let (a, b) = (RunId::new("a").unwrap(), RunId::new("b").unwrap());
    let popped: Vec<_> =
        futures::future::join_all((0..8).map(|_| async { bus.pop_counters(&a) })).await.into_iter().flatten().collect();
    assert_eq!(popped.len(), 1);
    assert_eq!(json!(popped[0]), json!({"emitted": {"ScheduleRunFailed": 2}, "received": 4, "acted_on": 2}));
    assert_eq!(bus.pop_counters(&b).unwrap().acted_on, 1);
    assert!(RunId::new("").is_none() && bus.pop_counters(&b).is_none());
}

/// F-22: a dispatch that failed leaves one durable record, with its run, its kind and its failures in order; one that did not leaves none.
#[tokio::test]
async fn a_failed_dispatch_leaves_one_record() {
    let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
    let session = runtime.session(session_id("s1")).open().await.unwrap();
    let bus = SchedulerBus::start(&session).await.unwrap();
    let _ = bus.register(returns("fine", json!(1))).unwrap();
    assert!(bounded(bus.emit(failed("r1"))).await.is_ok());
    let _ = bus.register(fails("first", "disk_full")).unwrap();
    let _ = bus.register(fails("second", "no_route")).unwrap();

    assert!(bounded(bus.emit(failed("r1"))).await.is_err());

    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["scheduler.dispatch_failed"]);
    let payload = payload(&recorded[0]);
    assert_eq!((&payload["run"], &payload["kind"]), (&json!("r1"), &json!("ScheduleRunFailed")));
    assert_eq!(
        payload["failures"],
        json!([{"registration": "first", "code": "disk_full"}, {"registration": "second", "code": "no_route"}])
    );
    runtime.shutdown(soon()).await.unwrap();
}

/// F-13 and the message row: a declared async callback is refused before the owner changes anything, and is named; a sync one whose awaitable was
/// discarded is listed.
#[test]
fn a_synchronous_owner_keeps_nothing_that_it_cannot_tell() {
    let messages = SyncMessages::<&'static str>::new();
    let pile = Mutex::new(Vec::new());
    let keep = |message: &Arc<&'static str>| pile.lock().unwrap().push(Arc::clone(message));
    let lazy = Subscriber::declared_sync_with("lazy", |_: &Arc<&'static str>, _: &HandlerContext| {
        Ok(Returned::coroutine(async { Ok(Value::Null) }))
    });
    let _ = messages.on_added(lazy).unwrap();
    assert_eq!(*messages.add("hello", keep).unwrap(), "hello");
    assert_eq!(messages.discarding().len(), 1);

    let awaited =
        messages.on_added(Subscriber::declared_async("awaited", |_| async { Ok::<_, HandlerError>(Value::Null) })).unwrap();
    match messages.add("again", keep) {
        Err(AddError::Refused(Refusal::DeclaredAsync { registrations })) => assert_eq!(registrations, ["awaited"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(pile.lock().unwrap().len(), 1);
    assert!(messages.remove(&awaited) && messages.add("again", keep).is_ok());
    assert_ne!(Declared::Sync, Declared::Async);
}

/// The broadcaster's row: an event of another type is refused before anybody is called.
#[tokio::test]
async fn a_wrong_event_reaches_nobody() {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let broadcaster = Broadcaster::<u32>::start(&runtime).await.unwrap();
    let (called, calls) = watch::channel(0);
    let counts = Subscriber::declared_sync("counts", move |_: &Arc<u32>| {
        called.send_modify(|times| *times += 1);
        Ok::<_, HandlerError>(Value::Null)
    });
    let first = broadcaster.subscribe(counts).unwrap();
    assert!(first.is_some() && broadcaster.subscribe(returns("counts", json!(1))).unwrap().is_none());

    assert!(broadcaster.broadcast_any(Arc::new("no number")).is_err());
    assert_eq!(*calls.borrow(), 0);

    bounded(broadcaster.broadcast_any(Arc::new(7_u32)).unwrap()).await.unwrap();
    assert_eq!((*calls.borrow(), broadcaster.subscribers()), (1, 1));
    assert!(broadcaster.unsubscribe(&first.unwrap()) && broadcaster.subscribers() == 0);
}

/// The terminal registry's filter: an absent list takes all, an empty one none, and both lists must take the entity.
#[test]
fn a_terminal_filter_takes_what_both_lists_take() {
    let of = |kinds: Option<&[&str]>, ids: Option<&[&str]>| {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TerminalFilter { kinds: kinds.map(set), ids: ids.map(set) }
    };
    let takes = |filter: TerminalFilter| filter.takes("session", "s1");
    assert!(takes(of(None, None)) && takes(of(Some(&["session"]), None)) && takes(of(Some(&["play", "session"]), Some(&["s1"]))));
    assert!(!takes(of(Some(&[]), None)) && !takes(of(None, Some(&["s2"]))) && !takes(of(Some(&["session"]), Some(&["s2"]))));
}

/// P-1, P-2 and P-9: with a gate that denies, fails or never answers, the fact is in the journal, and the proposal to show it has its closing fact; no
/// subscriber is called.
#[tokio::test]
async fn a_gate_keeps_no_fact_from_the_journal() {
    for gate in ["denies", "fails", "cancels", "hangs"] {
        let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
        let session = runtime.session(session_id("s1")).recent(NonZeroUsize::new(8).unwrap()).open().await.unwrap();
        let (asked, mut asking) = watch::channel(false);
        let observer = SessionObserver::builder(&session).gate(move |_fact| {
            asked.send_replace(true);
            async move {
                match gate {
                    "denies" => Ok(false),
                    "fails" => Err(HandlerError::failed("broken", "on purpose")),
                    "cancels" => Err(HandlerError::Cancelled),
                    _ => std::future::pending().await,
                }
            }
        });
        let observer = observer.start().await.unwrap();
        let (called, calls) = watch::channel(0);
        let counts = Subscriber::declared_sync("counts", move |_: &Arc<_>| {
            called.send_modify(|times| *times += 1);
            Ok::<_, HandlerError>(Value::Null)
        });
        let _ = observer.observe(counts).unwrap();

        let emission = observer.emit(session.signal(LifecycleKind::RunStarted).build());
        if gate == "hangs" {
            // The proposer goes away while the gate is asked (P-2, h).
            let gone = bounded(async {
                tokio::select! {
                    ended = emission => Some(ended),
                    _asked = asking.wait_for(|asked| *asked) => None,
                }
            });
            assert!(gone.await.is_none());
        } else {
            match bounded(emission).await {
                Ok(Observed::Denied(_)) => assert_ne!(gate, "cancels"),
                Ok(other) => panic!("{gate}: {other:?}"),
                Err(error) => assert_eq!(gate, "cancels", "{error:?}"),
            }
        }

        session.settled(soon()).await.unwrap();
        let rows = read(&**runtime.reader().unwrap(), session.id(), &ReadFilter::all());
        let of = |kind: LifecycleKind| rows.iter().filter(|row| *row.signal.kind() == SignalKind::from(kind)).count();
        assert_eq!(
            (of(LifecycleKind::RunStarted), of(LifecycleKind::OperationProposed), rows.len()),
            (1, 1, 3),
            "{gate}: {:?}",
            kinds(&rows)
        );
        assert_eq!(*calls.borrow(), 0, "{gate}");
        runtime.shutdown(soon()).await.unwrap();
    }
}
