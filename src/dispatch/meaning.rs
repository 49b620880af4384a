//! What the end of one handler means to its stage. Pure decisions; the effects are in [`run`](super::run).
//!
//! A failure:
//!
//! | `failure`   | completion                    | outcome    | effect on the others   | kept for the surface |
//! |-------------|-------------------------------|------------|------------------------|----------------------|
//! | `isolate`   | `cancel_remaining_on_failure` | `isolated` | are cancelled          | no; one warning      |
//! | `isolate`   | any other                     | `isolated` | none                   | no; one warning      |
//! | `collect`   | `cancel_remaining_on_failure` | `failed`   | are cancelled          | yes                  |
//! | `collect`   | any other                     | `failed`   | none                   | yes                  |
//! | `propagate` | `stop_on_failure`             | `failed`   | are not begun          | yes                  |
//! | `propagate` | `cancel_remaining_on_failure` | `failed`   | are cancelled          | yes                  |
//! | `propagate` | `await_all` (concurrent only) | `failed`   | none                   | yes                  |
//!
//! A cancellation (F-12):
//!
//! | by       | `handler_cancellation` | outcome     | effect on the others                               | kept for the surface       |
//! |----------|------------------------|-------------|----------------------------------------------------|----------------------------|
//! | deadline | any                    | `timed_out` | none                                               | no                         |
//! | sibling  | any                    | `cancelled` | none                                               | no                         |
//! | emitter  | any, concurrent        | `cancelled` | none: the stage is cancelled as a whole            | no                         |
//! | emitter  | `collect`, sequential  | `cancelled` | none                                               | if all are awaited         |
//! | emitter  | any other, sequential  | `cancelled` | are not begun; raised                              |                            |
//! | itself   | `propagate`            | `cancelled` | are cancelled or not begun; raised                 |                            |
//! | itself   | `translate`            | `cancelled` | as a failure's                                     | as translated              |
//! | itself   | `collect`              | `cancelled` | are cancelled under `cancel_remaining_on_failure`  | if all are awaited         |
//!
//! Under the recorded conduct four rows differ. The trace wins over the table of the specification:
//!
//! | end                                          | differs                                             | trace                                      |
//! |----------------------------------------------|-----------------------------------------------------|--------------------------------------------|
//! | itself cancelled, `propagate`, concurrent    | the others are cancelled, and nothing is raised     | `terminal_callbacks/handler_cancel_sync`   |
//! | fatal, `isolate`, sequential                 | the others are not begun; raised as itself          | `broadcaster/handler_fatal`                |
//! | fatal, `translate`                           | is translated as a cancellation is                  | research: section 1, fact 6                |
//! | store's refusal, `unwrap_single_else_group`, all awaited | is raised alone                         | `message_added_sync/store_refused_beside_failure` |

use super::context::CancelledBy;
use super::handler::{FailureKind, HandlerError, HandlerFailure};
use super::policy::{DetachBounds, StagePolicy};
use super::report::Outcome;
use super::value::{Completion, Conduct, Failure, HandlerCancellation};

/// The rules of one stage.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) stage: StagePolicy,
    pub(super) conduct: Conduct,
    pub(super) sequential: bool,
}

/// What an end does to the others of its stage, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Nothing,
    /// Those that run are cancelled, and the stage ends when they have.
    CancelOthers,
    /// Those that run are cancelled, those that do not are not begun, and the emission ends.
    End,
}

/// Where an end goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Into the report only.
    Reported,
    /// It is raised by the stage's error surface.
    Surfaced,
    /// It is raised as a translated cancellation.
    Translated,
    /// It is raised now, as itself.
    Raised,
}

/// What the end of one handler means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) outcome: Outcome,
    pub(super) effect: Effect,
    pub(super) keep: Keep,
}

impl Rules {
    /// The bounds of detached work.
    pub(super) fn detach_bounds(&self) -> DetachBounds {
        self.stage.detach.expect("a stage that detaches has bounds (F-20)")
    }

    /// What it means that a handler did not return; `by` says who cancelled it, if it was.
    pub(super) fn judge(&self, error: HandlerError, by: CancelledBy) -> Meaning {
        match error {
            HandlerError::Failed(failure) => self.failed(failure),
            HandlerError::Cancelled => self.cancelled(by),
        }
    }

