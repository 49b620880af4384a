//! When a child comes back, and when it does not.

use std::time::Duration;

use ractor::ActorStatus;
use tipstaff::supervision::{
    Backoff, ChildSpec, End, EndCause, Intensity, ReportKind, Restart, StartChildError, StartError, Strategy, Supervisor,
    SupervisorPhase, SupervisorSpec,
};

use super::probe::{Do, Log, Probe, Site, Start, Watch, alive_tasks_become, soon, watched};

const SECOND: Duration = Duration::from_secs(1);

/// The failed child and those that share its fate come back, in order; the others do not notice.
#[tokio::test(start_paused = true)]
async fn each_strategy_restarts_what_it_says() {
    let rows = [
        (Strategy::OneForOne, "b restarting, b start 2"),
        (
            Strategy::OneForAll,
            "b restarting, c stopped, c dropped 1, c restarting, a stopped, a dropped 1, a restarting, \
             a start 2, b start 2, c start 2",
        ),
        (Strategy::RestForOne, "b restarting, c stopped, c dropped 1, c restarting, b start 2, c start 2"),
    ];
    for (strategy, expected) in rows {
        let log = Log::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| Site::new(name, &log));
        let (spec, mut watch) = watched("sup", strategy);
        let spec = [&a, &b, &c].into_iter().fold(spec, |spec, site| spec.child(site.spec(Restart::Permanent)));
        let tree = Supervisor::spawn(spec).await.unwrap();
        tree.started(soon()).await.unwrap();
        assert_eq!(log.text(), "a start 1, b start 1, c start 1");

        b.tell(Do::Panic);
        while b.starts() < 2 || (strategy != Strategy::OneForOne && c.starts() < 2) {
            watch.until(|report| matches!(report.what, ReportKind::Started { .. })).await;
        }
        // The state of a panicked actor is dropped beside its supervisor's first decisions; only its next start waits for that.
        let lines: Vec<String> = log.take().into_iter().filter(|line| line != "b dropped 1").collect();
        assert_eq!(lines.join(", "), expected, "{strategy:?}");
        tree.shutdown(soon()).await.unwrap();
    }
}

/// Two incarnations never overlap: the next start begins when the state of the last one, and all it held, has been dropped,
/// however long that takes. The supervisor has heard of the failure before, and serves meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_next_incarnation_starts_after_the_last_state_is_dropped() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let (release, until) = std::sync::mpsc::channel();
    site.tell(Do::FailAndHold(until));
    watch.ended("a").await;
    for _ in 0..200 {
        assert!(!tree.children(soon()).await.unwrap()[0].running);
    }
    drop(release);
    watch.restarted("a", 1).await;
    assert_eq!(log.text(), "a start 1, a restarting, a dropped 1, a start 2");
    tree.shutdown(soon()).await.unwrap();
}

/// A shutdown waits for the task of a child that had ended by itself before, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_shutdown_waits_for_the_tasks_of_children_that_are_forgotten() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Temporary))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let (release, until) = std::sync::mpsc::channel();
    site.tell(Do::FailAndHold(until));
    watch.until(|report| matches!(report.what, ReportKind::Finished)).await;
    let shutdown = async {
        tree.shutdown(soon()).await.unwrap();
        log.text()
    };
    let (text, ()) = tokio::join!(shutdown, async {
        // Long after the supervisor has nothing else to wait for.
        while matches!(tree.status().phase, SupervisorPhase::Starting | SupervisorPhase::Up) {
            tokio::task::yield_now().await;
        }
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        drop(release);
    });
    assert_eq!(text, "a start 1, a gone, a dropped 1");
}

/// Pitfall 2: a kill looks like a normal termination that carries state. A transient child is restarted after it wherever it
/// strikes, from nothing but its specification.
#[tokio::test(start_paused = true)]
async fn a_killed_transient_child_is_restarted() {
    let log = Log::default();
    let site = Site::new("a", &log).plan(|start| if start == 3 { Start::HangsLater } else { Start::Well });
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Transient))).await.unwrap();
    tree.started(soon()).await.unwrap();

    // Idle, in a handler, in `post_start`.
    for kill in 1..=3 {
        if kill == 2 {
            site.tell(Do::Hang);
            tokio::task::yield_now().await;
        }
        site.actor().kill();
        let ended = watch.ended("a").await;
        assert!(matches!(ended.what, ReportKind::Ended(End::Killed)), "{ended:?}");
        watch.restarted("a", kill).await;
        assert_eq!(site.starts(), kill + 1);
    }
    // A stop is not abnormal.
    site.tell(Do::Finish);
    watch.until(|report| matches!(report.what, ReportKind::Finished)).await;
    assert_eq!((site.starts(), tree.children(soon()).await.unwrap().len()), (4, 0));
    tree.shutdown(soon()).await.unwrap();
}

