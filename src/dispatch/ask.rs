//! Who wants the fact (F-21).
//!
//! | the condition of a registration            | `propagate`        | `collect_as_handler_failure` | `no_match` | `isolate`                         |
//! |--------------------------------------------|--------------------|------------------------------|------------|-----------------------------------|
//! | holds, or there is none                    | matched            | matched                      | matched    | matched                           |
//! | does not hold                              | unmatched          | unmatched                    | unmatched  | unmatched                         |
//! | fails or panics                            | ends the emission  | a failure of its handler     | unmatched  | `predicate_failed`, one warning   |
//! | fails fatally, recorded conduct            | ends the emission  | a failure of its handler     | as beside  | a failure of its handler          |
//! | is cancelled (F-12)                        | ends the emission  | a cancellation of its handler | as beside | as beside                         |
//!
//! All are asked before a handler runs; where late registrations join, each at its turn. Of those that match, an overriding one leaves the others
//! `not started (overridden)`.

use std::sync::Arc;

use super::context::CancelledBy;
use super::handler::{FailureKind, HandlerError};
use super::raised::Member;
use super::report::{NotStarted, Outcome, warn_predicate};
use super::run::{Emission, Slot, State, member_end, predicate_outcome};
use super::stage::End;
use super::subscriber::Asked;
use super::surface::{Surfaced, as_itself};
use super::value::{Conduct, LateRegistrations, PredicateFailure};

impl<F: Send + Sync + 'static, V: Send + 'static> Emission<F, V> {
    /// Asks all conditions that are not asked at their turn.
    pub(super) fn ask_everybody(&mut self) -> Option<End> {
        for at in 0..self.slots.len() {
            let entry = &self.slots[at].entry;
            let late = self.phase_of(entry).late_registrations == LateRegistrations::ThisEmission;
            if late && entry.condition.is_some() {
                continue;
            }
            if let Some(end) = self.ask(at) {
                return Some(end);
            }
        }
        self.override_others();
        self.give_up_places();
        None
    }

    pub(super) fn ask(&mut self, at: usize) -> Option<End> {
        let entry = Arc::clone(&self.slots[at].entry);
        let phase = self.phase_of(&entry);
        let recorded = self.job.snapshot.policy().conduct() == Conduct::Recorded;
        let means = match &entry.condition {
            Some(Asked::Filter(_)) => phase.filter_failure.unwrap_or(phase.predicate_failure),
            Some(Asked::Predicate(_)) | None => phase.predicate_failure,
        };
        let (state, end) = match (entry.wants(&self.job.fact), means) {
            (Ok(true), _) => (State::Matched(None), None),
            (Ok(false), _) => (State::Unmatched, None),
            (Err(error), PredicateFailure::Propagate) => {
                let why = match &error {
                    HandlerError::Failed(_) => NotStarted::EarlierFailure,
                    HandlerError::Cancelled => NotStarted::EarlierCancellation,
                };
                let member = Member { registration: Arc::clone(&entry.name), end: member_end(&error, CancelledBy::Itself) };
                let raised = Surfaced::plain(as_itself(member));
                (State::of(predicate_outcome(error)), Some(End { why, raised: Some(raised) }))
            }
            // As recorded: what isolates a predicate's failure does not isolate a fatal one.
            (Err(HandlerError::Failed(failure)), _) if recorded && failure.kind() == FailureKind::Fatal => {
                (State::Matched(Some(HandlerError::Failed(failure))), None)
            }
            (Err(HandlerError::Failed(_)), PredicateFailure::NoMatch) => (State::Unmatched, None),
            (Err(HandlerError::Failed(failure)), PredicateFailure::Isolate) => {
                warn_predicate(&entry.name, &failure);
                (State::of(Outcome::PredicateFailed(failure)), None)
            }
            (Err(error), _) => (State::Matched(Some(error)), None),
        };
        self.slots[at].state = state;
        end
    }

    fn override_others(&mut self) {
        let overriding = |slot: &Slot<F, V>| slot.entry.asks.overriding && matches!(slot.state, State::Matched(_));
        if !self.slots.iter().any(overriding) {
            return;
        }
        for slot in &mut self.slots {
            if matches!(slot.state, State::Matched(_)) && !slot.entry.asks.overriding {
                slot.state = State::of(Outcome::NotStarted(NotStarted::Overridden));
            }
        }
    }

    /// Those that do not want the fact do not hold up what comes after it in their queues.
    fn give_up_places(&mut self) {
        let Some(places) = &mut self.job.places else { return };
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.entry.lane.is_some() && !matches!(slot.state, State::Matched(None) | State::Unasked) {
                places.give_up(at);
            }
        }
    }
}
