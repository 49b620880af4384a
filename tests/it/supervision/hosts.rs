//! A runtime under a host, and beside others: how it ends, and what is left.

use std::path::Path;
use std::sync::Arc;

use ractor::Actor;
use serde_json::json;
use tipstaff::operation::{OperationStatus, ToolCall};
use tipstaff::signal::SignalKind;
use tipstaff::state::{JournalReader, MemoryStore, PageLimit, SqliteStore, Store};
use tipstaff::supervision::ReportKind;
use tipstaff::{CrashPoints, Runtime, Session};
use tokio::task::JoinSet;

use super::super::supervision_kernel::probe::{Host, Log};
use super::world::{Bodies, bounded, facts, operations, plan, session_id, soon, until};

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).unwrap()
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Work that stands in each place where an end can find it: before its ruling, with its permit, and while it is performed.
fn begin(session: &Session, work: &mut JoinSet<()>) {
    for tool in ["hang", "ls"] {
        let session = session.clone();
        let body = |_| async {
            std::future::pending::<()>().await;
            Ok::<_, std::io::Error>(json!("never"))
        };
        let call = async move { drop(session.perform(ToolCall::new(tool, json!({})), body).await) };
        work.spawn(call);
    }
    let holder = session.clone();
    work.spawn(async move {
        let proposed = holder.propose(ToolCall::new("ls", json!({}))).await.unwrap();
        let _permit = holder.authorize(proposed).await.unwrap();
        std::future::pending::<()>().await;
    });
}

/// All writers of the file have ended: what comes after them is not judged to be theirs.
fn all_ended(reader: &Arc<dyn JournalReader>) -> bool {
    let limit = std::num::NonZeroU32::new(100).unwrap();
    reader.instances(None, limit).unwrap().iter().all(|instance| instance.ended_at.is_some())
}

/// After a host's end the journal opens, every proposal in it is closed once, and a new runtime goes on with it.
async fn assert_consistent(path: &Path, session: &str, proposals: usize) {
    let store = open(path);
    let reader = store.reader().unwrap();
    until("the last writer has ended", || all_ended(&reader)).await;
    let runtime = Runtime::builder().store(store).actions(plan()).spawn().await.unwrap();
    let reader = runtime.reader().unwrap();
    let all = operations(reader, &session_id(session));
    assert_eq!(all.len(), proposals);
    for on_record in all.values() {
        assert_eq!((on_record.proposed, on_record.closed.len()), (1, 1), "P-9: closed once: {on_record:?}");
    }
    assert_eq!(reader.summary(None).unwrap().open_proposals, 0);
    let again = runtime.session(session_id(session)).open().await.unwrap();
    let answer = Bodies::default().call(&again, "ls").await;
    assert_eq!(answer.outcome.status, OperationStatus::Completed);
    runtime.shutdown(soon()).await.unwrap();
}

/// A host that is killed takes the runtime with it: no task is left, who waits is answered, and the journal is whole.
#[tokio::test]
async fn a_killed_host_leaves_no_task_and_a_consistent_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let before = alive_tasks();
    let (host, host_task) = Actor::spawn(None, Host, Log::default()).await.unwrap();
    let runtime = Runtime::builder().store(open(&path)).actions(plan()).spawn_under(host.get_cell()).await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let mut work = JoinSet::new();
    begin(&session, &mut work);
    until("two permits are open", || runtime.open_permits().len() == 2).await;
    session.settled(soon()).await.unwrap();

    host.kill();
    bounded(host_task).await.unwrap();
    // The hanging proposal is answered by its handle; the other two wait for their own bodies.
    until("the hanging proposal is answered", || {
        while work.try_join_next().is_some() {}
        work.len() == 2
    })
    .await;
    let denied = Bodies::default().call(&session, "ls").await;
    assert!(denied.denial().is_some(), "P-8: nothing is allowed any more: {denied:?}");
    work.shutdown().await;
    until("no task is left", || alive_tasks() == before).await;
    assert!(runtime.open_permits().is_empty());
    assert_consistent(&path, "s", 3).await;
}

