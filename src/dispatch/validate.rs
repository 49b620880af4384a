//! Which combinations make no policy. Each rule is a row; the first broken row, phase by phase, is the answer.
//!
//! | rule | refused |
//! |------|---------|
//! | F-1  | selectors that are not exactly `all`, or exactly `declared_sync` and `declared_async` |
//! | F-2  | `raise_group`, `unwrap_single_else_group` without `collect`, or with a completion that they cannot surface |
//! | F-3  | `log_only` without `isolate` |
//! | F-4  | `gather_after_invocations` without `by_return_value`, an async entry and its own stage; that stage without it |
//! | F-5  | `by_return_value` with `not_inspected`; declared selectors without `by_declaration` |
//! | F-6  | a deadline without a disposition, a disposition without a deadline, a budget that is not finite and positive |
//! | F-7  | pairs that contradict each other |
//! | F-20 | `detach_bounded` without `concurrent`, `isolate` and bounds; bounds without it |

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::policy::{Phase, StagePolicy};
use super::value::{
    Completion, Concurrency, ErrorSurface, Failure, HandlerCancellation, HandlerClassification, ReturnedAwaitable,
    ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};

/// Why a list of phases is no policy: the phase, the field and the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}.{field} breaks {rule}: {remedy}")]
pub struct PolicyError {
    place: Place,
    field: &'static str,
    rule: Rule,
    remedy: &'static str,
}

impl PolicyError {
    /// The position of the phase in its list, or `None` when the list as a whole is refused.
    #[must_use]
    pub const fn phase(&self) -> Option<usize> {
        match self.place {
            Place::Policy => None,
            Place::Phase { at, .. } => Some(at),
        }
    }

    /// The field, by its serialised name.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.rule
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Policy,
    Phase { at: usize, selector: Selector },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("policy"),
            Self::Phase { at, selector } => write!(f, "phase {at} ({})", selector.as_str()),
        }
    }
}

/// A rule of policy validation, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Selectors partition the registrations.
    F1,
    /// What a group or an unwrapped failure needs.
    F2,
    /// What logging only needs.
    F3,
    /// What gathering needs.
    F4,
    /// What classification needs.
    F5,
    /// What a deadline needs.
    F6,
    /// Pairs that contradict each other.
    F7,
    /// What detached work needs.
    F20,
}

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Self] = &[Self::F1, Self::F2, Self::F3, Self::F4, Self::F5, Self::F6, Self::F7, Self::F20];

    /// The rule's number in the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::F1 => "F-1",
            Self::F2 => "F-2",
            Self::F3 => "F-3",
            Self::F4 => "F-4",
            Self::F5 => "F-5",
            Self::F6 => "F-6",
            Self::F7 => "F-7",
            Self::F20 => "F-20",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A budget longer than this counts as infinite.
const LONGEST_BUDGET: Duration = Duration::from_secs(30 * 24 * 60 * 60);

type Row = (bool, &'static str, Rule, &'static str);

pub(super) fn validate(phases: &[Phase]) -> Result<(), PolicyError> {
    partition(phases)?;
    for (at, phase) in phases.iter().enumerate() {
        let place = Place::Phase { at, selector: phase.selector };
        refuse_first(place, &phase_rows(phase))?;
        refuse_first(place, &stage_rows(phase, &phase.invocation, Stage::Invocation))?;
        if let Some(stage) = &phase.returned_awaitables {
            refuse_first(place, &stage_rows(phase, stage, Stage::ReturnedAwaitables))?;
        }
    }
    Ok(())
}

fn refuse_first(place: Place, rows: &[Row]) -> Result<(), PolicyError> {
    match rows.iter().find(|(broken, ..)| *broken) {
        Some(&(_, field, rule, remedy)) => Err(PolicyError { place, field, rule, remedy }),
        None => Ok(()),
    }
}

