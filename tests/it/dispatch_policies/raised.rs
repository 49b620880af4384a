//! Failures, and how they reach the emitter.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tipstaff_core::dispatch::profile::compat;
use tipstaff_core::dispatch::{CancelledBy, Cause, FailureKind, HandlerError, Member, MemberEnd, RaisedError, Subscriber};

use super::support::*;

fn names(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| &*member.registration).collect()
}

fn ending(name: &str, error: HandlerError) -> Subscriber<u32, u32> {
    Subscriber::declared_sync(name, move |_: &Arc<u32>| Err::<u32, _>(error.clone()))
}

/// `scheduler`: one failure is a group as well, a cancellation wins over failures and has them as its cause; all handlers run.
#[tokio::test(start_paused = true)]
async fn the_scheduler_raises_groups_and_translates_cancellations() {
    let slow = || taking("slow", Duration::from_secs(1));
    let one = raised(&dispatcher(compat::scheduler(), [failing("a"), slow()])).await;
    let RaisedError::Group(members) = one.error() else { panic!("{one:?}") };
    assert_eq!(names(members), ["a"]);
    assert_eq!(ends(one.report()), ["a: failed", "slow: returned"]);

    let both = raised(&dispatcher(compat::scheduler(), [slow(), cancelling("b"), failing("c")])).await;
    assert_eq!(*both.error(), RaisedError::HandlerCancelled);
    let Some(Cause::Group(members)) = both.cause() else { panic!("{both:?}") };
    assert_eq!(names(members), ["c"]);
    assert_eq!(ends(both.report()), ["slow: returned", "b: cancelled", "c: failed"]);
    assert_eq!(both.source().unwrap().to_string(), "1 handlers did not return: c failed: e: c");

    let fatal = raised(&dispatcher(compat::scheduler(), [ending("x", HandlerError::fatal("X1"))])).await;
    assert_eq!(*fatal.error(), RaisedError::HandlerCancelled, "the recorded behaviour, which the table does not say");
    assert!(
        matches!(fatal.cause(), Some(Cause::One(Member { end: MemberEnd::Failed(failure), .. })) if failure.kind() == FailureKind::Fatal)
    );
}

/// `session_observer`: a failing call is raised before anything is gathered; a gathered one cancels the others, and has the group as its cause.
#[tokio::test(start_paused = true)]
async fn the_session_observer_raises_calls_at_once_and_gathers_the_rest() {
    let gathered = Subscriber::declared_async("a", |_| async { Err::<u32, _>(HandlerError::failed("e", "awaited")) });
    let sibling = until_told("b", || Err(HandlerError::failed("e", "while cancelled")));
    let hangs = until_told("c", || Err(HandlerError::Cancelled));
    let both = raised(&dispatcher(compat::session_observer(), [gathered, sibling, hangs])).await;
    let RaisedError::Group(members) = both.error() else { panic!("{both:?}") };
    assert_eq!(names(members), ["a", "b"]);
    assert_eq!(both.cause(), Some(&Cause::Group(members.clone())));
    assert_eq!(ends(both.report()), ["a: failed", "b: failed", "c: cancelled (sibling)"]);

    let called = raised(&dispatcher(compat::session_observer(), [hanging("a"), failing("b"), returning("c", 1)])).await;
    assert!(matches!(called.error(), RaisedError::One(member) if &*member.registration == "b"));
    assert_eq!(called.cause(), None);
    assert_eq!(ends(called.report()), ["a: dropped_unawaited", "b: failed", "c: not_started (earlier failure)"]);
}

/// `broadcaster`: failures are isolated, a fatal one and a cancellation are raised and end the broadcast.
#[tokio::test]
async fn the_broadcaster_isolates_ordinary_failures_only() {
    let report = reported(&dispatcher(compat::broadcaster(), [failing("a"), returning("b", 1)])).await;
    assert_eq!(ends(&report), ["a: isolated", "b: returned"]);
    let fatal =
        raised(&dispatcher(compat::broadcaster(), [failing("a"), ending("b", HandlerError::fatal("X1")), returning("c", 1)]))
            .await;
    assert!(
        matches!(fatal.error(), RaisedError::One(member) if member.end == MemberEnd::Failed(failure_of(HandlerError::fatal("X1"))))
    );
    assert_eq!(ends(fatal.report()), ["a: isolated", "b: failed", "c: not_started (earlier failure)"]);
    let cancelled = raised(&dispatcher(compat::broadcaster(), [cancelling("a"), returning("b", 1)])).await;
    assert_eq!(*cancelled.error(), RaisedError::Cancelled { by: CancelledBy::Itself, registration: Some("a".into()) });
    assert_eq!(ends(cancelled.report()), ["a: cancelled", "b: not_started (earlier cancellation)"]);
}

