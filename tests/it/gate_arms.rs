//! P-2: audit survives authorization. One table: whatever the gate does, whatever a subscriber does, in whatever order they were declared.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tipstaff::dispatch::{HandlerError, Subscriber};
use tipstaff::id::{AttemptId, OperationId};
use tipstaff::interception::InterceptError;
use tipstaff::operation::{AuditMode, Operation};
use tipstaff::signal::Signal;
use tipstaff::state::Store;
use tipstaff::{Runtime, RuntimeBuilder, Session};

use super::rig::{self, Body, Guard, Host, Latch, allows, call, denies, disk, fails, plan, session_id, soon, waits};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Absent,
    Denies,
    Error,
    Panics,
    TimesOut,
    Dead,
    CancelsItself,
    ProposerGone,
}

const ARMS: [(char, Arm); 8] = [
    ('a', Arm::Absent),
    ('b', Arm::Denies),
    ('c', Arm::Error),
    ('d', Arm::Panics),
    ('e', Arm::TimesOut),
    ('f', Arm::Dead),
    ('g', Arm::CancelsItself),
    ('h', Arm::ProposerGone),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watcher {
    Absent,
    FailsInline,
    FailsAwaited,
    Panics,
}

const WATCHERS: [Watcher; 4] = [Watcher::Absent, Watcher::FailsInline, Watcher::FailsAwaited, Watcher::Panics];

/// How an attempt is to be closed: the closing kind, and the cause of its denial.
type Expected = (&'static str, Option<&'static str>);

impl Arm {
    /// The attempts that a cell makes, in order. A dead actor is two: one that dies with the proposal in hand, one that is gone.
    fn expected(self) -> &'static [Expected] {
        match self {
            Self::Absent => &[("operation_completed", None)],
            Self::Denies => &[("operation_denied", Some("policy"))],
            Self::Error => &[("operation_denied", Some("interceptor_failed"))],
            Self::Panics => &[("operation_denied", Some("panicked"))],
            Self::TimesOut => &[("operation_denied", Some("timed_out"))],
            Self::Dead => {
                &[("operation_denied", Some("authorization_restarted")), ("operation_denied", Some("authorization_unavailable"))]
            }
            Self::CancelsItself => &[("operation_denied", Some("cancelled"))],
            Self::ProposerGone => &[("operation_cancelled", None)],
        }
    }

    fn gate(self, begun: &Latch) -> Option<Guard> {
        let never = Latch::new();
        Some(match self {
            Self::Absent => return None,
            Self::Denies => denies("gate"),
            Self::Error => fails("gate", || InterceptError::new("the policy file is gone")),
            Self::Panics => rig::guard("gate", |_| panic!("the gate panics")),
            Self::TimesOut => waits("gate", begun, &never).bound(Duration::from_millis(5)),
            Self::Dead | Self::ProposerGone => waits("gate", begun, &never),
            Self::CancelsItself => fails("gate", || InterceptError::cancelled("gave up")),
        })
    }
}

/// A subscriber that fails in its way, and counts what it was shown.
fn watcher(kind: Watcher, shown: &Arc<AtomicUsize>) -> Option<Subscriber<Signal>> {
    let shown = Arc::clone(shown);
    let see = move || shown.fetch_add(1, Ordering::SeqCst);
    Some(match kind {
        Watcher::Absent => return None,
        Watcher::FailsInline => Subscriber::declared_sync("watcher", move |_: &Arc<Signal>| {
            see();
            Err::<(), _>(HandlerError::failed("test.inline", "fails inline"))
        }),
        Watcher::FailsAwaited => Subscriber::declared_async("watcher", move |_: Arc<Signal>| {
            see();
            async {
                tokio::task::yield_now().await;
                Err::<(), _>(HandlerError::failed("test.awaited", "fails awaited"))
            }
        }),
        Watcher::Panics => Subscriber::declared_sync("watcher", move |_: &Arc<Signal>| {
            let seen = see();
            assert!(seen == usize::MAX, "the watcher panics");
        }),
    })
}

async fn open(runtime: &Runtime, name: &str, subscriber: Option<Subscriber<Signal>>, before: bool) -> Session {
    let builder = runtime.session(session_id(name));
    match subscriber {
        None => builder.audit(AuditMode::Required).open().await.unwrap(),
        Some(subscriber) if before => builder.observe(subscriber).audit(AuditMode::Required).open().await.unwrap(),
        Some(subscriber) => {
            let session = builder.audit(AuditMode::Required).open().await.unwrap();
            let _registered = session.observe(subscriber).unwrap();
            session
        }
    }
}