/// The class decides after which end a child comes back; a child that does not is forgotten, and its owner told.
#[tokio::test(start_paused = true)]
async fn the_class_decides_after_which_end_a_child_comes_back() {
    let rows = [
        (Restart::Permanent, Do::Finish, true),
        (Restart::Permanent, Do::Panic, true),
        (Restart::Transient, Do::Finish, false),
        (Restart::Transient, Do::Fail, true),
        (Restart::Temporary, Do::Finish, false),
        (Restart::Temporary, Do::Panic, false),
    ];
    for (restart, how, comes_back) in rows {
        let (log, row) = (Log::default(), format!("{restart:?} after {how:?}"));
        let site = Site::new("a", &log);
        let (spec, mut watch) = watched("sup", Strategy::OneForOne);
        let tree = Supervisor::spawn(spec.child(site.spec(restart))).await.unwrap();
        tree.started(soon()).await.unwrap();
        site.tell(how);
        watch.ended("a").await;
        if comes_back {
            watch.restarted("a", 1).await;
        } else {
            watch.until(|report| matches!(report.what, ReportKind::Finished)).await;
            assert_eq!(log.lines_with("gone"), ["a gone"], "{row}");
        }
        assert_eq!(tree.children(soon()).await.unwrap().len(), usize::from(comes_back), "{row}");
        tree.shutdown(soon()).await.unwrap();
    }
}

/// Two children of a group fail at the same moment: the group is restarted once, and one restart is counted.
#[tokio::test(start_paused = true)]
async fn two_simultaneous_failures_restart_a_group_once() {
    let log = Log::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| Site::new(name, &log));
    let (spec, mut watch) = watched("sup", Strategy::OneForAll);
    let spec = [&a, &b, &c].into_iter().fold(spec, |spec, site| spec.child(site.spec(Restart::Permanent)));
    let tree = Supervisor::spawn(spec.intensity(Intensity::new(1, 60 * SECOND))).await.unwrap();
    tree.started(soon()).await.unwrap();
    a.tell(Do::Panic);
    c.tell(Do::Panic);
    watch.until(|report| &*report.child == "c" && matches!(report.what, ReportKind::Ended(_))).await;
    watch.restarted("c", 0).await;
    assert_eq!((a.starts(), b.starts(), c.starts()), (2, 2, 2));
    assert_eq!(tree.status().restarts, 1);
    assert!(tree.status().degraded.is_empty());
    tree.shutdown(soon()).await.unwrap();
}

/// Pitfall 10: stopping a permanent child must not bring it back. An explicit stop is final for every class, also while the child
/// waits for its restart.
#[tokio::test(start_paused = true)]
async fn an_explicit_stop_is_final() {
    for restart in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
        let log = Log::default();
        let site = Site::new("a", &log);
        let (spec, _watch) = watched("sup", Strategy::OneForOne);
        let tree = Supervisor::spawn(spec.child(site.spec(restart))).await.unwrap();
        tree.started(soon()).await.unwrap();
        let id = tree.children(soon()).await.unwrap()[0].id;
        tree.stop_child(id, soon()).await.unwrap();
        assert_eq!(log.text(), "a start 1, a stopped, a dropped 1, a gone");
        assert!(tree.stop_child(id, soon()).await.is_err(), "it is not there any more");
        tokio::time::advance(600 * SECOND).await;
        assert_eq!((site.starts(), tree.children(soon()).await.unwrap().len()), (1, 0));
        tree.shutdown(soon()).await.unwrap();
    }
}

/// Pitfall 13: a wait that was armed for one incarnation must not touch a healthy one. A child is stopped during its wait and
/// another takes its place; when the first wait would have been over, nothing happens.
#[tokio::test(start_paused = true)]
async fn a_stale_back_off_timer_leaves_a_healthy_child_alone() {
    let log = Log::default();
    let (old, new) = (Site::new("a", &log), Site::new("a", &log));
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let slow = Backoff::exponential(10 * SECOND, 10 * SECOND).with_jitter(0);
    let tree = Supervisor::spawn(spec.max_dynamic(1).backoff(slow)).await.unwrap();
    let first = tree.start_child(old.spec(Restart::Permanent), soon()).await.unwrap();
    old.tell(Do::Panic);
    watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
    tree.stop_child(first, soon()).await.unwrap();
    let second = tree.start_child(new.spec(Restart::Permanent), soon()).await.unwrap();
    assert_ne!(first, second, "an identifier is never given twice");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((old.starts(), new.starts()), (1, 1));
    assert_eq!(tree.status().tasks, 0, "the timer is gone, not waiting");
    tree.shutdown(soon()).await.unwrap();
}

