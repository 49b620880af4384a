//! Phases, registrations, and what a report names.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{DispatchPolicy, Dispatcher, HandlerError, Outcome, Phase, Returned, Selector, Stage, Subscriber};
use tokio::time::sleep;

use super::support::*;

fn logging(name: &'static str, log: &Log, declared_async: bool) -> Subscriber<u32, u32> {
    let log = log.clone();
    if !declared_async {
        return Subscriber::declared_sync(name, move |_: &Arc<u32>| {
            log.push(name);
            Ok::<_, HandlerError>(1)
        });
    }
    Subscriber::declared_async(name, move |_| {
        let log = log.clone();
        async move {
            sleep(Duration::from_secs(1)).await;
            log.push(name);
            Ok::<_, HandlerError>(1)
        }
    })
}

/// F-1, F-9: each registration runs in the one phase that selects it, phases in declaration order, and the report is in registration order all the same.
#[tokio::test(start_paused = true)]
async fn phases_run_in_declaration_order() {
    let all = profile::observation().phases()[0];
    let declared_sync = Phase { selector: Selector::DeclaredSync, ..all };
    let declared_async = Phase { selector: Selector::DeclaredAsync, ..all };
    for (phases, order) in
        [([declared_async, declared_sync], ["b", "a", "c"]), ([declared_sync, declared_async], ["a", "c", "b"])]
    {
        let log = Log::default();
        let handlers = [logging("a", &log, false), logging("b", &log, true), logging("c", &log, false)];
        let report = reported(&dispatcher(DispatchPolicy::new(phases).unwrap(), handlers)).await;
        assert_eq!(log.read(), order);
        assert_eq!(ends(&report), ["a: returned", "b: returned", "c: returned"]);
    }
}

/// F-9: a phase that ends the emission leaves the later phases unbegun, and the report says so.
#[tokio::test]
async fn a_phase_that_raises_ends_the_emission() {
    let policy = changed(&compat::message_added_async(), &[]);
    let [phase] = policy.phases() else { panic!("one phase") };
    let phases = [Phase { selector: Selector::DeclaredSync, ..*phase }, Phase { selector: Selector::DeclaredAsync, ..*phase }];
    // Discarding is for the message profiles, whose selector is `all`.
    let rejecting = phases.map(|phase| Phase { returned_awaitable: tipstaff_core::dispatch::ReturnedAwaitable::Reject, ..phase });
    let handlers = [hanging("awaited"), failing("failing"), returning("other", 1)];
    let raised = raised(&dispatcher(DispatchPolicy::new(rejecting).unwrap(), handlers)).await;
    assert_eq!(ends(raised.report()), ["awaited: not_started (earlier failure)", "failing: failed", "other: returned"]);
}

/// F-8 in its recorded exception: under `session_observer` a registration made by a handler is called in the same emission, one that was removed is called
/// still; everywhere else the snapshot stands.
#[tokio::test]
async fn late_registrations_join_where_the_policy_lets_them() {
    for (policy, first) in [
        (compat::session_observer(), vec!["changer: returned", "leaving: returned", "joining: returned"]),
        (compat::broadcaster(), vec!["changer: returned", "leaving: returned"]),
    ] {
        let registry = Arc::new(Dispatcher::<u32, u32>::new(policy));
        let leaving = Arc::new(std::sync::Mutex::new(None));
        let (inner, taken) = (Arc::downgrade(&registry), Arc::clone(&leaving));
        let changer = Subscriber::declared_sync("changer", move |_: &Arc<u32>| {
            let registry = inner.upgrade().expect("it emits");
            if let Some(leaving) = taken.lock().unwrap().take() {
                assert!(registry.unregister(&leaving));
                let _ = registry.register(returning("joining", 3)).unwrap();
            }
            Ok::<_, HandlerError>(1)
        });
        let _ = registry.register(changer).unwrap();
        *leaving.lock().unwrap() = Some(registry.register(returning("leaving", 2)).unwrap());
        assert_eq!(ends(&reported(&registry).await), first);
        assert_eq!(ends(&reported(&registry).await), ["changer: returned", "joining: returned"]);
    }
}

/// F-10: returned values, the stage in which a handler ended, and the order in which the original hands them over.
#[tokio::test]
async fn a_report_holds_values_in_registration_order_and_in_that_of_the_original() {
    let coroutine = |name: &str, value| {
        Subscriber::declared_sync_with(name, move |_: &Arc<u32>, _| Ok(Returned::coroutine(async move { Ok(value) })))
    };
    let handlers = [coroutine("a", 1), returning("b", 2), coroutine("c", 3), returning("d", 4)];
    let report = reported(&dispatcher(compat::session_observer(), handlers)).await;
    let entries: Vec<_> = report.entries().map(|entry| (entry.registration, entry.value.copied(), entry.stage)).collect();
    let (called, gathered) = (Stage::Invocation, Stage::ReturnedAwaitables);
    assert_eq!(entries, [("a", Some(1), gathered), ("b", Some(2), called), ("c", Some(3), gathered), ("d", Some(4), called)]);
    assert_eq!(report.results().collect::<Vec<_>>(), [Ok(&2), Ok(&4), Ok(&1), Ok(&3)]);
}

