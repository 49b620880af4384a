//! A child whose every step is written down and may be made to go wrong.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ractor::{ActorProcessingErr, ActorRef};
use tipstaff::clock::Deadline;
use tipstaff::supervision::{
    Backoff, ChildSpec, ReportKind, ReportStream, Restart, Standing, Strategy, SupervisionReport, SupervisorSpec, reports,
};
use tokio::time::timeout;

/// What a probe is told.
#[derive(Debug)]
pub(crate) enum Do {
    Panic,
    Fail,
    /// Fail with a state whose drop waits until the other end of the channel is dropped.
    FailAndHold(std::sync::mpsc::Receiver<()>),
    Hang,
    Finish,
    /// Stop the thread until the other end of the channel is dropped.
    Block(std::sync::mpsc::Receiver<()>),
}

/// How a start goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Well,
    Fails,
    Panics,
    Hangs,
    FinishesAtOnce,
    HangsLater,
}

/// One line per step, in order, of all probes that share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

const UNPOISONED: &str = "nothing panics while it holds the lock";

impl Log {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().expect(UNPOISONED)
    }

    pub(crate) fn add(&self, line: String) {
        self.lines().push(line);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines())
    }

    pub(crate) fn text(&self) -> String {
        self.take().join(", ")
    }

    pub(crate) fn lines_with(&self, part: &str) -> Vec<String> {
        self.lines().iter().filter(|line| line.contains(part)).cloned().collect()
    }
}

/// The place of a probe: the same over its incarnations.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    current: Arc<Mutex<Option<ActorRef<Do>>>>,
    starts: Arc<AtomicU64>,
    plan: Arc<dyn Fn(u64) -> Start + Send + Sync>,
    stop_takes: Duration,
}

impl Site {
    pub(crate) fn new(name: &'static str, log: &Log) -> Self {
        let (current, starts) = Default::default();
        Self { name, log: log.clone(), current, starts, plan: Arc::new(|_| Start::Well), stop_takes: Duration::ZERO }
    }

    /// How the n-th start (from 1) goes.
    pub(crate) fn plan(mut self, plan: impl Fn(u64) -> Start + Send + Sync + 'static) -> Self {
        self.plan = Arc::new(plan);
        self
    }

    pub(crate) fn stop_takes(mut self, time: Duration) -> Self {
        self.stop_takes = time;
        self
    }

    pub(crate) fn spec(&self, restart: Restart) -> ChildSpec {
        let (site, told) = (self.clone(), self.clone());
        ChildSpec::new(self.name, restart, move |parent| {
            let site = site.clone();
            async move { parent.spawn(Probe, site).await }
        })
        .on_standing(move |standing| match standing {
            Standing::Up => {}
            Standing::Restarting => told.log.add(format!("{} restarting", told.name)),
            Standing::Degraded => told.log.add(format!("{} degraded", told.name)),
            Standing::Gone => told.log.add(format!("{} gone", told.name)),
        })
    }

    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    pub(crate) fn actor(&self) -> ActorRef<Do> {
        self.current.lock().expect(UNPOISONED).clone().expect("the probe has started")
    }

    pub(crate) fn tell(&self, what: Do) {
        self.actor().cast(what).expect("the probe takes messages");
    }
}

pub(crate) struct Probe;

/// Written down when it is dropped: the last thing of an incarnation.
pub(crate) struct ProbeState {
    site: Site,
    start: u64,
    hold: Option<std::sync::mpsc::Receiver<()>>,
}

impl Drop for ProbeState {
    fn drop(&mut self) {
        if let Some(until) = self.hold.take() {
            // Hands the worker's other tasks on: the supervisor may be among them.
            let _ = tokio::task::block_in_place(|| until.recv());
        }
        self.site.log.add(format!("{} dropped {}", self.site.name, self.start));
    }
}

#[ractor::actor(message = Do, state = ProbeState, arguments = Site)]
impl Probe {
    async fn pre_start(&self, myself: ActorRef<Do>, site: Site) -> Result<ProbeState, ActorProcessingErr> {
        let start = site.starts.fetch_add(1, Ordering::SeqCst) + 1;
        site.log.add(format!("{} start {start}", site.name));
        match (site.plan)(start) {
            Start::Fails => return Err("no start".into()),
            Start::Panics => panic!("panic in a start, as the test wants it"),
            Start::Hangs => pending().await,
            Start::Well | Start::FinishesAtOnce | Start::HangsLater => {}
        }
        *site.current.lock().expect(UNPOISONED) = Some(myself);
        Ok(ProbeState { site, start, hold: None })
    }

