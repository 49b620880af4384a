//! Supervisors below supervisors: isolation, degradation, and handles that stay valid.

use std::time::Duration;

use tipstaff::supervision::{
    Backoff, ChildSpec, End, EndCause, Intensity, ReportKind, Restart, StartError, Strategy, Supervisor, SupervisorHandle,
    SupervisorPhase, SupervisorSpec,
};

use super::probe::{Do, Log, Site, Start, Watch, alive_tasks_become, soon, watched};

const SECOND: Duration = Duration::from_secs(1);

struct Tree {
    root: SupervisorHandle,
    below: SupervisorHandle,
    watch: Watch,
    log: Log,
    crashes: Site,
    sibling: Site,
}

/// An isolating root above a supervisor of one child (budget: one restart in ten seconds), and a sibling.
async fn isolated() -> Tree {
    let log = Log::default();
    let [crashes, sibling] = ["crashes", "sibling"].map(|name| Site::new(name, &log));
    let below = SupervisorSpec::new("below", Strategy::OneForOne)
        .backoff(Backoff::NONE)
        .intensity(Intensity::new(1, 10 * SECOND))
        .max_dynamic(8)
        .child(crashes.spec(Restart::Permanent));
    let (child, below) = ChildSpec::supervisor(Restart::Permanent, below);
    let (spec, watch) = watched("root", Strategy::Isolated);
    let backoff = Backoff::exponential(SECOND, 4 * SECOND).with_jitter(0).with_quiet(100 * SECOND);
    let root =
        Supervisor::spawn(spec.backoff(backoff).child(child).child(sibling.spec(Restart::Permanent))).await.expect("it comes up");
    root.started(soon()).await.expect("it comes up");
    log.take();
    Tree { root, below, watch, log, crashes, sibling }
}