/// Waits double up to the cap, a quiet time starts them anew, and the supervisor answers during a wait.
#[tokio::test(start_paused = true)]
async fn restarts_back_off_and_forget_after_quiet() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let backoff = Backoff::exponential(SECOND, 4 * SECOND).with_jitter(0).with_quiet(30 * SECOND);
    let spec = spec.backoff(backoff).intensity(Intensity::new(100, 60 * SECOND));
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent))).await.unwrap();
    tree.started(soon()).await.unwrap();
    let mut waits = Vec::new();
    for round in 1..=6 {
        if round == 6 {
            tokio::time::sleep(30 * SECOND).await;
        }
        site.tell(Do::Panic);
        let report = watch.until(|report| matches!(report.what, ReportKind::BackingOff { .. })).await;
        let ReportKind::BackingOff { delay, .. } = report.what else { unreachable!() };
        let before = tokio::time::Instant::now();
        assert!(!tree.children(soon()).await.unwrap()[0].running, "it answers while it waits");
        assert_eq!(before.elapsed(), Duration::ZERO);
        watch.restarted("a", round).await;
        let waited = before.elapsed();
        assert!(waited >= delay && waited < delay + SECOND / 100, "{waited:?} for {delay:?}");
        waits.push(delay.as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 4, 4, 1]);
    tree.shutdown(soon()).await.unwrap();
}

/// Pitfall 17: five children with budgets of their own fail once each, and none is given up; one that spends its own is given up
/// alone.
#[tokio::test(start_paused = true)]
async fn siblings_do_not_spend_one_anothers_budget() {
    let log = Log::default();
    let sites = ["a", "b", "c", "d", "e"].map(|name| Site::new(name, &log));
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let own = Intensity::new(1, 60 * SECOND);
    let spec = sites.iter().fold(spec, |spec, site| spec.child(site.spec(Restart::Permanent).intensity(own)));
    let tree = Supervisor::spawn(spec.intensity(Intensity::new(0, SECOND))).await.unwrap();
    tree.started(soon()).await.unwrap();
    for site in &sites {
        site.tell(Do::Panic);
        watch.restarted(site.name, 1).await;
    }
    assert_eq!(tree.children(soon()).await.unwrap().len(), 5);
    sites[2].tell(Do::Panic);
    watch.until(|report| matches!(report.what, ReportKind::GaveUp { restarts: 1 })).await;
    assert_eq!(tree.children(soon()).await.unwrap().len(), 4);
    assert!(log.lines_with("gone").iter().eq(["c gone"]));
    tree.shutdown(soon()).await.unwrap();
}

/// Pitfall 20: a failure in `pre_start` makes no supervision event. On a restart it is counted, backed off and escalated all the
/// same.
#[tokio::test(start_paused = true)]
async fn a_start_that_fails_on_a_restart_is_counted_backed_off_and_escalated() {
    for how in [Start::Fails, Start::Panics, Start::Hangs] {
        let log = Log::default();
        let site = Site::new("a", &log).plan(move |start| if start == 1 { Start::Well } else { how });
        let (spec, mut watch) = watched("sup", Strategy::OneForOne);
        let spec = spec.backoff(Backoff::exponential(SECOND, SECOND)).intensity(Intensity::new(3, 600 * SECOND));
        let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent))).await.unwrap();
        tree.started(soon()).await.unwrap();
        site.tell(Do::Panic);
        for failures in 2..=3 {
            watch
                .until(|report| matches!(&report.what, ReportKind::BackingOff { failures: seen, .. } if *seen == failures))
                .await;
        }
        watch.until(|report| matches!(report.what, ReportKind::GaveUp { restarts: 3 })).await;
        tree.shutdown(soon()).await.unwrap();
        assert_eq!(site.starts(), 4, "{how:?}");
        let SupervisorPhase::Ended(EndCause::Exhausted { child, end }) = tree.status().phase else { panic!("{tree:?}") };
        assert!(&*child == "a" && matches!(*end, End::StartFailed(_)), "{end:?}");
        assert!(log.lines_with("gone").iter().eq(["a gone"]), "its owner is told once");
    }
}

