//! Restarts leave nothing behind.

use std::process::{Command, Stdio};

use tipstaff::supervision::ReportKind;
use tipstaff::{CrashPoints, Runtime};

use super::world::{Bodies, plan, report, soon};

const RESTARTS: u64 = 25_000;
/// Restarts before the first measurement: the allocator's own growth is over by then.
const WARM_UP: u64 = 5_000;
/// What 20,000 restarts may add to the process. One leaked `Arc` of a name for each would be more.
const GROWTH_KIB: u64 = 1_024;
/// Tells the child process what it is.
const CHILD: &str = "TIPSTAFF_TEST_RESTARTS";

/// 25,000 restarts of an actor of the tree: tasks are back where they were, and the process has not grown. Alone in a process of its own, since memory
/// is the process's; time is virtual, since the back-off is real.
#[test]
#[expect(clippy::disallowed_methods, reason = "memory is measured in a process of its own, which is told so by a variable")]
fn twenty_five_thousand_restarts_leave_nothing_behind() {
    if std::env::var(CHILD).is_ok() {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        return tokio.block_on(restart());
    }
    let name = "supervision::restarts::twenty_five_thousand_restarts_leave_nothing_behind";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(said.contains("1 passed"), "the child ran this test: {said}");
}

async fn restart() {
    let points = CrashPoints::new();
    let runtime = Runtime::builder().actions(plan()).crash_points(points.clone()).spawn().await.unwrap();
    let session = runtime.own_session().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let bodies = Bodies::default();
    assert!(bodies.call(&session, "ls").await.result().is_some());
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // The first starts are not restarts.
    while reports.try_next().is_some() {}
    let (tasks, mut resident) = (alive(), None);
    for n in 0..RESTARTS {
        if n == WARM_UP {
            resident = resident_kib();
        }
        // In turns: an observer under an isolating supervisor, and an owner whose whole subtree spends its budget every few restarts.
        let role = if n % 2 == 0 { "session_observer" } else { "action_executor" };
        assert_eq!(points.kill(role), 1, "{role} lives before restart {n}");
        report(&mut reports, |report| &*report.child == role && matches!(report.what, ReportKind::Started { .. })).await;
    }
    assert!(bodies.call(&session, "ls").await.result().is_some(), "it still serves");
    assert_eq!(reports.lost(), 0);
    super::super::supervision_kernel::probe::alive_tasks_become(tasks).await;
    if let (Some(before), Some(after)) = (resident, resident_kib()) {
        println!("resident after {WARM_UP} restarts: {before} KiB, after {RESTARTS}: {after} KiB");
        assert!(after <= before + GROWTH_KIB, "grown from {before} to {after} KiB");
    }
    runtime.shutdown(soon()).await.unwrap();
}

/// The resident set of this process, where the system tells it.
fn resident_kib() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    // Pages of 4 KiB on every Linux that tells it this way and that we build on; another size only scales both sides.
    Some(pages * 4)
}