/// F-10: a collected cancellation stands among what was gathered, kept apart from failures.
#[tokio::test]
async fn a_gathered_cancellation_is_among_the_results() {
    let cancelled = Subscriber::declared_async("cancelled", |_| async { Err::<u32, _>(HandlerError::Cancelled) });
    let handlers = [cancelled, returning("b", 2), until_told("sibling", || Err(HandlerError::Cancelled))];
    let report = reported(&dispatcher(compat::session_observer(), handlers)).await;
    assert_eq!(ends(&report), ["cancelled: cancelled", "b: returned", "sibling: cancelled (sibling)"]);
    use tipstaff_core::dispatch::CancelledBy::{Itself, Sibling};
    assert_eq!(report.results().collect::<Vec<_>>(), [Ok(&2), Err(Itself), Err(Sibling)]);
}

/// An overriding registration that matches takes the place of those that do not override; one that does not match takes nobody's.
#[tokio::test]
async fn an_overriding_registration_takes_the_place_of_the_others() {
    let handlers =
        || [returning("plain", 1), failing("override").overriding().when(|fact: &u32| *fact == 1), returning("last", 2)];
    let registry = dispatcher(profile::terminal_registry(), handlers());
    let overridden = registry.emit(&Arc::new(1)).await.unwrap();
    assert_eq!(ends(&overridden), ["plain: not_started (overridden)", "override: isolated", "last: not_started (overridden)"]);
    let registry = dispatcher(changed(&profile::terminal_registry(), &[("/0/sync_handlers", json!("inline"))]), handlers());
    assert_eq!(ends(&registry.emit(&Arc::new(2)).await.unwrap()), ["plain: returned", "last: returned"]);
}

/// A registration of the same name is replaced in its place, where that is asked for.
#[tokio::test]
async fn a_registration_is_replaced_in_its_place() {
    let registry = dispatcher(compat::scheduler(), [returning("a", 1), returning("b", 2)]);
    let old = registry.register_or_replace(returning("a", 3)).unwrap();
    let _new = registry.register_or_replace(returning("c", 4)).unwrap();
    assert_eq!(reported(&registry).await.results().collect::<Vec<_>>(), [Ok(&3), Ok(&2), Ok(&4)]);
    assert!(registry.unregister(&old));
    assert_eq!(ends(&reported(&registry).await), ["b: returned", "c: returned"]);
}

/// Policies are data: a dispatcher may be given another, and emissions under way keep theirs (F-8).
#[tokio::test]
async fn a_policy_is_replaced_from_the_next_snapshot_on() {
    let registry = dispatcher(compat::scheduler(), [failing("a")]);
    let before = registry.snapshot();
    registry.replace_policy(compat::broadcaster());
    assert!(before.emit(&Arc::new(1)).await.is_err(), "raised as a group");
    assert_eq!(ends(&reported(&registry).await), ["a: isolated"]);
    assert_eq!(registry.snapshot().policy(), &compat::broadcaster());
}

/// F-10: under one profile after another, every handler that matched is named, whatever it does.
#[tokio::test(start_paused = true)]
async fn every_profile_names_every_matched_registration() {
    for policy in [
        profile::observation(),
        changed(&profile::terminal_registry(), &[("/0/sync_handlers", json!("inline"))]),
        compat::scheduler(),
        compat::session_observer(),
        compat::broadcaster(),
        compat::message_added_async(),
    ] {
        let handlers = [
            returning("a", 1),
            taking("b", Duration::from_secs(1)),
            failing("c"),
            returning("d", 1).when(|_: &u32| false),
            hanging("e"),
        ];
        let registry = dispatcher(policy, handlers);
        let result = registry.emit(&Arc::new(1)).by(by(5)).await;
        let report = match &result {
            Ok(report) => report,
            Err(error) => error.report().expect("handlers ran"),
        };
        let named: Vec<_> = report.entries().map(|entry| entry.registration).collect();
        assert_eq!(named, ["a", "b", "c", "e"]);
        assert_eq!(*report.entry("a").unwrap().outcome, Outcome::Returned);
    }
    assert_eq!(tipstaff_core::dispatch::OFFLOAD_THREADS, NonZeroUsize::new(40).unwrap());
}