/// The first start of a dynamic child is the caller's affair: its error comes back, nothing is retried, nothing is kept.
#[tokio::test(start_paused = true)]
async fn the_first_start_of_a_dynamic_child_answers_its_caller() {
    let log = Log::default();
    let (spec, _watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.max_dynamic(1).intensity(Intensity::new(0, SECOND))).await.unwrap();
    for how in [Start::Fails, Start::Panics, Start::Hangs] {
        let site = Site::new("a", &log).plan(move |_| how);
        let error = tree.start_child(site.spec(Restart::Permanent), soon()).await.unwrap_err();
        let StartChildError::Failed(error) = error else { panic!("{error:?}") };
        assert_eq!(matches!(error, StartError::Timeout(_)), how == Start::Hangs, "{error}");
        assert_eq!((site.starts(), tree.status().children), (1, 0));
    }
    tree.start_child(Site::new("a", &log).spec(Restart::Temporary), soon()).await.unwrap();
    let refused = tree.start_child(Site::new("b", &log).spec(Restart::Temporary), soon()).await.unwrap_err();
    assert!(matches!(&refused, StartChildError::Full { spec, limit: 1 } if &**spec.name() == "b"), "{refused:?}");
    tree.shutdown(soon()).await.unwrap();
    let late = tree.start_child(Site::new("b", &log).spec(Restart::Temporary), soon()).await.unwrap_err();
    assert!(matches!(&late, StartChildError::Closed(spec) if &**spec.name() == "b"), "{late:?}");
}

/// A child may end before its start has told the supervisor which actor it is: it has started, and has ended, and its class
/// decides.
#[tokio::test(start_paused = true)]
async fn a_child_that_ends_at_once_is_not_missed() {
    for (restart, starts) in [(Restart::Transient, 1), (Restart::Permanent, 6)] {
        let log = Log::default();
        let site = Site::new("a", &log).plan(|start| if start <= 5 { Start::FinishesAtOnce } else { Start::Well });
        let (spec, mut watch) = watched("sup", Strategy::OneForOne);
        let tree = Supervisor::spawn(spec.max_dynamic(1).intensity(Intensity::new(5, SECOND))).await.unwrap();
        tree.start_child(site.spec(restart), soon()).await.unwrap();
        match restart {
            Restart::Permanent => watch.restarted("a", 5).await,
            _ => drop(watch.until(|report| matches!(report.what, ReportKind::Finished)).await),
        }
        assert_eq!(site.starts(), starts, "{restart:?}");
        tree.shutdown(soon()).await.unwrap();
        alive_tasks_become(0).await;
    }
}

/// A start that does not link its actor would hide its end: it is refused and killed.
#[tokio::test(start_paused = true)]
async fn a_child_without_a_link_is_refused() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, _watch) = watched("sup", Strategy::OneForOne);
    let tree = Supervisor::spawn(spec.max_dynamic(2)).await.unwrap();
    let stray = site.clone();
    let spec = ChildSpec::new("a", Restart::Permanent, move |_| {
        let site = stray.clone();
        async move { Ok(ractor::Actor::spawn(None, Probe, site).await?) }
    });
    let error = tree.start_child(spec, soon()).await.unwrap_err();
    assert!(matches!(error, StartChildError::Failed(StartError::NotLinked)), "{error:?}");
    site.actor().wait(None).await.unwrap();
    assert_eq!(site.actor().get_status(), ActorStatus::Stopped);

    // One that had ended before it was looked at is no child either, and does not stay as one for ever.
    let stray = site.clone();
    let spec = ChildSpec::new("a", Restart::Temporary, move |_| {
        let site = stray.clone();
        async move {
            let (actor, task) = ractor::Actor::spawn(None, Probe, site).await?;
            actor.stop(None);
            let _ = task.await;
            Ok(actor.get_cell())
        }
    });
    let _ = tree.start_child(spec, soon()).await;
    assert!(tree.children(soon()).await.unwrap().is_empty());
    tree.shutdown(soon()).await.unwrap();
}

