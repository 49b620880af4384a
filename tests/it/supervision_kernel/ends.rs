//! How a tree ends: always in order when it may, and without an orphan when it may not.

use std::time::Duration;

use ractor::{Actor, ActorCell};
use tipstaff::clock::Deadline;
use tipstaff::supervision::{
    ChildSpec, EndCause, Intensity, ReportKind, Restart, ShutdownError, Strategy, Supervisor, SupervisorHandle, SupervisorPhase,
    SupervisorSpec,
};

use super::probe::{Do, Host, Log, Site, Start, alive_tasks_become, soon, watched};

const SECOND: Duration = Duration::from_secs(1);

/// A host's actor with a tree below it: a, then a subtree of b and c, then d.
struct Hosted {
    host: ActorCell,
    root: ActorCell,
    tree: SupervisorHandle,
    log: Log,
    a: Site,
}

async fn hosted() -> Hosted {
    let log = Log::default();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| Site::new(name, &log));
    let below =
        SupervisorSpec::new("below", Strategy::OneForOne).child(b.spec(Restart::Permanent)).child(c.spec(Restart::Permanent));
    let (below, _) = ChildSpec::supervisor(Restart::Permanent, below);
    let spec = SupervisorSpec::new("root", Strategy::OneForOne)
        .intensity(Intensity::new(0, SECOND))
        .child(a.spec(Restart::Permanent))
        .child(below)
        .child(d.spec(Restart::Permanent));
    let (host, _) = Actor::spawn(None, Host, log.clone()).await.expect("it comes up");
    let tree = Supervisor::spawn_under(host.get_cell(), spec).await.expect("it comes up");
    tree.started(soon()).await.expect("it comes up");
    let root = host.get_cell().get_children().remove(0);
    assert_eq!(
        log.lines_with("start "),
        ["a start 1", "b start 1", "c start 1", "d start 1"],
        "a subtree has started once its children have"
    );
    log.take();
    Hosted { host: host.get_cell(), root, tree, log, a }
}

/// Pitfall 1: the substrate kills the children of an actor that ends, in whatever way. Ours stop in reverse order, each with its
/// `post_stop`, when the root is stopped, drained, shut down, or gives up.
#[tokio::test(start_paused = true)]
async fn every_orderly_end_stops_the_children_in_reverse() {
    for how in ["stop", "drain", "shutdown", "budget"] {
        let Hosted { host, root, tree, log, a } = hosted().await;
        match how {
            "stop" => root.stop(None),
            "drain" => root.drain().unwrap(),
            "budget" => a.tell(Do::Panic),
            _ => tree.shutdown(soon()).await.unwrap(),
        }
        root.wait(None).await.unwrap();
        let expected = if how == "budget" { ["d", "c", "b", ""] } else { ["d", "c", "b", "a"] };
        let expected = expected.iter().filter(|name| !name.is_empty()).map(|name| format!("{name} stopped"));
        assert!(log.lines_with("stopped").into_iter().eq(expected), "{how}: {:?}", log.take());
        let mut gone = log.lines_with("gone");
        gone.sort();
        assert_eq!(gone, ["a gone", "b gone", "c gone", "d gone"], "{how}");
        assert!(matches!(tree.status().phase, SupervisorPhase::Ended(_)), "{how}");
        host.stop(None);
        alive_tasks_become(0).await;
    }
}

/// The host sees the root and nothing else, with a stable text.
#[tokio::test(start_paused = true)]
async fn the_host_sees_the_roots_end_and_no_childs() {
    let Hosted { host, root, log, a, .. } = hosted().await;
    a.tell(Do::Fail);
    root.wait(None).await.unwrap();
    host.drain_and_wait(None).await.unwrap();
    assert_eq!(
        log.lines_with("host"),
        ["host saw a failure: supervisor \"root\" ended: child \"a\" spent the restart budget, \
             at last it failed: failed as told"],
    );
    let Hosted { host, tree, log, .. } = hosted().await;
    tree.shutdown(soon()).await.unwrap();
    host.drain_and_wait(None).await.unwrap();
    assert_eq!(log.lines_with("host"), ["host saw an end: Some(\"shutdown\")"]);
}