    async fn post_start(&self, myself: ActorRef<Do>, state: &mut ProbeState) -> Result<(), ActorProcessingErr> {
        match (state.site.plan)(state.start) {
            Start::FinishesAtOnce => myself.stop(None),
            Start::HangsLater => pending().await,
            Start::Well | Start::Fails | Start::Panics | Start::Hangs => {}
        }
        Ok(())
    }

    async fn handle(&self, myself: ActorRef<Do>, what: Do, state: &mut ProbeState) -> Result<(), ActorProcessingErr> {
        match what {
            Do::Panic => panic!("panic in a handler, as the test wants it"),
            Do::Fail => return Err("failed as told".into()),
            Do::FailAndHold(until) => {
                state.hold = Some(until);
                return Err("failed as told".into());
            }
            Do::Hang => pending().await,
            Do::Finish => myself.stop(None),
            Do::Block(until) => {
                // A poll that blocks must have woken nobody: what it woke would wait in the slot of this worker, which no other
                // worker can take from.
                tokio::task::yield_now().await;
                state.site.log.add(format!("{} holds its thread", state.site.name));
                let _ = until.recv();
            }
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Do>, state: &mut ProbeState) -> Result<(), ActorProcessingErr> {
        tokio::time::sleep(state.site.stop_takes).await;
        state.site.log.add(format!("{} stopped", state.site.name));
        Ok(())
    }
}

/// A bound for waits that should not come to it.
pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Reports, read until something has happened.
pub(crate) struct Watch(pub(crate) ReportStream);

impl Watch {
    pub(crate) async fn until(&mut self, mut wanted: impl FnMut(&SupervisionReport) -> bool) -> SupervisionReport {
        let found = async {
            loop {
                let report = self.0.next().await.expect("the tree is there");
                if wanted(&report) {
                    return report;
                }
            }
        };
        timeout(Duration::from_secs(3_600), found).await.expect("the report comes")
    }

    /// Until the child of that name has come up again, `times` times.
    pub(crate) async fn restarted(&mut self, name: &str, times: u64) {
        self.until(|report| {
            &*report.child == name && matches!(report.what, ReportKind::Started { restarts } if restarts >= times)
        })
        .await;
    }

    pub(crate) async fn ended(&mut self, name: &str) -> SupervisionReport {
        self.until(|report| &*report.child == name && matches!(report.what, ReportKind::Ended(_))).await
    }
}

/// A specification without waits, with a stream of its reports.
pub(crate) fn watched(name: &'static str, strategy: Strategy) -> (SupervisorSpec, Watch) {
    let (sink, stream) = reports(4_096);
    (SupervisorSpec::new(name, strategy).backoff(Backoff::NONE).reports(sink), Watch(stream))
}

/// Lets other tasks run until as many are alive as expected.
pub(crate) async fn alive_tasks_become(expected: usize) {
    let metrics = tokio::runtime::Handle::current().metrics();
    for _ in 0..10_000 {
        if metrics.num_alive_tasks() == expected {
            return;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(metrics.num_alive_tasks(), expected, "tasks are left");
}

/// An actor of a host program: it supervises, and survives, what is linked to it.
pub(crate) struct Host;

#[ractor::actor(message = (), state = Log, arguments = Log)]
impl Host {
    async fn pre_start(&self, _: ActorRef<()>, log: Log) -> Result<Log, ActorProcessingErr> {
        Ok(log)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: ractor::SupervisionEvent,
        log: &mut Log,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            ractor::SupervisionEvent::ActorStarted(_) => log.add("host saw a start".to_owned()),
            ractor::SupervisionEvent::ActorTerminated(_, _, reason) => log.add(format!("host saw an end: {reason:?}")),
            ractor::SupervisionEvent::ActorFailed(_, error) => log.add(format!("host saw a failure: {error}")),
            _ => {}
        }
        Ok(())
    }
}
