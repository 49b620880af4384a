//! The named profiles. They are closed: a caller takes one as it is.

use std::time::Duration;

use super::policy::{DispatchPolicy, Phase, StagePolicy};
use super::value::{
    Completion, Concurrency, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};

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
}
