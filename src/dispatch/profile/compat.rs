//! The dispatch profiles of the original system, for programs that come from it. A program that is new has no use for them.
//!
//! Each is a row of the specification's table. Where the recorded traces of the original differ from that table the trace wins, and the profile says so; what
//! such a profile does beyond its values (cancellation by token, fatal failures, the store's refusals) is its conduct,
//! [`Conduct::Recorded`](super::super::Conduct).

use std::time::Duration;

use super::super::error::PolicyError;
use super::super::policy::{DispatchPolicy, Phase, StagePolicy};
use super::super::value::{
    Completion, Concurrency, Conduct, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};
use super::{TERMINAL_BUDGET, terminal};

/// The scheduler's signal bus: all handlers run, and their failures are raised as a group, also when it is one.
///
/// A handler's cancellation wins over ordinary failures and surfaces as
/// [`HandlerCancelled`](super::super::RaisedError::HandlerCancelled), whose cause is the group of these, or else itself. So does a fatal failure, which the
/// table does not say. A handler whose predicate fails is not called, and that failure is its own.
#[must_use]
pub fn scheduler() -> DispatchPolicy {
    recorded(Phase {
        concurrency: Concurrency::Concurrent,
        handler_classification: HandlerClassification::ByReturnValue,
        returned_value_classifier: ReturnedValueClassifier::InspectAwaitable,
        returned_awaitable: ReturnedAwaitable::AwaitInInvocation,
        predicate_failure: PredicateFailure::CollectAsHandlerFailure,
        ..sequence(StagePolicy::new(
            Failure::Collect,
            Completion::AwaitAll,
            ErrorSurface::RaiseGroup,
            HandlerCancellation::Translate,
        ))
    })
}

/// The registry of terminal callbacks: all are begun, those that are declared sync on threads, none raises to the emitter, and the end of the shared budget
/// of [`TERMINAL_BUDGET`] is not even logged.
///
/// The table lets a handler's cancellation propagate. In the traces it cancels the others, silently, and the emission returns
/// (`terminal_callbacks/handler_cancel_sync`). [`terminal_registry`](super::terminal_registry) is the profile without this.
#[must_use]
pub fn terminal_callback() -> DispatchPolicy {
    recorded(terminal(TERMINAL_BUDGET, DeadlineDisposition::SilentStop, HandlerCancellation::Propagate))
}

/// [`terminal_callback`] with another budget.
///
/// # Errors
/// [`PolicyError`] of rule F-6: the budget is not of whole milliseconds, from one to thirty days.
pub fn terminal_callback_within(budget: Duration) -> Result<DispatchPolicy, PolicyError> {
    let phase = terminal(budget, DeadlineDisposition::SilentStop, HandlerCancellation::Propagate);
    DispatchPolicy::of([phase].into(), Conduct::Recorded)
}

/// The session's observer: handlers are called one after another and their awaitables gathered when all were called.
///
/// A failing call is raised at once, and awaitables that were returned already are dropped unawaited. What fails while it is gathered cancels the others; one
/// failure is raised as itself, several as a group, and either has the group as its cause. Gathered cancellations stand in the results.
///
/// Three things are as in the traces and not as in the table: a failing predicate is isolated with one warning, while a failing filter
/// ([`Subscriber::filtered_by`](super::super::Subscriber::filtered_by)) propagates (`session_observer/predicate_raise`, `custom_filter_raises_first`); a
/// registration made while handlers are called is called in the same emission, while one that was removed is called still
/// (`session_observer/register_during_emit`, `unregister_during_emit`); and predicates are asked at their turn, which follows from that.
#[must_use]
pub fn session_observer() -> DispatchPolicy {
    recorded(Phase {
        handler_classification: HandlerClassification::ByReturnValue,
        returned_value_classifier: ReturnedValueClassifier::InspectAwaitable,
        returned_awaitable: ReturnedAwaitable::GatherAfterInvocations,
        predicate_failure: PredicateFailure::Isolate,
        filter_failure: Some(PredicateFailure::Propagate),
        late_registrations: LateRegistrations::ThisEmission,
        returned_awaitables: Some(StagePolicy::new(
            Failure::Collect,
            Completion::CancelRemainingOnFailure,
            ErrorSurface::UnwrapSingleElseGroup,
            HandlerCancellation::Collect,
        )),
        ..sequence(StagePolicy::new(
            Failure::Propagate,
            Completion::StopOnFailure,
            ErrorSurface::RaiseFirst,
            HandlerCancellation::Propagate,
        ))
    })
}