/// A killed host takes the tree with it: no task is left, starts, stops and waits included, and every owner is told that its
/// child is gone.
#[tokio::test(start_paused = true)]
async fn a_killed_host_leaves_no_orphan_task() {
    for how in ["kill", "stop", "root killed"] {
        let log = Log::default();
        let (well, hangs) = (Site::new("well", &log), Site::new("hangs", &log).plan(|_| Start::Hangs));
        let waits = Site::new("waits", &log).plan(|start| if start == 1 { Start::Well } else { Start::Fails });
        let (spec, mut watch) = watched("root", Strategy::Isolated);
        let below = SupervisorSpec::new("below", Strategy::OneForOne).child(well.spec(Restart::Permanent)).max_dynamic(1);
        let (below, handle) = ChildSpec::supervisor(Restart::Permanent, below);
        let spec = spec
            .backoff(tipstaff::supervision::Backoff::exponential(600 * SECOND, 600 * SECOND))
            .max_dynamic(1)
            .child(below)
            .child(waits.spec(Restart::Permanent))
            .child(hangs.spec(Restart::Permanent).start_timeout(3_000 * SECOND));
        let (host, _) = Actor::spawn(None, Host, log.clone()).await.unwrap();
        let tree = Supervisor::spawn_under(host.get_cell(), spec).await.unwrap();
        watch.restarted("waits", 0).await;
        let dynamic = Site::new("dynamic", &log);
        handle.start_child(dynamic.spec(Restart::Permanent), soon()).await.unwrap();
        let stops = Site::new("stops", &log).stop_takes(6_000 * SECOND);
        let id = tree.start_child(stops.spec(Restart::Temporary).stop_timeout(Duration::MAX), soon()).await.unwrap();
        tree.stop_child(id, Deadline::after(SECOND)).await.unwrap_err();
        waits.tell(Do::Panic);
        watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
        assert_eq!(tree.status().tasks, 3, "a start, a stop and a wait are under way");

        match how {
            "kill" => host.kill(),
            "stop" => host.stop(None),
            _ => tree.kill(),
        }
        if how == "root killed" {
            alive_tasks_become(1).await;
            host.stop(None);
        }
        alive_tasks_become(0).await;
        let mut gone = log.lines_with("gone");
        gone.sort();
        assert_eq!(gone, ["dynamic gone", "hangs gone", "stops gone", "waits gone", "well gone"], "{how}");
        assert!(matches!(tree.status().phase, SupervisorPhase::Ended(EndCause::Killed)), "{how}: {tree:?}");
        assert!(matches!(handle.status().phase, SupervisorPhase::Ended(_)), "{how}: {handle:?}");
        tree.shutdown(soon()).await.unwrap();
        assert!(handle.children(soon()).await.is_err(), "a handle of a tree that has ended says so at once");
    }
}

/// Pitfall 3: a second request to stop must not return early. Two concurrent shutdowns and a third return when the last task has
/// ended.
#[tokio::test(start_paused = true)]
async fn every_shutdown_returns_after_the_last_task() {
    let log = Log::default();
    let slow = Site::new("slow", &log).stop_takes(3 * SECOND);
    let (spec, _watch) = watched("root", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.child(slow.spec(Restart::Permanent))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let metrics = tokio::runtime::Handle::current().metrics();
    let shutdown = async || {
        tree.shutdown(soon()).await.unwrap();
        assert_eq!(log.lines_with("dropped"), ["slow dropped 1"]);
        assert_eq!(metrics.num_alive_tasks(), 0);
    };
    tokio::join!(shutdown(), shutdown());
    assert!(begun.elapsed() >= 3 * SECOND);
    shutdown().await;
}

/// A child that does not stop in time is killed; the shutdown's deadline cuts the stop timeouts that are longer.
#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_stop_is_killed() {
    let cases = [
        // (stop timeout, deadline of the shutdown, expected length)
        (2 * SECOND, 60 * SECOND, 2 * SECOND),
        (600 * SECOND, 5 * SECOND, 5 * SECOND),
    ];
    for (stop_timeout, deadline, expected) in cases {
        let log = Log::default();
        let [hangs, slow] = ["hangs", "slow"].map(|name| Site::new(name, &log));
        let slow = slow.stop_takes(6_000 * SECOND);
        let (spec, mut watch) = watched("root", Strategy::OneForOne);
        let spec = spec
            .child(hangs.spec(Restart::Permanent).stop_timeout(Duration::ZERO))
            .child(slow.spec(Restart::Permanent).stop_timeout(stop_timeout));
        let tree = Supervisor::spawn(spec).await.unwrap();
        tree.started(soon()).await.unwrap();
        hangs.tell(Do::Hang);
        let begun = tokio::time::Instant::now();
        tree.shutdown(Deadline::after(deadline)).await.unwrap();
        let took = begun.elapsed();
        assert!(took >= expected && took < expected + SECOND / 10, "{took:?}");
        let report = watch.ended("slow").await;
        assert!(
            matches!(report.what, ReportKind::Ended(tipstaff::supervision::End::Asked { killed: true })),
            "a kill by the supervisor is told from one by others: {report:?}"
        );
        assert_eq!(log.lines_with("stopped"), [""; 0]);
        alive_tasks_become(0).await;
    }
}