    fn failed(&self, failure: HandlerFailure) -> Meaning {
        let fatal = self.conduct == Conduct::Recorded && failure.kind() == FailureKind::Fatal;
        if fatal && self.stage.handler_cancellation == HandlerCancellation::Translate {
            return Meaning { outcome: Outcome::Failed(failure), effect: self.on_failure(), keep: Keep::Translated };
        }
        if fatal && self.stage.failure == Failure::Isolate && self.sequential {
            return Meaning { outcome: Outcome::Failed(failure), effect: Effect::End, keep: Keep::Raised };
        }
        let effect = self.on_failure();
        match self.stage.failure {
            Failure::Isolate => Meaning { outcome: Outcome::Isolated(failure), effect, keep: Keep::Reported },
            Failure::Collect | Failure::Propagate => Meaning { outcome: Outcome::Failed(failure), effect, keep: Keep::Surfaced },
        }
    }

    fn cancelled(&self, by: CancelledBy) -> Meaning {
        let outcome = Outcome::Cancelled(by);
        match by {
            CancelledBy::Deadline => Meaning { outcome: Outcome::TimedOut, effect: Effect::Nothing, keep: Keep::Reported },
            CancelledBy::Sibling => Meaning { outcome, effect: Effect::Nothing, keep: Keep::Reported },
            CancelledBy::Emitter if !self.sequential => Meaning { outcome, effect: Effect::Nothing, keep: Keep::Reported },
            CancelledBy::Emitter => match self.stage.handler_cancellation {
                HandlerCancellation::Collect => Meaning { outcome, effect: Effect::Nothing, keep: self.collected() },
                HandlerCancellation::Propagate | HandlerCancellation::Translate => {
                    Meaning { outcome, effect: Effect::End, keep: Keep::Raised }
                }
            },
            CancelledBy::Itself => self.cancelled_itself(outcome),
        }
    }

    fn cancelled_itself(&self, outcome: Outcome) -> Meaning {
        match self.stage.handler_cancellation {
            HandlerCancellation::Propagate if self.conduct == Conduct::Recorded && !self.sequential => {
                Meaning { outcome, effect: Effect::End, keep: Keep::Reported }
            }
            HandlerCancellation::Propagate => Meaning { outcome, effect: Effect::End, keep: Keep::Raised },
            HandlerCancellation::Translate => Meaning { outcome, effect: self.on_failure(), keep: Keep::Translated },
            HandlerCancellation::Collect => {
                let cancels = self.stage.completion == Completion::CancelRemainingOnFailure;
                let effect = if cancels { Effect::CancelOthers } else { Effect::Nothing };
                Meaning { outcome, effect, keep: self.collected() }
            }
        }
    }

    fn on_failure(&self) -> Effect {
        match self.stage.completion {
            Completion::StopOnFailure => Effect::End,
            Completion::CancelRemainingOnFailure => Effect::CancelOthers,
            Completion::AwaitAll | Completion::DetachBounded => Effect::Nothing,
        }
    }

