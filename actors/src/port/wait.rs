//! A wait for room: in line, until a deadline, and never unseen when it is long.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tipstaff_core::clock::Deadline;
use tipstaff_core::telemetry;
use tokio::time::{Instant, sleep_until};

use super::serving;
use super::shared::Shared;

/// A wait of this length is reported while it lasts.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// A place in line. Dropped, it is left, and what it was granted goes to the next.
pub(super) struct InLine<'a, M> {
    shared: &'a Shared<M>,
    line: Option<u64>,
}

impl<'a, M> InLine<'a, M> {
    pub(super) fn new(shared: &'a Shared<M>) -> Self {
        Self { shared, line: None }
    }

    /// Polls `attempt` until it is ready; `None` when the deadline passes first.
    pub(super) async fn wait<T>(
        mut self,
        deadline: Deadline,
        mut attempt: impl FnMut(&mut Option<u64>, &mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        let began = Instant::now();
        let mut timer = pin!(sleep_until(deadline.instant().min(began + LONG_WAIT)));
        poll_fn(|cx| {
            if let Poll::Ready(done) = attempt(&mut self.line, cx) {
                return Poll::Ready(Some(done));
            }
            while timer.as_mut().poll(cx).is_ready() {
                if deadline.has_passed() {
                    return Poll::Ready(None);
                }
                report(self.shared, began.elapsed());
                timer.as_mut().reset(deadline.instant());
            }
            Poll::Pending
        })
        .await
    }
}

impl<M> Drop for InLine<'_, M> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            self.shared.core.leave(line);
        }
    }
}

/// Names both ends of a long wait: which port is full, and whose handler stands before it.
fn report<M>(shared: &Shared<M>, waited: Duration) {
    let snapshot = shared.core.snapshot();
    tracing::warn!(
        target: telemetry::PORT,
        port = &*shared.name,
        waiter = &*serving::name(),
        waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        queued = snapshot.data,
        reserved = snapshot.reserved,
        waiting = snapshot.waiting,
        "long wait for room in a port"
    );
}
