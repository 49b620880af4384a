//! P-8: if the observation tree is down, authorization goes on deciding, and the journal goes on recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tipstaff::dispatch::Subscriber;
use tipstaff::signal::Signal;
use tipstaff::state::MemoryStore;
use tipstaff::{CrashPoint, CrashPoints, Runtime};

use super::world::{Bodies, assert_on_record, bounded, ends, facts, lost, plan, session_id, settle, soon, until};

const SESSIONS: usize = 8;
const PROPOSALS: usize = 10_000;

/// Every session's observer crashes with whatever it takes in hand, by a panic or by a kill, for as long as 10,000 proposals are decided: all are
/// decided, none is lost to the journal, and each emission was either seen or is counted as undelivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_proposals_are_decided_while_every_observer_crashes() {
    let points = CrashPoints::new();
    points.always(CrashPoint::ObserverInHand);
    let runtime =
        Runtime::builder().store(MemoryStore::default()).actions(plan()).crash_points(points.clone()).spawn().await.unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let mut sessions = Vec::new();
    for n in 0..SESSIONS {
        let seen = Arc::clone(&seen);
        let counts = Subscriber::declared_sync("counts", move |_: &Arc<Signal>| {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        sessions.push(runtime.session(session_id(&format!("s{n}"))).observe(counts).open().await.unwrap());
    }

    let bodies = Bodies::default();
    let answers = bodies
        .many(&sessions, PROPOSALS, 64, |n| {
            if n % 100 == 0 {
                points.kill("session_observer");
            }
            // From the middle on, emissions crash on their own tasks, so that the observers come up and take more.
            if n == 5_000 {
                points.clear(CrashPoint::ObserverInHand);
                points.every(CrashPoint::ObserverBeforeFanOut, 2);
            }
        })
        .await;

    assert_eq!(ends(&answers).into_iter().collect::<Vec<_>>(), [("Policy".to_owned(), 2_000), ("completed".to_owned(), 8_000)]);
    assert_eq!(bodies.ran(), 8_000);
    for session in &sessions {
        settle(session).await;
    }
    let reader = runtime.reader().unwrap();
    assert_on_record(reader, &sessions, &answers);
    assert_eq!(lost(runtime.losses()), 0);
    assert_eq!(sessions.iter().map(|session| facts(reader, session.id()).len()).sum::<usize>(), 2 * PROPOSALS);
    assert!(points.passed(CrashPoint::ObserverInHand) >= SESSIONS as u64, "every observer crashed: {points:?}");

    // It recovers by itself: the next fact of each session is seen, once its observer's back-off is over.
    points.clear(CrashPoint::ObserverBeforeFanOut);
    for session in &sessions {
        bounded(async {
            let again = || session.signal(tipstaff::signal::SignalKind::user("test.again").unwrap()).build();
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            while session.emit(again()).await.is_err() {
                pace.tick().await;
            }
        })
        .await;
    }
    let admitted = || sessions.iter().map(|session| facts(reader, session.id()).len() as u64).sum::<u64>();
    let undelivered = || sessions.iter().map(|session| session.undelivered()).sum::<u64>();
    for session in &sessions {
        settle(session).await;
    }
    until("each emission is seen or counted", || seen.load(Ordering::SeqCst) + undelivered() == admitted()).await;
    assert!(undelivered() > 0);
    runtime.shutdown(soon()).await.unwrap();
}
