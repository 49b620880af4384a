//! P-10: what the loss of the store's writer does, in the three audit modes.

use tipstaff::interception::DenialCause;
use tipstaff::operation::AuditMode;
use tipstaff::signal::{LifecycleKind, SignalKind};
use tipstaff::state::MemoryStore;
use tipstaff::testing::{FaultAction, FaultPoint, Faults};
use tipstaff::{CrashPoints, Runtime, Session};

use super::world::{Bodies, assert_on_record, bounded, degraded, ends, facts, lost, of, plan, session_id, settle, soon, until};

fn store(faults: &Faults) -> MemoryStore {
    MemoryStore::with_faults(std::sync::Arc::new(tipstaff::clock::SystemClock), faults.clone())
}

/// Submits facts of a user's kind in ten groups, and waits until each is settled.
async fn submit(session: &Session, count: usize) {
    for n in 1..=count {
        session.submit_in_turn(session.signal(SignalKind::user("test.fact").unwrap()).build(), soon()).await.unwrap();
        if n % (count / 10) == 0 {
            settle(session).await;
        }
    }
}

/// The gaps that are on record, and the facts.
fn recorded(runtime: &Runtime, session: &Session) -> (u64, u64) {
    let all = facts(runtime.reader().unwrap(), session.id());
    let gaps = all.iter().filter(|fact| *fact.signal.kind() == SignalKind::from(LifecycleKind::CaptureGap)).count() as u64;
    (gaps, all.len() as u64 - gaps)
}

fn gaps_say(runtime: &Runtime, session: &Session) -> u64 {
    let limit = std::num::NonZeroU32::new(1_000).unwrap();
    let gaps = runtime.reader().unwrap().gaps(session.id(), tipstaff::signal::SignalSeq::START, limit).unwrap();
    gaps.iter().map(|gap| gap.gap.known_lost.map_or(0, std::num::NonZeroU64::get)).sum()
}

/// A writer that panics, before or after a commit, is started again on the same queue: what it held is written once more by
/// the next, and what is given up after that is counted, exactly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_writer_goes_on_with_the_same_queue_and_counts_exactly_what_it_lost() {
    for point in [FaultPoint::AppendBeforeCommit, FaultPoint::AppendAfterCommit, FaultPoint::Append] {
        let faults = Faults::new();
        let runtime = Runtime::builder().store(store(&faults)).actions(plan()).spawn().await.unwrap();
        let session = runtime.session(session_id("s")).open().await.unwrap();
        submit(&session, 10).await;
        let before = faults.reached(point);
        faults.once_after(point, FaultAction::Panic, 3);
        submit(&session, 500).await;
        assert!(faults.reached(point) > before + 3, "the point was reached");
        assert_eq!(recorded(&runtime, &session), (0, 510), "{point}: the next writer records what the last one held");
        assert_eq!(lost(session.losses()), 0, "{point}: no loss is counted that is none");

        // A group that crashes two writers is given up, and counted.
        faults.always(point, FaultAction::Panic);
        session.submit(session.signal(SignalKind::user("test.poison").unwrap()).build()).unwrap();
        until("the group is given up", || lost(session.losses()) == 1).await;
        faults.clear(point);
        submit(&session, 10).await;
        until("the loss is on record", || gaps_say(&runtime, &session) == 1).await;
        // After a commit, what was given up may be there all the same: it was never confirmed.
        let committed = u64::from(point == FaultPoint::AppendAfterCommit);
        assert_eq!(recorded(&runtime, &session), (1, 520 + committed), "{point}");
        runtime.shutdown(soon()).await.unwrap();
    }
}