/// The service's broadcaster: one after another, native async bodies are awaited and any other awaitable is dropped, failures are logged.
///
/// A fatal failure ends the broadcast and is raised, which the table does not say (`broadcaster/handler_fatal`).
#[must_use]
pub fn broadcaster() -> DispatchPolicy {
    recorded(Phase {
        handler_classification: HandlerClassification::ByReturnValue,
        returned_value_classifier: ReturnedValueClassifier::CoroutineOnly,
        returned_awaitable: ReturnedAwaitable::AwaitInInvocation,
        ..sequence(StagePolicy::new(
            Failure::Isolate,
            Completion::AwaitAll,
            ErrorSurface::LogOnly,
            HandlerCancellation::Propagate,
        ))
    })
}

/// The message manager's callbacks from its synchronous side: declared async ones are refused before a message is added; then all run, and one failure is
/// raised as itself, several as a group.
///
/// A refusal of the store is raised alone, and what else failed becomes a warning, which the table does not say
/// (`message_added_sync/store_refused_beside_failure`). An awaitable that a sync callback returns is dropped unawaited:
/// [`Dispatcher::discarding`](super::super::Dispatcher::discarding) lists these callbacks.
#[must_use]
pub fn message_added_sync() -> DispatchPolicy {
    recorded(message_added(SyncEntry::RejectDeclaredAsyncBeforeOwnerEffect))
}

/// As [`message_added_sync`], from the asynchronous side: nothing is refused, and declared async callbacks are awaited in their turn.
#[must_use]
pub fn message_added_async() -> DispatchPolicy {
    recorded(message_added(SyncEntry::Unavailable))
}

fn message_added(sync_entry: SyncEntry) -> Phase {
    Phase {
        returned_awaitable: ReturnedAwaitable::DiscardUnawaited,
        sync_entry,
        ..sequence(StagePolicy::new(
            Failure::Collect,
            Completion::AwaitAll,
            ErrorSurface::UnwrapSingleElseGroup,
            HandlerCancellation::Collect,
        ))
    }
}

/// What most of these share: one inline sequence without a deadline.
fn sequence(invocation: StagePolicy) -> Phase {
    Phase {
        selector: Selector::All,
        concurrency: Concurrency::Sequential,
        sync_handlers: SyncHandlers::Inline,
        handler_classification: HandlerClassification::ByDeclaration,
        returned_value_classifier: ReturnedValueClassifier::NotInspected,
        returned_awaitable: ReturnedAwaitable::Reject,
        sync_entry: SyncEntry::Unavailable,
        // Of those without predicates nothing can fail.
        predicate_failure: PredicateFailure::Propagate,
        filter_failure: None,
        late_registrations: LateRegistrations::NextEmission,
        invocation,
        returned_awaitables: None,
        deadline: None,
        deadline_disposition: None,
    }
}

