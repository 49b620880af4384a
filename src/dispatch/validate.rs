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
//! | F-8  | late registrations that join the emission, but for recorded conduct |
//! | F-20 | `detach_bounded` without `concurrent`, `isolate` and bounds; bounds without it |

use std::time::Duration;

use super::error::{Place, PolicyError, Rule};
use super::policy::{Phase, StagePolicy};
use super::value::{
    Completion, Concurrency, Conduct, ErrorSurface, Failure, HandlerCancellation, HandlerClassification, LateRegistrations,
    ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};

/// A budget longer than this counts as infinite.
const LONGEST_BUDGET: Duration = Duration::from_secs(30 * 24 * 60 * 60);

type Row = (bool, &'static str, Rule, &'static str);

pub(super) fn validate(phases: &[Phase], conduct: Conduct) -> Result<(), PolicyError> {
    partition(phases)?;
    for (at, phase) in phases.iter().enumerate() {
        let place = Place::Phase { at, selector: phase.selector };
        refuse_first(place, &phase_rows(phase, conduct))?;
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

fn phase_rows(phase: &Phase, conduct: Conduct) -> [Row; 17] {
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
        (
            phase.late_registrations == LateRegistrations::ThisEmission && conduct == Conduct::Native,
            "late_registrations",
            Rule::F8,
            "a registration counts from the next emission on",
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
    !budget.subsec_nanos().is_multiple_of(1_000_000)
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

#[cfg(test)]
pub(super) mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::super::policy::{DetachBounds, DispatchPolicy};
    use super::super::profile;
    use super::super::value::{DeadlineDisposition, LateRegistrations, PredicateFailure};
    use super::*;

    type Values = (Concurrency, SyncHandlers, HandlerClassification, ReturnedValueClassifier, ReturnedAwaitable, SyncEntry);
    type Stages = (StagePolicy, Option<StagePolicy>, Option<(Duration, DeadlineDisposition)>, PredicateFailure);

    fn phase(values: Values, stages: Stages) -> Phase {
        let (concurrency, sync_handlers, handler_classification, returned_value_classifier, returned_awaitable, sync_entry) =
            values;
        let (invocation, returned_awaitables, deadline, predicate_failure) = stages;
        Phase {
            selector: Selector::All,
            concurrency,
            sync_handlers,
            handler_classification,
            returned_value_classifier,
            returned_awaitable,
            sync_entry,
            predicate_failure,
            filter_failure: None,
            late_registrations: LateRegistrations::NextEmission,
            invocation,
            returned_awaitables,
            deadline: deadline.map(|(budget, _)| budget),
            deadline_disposition: deadline.map(|(_, disposition)| disposition),
        }
    }

    fn stage(failure: Failure, completion: Completion, surface: ErrorSurface) -> StagePolicy {
        StagePolicy::new(failure, completion, surface, HandlerCancellation::Propagate)
    }

    /// The rows of the specification's table that are fan-out, as far as validation looks at them.
    pub(in crate::dispatch) fn named_profiles() -> [(&'static str, Phase); 7] {
        use {Completion as Done, ErrorSurface as Surface, HandlerClassification as By, ReturnedAwaitable as Awaitable};
        use {Concurrency::*, Failure::*, ReturnedValueClassifier::*, SyncEntry::*, SyncHandlers::*};
        let scheduler = stage(Collect, Done::AwaitAll, Surface::RaiseGroup);
        let logged = stage(Isolate, Done::AwaitAll, Surface::LogOnly);
        let message = StagePolicy::new(Collect, Done::AwaitAll, Surface::UnwrapSingleElseGroup, HandlerCancellation::Collect);
        let gather = StagePolicy { completion: Done::CancelRemainingOnFailure, ..message };
        let first = stage(Propagate, Done::StopOnFailure, Surface::RaiseFirst);
        let ten = Some((Duration::from_secs(10), DeadlineDisposition::SilentStop));
        let (await_in, propagate) = (Awaitable::AwaitInInvocation, PredicateFailure::Propagate);
        let (inspect, by_return) = (InspectAwaitable, By::ByReturnValue);
        let discard = (Sequential, Inline, By::ByDeclaration, NotInspected, Awaitable::DiscardUnawaited);
        [
            (
                "scheduler",
                phase(
                    (Concurrent, Inline, by_return, inspect, await_in, Unavailable),
                    (scheduler, None, None, PredicateFailure::CollectAsHandlerFailure),
                ),
            ),
            (
                "terminal_callback",
                phase((Concurrent, Offload, By::ByDeclaration, inspect, await_in, Unavailable), (logged, None, ten, propagate)),
            ),
            ("observation", profile::observation().phases()[0]),
            (
                "session_observer",
                phase(
                    (Sequential, Inline, by_return, inspect, Awaitable::GatherAfterInvocations, Unavailable),
                    (first, Some(gather), None, PredicateFailure::Isolate),
                ),
            ),
            (
                "broadcaster",
                phase((Sequential, Inline, by_return, CoroutineOnly, await_in, Unavailable), (logged, None, None, propagate)),
            ),
            (
                "message_added_sync",
                phase(
                    (discard.0, discard.1, discard.2, discard.3, discard.4, RejectDeclaredAsyncBeforeOwnerEffect),
                    (message, None, None, propagate),
                ),
            ),
            (
                "message_added_async",
                phase((discard.0, discard.1, discard.2, discard.3, discard.4, Unavailable), (message, None, None, propagate)),
            ),
        ]
    }

    fn profile_named(name: &str) -> Phase {
        named_profiles().into_iter().find(|(profile, _)| *profile == name).expect("a row of the table").1
    }

    #[track_caller]
    fn refused(phases: &[Phase], rule: Rule, at: Option<usize>, field: &str) {
        let error = DispatchPolicy::new(phases).expect_err("refused");
        assert_eq!((error.rule(), error.phase(), error.field()), (rule, at, field), "{error}");
    }

    #[track_caller]
    fn refused_with(rule: Rule, field: &str, of: &str, change: impl FnOnce(&mut Phase)) {
        let mut changed = profile_named(of);
        change(&mut changed);
        refused(&[changed], rule, Some(0), field);
    }

    /// F-7, last sentence: a combination that a named profile needs is never refused.
    #[test]
    fn every_named_profile_is_accepted() {
        for (name, phase) in named_profiles() {
            assert!(DispatchPolicy::new([phase]).is_ok(), "{name}: {:?}", DispatchPolicy::new([phase]));
        }
        let sync = Phase { selector: Selector::DeclaredSync, ..profile_named("observation") };
        let declared_async = Phase { selector: Selector::DeclaredAsync, ..sync };
        assert!(DispatchPolicy::new([sync, declared_async]).is_ok());
        assert!(DispatchPolicy::new([declared_async, sync]).is_ok());
    }

    /// F-1: selectors partition the registrations.
    #[test]
    fn f1_empty_overlapping_and_incomplete_selectors_are_refused() {
        let all = profile_named("observation");
        let sync = Phase { selector: Selector::DeclaredSync, ..all };
        refused(&[], Rule::F1, None, "selector");
        refused(&[sync], Rule::F1, None, "selector");
        refused(&[Phase { selector: Selector::DeclaredAsync, ..all }], Rule::F1, None, "selector");
        refused(&[all, all], Rule::F1, Some(1), "selector");
        refused(&[sync, sync], Rule::F1, Some(1), "selector");
        refused(&[sync, Phase { selector: Selector::DeclaredAsync, ..all }, all], Rule::F1, Some(1), "selector");
    }

    /// F-2: what a group and an unwrapped failure need.
    #[test]
    fn f2_a_group_needs_collected_failures() {
        refused_with(Rule::F2, "invocation.error_surface", "scheduler", |phase| phase.invocation.failure = Failure::Isolate);
        refused_with(Rule::F2, "invocation.error_surface", "scheduler", |phase| {
            phase.invocation.completion = Completion::CancelRemainingOnFailure;
        });
        refused_with(Rule::F2, "returned_awaitables.error_surface", "session_observer", |phase| {
            phase.returned_awaitables.as_mut().unwrap().failure = Failure::Propagate;
        });
        refused_with(Rule::F2, "returned_awaitables.error_surface", "session_observer", |phase| {
            phase.returned_awaitables.as_mut().unwrap().completion = Completion::StopOnFailure;
        });
    }

    /// F-3: `log_only` needs `isolate`.
    #[test]
    fn f3_only_isolated_failures_are_logged_only() {
        refused_with(Rule::F3, "invocation.error_surface", "broadcaster", |phase| phase.invocation.failure = Failure::Collect);
    }

    /// F-4: what gathering needs, and that nothing else has its stage.
    #[test]
    fn f4_gathering_has_a_stage_of_its_own() {
        let by_declaration = HandlerClassification::ByDeclaration;
        refused_with(Rule::F4, "handler_classification", "session_observer", |phase| {
            phase.handler_classification = by_declaration
        });
        refused_with(Rule::F4, "sync_entry", "session_observer", |phase| phase.sync_entry = SyncEntry::Allow);
        refused_with(Rule::F4, "returned_awaitables", "session_observer", |phase| phase.returned_awaitables = None);
        for of in ["scheduler", "message_added_sync", "observation"] {
            refused_with(Rule::F4, "returned_awaitables", of, |phase| phase.returned_awaitables = Some(phase.invocation));
        }
    }

    /// F-5: classification by value looks at the value; declared selectors go by declaration.
    #[test]
    fn f5_classification_has_what_it_needs() {
        let not_inspected = ReturnedValueClassifier::NotInspected;
        refused_with(Rule::F5, "returned_value_classifier", "scheduler", |phase| phase.returned_value_classifier = not_inspected);
        let sync = Phase { selector: Selector::DeclaredSync, ..profile_named("scheduler") };
        refused(&[sync, Phase { selector: Selector::DeclaredAsync, ..sync }], Rule::F5, Some(0), "handler_classification");
    }

    /// F-6: a deadline has a disposition, a disposition a deadline, and the budget is finite and positive.
    #[test]
    fn f6_a_deadline_is_finite_positive_and_disposed_of() {
        refused_with(Rule::F6, "deadline_disposition", "observation", |phase| phase.deadline_disposition = None);
        refused_with(Rule::F6, "deadline_ms", "observation", |phase| phase.deadline = None);
        for budget in [Duration::ZERO, Duration::MAX, LONGEST_BUDGET + Duration::from_millis(1), Duration::from_micros(1500)] {
            refused_with(Rule::F6, "deadline_ms", "observation", |phase| phase.deadline = Some(budget));
        }
    }

    /// F-7: pairs that contradict each other.
    #[test]
    fn f7_contradictions_are_refused() {
        let propagate =
            |phase: &mut Phase| phase.invocation = stage(Failure::Propagate, Completion::AwaitAll, ErrorSurface::ReturnReport);
        refused_with(Rule::F7, "invocation.completion", "broadcaster", propagate);
        refused_with(Rule::F7, "invocation.completion", "session_observer", |phase| phase.concurrency = Concurrency::Concurrent);
        refused_with(Rule::F7, "invocation.completion", "broadcaster", |phase| {
            phase.invocation.completion = Completion::CancelRemainingOnFailure;
        });
        refused_with(Rule::F7, "invocation.error_surface", "broadcaster", |phase| {
            phase.invocation.error_surface = ErrorSurface::RaiseFirst;
        });
        for failure in [Failure::Collect, Failure::Isolate] {
            refused_with(Rule::F7, "invocation.failure", "session_observer", |phase| {
                phase.invocation = stage(failure, Completion::StopOnFailure, ErrorSurface::ReturnReport);
            });
        }
        let synchronous = |change: fn(&mut Phase)| {
            move |phase: &mut Phase| {
                phase.sync_entry = SyncEntry::Allow;
                change(phase);
            }
        };
        refused_with(Rule::F7, "deadline_ms", "observation", synchronous(|_| ()));
        refused_with(Rule::F7, "returned_awaitable", "broadcaster", synchronous(|_| ()));
        refused_with(Rule::F7, "sync_handlers", "terminal_callback", synchronous(|_| ()));
        refused_with(Rule::F7, "returned_awaitable", "message_added_sync", synchronous(|_| ()));
        refused_with(Rule::F7, "returned_awaitable", "observation", |phase| {
            phase.returned_awaitable = ReturnedAwaitable::DiscardUnawaited;
        });
    }

    /// F-8: only the recorded conduct lets a registration join the emission under way.
    #[test]
    fn f8_a_late_registration_joins_recorded_emissions_only() {
        let joins = |phase: &mut Phase| phase.late_registrations = LateRegistrations::ThisEmission;
        refused_with(Rule::F8, "late_registrations", "session_observer", joins);
        let mut phase = profile_named("session_observer");
        joins(&mut phase);
        assert!(DispatchPolicy::of([phase].into(), Conduct::Recorded).is_ok());
    }

    /// F-20: detached work is concurrent, isolated and bounded, and nothing else has its bounds.
    #[test]
    fn f20_detached_work_is_bounded() {
        let bounds = DetachBounds { max_running: NonZeroU32::MIN, max_age: Duration::from_secs(1) };
        let detached = |phase: &mut Phase| {
            phase.invocation.completion = Completion::DetachBounded;
            phase.invocation.detach = Some(bounds);
        };
        let mut fine = profile_named("observation");
        detached(&mut fine);
        assert!(DispatchPolicy::new([fine]).is_ok());
        let but = |change: fn(&mut Phase)| {
            move |phase: &mut Phase| {
                detached(phase);
                change(phase);
            }
        };
        refused_with(Rule::F20, "invocation.completion", "observation", but(|phase| phase.concurrency = Concurrency::Sequential));
        refused_with(Rule::F20, "invocation.failure", "observation", but(|phase| phase.invocation.failure = Failure::Collect));
        refused_with(Rule::F20, "invocation.detach", "observation", but(|phase| phase.invocation.detach = None));
        refused_with(
            Rule::F20,
            "invocation.detach",
            "observation",
            but(|phase| phase.invocation.completion = Completion::AwaitAll),
        );
        refused_with(
            Rule::F20,
            "invocation.detach",
            "observation",
            but(|phase| phase.invocation.detach.as_mut().unwrap().max_age = Duration::ZERO),
        );
    }

    pub(in crate::dispatch) fn one<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
        prop::sample::select(values)
    }

    fn any_stage() -> impl Strategy<Value = StagePolicy> {
        let detach = prop_oneof![
            4 => Just(None),
            1 => (1u32..9, 0u64..9).prop_map(|(running, age)| Some(DetachBounds {
                max_running: NonZeroU32::new(running).unwrap(),
                max_age: Duration::from_millis(age),
            })),
        ];
        (one(Failure::ALL), one(Completion::ALL), one(ErrorSurface::ALL), one(HandlerCancellation::ALL), detach).prop_map(
            |(failure, completion, error_surface, handler_cancellation, detach)| StagePolicy {
                failure,
                completion,
                error_surface,
                handler_cancellation,
                detach,
            },
        )
    }

    pub(in crate::dispatch) fn any_phase() -> impl Strategy<Value = Phase> {
        let values = (
            one(Concurrency::ALL),
            one(SyncHandlers::ALL),
            one(HandlerClassification::ALL),
            one(ReturnedValueClassifier::ALL),
            one(ReturnedAwaitable::ALL),
            one(SyncEntry::ALL),
        );
        let budget = prop_oneof![1 => Just(Duration::ZERO), 4 => (1u64..1_000_000).prop_map(Duration::from_millis)];
        let deadline = prop::option::of((budget, one(DeadlineDisposition::ALL)));
        let stages = (any_stage(), prop::option::of(any_stage()), deadline, one(PredicateFailure::ALL));
        let filter_failure = prop::option::weighted(0.2, one(PredicateFailure::ALL));
        let random = (one(Selector::ALL), values, stages, filter_failure)
            .prop_map(|(selector, values, stages, filter_failure)| Phase { selector, filter_failure, ..phase(values, stages) });
        prop_oneof![3 => random, 1 => prop::sample::select(named_profiles().map(|(_, phase)| phase).to_vec())]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        /// F-1 to F-7, F-20: any list of phases is either a policy, which then is itself after its stored form, or is refused by a rule,
        /// a field and, unless the list as a whole is refused, a phase that exists; reading it back is refused in the same words.
        #[test]
        fn any_list_of_phases_is_a_policy_or_is_refused_by_name(phases in prop::collection::vec(any_phase(), 0..3)) {
            let stored = serde_json::json!({"phases": &phases});
            let read = serde_json::from_value::<DispatchPolicy>(stored);
            match DispatchPolicy::new(phases.clone()) {
                Ok(policy) => {
                    let read = read.unwrap();
                    prop_assert_eq!(read.digest(), policy.digest());
                    prop_assert_eq!(read, policy);
                }
                Err(error) => {
                    prop_assert!(error.phase().is_none_or(|at| at < phases.len()));
                    prop_assert!(Rule::ALL.contains(&error.rule()) && !error.field().is_empty());
                    prop_assert_eq!(read.unwrap_err().to_string(), error.to_string());
                    prop_assert!(error.to_string().contains(error.rule().as_str()));
                }
            }
        }

        /// Policies are data: any other value is another digest.
        #[test]
        fn different_policies_have_different_digests(one in any_phase(), two in any_phase()) {
            if let (Ok(one), Ok(two)) = (DispatchPolicy::new([one]), DispatchPolicy::new([two])) {
                prop_assert_eq!(one == two, one.digest() == two.digest());
                prop_assert_eq!(one == two, one.describe() == two.describe());
            }
        }
    }
}
