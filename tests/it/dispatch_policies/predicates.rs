//! What a failed condition means (F-21).

use std::sync::Arc;

use serde_json::json;
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{CancelledBy, Condition, HandlerError, MemberEnd, RaisedError};

use super::support::*;

struct Says(HandlerError);

impl Condition<u32> for Says {
    fn holds(&self, _: &u32) -> Result<bool> {
        Err(self.0.clone())
    }
}

fn failed() -> Says {
    Says(HandlerError::failed("p", "cannot tell"))
}

/// F-21: `propagate` ends the emission before a handler runs, `no_match` says nothing, `isolate` reports, and only `collect_as_handler_failure` counts as the
/// handler's own.
#[tokio::test]
async fn a_failed_predicate_means_what_its_policy_says() {
    let under = |value: &str| {
        let policy = changed(&compat::scheduler(), &[("/0/predicate_failure", json!(value))]);
        dispatcher(policy, [returning("before", 1), returning("unsure", 2).when(failed()), returning("after", 3)])
    };
    let ended = raised(&under("propagate")).await;
    assert!(matches!(ended.error(), RaisedError::One(member) if &*member.registration == "unsure"));
    assert_eq!(
        ends(ended.report()),
        ["before: not_started (earlier failure)", "unsure: predicate_failed", "after: not_started (earlier failure)"]
    );
    assert_eq!(ends(&reported(&under("no_match")).await), ["before: returned", "after: returned"]);
    let isolated = reported(&under("isolate")).await;
    assert_eq!(ends(&isolated), ["before: returned", "unsure: predicate_failed", "after: returned"]);
    let counted = raised(&under("collect_as_handler_failure")).await;
    let RaisedError::Group(members) = counted.error() else { panic!("{counted:?}") };
    assert!(matches!(&members[..], [member] if matches!(&member.end, MemberEnd::Failed(failure) if failure.code() == "p")));
    assert_eq!(ends(counted.report()), ["before: returned", "unsure: predicate_failed", "after: returned"]);
}

/// F-12, F-21: a condition's cancellation is no failure: it is its handler's cancellation.
#[tokio::test]
async fn a_cancelled_predicate_is_a_cancellation() {
    let handlers = || [returning("unsure", 1).when(Says(HandlerError::Cancelled)), returning("after", 2)];
    let translated = raised(&dispatcher(compat::scheduler(), handlers())).await;
    assert_eq!(*translated.error(), RaisedError::HandlerCancelled);
    assert_eq!(ends(translated.report()), ["unsure: predicate_cancelled", "after: returned"]);
    let propagated = raised(&dispatcher(compat::session_observer(), handlers())).await;
    assert_eq!(*propagated.error(), RaisedError::Cancelled { by: CancelledBy::Itself, registration: Some("unsure".into()) });
    assert_eq!(ends(propagated.report()), ["unsure: predicate_cancelled", "after: not_started (earlier cancellation)"]);
    let collected = reported(&dispatcher(profile::observation(), handlers())).await;
    assert_eq!(ends(&collected), ["unsure: predicate_cancelled", "after: returned"]);
}

/// `session_observer`, by its traces: a failing predicate is isolated, a failing filter propagates.
#[tokio::test]
async fn a_filter_of_the_session_observer_propagates_where_a_predicate_is_isolated() {
    let isolated = dispatcher(compat::session_observer(), [returning("a", 1).when(failed()), returning("b", 2)]);
    assert_eq!(ends(&reported(&isolated).await), ["a: predicate_failed", "b: returned"]);
    let filtered = dispatcher(compat::session_observer(), [returning("a", 1).filtered_by(failed()), returning("b", 2)]);
    let raised = raised(&filtered).await;
    assert!(matches!(raised.error(), RaisedError::One(member) if &*member.registration == "a"));
    assert_eq!(ends(raised.report()), ["a: predicate_failed", "b: not_started (earlier failure)"]);
    // Elsewhere there is no difference.
    let ours = dispatcher(profile::observation(), [returning("a", 1).filtered_by(failed()), returning("b", 2)]);
    assert_eq!(ends(&reported(&ours).await), ["a: predicate_failed", "b: returned"]);
    let _ = Arc::new(ours);
}
