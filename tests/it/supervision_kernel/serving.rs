//! A supervisor serves whatever its children do.

use std::time::Duration;

use tipstaff::clock::Deadline;
use tipstaff::supervision::{
    AskError, End, ReportKind, Restart, StartChildError, StartError, StartupError, StopChildError, Strategy, Supervisor,
    SupervisorHandle,
};
use tokio::time::Instant;

use super::probe::{Do, Log, Site, Start, alive_tasks_become, soon, watched};

const SECOND: Duration = Duration::from_secs(1);

/// A start that hangs does not keep the supervisor from serving, is given up at its timeout, and counts as a failure.
#[tokio::test(start_paused = true)]
async fn a_hung_start_blocks_nobody() {
    let log = Log::default();
    let hangs = Site::new("hangs", &log).plan(|start| if start == 1 { Start::Hangs } else { Start::Well });
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let spec = spec.max_dynamic(4).child(hangs.spec(Restart::Permanent).start_timeout(10 * SECOND));
    let tree = Supervisor::spawn(spec).await.unwrap();
    let early = tree.started(Deadline::after(SECOND)).await;
    assert!(matches!(early, Err(StartupError::Deadline(_))), "{early:?}");

    let begun = Instant::now();
    let other = tree.start_child(Site::new("other", &log).spec(Restart::Permanent), soon()).await.unwrap();
    tree.stop_child(other, soon()).await.unwrap();
    assert_eq!(tree.children(soon()).await.unwrap().len(), 1);
    assert_eq!(begun.elapsed(), Duration::ZERO);

    let report = watch.ended("hangs").await;
    assert!(matches!(report.what, ReportKind::Ended(End::StartFailed(StartError::Timeout(after))) if after == 10 * SECOND));
    tree.started(soon()).await.unwrap();
    assert_eq!(hangs.starts(), 2);
    tree.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

/// A hung start can be stopped: by itself, and with the tree.
#[tokio::test(start_paused = true)]
async fn a_hung_start_can_be_stopped() {
    let log = Log::default();
    let hangs = Site::new("hangs", &log).plan(|_| Start::Hangs);
    let (spec, _watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.max_dynamic(4)).await.unwrap();
    let forever = || hangs.spec(Restart::Permanent).start_timeout(Duration::MAX);

    let gave_up = tree.start_child(forever(), Deadline::after(SECOND)).await;
    assert!(matches!(gave_up, Err(StartChildError::Deadline)), "{gave_up:?}");
    let id = tree.children(soon()).await.unwrap()[0].id;
    tree.stop_child(id, soon()).await.unwrap();
    assert_eq!((log.text().as_str(), tree.status().children), ("hangs start 1, hangs gone", 0));

    let (started, ended) = tokio::join!(tree.start_child(forever(), soon()), async {
        tokio::task::yield_now().await;
        tree.shutdown(soon()).await
    });
    assert!(matches!(started, Err(StartChildError::Stopped | StartChildError::Closed(_))), "{started:?}");
    ended.unwrap();
    alive_tasks_become(0).await;
}

/// A child that takes its time to stop does not keep the supervisor from serving, and its caller may give up without harm.
#[tokio::test(start_paused = true)]
async fn a_slow_stop_blocks_nobody() {
    let log = Log::default();
    let slow = Site::new("slow", &log).stop_takes(4 * SECOND);
    let (spec, _watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.max_dynamic(4).child(slow.spec(Restart::Permanent))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let id = tree.children(soon()).await.unwrap()[0].id;
    let gave_up = tree.stop_child(id, Deadline::after(SECOND)).await;
    assert_eq!(gave_up, Err(StopChildError::Deadline));
    let begun = Instant::now();
    tree.start_child(Site::new("other", &log).spec(Restart::Permanent), soon()).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    tree.stop_child(id, soon()).await.unwrap();
    assert_eq!(begun.elapsed(), 3 * SECOND);
    assert_eq!(tree.stop_child(id, soon()).await, Err(StopChildError::Unknown));
    tree.shutdown(soon()).await.unwrap();
}

/// While the children are being stopped, the supervisor still tells which are left, and takes no new ones.
#[tokio::test(start_paused = true)]
async fn it_answers_while_it_shuts_down() {
    let log = Log::default();
    let [a, b] = ["a", "b"].map(|name| Site::new(name, &log).stop_takes(2 * SECOND));
    let (spec, _watch) = watched("sup", Strategy::OneForOne);
    let spec = spec.max_dynamic(1).child(a.spec(Restart::Permanent)).child(b.spec(Restart::Permanent));
    let tree = Supervisor::spawn(spec).await.unwrap();
    tree.started(soon()).await.unwrap();
    let asking = async {
        tokio::time::sleep(3 * SECOND).await;
        let children = tree.children(soon()).await.unwrap();
        assert_eq!(children.iter().map(|child| &*child.name).collect::<Vec<_>>(), ["a"]);
        let refused = tree.start_child(b.spec(Restart::Temporary), soon()).await;
        assert!(matches!(refused, Err(StartChildError::Closed(_))), "{refused:?}");
    };
    let (shutdown, ()) = tokio::join!(tree.shutdown(soon()), asking);
    shutdown.unwrap();
    assert_eq!(tree.children(soon()).await, Err(AskError::Closed));
}

/// The queue of requests is bounded: callers beyond it wait for room within their deadlines, and get their specification back.
#[tokio::test(start_paused = true)]
async fn requests_beyond_the_queue_wait_within_their_deadlines() {
    let log = Log::default();
    let (spec, mut watch) = watched("root", Strategy::Isolated);
    let below = tipstaff::supervision::SupervisorSpec::new("below", Strategy::OneForOne).max_dynamic(1_000);
    let (below, handle) = tipstaff::supervision::ChildSpec::supervisor(Restart::Permanent, below);
    let backoff = tipstaff::supervision::Backoff::exponential(10 * SECOND, 10 * SECOND).with_jitter(0);
    let root = Supervisor::spawn(spec.backoff(backoff).child(below)).await.unwrap();
    root.started(soon()).await.unwrap();
    // While the supervisor below is down, nobody takes its requests.
    handle.kill();
    watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
    let requests = (0..200).map(|_| {
        let spec = Site::new("dynamic", &log).spec(Restart::Permanent);
        handle.start_child(spec, Deadline::after(5 * SECOND))
    });
    let answers = futures::future::join_all(requests).await;
    let not_admitted = answers.iter().filter(|answer| matches!(answer, Err(StartChildError::NotAdmitted(_)))).count();
    let unknown = answers.iter().filter(|answer| matches!(answer, Err(StartChildError::Deadline))).count();
    assert_eq!((not_admitted, unknown), (200 - 64, 64));
    // What was admitted is carried out by the next incarnation.
    watch.restarted("below", 1).await;
    for _ in 0..64 {
        watch.until(|report| &*report.child == "dynamic" && matches!(report.what, ReportKind::Started { .. })).await;
    }
    assert_eq!(handle.children(soon()).await.unwrap().len(), 64);
    root.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

/// A hook that panics is the owner's misfortune, not the supervisor's.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_harms_nobody() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let child = site.spec(Restart::Permanent).on_standing(|_| panic!("panic in a hook, as the test wants it"));
    let tree = Supervisor::spawn(spec.child(child)).await.unwrap();
    tree.started(soon()).await.unwrap();
    site.tell(Do::Panic);
    watch.restarted("a", 1).await;
    tree.shutdown(soon()).await.unwrap();
}

/// Every future of the owner's side can be awaited from any task.
#[test]
fn the_futures_of_a_handle_are_send() {
    fn send<T: Send>(_: &T) {}
    #[expect(dead_code, reason = "compiled, never called")]
    fn all(tree: &SupervisorHandle, site: &Site, id: tipstaff::supervision::ChildId) {
        send(&tree.started(soon()));
        send(&tree.start_child(site.spec(Restart::Permanent), soon()));
        send(&tree.stop_child(id, soon()));
        send(&tree.children(soon()));
        send(&tree.shutdown(soon()));
        send(&Supervisor::spawn(watched("sup", Strategy::OneForOne).0));
    }
}