/// A gap whose commit ended in an error or a crash, and is on record all the same, is written once more under its own identity: a loss is told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gap_is_on_record_once_whatever_became_of_its_commit() {
    for action in [FaultAction::Fail, FaultAction::Panic] {
        for point in [FaultPoint::AppendBeforeCommit, FaultPoint::AppendAfterCommit] {
            let faults = Faults::new();
            let runtime = Runtime::builder().store(store(&faults)).actions(plan()).spawn().await.unwrap();
            let session = runtime.session(session_id("s")).open().await.unwrap();
            submit(&session, 10).await;
            // The fact is refused and lost; its gap is written next, and meets the fault.
            faults.once(FaultPoint::Append, FaultAction::Fail);
            faults.once_after(point, action, 1);
            let before = faults.reached(point);
            session.submit(session.signal(SignalKind::user("test.refused").unwrap()).build()).unwrap();
            settle(&session).await;
            submit(&session, 10).await;
            assert!(faults.reached(point) >= before + 2, "{point} was reached by the gap");
            assert_eq!((recorded(&runtime, &session), gaps_say(&runtime, &session)), ((1, 20), 1), "{point} {action:?}");
            assert_eq!(lost(session.losses()), 1);
            runtime.shutdown(soon()).await.unwrap();
        }
    }
}

/// A writer that is killed, not only one that panics, is started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_writer_goes_on_with_the_same_queue() {
    let folder = tempfile::tempdir().unwrap();
    let points = CrashPoints::new();
    let sqlite = tipstaff::state::SqliteStore::open(folder.path().join("journal.db")).unwrap();
    let runtime = Runtime::builder().store(sqlite).actions(plan()).crash_points(points.clone()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let bodies = Bodies::default();
    let sessions = [session.clone()];
    let answers = bodies
        .many(&sessions, 300, 16, |n| {
            if n % 100 == 50 {
                points.kill("state_writer");
            }
        })
        .await;
    assert_eq!(ends(&answers).into_iter().collect::<Vec<_>>(), [("Policy".to_owned(), 60), ("completed".to_owned(), 240)]);
    settle(&session).await;
    assert_eq!(lost(session.losses()), 0, "a kill takes the actor; the thread ends what it began");
    assert_on_record(runtime.reader().unwrap(), &sessions, &answers);
    runtime.shutdown(soon()).await.unwrap();
}

/// The store is gone for good, as far as anyone knows: proposals under a required audit are denied before any interceptor runs; the others go on,
/// and what a best-effort audit misses is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_degraded_store_denies_required_proposals_and_no_others_and_recovers() {
    let faults = Faults::new();
    let runtime = Runtime::builder().store(store(&faults)).actions(plan()).spawn().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let open = async |name: &str, mode| runtime.session(session_id(name)).audit(mode).open().await.unwrap();
    let required = open("required", AuditMode::Required).await;
    let best_effort = open("best-effort", AuditMode::BestEffort).await;
    let off = open("off", AuditMode::Off).await;

    faults.always(FaultPoint::InstanceBeforeCommit, FaultAction::Fail);
    faults.once(FaultPoint::AppendBeforeCommit, FaultAction::Panic);
    required.submit(required.signal(SignalKind::user("test.fact").unwrap()).build()).unwrap();
    degraded(&mut reports, "state").await;
    let lost_before = lost(runtime.losses());

    let bodies = Bodies::default();
    let denied = bodies.many(std::slice::from_ref(&required), 50, 8, |_| {}).await;
    assert_eq!(of(&ends(&denied), DenialCause::AuditUnavailable), 50, "{:?}", ends(&denied));
    assert!(denied.iter().all(|answer| answer.outcome.report.is_none()), "P-10: before any interceptor runs");
    assert_eq!(bodies.ran(), 0);

    let went_on = bodies.many(&[best_effort.clone(), off.clone()], 50, 8, |_| {}).await;
    assert_eq!(ends(&went_on).into_iter().collect::<Vec<_>>(), [("Policy".to_owned(), 10), ("completed".to_owned(), 40)]);
    assert_eq!(lost(best_effort.losses()), 2 * 25, "each fact of each proposal is counted");
    assert_eq!((lost(required.losses()), lost(off.losses())), (lost_before, 0), "nothing was proposed there");

    faults.clear(FaultPoint::InstanceBeforeCommit);
    bounded(async {
        let mut pace = tokio::time::interval(std::time::Duration::from_millis(20));
        while bodies.call(&required, "ls").await.result().is_none() {
            pace.tick().await;
        }
    })
    .await;
    settle(&required).await;
    until("the losses are on record", || {
        gaps_say(&runtime, &best_effort) == 2 * 25 && gaps_say(&runtime, &required) == lost(required.losses())
    })
    .await;
    runtime.shutdown(soon()).await.unwrap();
}