/// A child that blocks its thread cannot be ended: that is said, not hidden, and the shutdown completes once the child lets go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_blocks_its_thread_is_reported() {
    let log = Log::default();
    let site = Site::new("blocks", &log);
    let (spec, mut watch) = watched("root", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent).stop_timeout(Duration::from_millis(1)))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let (release, until) = std::sync::mpsc::channel();
    site.tell(Do::Block(until));
    while log.lines_with("holds its thread").is_empty() {
        tokio::task::yield_now().await;
    }
    let shutdown = tree.shutdown(Deadline::after(Duration::ZERO)).await;
    assert_eq!(shutdown, Err(ShutdownError::StillAlive { children: 1 }));
    watch.until(|report| matches!(report.what, ReportKind::Overdue)).await;
    drop(release);
    tree.shutdown(soon()).await.unwrap();
    assert_eq!(log.lines_with("dropped"), ["blocks dropped 1"]);
}

/// Pitfall 11: names stay taken after a failed start or a stop. A thousand times, two trees of the same name start, one child
/// fails to start, they stop, and the process-wide registry never holds a name.
#[tokio::test(start_paused = true)]
async fn a_thousand_trees_touch_no_global_name() {
    for round in 0..1_000 {
        let log = Log::default();
        let trees = [0, 1].map(|_| {
            let fails = Site::new("child", &log).plan(move |_| if round % 2 == 0 { Start::Fails } else { Start::Well });
            let (spec, _) = watched("same name", Strategy::OneForOne);
            spec.intensity(Intensity::new(0, SECOND)).child(fails.spec(Restart::Permanent))
        });
        for spec in trees {
            let tree = Supervisor::spawn(spec).await.unwrap();
            assert_eq!(tree.started(soon()).await.is_ok(), round % 2 == 1);
            assert_eq!(ractor::registry::registered(), [""; 0]);
            tree.shutdown(soon()).await.unwrap();
        }
    }
    alive_tasks_become(0).await;
}

/// Three trees without names, side by side: a crash and an end in one are not seen in the others.
#[tokio::test(start_paused = true)]
async fn three_nameless_trees_live_side_by_side() {
    let logs = [(); 3].map(|()| Log::default());
    let sites = [0, 1, 2].map(|at| Site::new("child", &logs[at]));
    let mut trees = Vec::new();
    let mut watches = Vec::new();
    for site in &sites {
        let (spec, watch) = watched("tree", Strategy::OneForOne);
        let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent))).await.unwrap();
        tree.started(soon()).await.unwrap();
        trees.push(tree);
        watches.push(watch);
    }
    sites[0].tell(Do::Panic);
    watches[0].restarted("child", 1).await;
    trees[1].shutdown(soon()).await.unwrap();
    assert_eq!(sites.map(|site| site.starts()), [2, 1, 1]);
    assert_eq!(logs[1].text(), "child start 1, child stopped, child dropped 1, child gone");
    assert_eq!(logs[2].text(), "child start 1");
    for tree in trees {
        tree.shutdown(soon()).await.unwrap();
    }
    alive_tasks_become(0).await;
}

/// Dropping every handle stops nothing, also of a tree that nobody could reach any more but its host.
#[tokio::test(start_paused = true)]
async fn dropping_the_handles_stops_nothing() {
    let Hosted { host, tree, log, .. } = hosted().await;
    drop(tree);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(log.text(), "");
    host.stop(None);
    alive_tasks_become(0).await;
}