    /// A collected cancellation waits for the end of the drain and is raised then; where the others were cancelled for it, it has had its effect.
    fn collected(&self) -> Keep {
        match self.stage.completion {
            Completion::AwaitAll | Completion::StopOnFailure | Completion::DetachBounded => Keep::Surfaced,
            Completion::CancelRemainingOnFailure => Keep::Reported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::ErrorSurface;
    use super::*;

    const SEQUENTIAL: bool = true;
    const CONCURRENT: bool = false;

    fn rules(failure: Failure, completion: Completion, cancellation: HandlerCancellation) -> Rules {
        let stage = StagePolicy::new(failure, completion, ErrorSurface::ReturnReport, cancellation);
        Rules { stage, conduct: Conduct::Native, sequential: CONCURRENT }
    }

    fn recorded(rules: Rules, sequential: bool) -> Rules {
        Rules { conduct: Conduct::Recorded, sequential, ..rules }
    }

    fn failure() -> HandlerError {
        HandlerError::failed("e", "")
    }

    fn effect_and_keep(rules: Rules, error: HandlerError, by: CancelledBy) -> (&'static str, Effect, Keep) {
        let Meaning { outcome, effect, keep } = rules.judge(error, by);
        (outcome.as_str(), effect, keep)
    }

    /// The table of failures, row by row.
    #[test]
    fn a_failure_means_what_its_policy_says() {
        use {Completion::*, Effect::*, Failure::*, Keep::*};
        for (failing, completion, sequential, means) in [
            (Isolate, AwaitAll, CONCURRENT, ("isolated", Nothing, Reported)),
            (Isolate, DetachBounded, CONCURRENT, ("isolated", Nothing, Reported)),
            (Isolate, CancelRemainingOnFailure, CONCURRENT, ("isolated", CancelOthers, Reported)),
            (Collect, AwaitAll, SEQUENTIAL, ("failed", Nothing, Surfaced)),
            (Collect, CancelRemainingOnFailure, CONCURRENT, ("failed", CancelOthers, Surfaced)),
            (Propagate, StopOnFailure, SEQUENTIAL, ("failed", End, Surfaced)),
            (Propagate, CancelRemainingOnFailure, CONCURRENT, ("failed", CancelOthers, Surfaced)),
            (Propagate, AwaitAll, CONCURRENT, ("failed", Nothing, Surfaced)),
        ] {
            let rules = Rules { sequential, ..rules(failing, completion, HandlerCancellation::Propagate) };
            assert_eq!(effect_and_keep(rules, failure(), CancelledBy::Itself), means, "{failing} {completion}");
            // A native policy makes no difference for a fatal failure or a refusal of the store.
            for special in [HandlerError::fatal("x"), HandlerError::store_refused("s", "")] {
                assert_eq!(effect_and_keep(rules, special, CancelledBy::Itself), means, "{failing} {completion}");
            }
        }
    }

    /// The table of cancellations, row by row (F-12).
    #[test]
    fn a_cancellation_means_what_its_policy_says() {
        use CancelledBy::*;
        use {Completion::*, Effect::*, HandlerCancellation as Cancellation, Keep::*};
        for (by, cancellation, completion, sequential, means) in [
            (Deadline, Cancellation::Propagate, AwaitAll, SEQUENTIAL, ("timed_out", Nothing, Reported)),
            (Sibling, Cancellation::Propagate, AwaitAll, CONCURRENT, ("cancelled", Nothing, Reported)),
            (Emitter, Cancellation::Propagate, AwaitAll, CONCURRENT, ("cancelled", Nothing, Reported)),
            (Emitter, Cancellation::Collect, AwaitAll, SEQUENTIAL, ("cancelled", Nothing, Surfaced)),
            (Emitter, Cancellation::Propagate, AwaitAll, SEQUENTIAL, ("cancelled", End, Raised)),
            (Emitter, Cancellation::Translate, AwaitAll, SEQUENTIAL, ("cancelled", End, Raised)),
            (Itself, Cancellation::Propagate, AwaitAll, SEQUENTIAL, ("cancelled", End, Raised)),
            (Itself, Cancellation::Propagate, AwaitAll, CONCURRENT, ("cancelled", End, Raised)),
            (Itself, Cancellation::Translate, AwaitAll, CONCURRENT, ("cancelled", Nothing, Translated)),
            (Itself, Cancellation::Translate, CancelRemainingOnFailure, CONCURRENT, ("cancelled", CancelOthers, Translated)),
            (Itself, Cancellation::Translate, StopOnFailure, SEQUENTIAL, ("cancelled", End, Translated)),
            (Itself, Cancellation::Collect, AwaitAll, SEQUENTIAL, ("cancelled", Nothing, Surfaced)),
            (Itself, Cancellation::Collect, CancelRemainingOnFailure, CONCURRENT, ("cancelled", CancelOthers, Reported)),
        ] {
            let rules = Rules { sequential, ..rules(Failure::Collect, completion, cancellation) };
            assert_eq!(effect_and_keep(rules, HandlerError::Cancelled, by), means, "{by} {cancellation} {completion}");
        }
    }

    /// The rows in which the recorded conduct differs.
    #[test]
    fn the_recorded_conduct_differs_in_its_rows_only() {
        use {Completion::AwaitAll, Effect::*, Keep::*};
        let logged = rules(Failure::Isolate, AwaitAll, HandlerCancellation::Propagate);
        let (itself, fatal) = (CancelledBy::Itself, || HandlerError::fatal("x"));
        let cancelled = HandlerError::Cancelled;
        assert_eq!(effect_and_keep(recorded(logged, CONCURRENT), cancelled.clone(), itself), ("cancelled", End, Reported));
        assert_eq!(effect_and_keep(recorded(logged, SEQUENTIAL), cancelled, itself), ("cancelled", End, Raised));
        assert_eq!(effect_and_keep(recorded(logged, SEQUENTIAL), fatal(), itself), ("failed", End, Raised));
        assert_eq!(effect_and_keep(recorded(logged, CONCURRENT), fatal(), itself), ("isolated", Nothing, Reported));
        assert_eq!(effect_and_keep(recorded(logged, SEQUENTIAL), failure(), itself), ("isolated", Nothing, Reported));
        let translating = rules(Failure::Collect, AwaitAll, HandlerCancellation::Translate);
        assert_eq!(effect_and_keep(recorded(translating, CONCURRENT), fatal(), itself), ("failed", Nothing, Translated));
        let collecting = rules(Failure::Collect, AwaitAll, HandlerCancellation::Collect);
        assert_eq!(effect_and_keep(recorded(collecting, SEQUENTIAL), fatal(), itself), ("failed", Nothing, Surfaced));
    }
}