/// Proposes one call. The body counts that it ran.
async fn propose(session: &Session, ids: &(OperationId, AttemptId), performed: &AtomicUsize) {
    let operation = Operation::new(call("write")).identified(ids.0.clone(), ids.1.clone());
    let body = |_granted| async {
        performed.fetch_add(1, Ordering::SeqCst);
        Body::Ok(json!("done"))
    };
    let _answer = session.perform(operation, body).await;
}

/// Runs one cell and reads it back: one line of the table. Every expectation is asserted here.
async fn cell(store: impl Store, letter: char, arm: Arm, kind: Watcher, before: bool) -> String {
    let name = format!("{letter}-{kind:?}-{}", if before { "before" } else { "after" });
    let begun = Latch::new();
    let mut builder: RuntimeBuilder = Runtime::builder().store(store);
    if let Some(gate) = arm.gate(&begun) {
        builder = builder.actions(plan([gate, allows("next")]));
    }
    let host = Host::spawn(builder).await;
    let (shown, performed) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let session = open(&host.runtime, &name, watcher(kind, &shown), before).await;
    let ids: Vec<_> = arm.expected().iter().map(|_| (OperationId::generate(), AttemptId::generate())).collect();

    match arm {
        Arm::Dead => {
            let killed = async {
                begun.passed().await;
                host.executor().unwrap().kill();
            };
            tokio::join!(propose(&session, &ids[0], &performed), killed);
            host.stop_subtree("authorization").await;
            propose(&session, &ids[1], &performed).await;
        }
        Arm::ProposerGone => tokio::select! {
            biased;
            () = propose(&session, &ids[0], &performed) => panic!("{name}: the gate never answers"),
            () = begun.passed() => {}
        },
        _ => propose(&session, &ids[0], &performed).await,
    }

    let recorded = rig::facts(&host.runtime, &session).await;
    let mut ends = Vec::new();
    for ((operation, attempt), (closing, cause)) in ids.iter().zip(arm.expected()) {
        let own: Vec<_> = recorded.iter().filter(|recorded| recorded.signal.operation() == Some(operation)).cloned().collect();
        assert_eq!(rig::kinds(&own), ["operation_proposed", closing], "{name}");
        assert!(own.iter().all(|recorded| recorded.signal.attempt() == Some(attempt)), "{name}");
        assert_eq!(rig::payload(&own[0])["context"]["tool"], "write", "{name}");
        let found = rig::payload(&own[1])["denial"]["cause"].as_str();
        assert_eq!(found, *cause, "{name}: {}", rig::payload(&own[1]));
        if arm == Arm::ProposerGone {
            assert_eq!(rig::payload(&own[1])["reason"], "the proposer went away while gate was being asked", "{name}");
            assert_eq!(rig::payload(&own[1])["never_called"], json!(["next"]), "{name}");
        }
        ends.push(format!("{closing}{}", cause.map(|cause| format!(" ({cause})")).unwrap_or_default()));
    }
    assert_eq!(recorded.len(), 2 * ids.len(), "{name}: nothing else is on record");
    assert_eq!(performed.load(Ordering::SeqCst), usize::from(arm == Arm::Absent), "{name}: the body");
    assert!(session.losses().is_none() && host.runtime.losses().is_none(), "{name}: the loss counter");
    let gaps = host.runtime.reader().unwrap().gaps(session.id(), tipstaff::signal::SignalSeq::START, std::num::NonZeroU32::MIN);
    assert!(gaps.unwrap().is_empty(), "{name}: no gap");
    // Ending drains the observer: a subscriber that was never called would prove nothing.
    session.end(soon()).await;
    let due = if kind == Watcher::Absent { 0 } else { recorded.len() };
    assert_eq!((shown.load(Ordering::SeqCst), session.undelivered()), (due, 0), "{name}: the subscriber");
    host.shutdown().await;
    let order = if before { "before" } else { "after" };
    format!(
        "{letter} | {arm:<13} | {kind:<12} | {order:<6} | proposed, {} | lost 0",
        ends.join("; proposed, "),
        arm = format!("{arm:?}"),
        kind = format!("{kind:?}")
    )
}

/// P-2: no arm of the gate and no subscriber, registered before or after the journal, loses the record of a proposal or makes the loss counter lie.
/// Sixty-four cells, each with a runtime of its own on one SQLite file, each read back from the journal.
#[tokio::test]
async fn no_gate_and_no_subscriber_loses_a_record() {
    let disk = disk();
    let mut table = Vec::new();
    for (letter, arm) in ARMS {
        for kind in WATCHERS {
            for before in [true, false] {
                let line = cell(disk.store.clone(), letter, arm, kind, before).await;
                table.push(line);
            }
        }
    }
    assert_eq!(table.len(), 64);
    rig::show(&format!("\narm               | subscriber   | order  | read from the journal\n{}", table.join("\n")));
}
