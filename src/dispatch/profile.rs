//! The named profiles. They are closed: a caller takes one as it is.
//!
//! | profile               | for                                                                                  |
//! |-----------------------|--------------------------------------------------------------------------------------|
//! | [`observation`]       | the default: facts for whoever watches                                               |
//! | [`terminal_registry`] | callbacks at the end of a run, which may block                                       |
//!
//! The profiles of the original system are in the module `compat`, under the feature of that name.

use std::time::Duration;

use super::error::PolicyError;
use super::policy::{DispatchPolicy, Phase, StagePolicy};
use super::value::{
    Completion, Concurrency, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};

#[cfg(feature = "compat")]
pub mod compat;

/// The budget of one emission under [`observation`].
pub const OBSERVATION_BUDGET: Duration = Duration::from_secs(30);

/// The default: every handler is begun in registration order, none waits for another, a failure touches nobody else, and the emitter gets
/// a report within thirty seconds, unless a handler blocks its thread.
#[must_use]
pub fn observation() -> DispatchPolicy {
    let phase = Phase {
        selector: Selector::All,
        concurrency: Concurrency::Concurrent,
        sync_handlers: SyncHandlers::Inline,
        handler_classification: HandlerClassification::ByDeclaration,
        returned_value_classifier: ReturnedValueClassifier::NotInspected,
        returned_awaitable: ReturnedAwaitable::Reject,
        sync_entry: SyncEntry::Unavailable,
        predicate_failure: PredicateFailure::Isolate,
        filter_failure: None,
        late_registrations: LateRegistrations::NextEmission,
        invocation: StagePolicy::new(
            Failure::Isolate,
            Completion::AwaitAll,
            ErrorSurface::ReturnReport,
            HandlerCancellation::Collect,
        ),
        returned_awaitables: None,
        deadline: Some(OBSERVATION_BUDGET),
        deadline_disposition: Some(DeadlineDisposition::ReturnReport),
    };
    DispatchPolicy::new([phase]).expect("the profile's values keep every rule: pinned by a test")
}

/// The budget of one emission under [`terminal_registry`], unless it is given another.
pub const TERMINAL_BUDGET: Duration = Duration::from_secs(10);

/// Callbacks at the end of a run: all are begun, those that are declared sync on threads of the dispatcher, and none raises to the emitter. A callback that is
/// cancelled touches nobody else (L-10). The budget is [`TERMINAL_BUDGET`], and its end is logged once.
#[must_use]
pub fn terminal_registry() -> DispatchPolicy {
    terminal_registry_within(TERMINAL_BUDGET).expect("the profile's values keep every rule: pinned by a test")
}

/// [`terminal_registry`] with another budget.
///
/// # Errors
/// [`PolicyError`] of rule F-6: the budget is not of whole milliseconds, from one to thirty days.
pub fn terminal_registry_within(budget: Duration) -> Result<DispatchPolicy, PolicyError> {
    DispatchPolicy::new([terminal(budget, DeadlineDisposition::LogAndStop, HandlerCancellation::Collect)])
}

/// What the terminal profiles share.
fn terminal(budget: Duration, expiry: DeadlineDisposition, cancellation: HandlerCancellation) -> Phase {
    Phase {
        selector: Selector::All,
        concurrency: Concurrency::Concurrent,
        sync_handlers: SyncHandlers::Offload,
        handler_classification: HandlerClassification::ByDeclaration,
        returned_value_classifier: ReturnedValueClassifier::InspectAwaitable,
        returned_awaitable: ReturnedAwaitable::AwaitInInvocation,
        sync_entry: SyncEntry::Unavailable,
        // Filters are data here and run no user code.
        predicate_failure: PredicateFailure::Propagate,
        filter_failure: None,
        late_registrations: LateRegistrations::NextEmission,
        invocation: StagePolicy::new(Failure::Isolate, Completion::AwaitAll, ErrorSurface::LogOnly, cancellation),
        returned_awaitables: None,
        deadline: Some(budget),
        deadline_disposition: Some(expiry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Named profiles, `observation`: this test fails when any one value changes.
    #[test]
    fn the_observation_profile_is_pinned() {
        let policy = observation();
        assert_eq!(
            policy.describe(),
            "all, concurrent, inline | by declaration / not inspected / reject | isolate, await all, return report, collect | - | \
             unavailable | 30s, return report | isolate"
        );
        assert_eq!(
            serde_json::to_value(&policy).unwrap(),
            serde_json::json!({"phases": [{
                "selector": "all",
                "concurrency": "concurrent",
                "sync_handlers": "inline",
                "handler_classification": "by_declaration",
                "returned_value_classifier": "not_inspected",
                "returned_awaitable": "reject",
                "sync_entry": "unavailable",
                "predicate_failure": "isolate",
                "invocation": {
                    "failure": "isolate",
                    "completion": "await_all",
                    "error_surface": "return_report",
                    "handler_cancellation": "collect",
                },
                "deadline_ms": 30_000,
                "deadline_disposition": "return_report",
            }]})
        );
    }

    /// Named profiles, `terminal_registry`: this test fails when any one value changes.
    #[test]
    fn the_terminal_registry_profile_is_pinned() {
        let policy = terminal_registry();
        assert_eq!(
            policy.describe(),
            "all, concurrent, offload | by declaration / inspect awaitable / await in invocation | isolate, await all, log only, collect | - | \
             unavailable | 10s, log and stop | propagate"
        );
        assert_eq!(
            serde_json::to_value(&policy).unwrap(),
            serde_json::json!({"phases": [{
                "selector": "all",
                "concurrency": "concurrent",
                "sync_handlers": "offload",
                "handler_classification": "by_declaration",
                "returned_value_classifier": "inspect_awaitable",
                "returned_awaitable": "await_in_invocation",
                "sync_entry": "unavailable",
                "predicate_failure": "propagate",
                "invocation": {
                    "failure": "isolate",
                    "completion": "await_all",
                    "error_surface": "log_only",
                    "handler_cancellation": "collect",
                },
                "deadline_ms": 10_000,
                "deadline_disposition": "log_and_stop",
            }]})
        );
        assert!(terminal_registry_within(Duration::from_millis(120)).is_ok());
        assert_eq!(terminal_registry_within(Duration::ZERO).unwrap_err().rule(), crate::dispatch::Rule::F6);
    }
}
