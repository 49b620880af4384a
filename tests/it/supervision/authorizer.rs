//! P-8, P-14 and "restarting" and "degraded" of spec 2: what the authorization actor's end does to proposals and permits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tipstaff::dispatch::Subscriber;
use tipstaff::id::{AttemptId, OperationId};
use tipstaff::interception::DenialCause;
use tipstaff::operation::{Operation, OperationStatus, ToolCall};
use tipstaff::signal::Signal;
use tipstaff::state::MemoryStore;
use tipstaff::supervision::ReportKind;
use tipstaff::{CrashPoint, CrashPoints, OwnerBounds, Runtime, RuntimeBuilder, Session};

use super::world::{
    Bodies, assert_on_record, bounded, degraded, ends, lost, of, operations, plan, report, session_id, settle, soon, until,
};

fn builder(points: &CrashPoints) -> RuntimeBuilder {
    Runtime::builder().store(MemoryStore::default()).actions(plan()).crash_points(points.clone())
}

async fn sessions(runtime: &Runtime, count: usize) -> Vec<Session> {
    let mut sessions = Vec::new();
    for n in 0..count {
        sessions.push(runtime.session(session_id(&format!("s{n}"))).open().await.unwrap());
    }
    sessions
}

/// What the authorizer's end may be answered with, and nothing else, beside the plan's own answers.
async fn assert_every_proposal_is_answered(
    runtime: &Runtime,
    sessions: &[Session],
    bodies: &Bodies,
    answers: &[tipstaff::CallAnswer],
) {
    let ends = ends(answers);
    let restarted = of(&ends, DenialCause::AuthorizationRestarted);
    let degraded = of(&ends, DenialCause::AuthorizationDegraded);
    let policy = of(&ends, DenialCause::Policy);
    let completed = ends.get("completed").copied().unwrap_or(0);
    assert_eq!(restarted + degraded + policy + completed, answers.len(), "other answers: {ends:?}");
    assert!(restarted > 0 && completed > 0 && policy > 0, "{ends:?}");
    assert_eq!(bodies.ran(), completed as u64, "nothing was performed but what was permitted");
    for session in sessions {
        settle(session).await;
    }
    assert_on_record(runtime.reader().unwrap(), sessions, answers);
    assert_eq!(lost(runtime.losses()), 0);
    until("each permit is completed", || runtime.open_permits().is_empty()).await;
}

/// The actor panics at each 40th proposal that it takes in hand, with all others that are in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_looping_authorizer_answers_every_proposal_and_allows_none_of_its_own() {
    let points = CrashPoints::new();
    points.every(CrashPoint::AuthorizerInHand, 40);
    let runtime = builder(&points).spawn().await.unwrap();
    let (sessions, bodies) = (sessions(&runtime, 4).await, Bodies::default());
    let answers = bodies.many(&sessions, 2_000, 32, |_| {}).await;
    assert!(points.passed(CrashPoint::AuthorizerInHand) >= 200, "it crashed at least five times");
    assert_every_proposal_is_answered(&runtime, &sessions, &bodies, &answers).await;
    runtime.shutdown(soon()).await.unwrap();
}

/// The actor is killed at each 50th proposal, as the substrate kills: at its next await, whatever it holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_authorizer_answers_every_proposal_and_allows_none_of_its_own() {
    let points = CrashPoints::new();
    // Tasks that break off alone are mixed in, before and after the ruling.
    points.every(CrashPoint::AuthorizerBeforeRule, 17);
    points.every(CrashPoint::AuthorizerAfterRule, 19);
    let runtime = builder(&points).spawn().await.unwrap();
    let (sessions, bodies) = (sessions(&runtime, 4).await, Bodies::default());
    let kills = AtomicU64::new(0);
    let answers = bodies
        .many(&sessions, 2_000, 32, |n| {
            if n % 50 == 49 {
                kills.fetch_add(points.kill("action_executor") as u64, Ordering::SeqCst);
            }
        })
        .await;
    assert!(kills.load(Ordering::SeqCst) >= 2, "it was killed more than once: {kills:?}");
    assert_every_proposal_is_answered(&runtime, &sessions, &bodies, &answers).await;
    runtime.shutdown(soon()).await.unwrap();
}

/// A ruling that is lost on its way gives its permit back: none stays open, and no place of the completion lane is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_is_lost_on_its_way_is_not_left_open() {
    let points = CrashPoints::new();
    points.always(CrashPoint::AuthorizerAfterRule);
    let permits = NonZeroUsize::new(4).unwrap();
    let runtime = builder(&points).action_bounds(OwnerBounds { permits, ..OwnerBounds::default() }).spawn().await.unwrap();
    let (session, bodies) = (runtime.own_session().await.unwrap(), Bodies::default());
    for _ in 0..20 {
        let answer = bodies.call(&session, "ls").await;
        assert_eq!(answer.denial().map(|denial| denial.cause), Some(DenialCause::AuthorizationRestarted));
    }
    assert!(runtime.open_permits().is_empty());
    points.clear(CrashPoint::AuthorizerAfterRule);
    for _ in 0..20 {
        assert!(bodies.call(&session, "ls").await.result().is_some(), "every place of the completion lane is free");
    }
    assert_eq!(bodies.ran(), 20);
    runtime.shutdown(soon()).await.unwrap();
}

