//! One stage while it runs: who is in flight, what was kept, and how it ends.
//!
//! What ends a stage, strongest first:
//!
//! | what                                   | the emission's answer                                             |
//! |----------------------------------------|-------------------------------------------------------------------|
//! | an end that is raised as itself        | that                                                              |
//! | the emitter cancelled a group          | the cancellation; under `collect` what failed wins (trace `session_observer/emitter_cancel_handler_raises`) |
//! | what the error surface makes of the kept ends | that                                                       |
//! | the budget                             | as its disposition says (F-21); `raise` where none is named       |
//! | a failure that was propagated, or a cancellation that ends the stage quietly | the report, and the emission ends           |

use tokio::time::Instant;

use super::context::CancelledBy;
use super::flight::Flight;
use super::meaning::{Effect, Rules};
use super::raised::RaisedError;
use super::report::{NotStarted, Stage};
use super::surface::{Kept, Surfaced};
use super::value::{DeadlineDisposition, Failure, HandlerCancellation};
use super::waiters::Waiters;

/// How an emission ends before its last phase is over: why nothing more is begun, and what is raised.
pub(super) struct End {
    pub(super) why: NotStarted,
    pub(super) raised: Option<Surfaced>,
}

impl End {
    fn raising(why: NotStarted, surfaced: Surfaced) -> Self {
        Self { why, raised: Some(surfaced) }
    }

    pub(super) fn cancelled_by_emitter() -> Self {
        let error = RaisedError::Cancelled { by: CancelledBy::Emitter, registration: None };
        Self::raising(NotStarted::EarlierCancellation, Surfaced::plain(error))
    }
}

/// One stage while it runs.
pub(super) struct Running<V> {
    pub(super) rules: Rules,
    pub(super) stage: Stage,
    pub(super) limit: Option<Instant>,
    pub(super) flights: Waiters<Flight<V>>,
    pub(super) kept: Kept,
    /// The strongest effect so far.
    pub(super) effect: Effect,
    /// What is raised as itself.
    pub(super) raised: Option<(NotStarted, RaisedError)>,
    /// A cancellation ended it without being raised.
    pub(super) quiet: bool,
    /// Whether the budget has ended.
    pub(super) expired: bool,
    /// Whether the emitter cancelled the stage as a whole.
    pub(super) emitter_cancelled: bool,
    /// Who cancelled those that are in flight, and when what has not ended is dropped.
    pub(super) cancelling: Option<(CancelledBy, Instant)>,
}

impl<V> Running<V> {
    pub(super) fn new(rules: Rules, stage: Stage, limit: Option<Instant>) -> Self {
        Self {
            rules,
            stage,
            limit,
            flights: Waiters::from(Vec::new()),
            kept: Kept::default(),
            effect: Effect::Nothing,
            raised: None,
            quiet: false,
            expired: false,
            emitter_cancelled: false,
            cancelling: None,
        }
    }

    /// Whether nothing more is begun. The handlers of a concurrent stage are all begun before the first failure is acted on.
    pub(super) fn is_over(&mut self) -> bool {
        if self.limit.is_some_and(|limit| Instant::now() >= limit) {
            self.expired = true;
        }
        self.expired || self.emitter_cancelled || (self.rules.sequential && self.effect == Effect::End)
    }

    /// When waiting is over: the end of the grace, or of the budget.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        self.cancelling.map(|(_, grace)| grace).or(self.limit)
    }

    /// How the stage ends, and with it the emission; `None`: it goes on.
    pub(super) fn end(&mut self, disposition: Option<DeadlineDisposition>) -> Option<End> {
        if let Some((why, error)) = self.raised.take() {
            return Some(End::raising(why, Surfaced::plain(error)));
        }
        let kept = std::mem::take(&mut self.kept);
        let failed = kept.holds_a_failure();
        let failures_win = self.rules.stage.handler_cancellation == HandlerCancellation::Collect && failed;
        if self.emitter_cancelled && !failures_win {
            return Some(End::cancelled_by_emitter());
        }
        if let Some(surfaced) = kept.surface(&self.rules, self.stage) {
            let why = match surfaced.error {
                RaisedError::Cancelled { .. } | RaisedError::HandlerCancelled => NotStarted::EarlierCancellation,
                RaisedError::One(_) | RaisedError::Group(_) | RaisedError::TimedOut => NotStarted::EarlierFailure,
            };
            return Some(End::raising(why, surfaced));
        }
        if self.emitter_cancelled {
            return Some(End::cancelled_by_emitter());
        }
        if self.expired {
            return Some(expired(disposition));
        }
        if failed && self.rules.stage.failure == Failure::Propagate {
            return Some(End { why: NotStarted::EarlierFailure, raised: None });
        }
        self.quiet.then_some(End { why: NotStarted::EarlierCancellation, raised: None })
    }
}

fn expired(disposition: Option<DeadlineDisposition>) -> End {
    let raised = match disposition {
        None | Some(DeadlineDisposition::Raise) => Some(Surfaced::plain(RaisedError::TimedOut)),
        Some(DeadlineDisposition::ReturnReport | DeadlineDisposition::SilentStop) => None,
        Some(DeadlineDisposition::LogAndStop) => {
            tracing::warn!(target: crate::telemetry::DISPATCH, "the budget of an emission was spent");
            None
        }
    };
    End { why: NotStarted::BudgetSpent, raised }
}