fn recorded(phase: Phase) -> DispatchPolicy {
    DispatchPolicy::of([phase].into(), Conduct::Recorded).expect("the profile's values keep every rule: pinned by a test")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn pinned(policy: &DispatchPolicy, row: &str, phase: &Value) {
        assert_eq!(policy.describe(), format!("{row} | as recorded"));
        assert_eq!(serde_json::to_value(policy).unwrap(), json!({"phases": [phase], "conduct": "recorded"}));
        let read: DispatchPolicy = serde_json::from_value(serde_json::to_value(policy).unwrap()).unwrap();
        assert_eq!((&read, read.digest()), (policy, policy.digest()));
    }

    fn stage(failure: &str, completion: &str, surface: &str, cancellation: &str) -> Value {
        json!({"failure": failure, "completion": completion, "error_surface": surface, "handler_cancellation": cancellation})
    }

    /// Named profiles, `scheduler`: this test fails when any one value changes.
    #[test]
    fn the_scheduler_profile_is_pinned() {
        pinned(
            &scheduler(),
            "all, concurrent, inline | by return value / inspect awaitable / await in invocation | collect, await all, raise group, translate | - | \
             unavailable | - | collect as handler failure",
            &json!({
                "selector": "all", "concurrency": "concurrent", "sync_handlers": "inline",
                "handler_classification": "by_return_value", "returned_value_classifier": "inspect_awaitable",
                "returned_awaitable": "await_in_invocation", "sync_entry": "unavailable",
                "predicate_failure": "collect_as_handler_failure",
                "invocation": stage("collect", "await_all", "raise_group", "translate"),
            }),
        );
    }

    /// Named profiles, `terminal_callback`: this test fails when any one value changes.
    #[test]
    fn the_terminal_callback_profile_is_pinned() {
        pinned(
            &terminal_callback(),
            "all, concurrent, offload | by declaration / inspect awaitable / await in invocation | isolate, await all, log only, propagate | - | \
             unavailable | 10s, silent stop | propagate",
            &json!({
                "selector": "all", "concurrency": "concurrent", "sync_handlers": "offload",
                "handler_classification": "by_declaration", "returned_value_classifier": "inspect_awaitable",
                "returned_awaitable": "await_in_invocation", "sync_entry": "unavailable", "predicate_failure": "propagate",
                "invocation": stage("isolate", "await_all", "log_only", "propagate"),
                "deadline_ms": 10_000, "deadline_disposition": "silent_stop",
            }),
        );
        let briefly = terminal_callback_within(Duration::from_millis(120)).unwrap();
        assert_eq!(briefly.phases()[0], Phase { deadline: Some(Duration::from_millis(120)), ..terminal_callback().phases()[0] });
        assert!(terminal_callback_within(Duration::ZERO).is_err());
    }

    /// Named profiles, `session_observer`: this test fails when any one value changes.
    #[test]
    fn the_session_observer_profile_is_pinned() {
        pinned(
            &session_observer(),
            "all, sequential, inline | by return value / inspect awaitable / gather after invocations | \
             propagate, stop on failure, raise first, propagate | \
             collect, cancel remaining on failure, unwrap single else group, collect | unavailable | - | \
             isolate, filters propagate, late registrations join",
            &json!({
                "selector": "all", "concurrency": "sequential", "sync_handlers": "inline",
                "handler_classification": "by_return_value", "returned_value_classifier": "inspect_awaitable",
                "returned_awaitable": "gather_after_invocations", "sync_entry": "unavailable",
                "predicate_failure": "isolate", "filter_failure": "propagate", "late_registrations": "this_emission",
                "invocation": stage("propagate", "stop_on_failure", "raise_first", "propagate"),
                "returned_awaitables": stage("collect", "cancel_remaining_on_failure", "unwrap_single_else_group", "collect"),
            }),
        );
    }

    /// Named profiles, `broadcaster`: this test fails when any one value changes.
    #[test]
    fn the_broadcaster_profile_is_pinned() {
        pinned(
            &broadcaster(),
            "all, sequential, inline | by return value / asyncio coroutine only / await in invocation | \
             isolate, await all, log only, propagate | - | unavailable | - | propagate",
            &json!({
                "selector": "all", "concurrency": "sequential", "sync_handlers": "inline",
                "handler_classification": "by_return_value", "returned_value_classifier": "asyncio_coroutine_only",
                "returned_awaitable": "await_in_invocation", "sync_entry": "unavailable", "predicate_failure": "propagate",
                "invocation": stage("isolate", "await_all", "log_only", "propagate"),
            }),
        );
    }

    /// Named profiles, `message_added_sync` and `message_added_async`: this test fails when any one value changes.
    #[test]
    fn the_message_profiles_are_pinned() {
        for (policy, entry, words) in [
            (message_added_sync(), "reject_declared_async_before_owner_effect", "reject declared async before owner effect"),
            (message_added_async(), "unavailable", "unavailable"),
        ] {
            pinned(
                &policy,
                &format!(
                    "all, sequential, inline | by declaration / not inspected / discard unawaited | \
                     collect, await all, unwrap single else group, collect | - | {words} | - | propagate"
                ),
                &json!({
                    "selector": "all", "concurrency": "sequential", "sync_handlers": "inline",
                    "handler_classification": "by_declaration", "returned_value_classifier": "not_inspected",
                    "returned_awaitable": "discard_unawaited", "sync_entry": entry, "predicate_failure": "propagate",
                    "invocation": stage("collect", "await_all", "unwrap_single_else_group", "collect"),
                }),
            );
        }
    }

    /// Named profiles: no two have the same values, so that an adapter which takes another's is found out.
    #[test]
    fn no_two_profiles_are_the_same() {
        let policies = [
            super::super::observation(),
            super::super::terminal_registry(),
            scheduler(),
            terminal_callback(),
            session_observer(),
            broadcaster(),
            message_added_sync(),
            message_added_async(),
        ];
        let digests: std::collections::BTreeSet<_> = policies.iter().map(DispatchPolicy::digest).collect();
        assert_eq!(digests.len(), policies.len());
    }
}
