//! Budgets (F-11), and what their end means (F-21).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{
    Concurrency, DispatchPolicy, HandlerError, Outcome, Phase, RaisedError, Returned, Selector, Subscriber,
};
use tokio::time::{Instant, sleep};

use super::support::*;

const SECOND: Duration = Duration::from_secs(1);

/// F-11: one budget for all handlers of a phase, never renewed per handler.
#[tokio::test(start_paused = true)]
async fn handlers_in_turn_share_one_budget() {
    let [all] = *profile::observation().phases() else { panic!("one phase") };
    let policy =
        DispatchPolicy::new([Phase { concurrency: Concurrency::Sequential, deadline: Some(2 * SECOND), ..all }]).unwrap();
    let long = Duration::from_millis(900);
    let handlers = [taking("a", long), taking("b", long), taking("c", long), returning("d", 1)];
    let begun = Instant::now();
    let report = reported(&dispatcher(policy, handlers)).await;
    assert_eq!(begun.elapsed(), 2 * SECOND);
    assert_eq!(ends(&report), ["a: returned", "b: returned", "c: timed_out", "d: not_started (budget spent)"]);
    assert_eq!(report.entry("c").unwrap().elapsed, Duration::from_millis(200));
}

/// F-11: the budget holds for both stages of a phase.
#[tokio::test(start_paused = true)]
async fn both_stages_share_one_budget() {
    let deadline = [("/0/deadline_ms", json!(2000)), ("/0/deadline_disposition", json!("return_report"))];
    let policy = changed(&compat::session_observer(), &deadline);
    let begun = Instant::now();
    let handlers = [taking("a", SECOND), until_told("b", || Err(HandlerError::Cancelled)), deaf("c")];
    let report = reported(&dispatcher(policy, handlers)).await;
    assert_eq!(ends(&report), ["a: returned", "b: timed_out", "c: timed_out"]);
    assert_eq!(begun.elapsed(), 3 * SECOND, "the budget, and a grace for what takes no notice (F-19)");
}

/// F-11: the emission's own deadline caps all phases, and ends them as `raise` where they name no disposition.
#[tokio::test(start_paused = true)]
async fn the_emissions_own_deadline_caps_all_phases() {
    let [all] = *compat::scheduler().phases() else { panic!("one phase") };
    let by_declaration = tipstaff_core::dispatch::HandlerClassification::ByDeclaration;
    let phase = |selector| Phase { selector, handler_classification: by_declaration, ..all };
    let policy = DispatchPolicy::new([phase(Selector::DeclaredAsync), phase(Selector::DeclaredSync)]).unwrap();
    let slow = Subscriber::declared_sync_with("slow", |_: &Arc<u32>, _| {
        Ok(Returned::coroutine(async {
            sleep(SECOND).await;
            Ok(1)
        }))
    });
    let registry = dispatcher(policy, [slow, taking("async", SECOND)]);
    let begun = Instant::now();
    let raised = into_raised(registry.emit(&Arc::new(1)).by(tipstaff_core::clock::Deadline::after(SECOND + SECOND / 2)).await);
    assert_eq!(begun.elapsed(), SECOND + SECOND / 2);
    assert_eq!(*raised.error(), RaisedError::TimedOut);
    assert_eq!(ends(raised.report()), ["slow: timed_out", "async: returned"]);
    assert_eq!(registry.emit(&Arc::new(1)).by(by(3)).await.unwrap().elapsed(), 2 * SECOND);
}

/// F-21: each disposition, and that what was in flight is marked `timed out` under all of them.
#[tokio::test(start_paused = true)]
async fn each_disposition_does_what_it_says() {
    let under = |disposition: &str| {
        let policy =
            changed(&profile::observation(), &[("/0/deadline_ms", json!(1000)), ("/0/deadline_disposition", json!(disposition))]);
        dispatcher(policy, [hanging("hangs"), returning("done", 1)])
    };
    let timed_out = ["hangs: timed_out", "done: returned"];
    let raised = raised(&under("raise")).await;
    assert_eq!(*raised.error(), RaisedError::TimedOut);
    assert_eq!(ends(raised.report()), timed_out);
    for disposition in ["return_report", "log_and_stop", "silent_stop"] {
        assert_eq!(ends(&reported(&under(disposition)).await), timed_out, "{disposition}");
    }
}

/// F-21: failures that were collected before the budget ended are raised all the same.
#[tokio::test(start_paused = true)]
async fn what_failed_before_is_raised_all_the_same() {
    let deadline: [(&str, Value); 2] = [("/0/deadline_ms", json!(1000)), ("/0/deadline_disposition", json!("silent_stop"))];
    let raised = raised(&dispatcher(changed(&compat::scheduler(), &deadline), [failing("a"), hanging("b")])).await;
    assert!(matches!(raised.error(), RaisedError::Group(members) if members.len() == 1));
    assert_eq!(ends(raised.report()), ["a: failed", "b: timed_out"]);
}

/// F-19 with `terminal_callback`: the end of the budget sets the token, and a handler's own end within the grace counts.
#[tokio::test(start_paused = true)]
async fn a_terminal_callback_may_end_in_its_own_way_at_the_deadline() {
    let policy = compat::terminal_callback_within(SECOND).unwrap();
    let begun = Instant::now();
    let handlers = [
        until_told("returns", || Ok(1)),
        until_told("fails", || Err(HandlerError::failed("e", "late"))),
        until_told("yields", || Err(HandlerError::Cancelled)),
    ];
    let report = reported(&dispatcher(policy, handlers)).await;
    assert_eq!(begun.elapsed(), SECOND);
    assert_eq!(ends(&report), ["returns: returned", "fails: isolated", "yields: timed_out"]);
}

/// F-15: a handler that hangs holds its own emission only.
#[tokio::test(start_paused = true)]
async fn a_hanging_handler_holds_its_own_emission_only() {
    let registry = dispatcher(compat::broadcaster(), [hanging("hangs").when(|fact: &u32| *fact == 1), returning("other", 2)]);
    let mut held = registry.emit(&Arc::new(1)).into_future();
    assert!(futures::poll!(&mut held).is_pending());
    let report = registry.emit(&Arc::new(2)).await.unwrap();
    assert_eq!(*report.entry("other").unwrap().outcome, Outcome::Returned);
    assert!(futures::poll!(&mut held).is_pending());
}
