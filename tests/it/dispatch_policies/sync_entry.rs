//! A synchronous owner (F-13).

use std::sync::Arc;

use serde_json::json;
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{
    DispatchError, Dispatcher, HandlerError, RaisedError, Refusal, Returned, Subscriber, SyncSnapshot,
};

use super::support::*;

/// F-13: an async-only profile has no synchronous entry.
#[test]
fn an_async_only_profile_has_no_sync_entry() {
    for policy in [profile::observation(), compat::scheduler(), compat::session_observer(), compat::message_added_async()] {
        assert_eq!(dispatcher(policy, []).preflight_sync().unwrap_err(), Refusal::NoSyncEntry);
    }
}

/// F-13: declared async registrations are refused by name before the owner changes anything; no handler is called.
#[test]
fn declared_async_registrations_are_refused_in_preflight() {
    let never = Subscriber::declared_sync("sync", |_: &Arc<u32>| -> Result<u32> { panic!("called in a preflight") });
    let registry = dispatcher(compat::message_added_sync(), [never, hanging("one"), hanging("two")]);
    let refusal = registry.preflight_sync().unwrap_err();
    assert_eq!(refusal, Refusal::DeclaredAsync { registrations: vec!["one".into(), "two".into()] });
    assert!(refusal.to_string().contains("one, two"), "{refusal}");
}

/// F-13: the emission runs on the caller's thread, without a runtime, against what was registered at the preflight.
#[test]
fn a_sync_emission_runs_here_and_now() {
    let here = std::thread::current().id();
    let same = Subscriber::declared_sync("same thread", move |_: &Arc<u32>| {
        assert_eq!(std::thread::current().id(), here);
        Ok::<_, HandlerError>(1)
    });
    let registry = dispatcher(compat::message_added_sync(), [same, returning("other", 2)]);
    let ready = registry.preflight_sync().unwrap();
    let _ = registry.register(hanging("later")).unwrap();
    let report = registry.emit_sync(&Arc::new(1), &ready).unwrap();
    assert_eq!(ends(&report), ["same thread: returned", "other: returned"]);
    assert_eq!(ready.snapshot().len(), 2);
}

/// F-13: failures of a sync emission are raised as the policy says, after all callbacks ran.
#[test]
fn a_sync_emission_raises_as_its_policy_says() {
    let registry = dispatcher(compat::message_added_sync(), [failing("a"), cancelling("b"), returning("c", 1)]);
    let ready = registry.preflight_sync().unwrap();
    let raised = into_raised(registry.emit_sync(&Arc::new(1), &ready));
    assert!(matches!(raised.error(), RaisedError::Group(members) if members.len() == 2));
    assert_eq!(ends(raised.report()), ["a: failed", "b: cancelled", "c: returned"]);
}

/// F-13: a snapshot of another dispatcher is refused, and one of another build of the policy, be it of the same values.
#[test]
fn a_foreign_or_outdated_snapshot_is_refused() {
    let refusal = |registry: &Facts, ready: SyncSnapshot<u32, u32>| match registry.emit_sync(&Arc::new(1), &ready) {
        Err(DispatchError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal: {other:?}"),
    };
    let registry = dispatcher(compat::message_added_sync(), [returning("a", 1)]);
    let other = dispatcher(compat::message_added_sync(), [returning("a", 1)]);
    assert_eq!(refusal(&registry, other.preflight_sync().unwrap()), Refusal::ForeignSnapshot);
    let ready = registry.preflight_sync().unwrap();
    registry.replace_policy(compat::message_added_sync());
    assert_eq!(refusal(&registry, ready), Refusal::OtherPolicyBuild);
    assert!(registry.emit_sync(&Arc::new(1), &registry.preflight_sync().unwrap()).is_ok());
}

/// F-13: where the policy allows a sync entry without refusing anybody, what would have to be awaited is not started, and says why.
#[test]
fn what_needs_awaiting_is_not_started() {
    let policy = changed(
        &compat::broadcaster(),
        &[
            ("/0/sync_entry", json!("allow")),
            ("/0/handler_classification", json!("by_declaration")),
            ("/0/returned_value_classifier", json!("inspect_awaitable")),
        ],
    );
    let coroutine =
        Subscriber::declared_sync_with("returns one", |_: &Arc<u32>, _| Ok(Returned::coroutine(async { panic!("awaited") })));
    let registry = dispatcher(policy, [returning("sync", 1), hanging("async"), returning("thread", 1).offloaded(), coroutine]);
    let ready = registry.preflight_sync().unwrap();
    let report = registry.emit_sync(&Arc::new(1), &ready).unwrap();
    assert_eq!(
        ends(&report),
        [
            "sync: returned",
            "async: not_started (needs an async entry)",
            "thread: not_started (needs an async entry)",
            "returns one: discarded_unawaited",
        ]
    );
}

/// F-14: a sync handler may emit on its own dispatcher; past the limit it is told so.
#[test]
fn a_sync_emission_may_stand_inside_another() {
    let registry = Arc::new_cyclic(|registry: &std::sync::Weak<Facts>| {
        let dispatcher = Dispatcher::new(compat::message_added_sync());
        let inner = registry.clone();
        let nested = Subscriber::declared_sync("nested", move |fact: &Arc<u32>| {
            let registry = inner.upgrade().expect("it emits");
            assert_eq!(registry.depth(), Some(**fact as usize));
            let ready = registry.preflight_sync().expect("a sync policy");
            match registry.emit_sync(&Arc::new(**fact + 1), &ready) {
                Ok(report) => Ok(report.results().map(|value| *value.unwrap()).sum()),
                Err(DispatchError::Refused(Refusal::TooDeep { limit })) => {
                    assert_eq!(**fact as usize, limit);
                    Ok(**fact)
                }
                Err(other) => Err(HandlerError::failed("unexpected", other)),
            }
        });
        let _ = dispatcher.register(nested).unwrap();
        dispatcher
    });
    let report = registry.emit_sync(&Arc::new(0), &registry.preflight_sync().unwrap()).unwrap();
    assert_eq!(report.results().collect::<Vec<_>>(), [Ok(&u32::try_from(tipstaff_core::dispatch::MAX_DEPTH).unwrap())]);
    assert_eq!(registry.depth(), None);
}