/// A subtree that spends its budget is restarted by the root with capped back-off and reported as degraded, however often; its
/// sibling never notices, and the root never gives up.
#[tokio::test(start_paused = true)]
async fn a_subtree_that_spends_its_budget_takes_no_sibling_with_it() {
    let Tree { root, below, mut watch, log, crashes, sibling } = isolated().await;
    let mut waits = Vec::new();
    for round in 1..=5 {
        crashes.tell(Do::Panic);
        watch.restarted("crashes", 1).await;
        assert_eq!(log.lines_with("degraded"), [""; 0], "its own budget is not spent yet");
        crashes.tell(Do::Panic);
        watch.until(|report| &*report.supervisor == "below" && matches!(report.what, ReportKind::GaveUp { restarts: 1 })).await;
        let degraded = watch.until(|report| matches!(report.what, ReportKind::Degraded { .. })).await;
        assert!(matches!(degraded.what, ReportKind::Degraded { restarts } if restarts == round));
        let report = watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
        let ReportKind::BackingOff { delay, .. } = report.what else { unreachable!() };
        waits.push(delay.as_secs());
        assert!(root.status().degraded.iter().eq(["below"].map(std::sync::Arc::from).iter()));
        assert!(matches!(below.status().phase, SupervisorPhase::Down(EndCause::Exhausted { .. })), "{below:?}");
        watch.until(|report| matches!(report.what, ReportKind::Recovered { restarts } if restarts == round)).await;
        root.children(soon()).await.unwrap();
        assert!(root.status().degraded.is_empty());
        assert_eq!(log.lines_with("crashes degraded").len(), 1, "told once, although both levels know");
        log.take();
    }
    assert_eq!(waits, [1, 2, 4, 4, 4]);
    assert_eq!(sibling.starts(), 1);
    assert!(matches!(root.status().phase, SupervisorPhase::Up));
    root.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

/// A subtree that is killed is restarted, with everything in it; the owners of its queues are told at each step, in order.
#[tokio::test(start_paused = true)]
async fn a_killed_subtree_comes_back() {
    let Tree { root, below, mut watch, log, crashes, .. } = isolated().await;
    let dynamic = Site::new("dynamic", &log);
    below.start_child(dynamic.spec(Restart::Permanent), soon()).await.unwrap();
    below.kill();
    let report = watch.ended("below").await;
    assert!(matches!(report.what, ReportKind::Ended(End::Killed)), "{report:?}");
    watch.restarted("below", 1).await;
    assert_eq!(crashes.starts(), 2);
    assert_eq!(log.lines_with("degraded"), ["crashes degraded"]);
    assert_eq!(log.lines_with("gone"), ["dynamic gone"], "dynamic children end with the incarnation that had them");
    root.shutdown(soon()).await.unwrap();
    assert_eq!(log.lines_with("gone"), ["dynamic gone", "sibling gone", "crashes gone"]);
    alive_tasks_become(0).await;
}

/// Pitfall 9: an old handle must not control a dead incarnation. After restarts of the child, and of its supervisor, the same
/// handle and identifier act on what runs now.
#[tokio::test(start_paused = true)]
async fn a_handle_taken_before_a_crash_acts_on_what_runs_after_it() {
    let Tree { root, below, mut watch, log, crashes, .. } = isolated().await;
    let id = below.children(soon()).await.unwrap()[0].id;
    let old = below.start_child(Site::new("old", &log).spec(Restart::Permanent), soon()).await.unwrap();
    crashes.tell(Do::Panic);
    watch.restarted("crashes", 1).await;
    below.kill();
    watch.restarted("below", 1).await;

    let children = below.children(soon()).await.unwrap();
    assert!(children.len() == 1 && children[0].running && children[0].id == id, "liveness: {children:?}");
    let new = below.start_child(Site::new("new", &log).spec(Restart::Permanent), soon()).await.unwrap();
    assert_ne!(old, new, "an identifier of a past incarnation means nobody now");
    assert!(below.stop_child(old, soon()).await.is_err());
    log.take();
    below.stop_child(id, soon()).await.unwrap();
    assert_eq!(log.text(), "crashes stopped, crashes dropped 3, crashes gone");
    // What was stopped for good does not come back with its supervisor.
    below.kill();
    watch.restarted("below", 2).await;
    assert!(below.children(soon()).await.unwrap().is_empty());
    assert_eq!(crashes.starts(), 3);
    root.shutdown(soon()).await.unwrap();
}

/// A request that comes while the subtree is down waits for its next incarnation.
#[tokio::test(start_paused = true)]
async fn requests_wait_over_a_restart_of_the_supervisor() {
    let Tree { root, below, mut watch, log, .. } = isolated().await;
    below.kill();
    watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
    let site = Site::new("patient", &log);
    below.start_child(site.spec(Restart::Permanent), soon()).await.unwrap();
    assert_eq!(site.starts(), 1);
    root.shutdown(soon()).await.unwrap();
}

/// The handle of a subtree shuts it down for good, whatever its class, also while it waits for its restart.
#[tokio::test(start_paused = true)]
async fn the_shutdown_of_a_subtree_is_final() {
    for down in [false, true] {
        let Tree { root, below, mut watch, log, .. } = isolated().await;
        if down {
            below.kill();
            watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
        }
        let (first, second) = tokio::join!(below.shutdown(soon()), below.shutdown(soon()));
        first.and(second).unwrap();
        assert!(matches!(below.status().phase, SupervisorPhase::Ended(_)));
        assert_eq!(log.lines_with("crashes gone").len(), 1);
        tokio::time::sleep(600 * SECOND).await;
        assert_eq!(root.children(soon()).await.unwrap().len(), 1);
        assert!(below.children(soon()).await.is_err());
        root.shutdown(soon()).await.unwrap();
        alive_tasks_become(0).await;
    }
}

/// A subtree whose children do not come up fails to start: by its own budget, or by its start timeout, after which nothing of it
/// is left behind.
#[tokio::test(start_paused = true)]
async fn a_subtree_that_does_not_come_up_is_a_failed_start() {
    for how in [Start::Fails, Start::Hangs] {
        let log = Log::default();
        let site = Site::new("a", &log).plan(move |start| if start <= 2 { how } else { Start::Well });
        let below = SupervisorSpec::new("below", Strategy::OneForOne)
            .backoff(Backoff::NONE)
            .intensity(Intensity::new(1, 10 * SECOND))
            .child(site.spec(Restart::Permanent).start_timeout(Duration::MAX));
        let (below, _) = ChildSpec::supervisor(Restart::Permanent, below);
        let (spec, mut watch) = watched("root", Strategy::Isolated);
        let sibling = Site::new("sibling", &log);
        let spec = spec.child(below.start_timeout(3 * SECOND)).child(sibling.spec(Restart::Permanent));
        let root = Supervisor::spawn(spec).await.unwrap();
        let report = watch.ended("below").await;
        let ReportKind::Ended(End::StartFailed(error)) = report.what else { panic!("{report:?}") };
        assert_eq!(matches!(error, StartError::Timeout(_)), how == Start::Hangs, "{error}");
        assert_eq!(matches!(error, StartError::Subtree { .. }), how == Start::Fails, "{error}");
        root.started(soon()).await.unwrap();
        assert_eq!(sibling.starts(), 1, "an isolated sibling does not wait for it");
        watch.restarted("a", 0).await;
        root.children(soon()).await.unwrap();
        // Two supervisors and two children.
        alive_tasks_become(4).await;
        root.shutdown(soon()).await.unwrap();
        alive_tasks_become(0).await;
    }
}

/// A budget that is spent below a supervisor with a budget of its own climbs level by level.
#[tokio::test(start_paused = true)]
async fn escalation_climbs_level_by_level() {
    let log = Log::default();
    let site = Site::new("leaf", &log);
    let tight = Intensity::new(1, 600 * SECOND);
    let level = |name, child| SupervisorSpec::new(name, Strategy::OneForOne).backoff(Backoff::NONE).intensity(tight).child(child);
    let (low, _) = ChildSpec::supervisor(Restart::Permanent, level("low", site.spec(Restart::Permanent)));
    let (spec, mut watch) = watched("top", Strategy::OneForOne);
    let top = Supervisor::spawn(spec.intensity(tight).child(low)).await.unwrap();
    top.started(soon()).await.unwrap();
    // Each incarnation of the lower level stands one restart, and the upper level stands one incarnation more.
    for crash in 1..=4 {
        site.tell(Do::Panic);
        if crash < 4 {
            let starts = site.starts();
            while site.starts() == starts {
                watch.until(|report| matches!(report.what, ReportKind::Started { .. })).await;
            }
        }
    }
    watch.until(|report| &*report.supervisor == "top" && matches!(report.what, ReportKind::GaveUp { .. })).await;
    top.shutdown(soon()).await.unwrap();
    let SupervisorPhase::Ended(EndCause::Exhausted { child, end }) = top.status().phase else { panic!("{top:?}") };
    assert!(&*child == "low" && end.to_string().contains("child \"leaf\" spent the restart budget"), "{end}");
    assert_eq!(site.starts(), 4);
    assert_eq!(log.lines_with("gone"), ["leaf gone"]);
    alive_tasks_become(0).await;
}
