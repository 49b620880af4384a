//! The status of one attempt: one setter, and every path ends there (I-19).
//!
//! | from     | to        | answer                                   |
//! |----------|-----------|------------------------------------------|
//! | pending  | running   | set                                      |
//! | pending  | terminal  | set, all waiters wake                    |
//! | running  | terminal  | set, all waiters wake                    |
//! | running  | running   | refused: it began already                |
//! | terminal | anything  | refused and reported, the status remains |

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::signal::LifecycleKind;
use crate::telemetry;

/// Where one attempt of an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum OperationStatus {
    /// Proposed; not decided.
    Pending,
    /// Being performed.
    Running,
    /// Performed; it returned.
    Completed,
    /// Performed; it failed or panicked.
    Failed,
    /// Not performed: the plan or the runtime denied it.
    Denied,
    /// Not performed: capacity asks to come back later.
    Deferred,
    /// Not performed: an approver has to be asked.
    Escalated,
    /// Not performed: the proposer went away.
    Cancelled,
    /// Performed past its deadline and ended there.
    TimedOut,
    /// Permitted, and the permit was never used.
    Abandoned,
    /// Not known whether, or how far, it was performed.
    Ambiguous,
}

impl OperationStatus {
    const ALL: [Self; 11] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Denied,
        Self::Deferred,
        Self::Escalated,
        Self::Cancelled,
        Self::TimedOut,
        Self::Abandoned,
        Self::Ambiguous,
    ];

    /// Whether the attempt is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        self.closing_kind().is_some()
    }

    /// The kind of the fact that closes an attempt with this status; `None` while it is not over. Running past the deadline closes as
    /// `operation_failed`, and the payload's `status` tells it apart: P-9 names eight closing kinds.
    #[must_use]
    pub const fn closing_kind(self) -> Option<LifecycleKind> {
        Some(match self {
            Self::Pending | Self::Running => return None,
            Self::Completed => LifecycleKind::OperationCompleted,
            Self::Failed | Self::TimedOut => LifecycleKind::OperationFailed,
            Self::Denied => LifecycleKind::OperationDenied,
            Self::Deferred => LifecycleKind::OperationDeferred,
            Self::Escalated => LifecycleKind::OperationEscalated,
            Self::Cancelled => LifecycleKind::OperationCancelled,
            Self::Abandoned => LifecycleKind::OperationAbandoned,
            Self::Ambiguous => LifecycleKind::OperationAmbiguous,
        })
    }

    /// The name in records: `completed`, `timed_out`, ...
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Deferred => "deferred",
            Self::Escalated => "escalated",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Abandoned => "abandoned",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// A second terminal write, or a step backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operation is {found:?} already and cannot become {wanted:?}")]
pub struct StatusRefused {
    /// The status that stands.
    pub found: OperationStatus,
    /// The status that was refused.
    pub wanted: OperationStatus,
}

/// The status of one attempt, shared between its owner and those who wait for its end. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusCell(Arc<Cell>);

#[derive(Debug)]
struct Cell {
    status: AtomicU8,
    ended: Notify,
}

impl Default for StatusCell {
    fn default() -> Self {
        Self(Arc::new(Cell { status: AtomicU8::new(OperationStatus::Pending as u8), ended: Notify::new() }))
    }
}

impl StatusCell {
    /// The status now.
    #[must_use]
    pub fn get(&self) -> OperationStatus {
        OperationStatus::ALL[usize::from(self.0.status.load(Ordering::Acquire))]
    }

    /// Waits until the attempt is over.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only stops the waiting.
    pub async fn ended(&self) -> OperationStatus {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            ended.as_mut().enable();
            let status = self.get();
            if status.is_terminal() {
                return status;
            }
            ended.await;
        }
    }

    /// The one setter.
    pub(super) fn set(&self, wanted: OperationStatus) -> Result<(), StatusRefused> {
        let allowed = |found: OperationStatus| match found {
            OperationStatus::Pending => wanted != OperationStatus::Pending,
            OperationStatus::Running => wanted.is_terminal(),
            _ => false,
        };
        let write = |found: u8| allowed(OperationStatus::ALL[usize::from(found)]).then_some(wanted as u8);
        match self.0.status.fetch_update(Ordering::AcqRel, Ordering::Acquire, write) {
            Ok(_) => {
                if wanted.is_terminal() {
                    self.0.ended.notify_waiters();
                }
                Ok(())
            }
            Err(found) => {
                let refused = StatusRefused { found: OperationStatus::ALL[usize::from(found)], wanted };
                tracing::error!(target: telemetry::OPERATION, %refused, "a second end of one attempt was refused");
                Err(refused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I-19: the table at the top of this file, row by row.
    #[test]
    fn a_status_only_moves_forward_and_ends_once() {
        for from in OperationStatus::ALL {
            for to in OperationStatus::ALL {
                let cell = StatusCell::default();
                if from != OperationStatus::Pending {
                    cell.set(from).expect("pending may become anything else");
                }
                let allowed = match from {
                    OperationStatus::Pending => to != OperationStatus::Pending,
                    OperationStatus::Running => to.is_terminal(),
                    _ => false,
                };
                assert_eq!(cell.set(to).is_ok(), allowed, "{from:?} -> {to:?}");
                assert_eq!(cell.get(), if allowed { to } else { from });
            }
        }
    }

    /// I-19: one setter wakes all waiters.
    #[tokio::test]
    async fn every_waiter_learns_the_end() {
        let cell = StatusCell::default();
        let waiters = futures::future::join_all((0..8).map(|_| cell.ended()));
        let set = async {
            tokio::task::yield_now().await;
            cell.set(OperationStatus::Denied).expect("pending may be denied");
        };
        let (ends, ()) = futures::join!(waiters, set);
        assert_eq!(ends, vec![OperationStatus::Denied; 8]);
    }
}