/// P-14: a permit that is open when its owner is killed, or degraded, stays on the list, is performed, and is completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_permits_survive_the_end_of_their_owner_and_complete() {
    let points = CrashPoints::new();
    let runtime = builder(&points).spawn().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let session = runtime.own_session().await.unwrap();
    let mut permits = Vec::new();
    for n in 0..3 {
        // One attempt name for three operations: the list must not take them for one.
        let attempt = AttemptId::new("1").unwrap();
        let call = Operation::new(ToolCall::new("ls", json!({ "n": n }))).identified(OperationId::generate(), attempt);
        let proposed = session.propose(call).await.unwrap();
        permits.push(session.authorize(proposed).await.unwrap());
    }
    let listed = |runtime: &Runtime| runtime.open_permits().len();
    assert_eq!(listed(&runtime), 3);

    assert_eq!(points.kill("action_executor"), 1);
    report(&mut reports, |report| {
        &*report.child == "action_executor" && matches!(report.what, ReportKind::Started { restarts: 1.. })
    })
    .await;
    assert_eq!(listed(&runtime), 3, "a restart forgets none");
    let first = permits.pop().unwrap();
    let attempt = first.granted().attempt().clone();
    let answer = first.perform(|_| async { Ok::<_, std::io::Error>(json!("done")) }).await.review().await.record().await;
    assert_eq!((answer.outcome.status, answer.outcome.attempt == attempt), (OperationStatus::Completed, true));
    assert_eq!(listed(&runtime), 2);

    points.always(CrashPoint::AuthorizerStarting);
    points.kill("action_executor");
    degraded(&mut reports, "action_executor").await;
    let second = permits.pop().unwrap();
    let answer = second.perform(|_| async { Ok::<_, std::io::Error>(json!("done")) }).await.review().await.record().await;
    assert_eq!(answer.outcome.status, OperationStatus::Completed, "also while the owner is degraded");
    drop(permits);
    assert_eq!(listed(&runtime), 0);

    settle(&session).await;
    let kinds: Vec<String> = operations(runtime.reader().unwrap(), session.id())
        .values()
        .map(|on_record| {
            assert_eq!((on_record.proposed, on_record.closed.len()), (1, 1));
            on_record.closed[0].0.to_string()
        })
        .collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "operation_completed").count(), 2, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "operation_abandoned").count(), 1, "{kinds:?}");
    runtime.shutdown(soon()).await.unwrap();
}

/// Degraded: every proposal, queued or new, is denied at once with that reason, while facts go on being journalled and seen. When the cause is
/// gone the owner comes back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_degraded_authorizer_denies_at_once_while_observation_goes_on_and_recovers() {
    let points = CrashPoints::new();
    let runtime = builder(&points).spawn().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let counts = Subscriber::declared_sync("counts", move |_: &Arc<Signal>| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let session = runtime.session(session_id("s")).observe(counts).open().await.unwrap();
    let bodies = Bodies::default();
    assert!(bodies.call(&session, "ls").await.result().is_some());

    // It cannot start again. What is queued waits for it through the restarts, and is answered when the budget is spent.
    points.always(CrashPoint::AuthorizerStarting);
    points.kill("action_executor");
    let (queued, _) = tokio::join!(bodies.call(&session, "ls"), degraded(&mut reports, "action_executor"));
    let cause = queued.denial().map(|denial| denial.cause);
    assert!(matches!(cause, Some(DenialCause::AuthorizationDegraded | DenialCause::AuthorizationRestarted)), "{queued:?}");

    let sessions = [session.clone()];
    let answers = bodies.many(&sessions, 200, 16, |_| {}).await;
    // Who waits for its deadline is denied by another cause.
    assert_eq!(of(&ends(&answers), DenialCause::AuthorizationDegraded), 200, "{:?}", ends(&answers));
    assert_eq!(bodies.ran(), 1);
    let status = runtime.status();
    assert_eq!(status.degraded.iter().map(|name| &**name).collect::<Vec<_>>(), ["action_executor"]);
    settle(&session).await;
    until("the subscriber sees both facts of each proposal", || seen.load(Ordering::SeqCst) == 2 * 202).await;
    assert_eq!(session.undelivered(), 0);

    points.clear(CrashPoint::AuthorizerStarting);
    report(&mut reports, |report| &*report.child == "action_executor" && matches!(report.what, ReportKind::Recovered { .. }))
        .await;
    let answer = bounded(bodies.call(&session, "ls")).await;
    assert!(answer.result().is_some(), "{answer:?}");
    assert!(runtime.status().degraded.is_empty());
    runtime.shutdown(soon()).await.unwrap();
}