fn failure_of(error: HandlerError) -> tipstaff_core::dispatch::HandlerFailure {
    match error {
        HandlerError::Failed(failure) => failure,
        HandlerError::Cancelled => panic!("a failure"),
    }
}

/// `message_added`: all callbacks run; one failure is raised as itself, several as a group which may hold cancellations, each as what it is (F-12); a refusal
/// of the store is raised alone.
#[tokio::test]
async fn message_callbacks_are_drained_before_anything_is_raised() {
    let one = raised(&dispatcher(compat::message_added_async(), [failing("a"), returning("b", 1)])).await;
    assert!(matches!(one.error(), RaisedError::One(member) if &*member.registration == "a"));
    let both = raised(&dispatcher(compat::message_added_async(), [cancelling("a"), failing("b"), returning("c", 1)])).await;
    let RaisedError::Group(members) = both.error() else { panic!("{both:?}") };
    assert_eq!(members[0].end, MemberEnd::Cancelled(CancelledBy::Itself));
    assert_eq!(names(members), ["a", "b"]);
    assert_eq!(ends(both.report()), ["a: cancelled", "b: failed", "c: returned"]);
    let refused = ending("r", HandlerError::store_refused("store.schema", "too old"));
    let refused = raised(&dispatcher(compat::message_added_async(), [cancelling("a"), failing("b"), refused])).await;
    let RaisedError::One(Member { end: MemberEnd::Failed(failure), .. }) = refused.error() else { panic!("{refused:?}") };
    assert_eq!((failure.kind(), failure.code(), failure.message()), (FailureKind::StoreRefused, "store.schema", "too old"));
}

/// Handlers: elsewhere a fatal failure has the code `fatal`, and a refusal of the store surfaces as the store's own error.
#[tokio::test]
async fn native_profiles_know_fatal_failures_by_their_code() {
    let handlers = [ending("a", HandlerError::fatal("X1")), ending("b", HandlerError::store_refused("store.schema", "too old"))];
    let report = reported(&dispatcher(tipstaff_core::dispatch::profile::observation(), handlers)).await;
    let stored = serde_json::to_value(&report).unwrap();
    assert_eq!((&stored["handlers"][0]["code"], &stored["handlers"][0]["message"]), (&"fatal".into(), &"X1".into()));
    assert_eq!((&stored["handlers"][1]["code"], &stored["handlers"][1]["message"]), (&"store.schema".into(), &"too old".into()));
    assert_eq!(ends(&report), ["a: isolated", "b: isolated"]);
}

/// `terminal_callback` and `terminal_registry`: a callback that is cancelled cancels the others of the original, silently, and nobody else of ours (L-10).
#[tokio::test(start_paused = true)]
async fn a_cancelled_terminal_callback_silences_the_others_of_the_original_only() {
    use tipstaff_core::dispatch::profile::terminal_registry;
    let cancelled = || {
        Subscriber::declared_async("a", |_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<u32, _>(HandlerError::Cancelled)
        })
    };
    let handlers = || [cancelled(), taking("b", Duration::from_secs(2))];
    let original = reported(&dispatcher(compat::terminal_callback(), handlers())).await;
    assert_eq!(ends(&original), ["a: cancelled", "b: cancelled (sibling)"]);
    let ours = reported(&dispatcher(terminal_registry(), handlers())).await;
    assert_eq!(ends(&ours), ["a: cancelled", "b: returned"]);
}

/// `cancel_remaining_on_failure`: every handler of a concurrent stage is begun before the first failure is acted on; then the others are cancelled.
#[tokio::test(start_paused = true)]
async fn the_others_are_cancelled_once_all_have_begun() {
    let values = [
        ("/0/invocation/completion", serde_json::json!("cancel_remaining_on_failure")),
        ("/0/invocation/error_surface", serde_json::json!("unwrap_single_else_group")),
    ];
    let begun = Log::default();
    let log = begun.clone();
    let begins = Subscriber::declared_async("b", move |_| {
        log.push("b");
        std::future::pending::<Result<u32>>()
    });
    let handlers = [failing("a"), begins, returning("c", 1)];
    let raised = raised(&dispatcher(changed(&compat::scheduler(), &values), handlers)).await;
    assert!(matches!(raised.error(), RaisedError::One(member) if &*member.registration == "a"));
    assert_eq!(ends(raised.report()), ["a: failed", "b: cancelled (sibling)", "c: returned"]);
    assert_eq!(begun.read(), ["b"]);
}