/// A crash loop leaks nothing: after 25,000 panics and restarts as many tasks are alive as before.
#[tokio::test]
async fn twenty_five_thousand_restarts_leave_no_task_behind() {
    struct Fragile;
    #[ractor::actor(message = (), state = ())]
    impl Fragile {
        async fn pre_start(&self, _: ractor::ActorRef<()>, _: ()) -> Result<(), ractor::ActorProcessingErr> {
            Ok(())
        }
        async fn handle(&self, _: ractor::ActorRef<()>, _: (), _: &mut ()) -> Result<(), ractor::ActorProcessingErr> {
            // A panic without the panic hook's report on standard error.
            std::panic::resume_unwind(Box::new("crash"))
        }
    }
    const CYCLES: u64 = 25_000;
    let (up, mut ups) = tokio::sync::mpsc::channel(1);
    let spec = ChildSpec::new("fragile", Restart::Permanent, move |parent| {
        let up = up.clone();
        async move {
            let (actor, task) = ractor::Actor::spawn_linked(None, Fragile, (), parent.cell()).await?;
            let _ = up.send(actor.clone()).await;
            Ok((actor, task))
        }
    });
    let spec = SupervisorSpec::new("sup", Strategy::OneForOne)
        .backoff(Backoff::NONE)
        .intensity(Intensity::new(u32::MAX, Duration::from_millis(1)))
        .child(spec);
    let tree = Supervisor::spawn(spec).await.unwrap();
    tree.started(soon()).await.unwrap();
    let metrics = tokio::runtime::Handle::current().metrics();
    let mut most = 0;
    for _ in 0..CYCLES {
        ups.recv().await.unwrap().cast(()).unwrap();
        most = most.max(metrics.num_alive_tasks());
    }
    ups.recv().await.unwrap();
    assert!(most <= 4, "supervisor, child, its predecessor and one start at the most, seen {most}");
    assert_eq!(tree.status().restarts, CYCLES);
    alive_tasks_become(2).await;
    tree.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

/// Pitfall 8: children that ended for good must not stay behind as specifications, arguments or handles. A hundred thousand
/// transient children come and go, each with an argument whose copies are counted.
#[tokio::test]
async fn a_hundred_thousand_dynamic_children_leave_nothing_behind() {
    struct Brief;
    #[ractor::actor(message = (), state = std::sync::Arc<()>, arguments = std::sync::Arc<()>)]
    impl Brief {
        async fn pre_start(
            &self,
            myself: ractor::ActorRef<()>,
            argument: std::sync::Arc<()>,
        ) -> Result<std::sync::Arc<()>, ractor::ActorProcessingErr> {
            myself.stop(None);
            Ok(argument)
        }
    }
    const CHILDREN: usize = 100_000;
    let tree = Supervisor::spawn(SupervisorSpec::new("sup", Strategy::OneForOne).max_dynamic(64)).await.unwrap();
    let argument = std::sync::Arc::new(());
    let batches = (0..CHILDREN / 50).map(|_| {
        futures_of(50, || {
            let argument = std::sync::Arc::clone(&argument);
            let spec = ChildSpec::new("brief", Restart::Transient, move |parent| {
                let argument = std::sync::Arc::clone(&argument);
                async move { parent.spawn(Brief, argument).await }
            });
            tree.start_child(spec, soon())
        })
    });
    for batch in batches {
        for started in batch.await {
            started.unwrap();
        }
    }
    let children = tree.children(soon()).await.unwrap();
    assert!(children.len() <= 50, "those of the last batch at the most: {}", children.len());
    alive_tasks_become(1).await;
    assert!(tree.children(soon()).await.unwrap().is_empty());
    assert_eq!(std::sync::Arc::strong_count(&argument), 1, "no specification, argument or state is left");
    assert_eq!((tree.status().children, tree.status().tasks), (0, 0));
    tree.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

async fn futures_of<F: Future>(count: usize, mut make: impl FnMut() -> F) -> Vec<F::Output> {
    futures::future::join_all((0..count).map(|_| make())).await
}

/// Pitfall 12: timers of an incarnation must end with it, and waits of the supervisor must not pile up. A child with a ticker is
/// restarted a hundred times in every way; afterwards one ticks, and after the shutdown nothing does.
#[tokio::test(start_paused = true)]
async fn a_hundred_restarts_leave_one_ticker() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    struct Ticking;
    /// The ticks, and the ticker, which is aborted when this is dropped.
    type Ticker = (Arc<AtomicU64>, tokio::task::JoinSet<()>);
    #[ractor::actor(message = (), state = Ticker, arguments = Arc<AtomicU64>)]
    impl Ticking {
        async fn pre_start(&self, _: ractor::ActorRef<()>, ticks: Arc<AtomicU64>) -> Result<Ticker, ractor::ActorProcessingErr> {
            Ok((ticks, tokio::task::JoinSet::new()))
        }
        async fn post_start(&self, _: ractor::ActorRef<()>, state: &mut Ticker) -> Result<(), ractor::ActorProcessingErr> {
            let ticks = Arc::clone(&state.0);
            state.1.spawn(async move {
                let mut every = tokio::time::interval_at(tokio::time::Instant::now() + SECOND, SECOND);
                loop {
                    every.tick().await;
                    ticks.fetch_add(1, Ordering::SeqCst);
                }
            });
            Ok(())
        }
        async fn handle(&self, _: ractor::ActorRef<()>, _: (), _: &mut Ticker) -> Result<(), ractor::ActorProcessingErr> {
            Err("failed as told".into())
        }
    }
    let (ticks, actors) = (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (counted, known) = (Arc::clone(&ticks), Arc::clone(&actors));
    let child = ChildSpec::new("ticking", Restart::Permanent, move |parent| {
        let (counted, known) = (Arc::clone(&counted), Arc::clone(&known));
        async move {
            let (actor, task) = ractor::Actor::spawn_linked(None, Ticking, counted, parent.cell()).await?;
            known.lock().unwrap().push(actor.clone());
            Ok((actor, task))
        }
    });
    let (spec, mut watch) = watched("sup", Strategy::OneForOne);
    let spec = spec
        .intensity(Intensity::new(u32::MAX, SECOND))
        .backoff(Backoff::exponential(Duration::from_millis(1), Duration::from_millis(1)));
    let tree = Supervisor::spawn(spec.child(child)).await.unwrap();
    tree.started(soon()).await.unwrap();
    for restart in 1..=100 {
        let actor = actors.lock().unwrap().last().cloned().unwrap();
        match restart % 3 {
            0 => actor.kill(),
            1 => actor.stop(None),
            _ => actor.cast(()).unwrap(),
        }
        watch.restarted("ticking", restart).await;
    }
    // Supervisor, child and its ticker.
    alive_tasks_become(3).await;
    let before = ticks.load(Ordering::SeqCst);
    tokio::time::sleep(10 * SECOND + SECOND / 2).await;
    assert_eq!(ticks.load(Ordering::SeqCst) - before, 10);
    tree.shutdown(soon()).await.unwrap();
    alive_tasks_become(0).await;
}

/// Reports that find no room are counted, and cost the tree nothing.
#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_loses_counted_reports() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (sink, stream) = tipstaff::supervision::reports(2);
    let spec = SupervisorSpec::new("sup", Strategy::Isolated).backoff(Backoff::NONE).reports(sink);
    let tree = Supervisor::spawn(spec.child(site.spec(Restart::Permanent))).await.unwrap();
    tree.started(soon()).await.unwrap();
    for restart in 1..=10 {
        site.tell(Do::Panic);
        while site.starts() <= restart {
            tokio::task::yield_now().await;
        }
    }
    tree.shutdown(soon()).await.unwrap();
    let mut watch = Watch(stream);
    assert!(matches!(watch.0.next().await.unwrap().what, ReportKind::Started { restarts: 0 }));
    watch.0.next().await.unwrap();
    assert!(watch.0.try_next().is_none());
    // Each round: ended, degraded, started, recovered; at the end: ended, stopped. Two of all these had room.
    assert_eq!(watch.0.lost(), 1 + 10 * 4 + 2 - 2);
}

/// A report comes after the status says the same: whoever reads that a child has recovered does not find it degraded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_is_not_behind_the_reports() {
    let log = Log::default();
    let site = Site::new("a", &log);
    let (spec, mut watch) = watched("sup", Strategy::Isolated);
    let child = site.spec(Restart::Permanent).intensity(Intensity::new(0, SECOND));
    let tree = Supervisor::spawn(spec.child(child)).await.unwrap();
    tree.started(soon()).await.unwrap();
    for restarts in 1..=500 {
        site.tell(Do::Fail);
        let recovered = async {
            // Looks all the time, so that nothing is between the report and the look at the status.
            while !watch.0.try_next().is_some_and(|report| matches!(report.what, ReportKind::Recovered { .. })) {
                tokio::task::yield_now().await;
            }
            tree.status()
        };
        let status = tokio::time::timeout_at(soon().instant(), recovered).await.unwrap();
        assert_eq!((status.degraded.len(), status.restarts), (0, restarts));
    }
    tree.shutdown(soon()).await.unwrap();
}
