//! One budget for a chain: the clock is read once a step, since the end of a step is the start of the next.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Deadline;

/// The proposal's deadline and the end of the last step.
pub(super) struct Budget {
    deadline: Deadline,
    now: Instant,
}

impl Budget {
    pub(super) fn start(deadline: Deadline) -> Self {
        Self { deadline, now: Instant::now() }
    }

    /// When the step in hand started.
    #[inline]
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// The deadline of a stage that starts now, inside the proposal's (I-3).
    pub(super) fn of_stage(&self, declared: Option<Duration>) -> Deadline {
        self.within(declared, self.deadline)
    }

    /// When an answer that is asked for now is due, inside the stage's deadline; `None` if that is over already (P11).
    #[inline]
    pub(super) fn of_call(&self, bound: Option<Duration>, stage: Deadline) -> Option<Deadline> {
        let by = self.within(bound, stage);
        (self.now < by.instant()).then_some(by)
    }

    /// Ends a step: its nanoseconds.
    #[inline]
    pub(super) fn lap(&mut self) -> u64 {
        let started = std::mem::replace(&mut self.now, Instant::now());
        nanos(self.now - started)
    }

    /// Whether the step that ended last ended too late. Such an answer is a timeout, even if it is an allow (AH-2).
    #[inline]
    pub(super) fn is_late(&self, by: Deadline) -> bool {
        self.now >= by.instant()
    }

    #[inline]
    fn within(&self, budget: Option<Duration>, outer: Deadline) -> Deadline {
        match budget.and_then(|budget| self.now.checked_add(budget)) {
            Some(instant) => outer.earlier(Deadline::at(instant)),
            None => outer,
        }
    }
}

#[inline]
pub(super) fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}