/// The host's whole tokio runtime is dropped, with everything in the middle of its work.
#[test]
fn a_dropped_tokio_runtime_leaves_a_consistent_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let new = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host = new();
    let runtime = host.block_on(async {
        let runtime = Runtime::builder().store(open(&path)).actions(plan()).spawn().await.unwrap();
        let session = runtime.session(session_id("s")).open().await.unwrap();
        let mut work = JoinSet::new();
        begin(&session, &mut work);
        until("two permits are open", || runtime.open_permits().len() == 2).await;
        session.settled(soon()).await.unwrap();
        work.detach_all();
        runtime
    });
    drop(host);
    assert!(runtime.open_permits().is_empty(), "permits ended with their tasks");
    new().block_on(assert_consistent(&path, "s", 3));
    drop(runtime);
}

/// An orderly end: authorization first, the store's writer last, and what was queued is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_goes_in_reverse_order_and_writes_what_is_queued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let log = Log::default();
    let (host, host_task) = Actor::spawn(None, Host, log.clone()).await.unwrap();
    let runtime = Runtime::builder().store(open(&path)).actions(plan()).spawn_under(host.get_cell()).await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    for _ in 0..2_000 {
        session.submit(session.signal(SignalKind::user("test.fact").unwrap()).build()).unwrap();
    }
    runtime.shutdown(soon()).await.unwrap();

    let mut ended = Vec::new();
    while let Some(report) = reports.try_next() {
        if matches!(report.what, ReportKind::Ended(_)) {
            ended.push(report.child.to_string());
        }
    }
    assert_eq!(ended, ["action_executor", "authorization", "session_observer", "observation", "state_writer", "state"]);
    let reader = open(&path).reader().unwrap();
    assert_eq!(facts(&reader, &session_id("s")).len(), 2_000, "submitted before the end, written before the end");
    assert!(all_ended(&reader), "the record of the instance is closed");
    until("the host sees one end, and lives", || log.text().contains("host saw an end")).await;
    assert_eq!(log.lines_with("failure"), Vec::<String>::new());
    host.stop(None);
    bounded(host_task).await.unwrap();
}

/// Two runtimes with the same names in one process: one is killed, and the other does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtimes_of_one_process_are_independent() {
    let points = [CrashPoints::new(), CrashPoints::new()];
    let spawn = async |points: &CrashPoints| {
        let builder = Runtime::builder().store(MemoryStore::default()).actions(plan()).crash_points(points.clone());
        let runtime = builder.spawn().await.unwrap();
        let session = runtime.session(session_id("same")).open().await.unwrap();
        (runtime, session, Bodies::default())
    };
    let (one, first, bodies) = spawn(&points[0]).await;
    let (other, second, others) = spawn(&points[1]).await;
    assert!(bodies.call(&first, "ls").await.result().is_some());
    first.settled(soon()).await.unwrap();

    // Each role of one is killed; then its root.
    for role in ["state_writer", "session_observer", "action_executor"] {
        assert_eq!(points[0].kill(role), 1, "{role}");
    }
    one.supervisor().kill();
    until("the killed one denies", || one.status().children == 0).await;
    let denied = bodies.call(&first, "ls").await;
    assert!(denied.denial().is_some() && !denied.may_have_run());

    for _ in 0..20 {
        assert!(others.call(&second, "ls").await.result().is_some());
    }
    second.settled(soon()).await.unwrap();
    let page = |runtime: &Runtime| {
        let reader = runtime.reader().unwrap();
        reader
            .read(&session_id("same"), tipstaff::signal::SignalSeq::START, &Default::default(), PageLimit::default())
            .unwrap()
            .facts
            .len()
    };
    assert_eq!((page(&one), page(&other)), (2, 40), "each in its own journal");
    assert_eq!((bodies.ran(), others.ran()), (1, 20));
    assert_eq!(other.status().restarts, 0);
    other.shutdown(soon()).await.unwrap();
}