fn partition(phases: &[Phase]) -> Result<(), PolicyError> {
    let (at, remedy) = match phases.iter().map(|phase| phase.selector).collect::<Vec<_>>()[..] {
        [Selector::All]
        | [Selector::DeclaredSync, Selector::DeclaredAsync]
        | [Selector::DeclaredAsync, Selector::DeclaredSync] => return Ok(()),
        [] => (None, "give one `all` phase, or one `declared_sync` and one `declared_async` phase"),
        [Selector::DeclaredSync] => (None, "add a `declared_async` phase: its registrations are in no phase"),
        [Selector::DeclaredAsync] => (None, "add a `declared_sync` phase: its registrations are in no phase"),
        _ => (Some(1), "some registrations are in two phases: give one `all` phase, or one phase for each declaration"),
    };
    let place = at.map_or(Place::Policy, |at| Place::Phase { at, selector: phases[at].selector });
    Err(PolicyError { place, field: "selector", rule: Rule::F1, remedy })
}

fn phase_rows(phase: &Phase) -> [Row; 16] {
    let gathers = phase.returned_awaitable == ReturnedAwaitable::GatherAfterInvocations;
    let by_return = phase.handler_classification == HandlerClassification::ByReturnValue;
    let sync_entry = phase.sync_entry != SyncEntry::Unavailable;
    let declared = phase.selector != Selector::All;
    [
        (gathers && !by_return, "handler_classification", Rule::F4, "gathering needs `by_return_value`"),
        (gathers && sync_entry, "sync_entry", Rule::F4, "gathering needs an async entry: `unavailable`"),
        (gathers && phase.returned_awaitables.is_none(), "returned_awaitables", Rule::F4, "gathering needs a stage of its own"),
        (
            !gathers && phase.returned_awaitables.is_some(),
            "returned_awaitables",
            Rule::F4,
            "only gathering has this stage: remove it",
        ),
        (
            by_return && phase.returned_value_classifier == ReturnedValueClassifier::NotInspected,
            "returned_value_classifier",
            Rule::F5,
            "`by_return_value` has to look at the value",
        ),
        (declared && by_return, "handler_classification", Rule::F5, "a declared selector needs `by_declaration`"),
        (
            phase.deadline.is_some() && phase.deadline_disposition.is_none(),
            "deadline_disposition",
            Rule::F6,
            "say what the deadline's end means",
        ),
        (
            phase.deadline.is_none() && phase.deadline_disposition.is_some(),
            "deadline_ms",
            Rule::F6,
            "there is no deadline to dispose of",
        ),
        (phase.deadline.is_some_and(|budget| budget.is_zero()), "deadline_ms", Rule::F6, "a budget is positive"),
        (
            phase.deadline.is_some_and(|budget| budget > LONGEST_BUDGET),
            "deadline_ms",
            Rule::F6,
            "a budget is at most thirty days",
        ),
        (phase.deadline.is_some_and(is_cut), "deadline_ms", Rule::F6, "a budget is whole milliseconds"),
        (sync_entry && phase.sync_handlers == SyncHandlers::Offload, "sync_handlers", Rule::F7, "a sync entry cannot offload"),
        (sync_entry && phase.deadline.is_some(), "deadline_ms", Rule::F7, "a sync entry has no deadline"),
        (
            sync_entry && by_return && phase.returned_awaitable == ReturnedAwaitable::AwaitInInvocation,
            "returned_awaitable",
            Rule::F7,
            "a sync entry cannot await what a handler returned",
        ),
        (
            phase.returned_awaitable == ReturnedAwaitable::DiscardUnawaited && !is_message_profile(phase),
            "returned_awaitable",
            Rule::F7,
            "discarding is for the two message profiles only",
        ),
        (
            phase.invocation.completion == Completion::CancelRemainingOnFailure && phase.concurrency == Concurrency::Sequential,
            "invocation.completion",
            Rule::F7,
            "nothing else runs in a sequential stage: use `stop_on_failure`",
        ),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Invocation,
    ReturnedAwaitables,
}

fn stage_rows(phase: &Phase, stage: &StagePolicy, which: Stage) -> [Row; 14] {
    let field = |invocation: &'static str, gathered: &'static str| match which {
        Stage::Invocation => invocation,
        Stage::ReturnedAwaitables => gathered,
    };
    let surface = field("invocation.error_surface", "returned_awaitables.error_surface");
    let completion = field("invocation.completion", "returned_awaitables.completion");
    let failure = field("invocation.failure", "returned_awaitables.failure");
    let detach = field("invocation.detach", "returned_awaitables.detach");
    let groups = matches!(stage.error_surface, ErrorSurface::RaiseGroup | ErrorSurface::UnwrapSingleElseGroup);
    let detaches = stage.completion == Completion::DetachBounded;
    // Returned awaitables are gathered concurrently, whatever the invocations do.
    let sequential = which == Stage::Invocation && phase.concurrency == Concurrency::Sequential;
    let stops = stage.completion == Completion::StopOnFailure;
    [
        (groups && stage.failure != Failure::Collect, surface, Rule::F2, "a group needs `collect`"),
        (
            stage.error_surface == ErrorSurface::RaiseGroup && stage.completion != Completion::AwaitAll,
            surface,
            Rule::F2,
            "`raise_group` needs `await_all`",
        ),
        (
            groups && !matches!(stage.completion, Completion::AwaitAll | Completion::CancelRemainingOnFailure),
            surface,
            Rule::F2,
            "a group needs `await_all` or `cancel_remaining_on_failure`",
        ),
        (
            stage.error_surface == ErrorSurface::LogOnly && stage.failure != Failure::Isolate,
            surface,
            Rule::F3,
            "`log_only` needs `isolate`",
        ),
        (
            sequential && stage.failure == Failure::Propagate && stage.completion == Completion::AwaitAll,
            completion,
            Rule::F7,
            "a propagated failure ends a sequential stage: use `stop_on_failure`",
        ),
        (stops && !sequential, completion, Rule::F7, "others run already: use `cancel_remaining_on_failure`"),
        (
            stage.error_surface == ErrorSurface::RaiseFirst && stage.failure == Failure::Isolate,
            surface,
            Rule::F7,
            "an isolated failure is not raised",
        ),
        (stops && stage.failure != Failure::Propagate, failure, Rule::F7, "`stop_on_failure` needs `propagate`"),
        (detaches && phase.concurrency != Concurrency::Concurrent, completion, Rule::F20, "detached work needs `concurrent`"),
        (detaches && stage.failure != Failure::Isolate, failure, Rule::F20, "detached work needs `isolate`"),
        (detaches && stage.detach.is_none(), detach, Rule::F20, "detached work needs bounds"),
        (!detaches && stage.detach.is_some(), detach, Rule::F20, "only `detach_bounded` has bounds: remove them"),
        (
            stage.detach.is_some_and(|bounds| bounds.max_age.is_zero() || bounds.max_age > LONGEST_BUDGET),
            detach,
            Rule::F20,
            "`max_age_ms` is positive and at most thirty days",
        ),
        (stage.detach.is_some_and(|bounds| is_cut(bounds.max_age)), detach, Rule::F20, "`max_age_ms` is whole milliseconds"),
    ]
}

fn is_cut(budget: Duration) -> bool {
    budget.subsec_nanos() % 1_000_000 != 0
}

/// Whether these are the values of one of the two message profiles, which have no predicates.
fn is_message_profile(phase: &Phase) -> bool {
    let collected = StagePolicy::new(
        Failure::Collect,
        Completion::AwaitAll,
        ErrorSurface::UnwrapSingleElseGroup,
        HandlerCancellation::Collect,
    );
    phase.selector == Selector::All
        && phase.concurrency == Concurrency::Sequential
        && phase.sync_handlers == SyncHandlers::Inline
        && phase.handler_classification == HandlerClassification::ByDeclaration
        && phase.returned_value_classifier == ReturnedValueClassifier::NotInspected
        && phase.sync_entry != SyncEntry::Allow
        && phase.invocation == collected
        && phase.deadline.is_none()
}
