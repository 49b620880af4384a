//! Work that goes on after its emission, and its owner: detached handlers (F-20), and those of ordered registrations (F-18).
//!
//! | a detached handler            | counted as                                   |
//! |-------------------------------|----------------------------------------------|
//! | at the limit                  | nothing: `not started (detach limit)`        |
//! | returns, fails, is cancelled  | `detached_returned`, `_failed`, `_cancelled` |
//! | at its greatest age           | dropped: `detached_expired`                  |
//! | when the dispatcher stops     | dropped: `detached_stopped`                  |

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::counts::{Counters, count};
use super::handler::{HandlerError, HandlerResult};
use super::policy::DetachBounds;
use super::report::warn_isolated;
use crate::clock::Deadline;

/// Why work was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    Limit,
    Closed,
}

/// The owner of what outlives its emission. Dropping it ends all of it.
pub(super) struct Background {
    /// `None` once it is closed. Locked for a few lines that never wait and call no user code.
    tasks: Mutex<Option<JoinSet<()>>>,
    /// What was running when it was closed, to be waited for.
    ending: Mutex<JoinSet<()>>,
    detached: Arc<AtomicU32>,
    counters: Arc<Counters>,
}

impl Background {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { tasks: Mutex::new(Some(JoinSet::new())), ending: Mutex::default(), detached: Arc::default(), counters }
    }

    /// A place for one detached handler, if there is one.
    pub(super) fn place(&self, bounds: DetachBounds) -> Result<DetachPlace, NotTaken> {
        let taken = |running: u32| (running < bounds.max_running.get()).then(|| running + 1);
        match self.detached.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken) {
            Ok(_) => Ok(DetachPlace(Arc::clone(&self.detached))),
            Err(_) => Err(NotTaken::Limit),
        }
    }

    /// Lets a handler go on, at most to its greatest age.
    pub(super) fn detach<V: Send + 'static>(
        &self,
        registration: Arc<str>,
        bounds: DetachBounds,
        place: DetachPlace,
        handler: impl Future<Output = HandlerResult<V>> + Send + 'static,
    ) -> Result<(), NotTaken> {
        let mut end = Ended::stopped(&self.counters, |counters| &counters.detached_stopped);
        self.spawn(async move {
            let _place = place;
            end.as_counted(match timeout(bounds.max_age, handler).await {
                Ok(Ok(_value)) => |counters| &counters.detached_returned,
                Ok(Err(HandlerError::Failed(failure))) => {
                    warn_isolated(&registration, &failure);
                    |counters| &counters.detached_failed
                }
                Ok(Err(HandlerError::Cancelled)) => |counters| &counters.detached_cancelled,
                Err(_elapsed) => |counters| &counters.detached_expired,
            });
        })?;
        count(&self.counters.detached);
        Ok(())
    }

    /// Runs a task until the dispatcher stops.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotTaken> {
        let mut tasks = lock(&self.tasks);
        let Some(running) = tasks.as_mut() else {
            drop(tasks);
            return Err(NotTaken::Closed);
        };
        while running.try_join_next().is_some() {}
        running.spawn(task);
        Ok(())
    }

    pub(super) fn close(&self) {
        let Some(mut running) = lock(&self.tasks).take() else { return };
        running.abort_all();
        *lock(&self.ending) = running;
    }

    /// Waits until all tasks have ended, after it was closed.
    pub(super) async fn ended(&self, deadline: Deadline) {
        let mut ending = std::mem::take(&mut *lock(&self.ending));
        let _in_time = tokio::time::timeout_at(deadline.instant(), async { while ending.join_next().await.is_some() {} }).await;
    }
}

/// A place among the detached handlers. It is free again when this is dropped.
pub(super) struct DetachPlace(Arc<AtomicU32>);

impl Drop for DetachPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts an end once, when it is dropped: as it ended, or as ended from outside.
pub(super) struct Ended {
    counters: Arc<Counters>,
    counter: Which,
}

type Which = fn(&Counters) -> &AtomicU64;

impl Ended {
    pub(super) fn stopped(counters: &Arc<Counters>, counter: Which) -> Self {
        Self { counters: Arc::clone(counters), counter }
    }

    pub(super) fn as_counted(&mut self, counter: Which) {
        self.counter = counter;
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        count((self.counter)(&self.counters));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
