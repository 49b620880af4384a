//! The helper tasks of one supervisor: starts, stops and waits. All that may take time happens here, so that the supervisor
//! serves meanwhile.
//!
//! The supervisor owns the tasks: when it goes, in whatever way, they are aborted. Each sends exactly one report (a stop may send
//! a second one before it), and waits for room to do so; the supervisor never waits for a task.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ractor::ActorCell;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::child::{ChildId, Parent, Started};
use super::end::Cause;
use super::error::StartError;
use super::shared::Shared;
use super::spec::ChildSpec;

/// How long a killed actor may take before it is reported as overdue. A kill takes effect at the next await.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(1);

/// The reason that a child sees when its supervisor stops it.
const STOPPED_BY_SUPERVISOR: &str = "stopped by its supervisor";

/// What became of a task.
#[derive(Debug)]
pub(crate) enum TaskReport {
    /// A start is over; `None` if it was cancelled.
    StartEnded { child: ChildId, incarnation: u64, outcome: Option<Result<Started, StartError>> },
    /// A killed child has not ended yet.
    Overdue { child: ChildId },
    /// A stopped child has ended, and its task with it.
    StopEnded { child: ChildId, incarnation: u64, killed: bool },
    /// A wait is over.
    TimerFired { child: ChildId, generation: u64 },
}

/// Kills an actor when it is dropped; an actor that has ended does not notice.
struct KillOnDrop(ActorCell);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Cancels one start.
#[derive(Debug)]
pub(crate) struct Cancel(Option<oneshot::Sender<()>>);

impl Cancel {
    pub(crate) fn cancel(&mut self) {
        if let Some(cancel) = self.0.take() {
            // Refused when the start is over: its report is on its way.
            let _ = cancel.send(());
        }
    }
}

/// The tasks and the channel on which they report.
pub(crate) struct Tasks {
    set: JoinSet<()>,
    sender: mpsc::Sender<TaskReport>,
    receiver: mpsc::Receiver<TaskReport>,
    shared: Arc<Shared>,
}

impl Tasks {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (sender, receiver) = mpsc::channel(64);
        Self { set: JoinSet::new(), sender, receiver, shared }
    }

    /// A report that is there. Also lets go of tasks that have ended.
    pub(crate) fn try_next(&mut self) -> Option<TaskReport> {
        self.reap();
        self.receiver.try_recv().ok()
    }

    /// The next report. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<TaskReport> {
        self.reap();
        self.receiver.recv().await
    }

    fn reap(&mut self) {
        while self.set.try_join_next().is_some() {}
    }

    /// How many tasks run.
    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }

    /// Starts a child once the task of its previous incarnation has ended, and with it everything that incarnation held.
    pub(crate) fn start(
        &mut self,
        (child, incarnation): (ChildId, u64),
        spec: Arc<ChildSpec>,
        parent: Parent,
        previous: Option<JoinHandle<()>>,
    ) -> Cancel {
        let (cancel, cancelled) = oneshot::channel::<()>();
        let (limit, _) = spec.timeouts();
        self.spawn(async move |sender, shared| {
            let start = async move {
                if let Some(previous) = previous {
                    let _ = previous.await;
                }
                let start = AssertUnwindSafe(async move { spec.start(parent).await }).catch_unwind();
                match timeout(limit, start).await {
                    Ok(Ok(outcome)) => outcome,
                    Ok(Err(panic)) => Err(StartError::Failed(Cause::panic(&*panic))),
                    Err(_) => Err(StartError::Timeout(limit)),
                }
            };
            let outcome = tokio::select! {
                biased;
                outcome = start => Some(outcome),
                Ok(()) = cancelled => None,
            };
            report(&sender, &shared, TaskReport::StartEnded { child, incarnation, outcome }).await;
        });
        Cancel(Some(cancel))
    }

    /// Stops a child: gracefully up to its stop timeout or the end of all patience, then by a kill.
    ///
    /// It is unlinked first: the event about its end would carry its state into a queue that a supervisor which winds down does
    /// not read, and so keep what it held. From then on this task answers for it: aborted, it kills the child.
    pub(crate) fn stop(
        &mut self,
        (child, incarnation): (ChildId, u64),
        supervisor: ActorCell,
        cell: ActorCell,
        task: Option<JoinHandle<()>>,
        grace: Duration,
    ) {
        cell.unlink(supervisor);
        let cell = KillOnDrop(cell);
        self.spawn(async move |sender, shared| {
            let KillOnDrop(cell) = &cell;
            let mut impatience = shared.impatience();
            cell.stop(Some(STOPPED_BY_SUPERVISOR.to_owned()));
            let killed = tokio::select! {
                biased;
                _ = cell.wait(None) => false,
                () = sleep(grace) => true,
                _ = impatience.wait_for(|now| *now) => true,
            };
            if killed {
                cell.kill();
                if cell.wait(Some(KILL_GRACE)).await.is_err() {
                    report(&sender, &shared, TaskReport::Overdue { child }).await;
                    let _ = cell.wait(None).await;
                }
            }
            if let Some(task) = task {
                let _ = task.await;
            }
            report(&sender, &shared, TaskReport::StopEnded { child, incarnation, killed }).await;
        });
    }

    /// Waits for the task of a child that has ended already.
    pub(crate) fn await_end(&mut self, (child, incarnation): (ChildId, u64), task: Option<JoinHandle<()>>) {
        self.spawn(async move |sender, shared| {
            if let Some(task) = task {
                let _ = task.await;
            }
            report(&sender, &shared, TaskReport::StopEnded { child, incarnation, killed: false }).await;
        });
    }

    /// Waits.
    pub(crate) fn timer(&mut self, child: ChildId, generation: u64, delay: Duration) -> AbortHandle {
        self.spawn(async move |sender, shared| {
            sleep(delay).await;
            report(&sender, &shared, TaskReport::TimerFired { child, generation }).await;
        })
    }

    fn spawn<F>(&mut self, task: impl FnOnce(mpsc::Sender<TaskReport>, Arc<Shared>) -> F + Send + 'static) -> AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.set.spawn(task(self.sender.clone(), Arc::clone(&self.shared)))
    }
}

async fn report(sender: &mpsc::Sender<TaskReport>, shared: &Shared, report: TaskReport) {
    // The supervisor is gone when this fails; a `Started` in the report then kills its actor.
    if sender.send(report).await.is_ok() {
        shared.ring();
    }
}
