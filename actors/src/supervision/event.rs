//! What happens to children, told to those who watch: a bounded stream of typed reports, and `tracing` events beside it.
//!
//! A supervisor never waits for a watcher: a report that finds no room is dropped and counted. A watcher for whom gaps
//! matter looks at [`ReportStream::lost`], and asks the supervisor for its state.
//!
//! `tracing` events have the target `tipstaff::supervision` and the fields `supervisor`, `child`, and those of the report.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::child::ChildId;
use super::end::End;

/// The target of supervision's `tracing` events.
pub(crate) const TARGET: &str = tipstaff_core::telemetry::SUPERVISION;

/// One thing that happened to one child.
#[derive(Debug, Clone)]
pub struct SupervisionReport {
    /// The supervisor of the child.
    pub supervisor: Arc<str>,
    /// The name of the child.
    pub child: Arc<str>,
    /// The child, among the children of its supervisor.
    pub id: ChildId,
    /// What happened.
    pub what: ReportKind,
}

/// What happened to a child.
#[derive(Debug, Clone)]
pub enum ReportKind {
    /// It came up.
    Started {
        /// How often it has been started again; zero for the first start.
        restarts: u64,
    },
    /// One incarnation ended.
    Ended(End),
    /// It will be started again after a wait.
    BackingOff {
        /// The wait.
        delay: Duration,
        /// The failures in a row, this one included.
        failures: u32,
    },
    /// An isolating supervisor restarts it beyond any budget; until it is up, what it serves is refused.
    Degraded {
        /// How often it has been started again, this time included.
        restarts: u64,
    },
    /// A degraded child is up again.
    Recovered {
        /// How often it has been started again.
        restarts: u64,
    },
    /// It was asked to stop, has stopped, and is forgotten.
    Stopped,
    /// It ended by itself, its class does not bring it back, and it is forgotten.
    Finished,
    /// It spent a restart budget. Its own: it is forgotten. Its supervisor's: the supervisor stops all children and ends.
    GaveUp {
        /// How often it had been started again.
        restarts: u64,
    },
    /// It was killed at its stop timeout and has not ended since: it blocks a thread without awaiting. Its supervisor waits on,
    /// since two incarnations must never run at once.
    Overdue,
}

impl SupervisionReport {
    pub(crate) fn trace(&self) {
        let (supervisor, child, id) = (&*self.supervisor, &*self.child, self.id.as_u64());
        match &self.what {
            ReportKind::Started { restarts } => {
                tracing::debug!(target: TARGET, supervisor, child, id, restarts, "child started");
            }
            ReportKind::Ended(end @ (End::Stopped { .. } | End::Asked { killed: false })) => {
                tracing::debug!(target: TARGET, supervisor, child, id, %end, "child ended");
            }
            ReportKind::Ended(end) => tracing::warn!(target: TARGET, supervisor, child, id, %end, "child ended"),
            ReportKind::BackingOff { delay, failures } => {
                tracing::info!(target: TARGET, supervisor, child, id, ?delay, failures, "child backing off");
            }
            ReportKind::Degraded { restarts } => {
                tracing::error!(target: TARGET, supervisor, child, id, restarts, "child degraded");
            }
            ReportKind::Recovered { restarts } => {
                tracing::info!(target: TARGET, supervisor, child, id, restarts, "child recovered");
            }
            ReportKind::Stopped => tracing::debug!(target: TARGET, supervisor, child, id, "child stopped for good"),
            ReportKind::Finished => tracing::debug!(target: TARGET, supervisor, child, id, "child finished"),
            ReportKind::GaveUp { restarts } => {
                tracing::error!(target: TARGET, supervisor, child, id, restarts, "restart budget spent");
            }
            ReportKind::Overdue => tracing::error!(target: TARGET, supervisor, child, id, "killed child has not ended"),
        }
    }
}

/// A bounded stream of reports: the sink for [`SupervisorSpec::reports`](super::SupervisorSpec::reports), and the stream to read
/// from. `capacity` below one counts as one.
#[must_use]
pub fn reports(capacity: usize) -> (ReportSink, ReportStream) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    let lost = Arc::new(AtomicU64::new(0));
    (ReportSink { sender, lost: Arc::clone(&lost) }, ReportStream { receiver, lost })
}

/// Where a supervisor puts its reports. Cheap to clone; the child supervisors of a tree share one.
#[derive(Clone)]
pub struct ReportSink {
    sender: mpsc::Sender<SupervisionReport>,
    lost: Arc<AtomicU64>,
}

impl ReportSink {
    /// Never waits: without room the report is dropped and counted. Nobody listening any more is no loss.
    pub(crate) fn put(&self, report: SupervisionReport) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(report) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for ReportSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportSink").field("room", &self.sender.capacity()).finish_non_exhaustive()
    }
}

/// The reports of one tree.
#[derive(Debug)]
pub struct ReportStream {
    receiver: mpsc::Receiver<SupervisionReport>,
    lost: Arc<AtomicU64>,
}

impl ReportStream {
    /// The next report; `None` once every supervisor that feeds this stream is gone.
    ///
    /// # Ordering
    /// Reports about one supervisor's children come in the order in which they happened, each after the supervisor's
    /// [`status`](super::SupervisorHandle::status) says the same.
    ///
    /// # Cancel safety
    /// Cancel safe: a report is either returned or stays.
    pub async fn next(&mut self) -> Option<SupervisionReport> {
        self.receiver.recv().await
    }

    /// The next report if one is there.
    pub fn try_next(&mut self) -> Option<SupervisionReport> {
        self.receiver.try_recv().ok()
    }

    /// How many reports were dropped for want of room, since the stream was made.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst beyond the capacity is dropped and counted: what arrived and what was lost make what was sent.
    #[test]
    fn dropped_reports_are_counted() {
        let (sink, mut stream) = reports(4);
        for n in 0..40 {
            let what = ReportKind::Started { restarts: n };
            sink.put(SupervisionReport { supervisor: "s".into(), child: "c".into(), id: ChildId::new(0), what });
        }
        let mut seen = 0;
        while stream.try_next().is_some() {
            seen += 1;
        }
        assert_eq!((seen, stream.lost()), (4, 36));
    }
}
