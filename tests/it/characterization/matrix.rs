//! Changes one value of each named profile at a time, and shows that a recorded trace tells.
//!
//! | a profile with one other value   | means                                                                        |
//! |----------------------------------|------------------------------------------------------------------------------|
//! | breaks a rule of validation      | it cannot be adopted at all: the rule says so                                |
//! | makes a scenario differ          | a dispatcher that adopted it would be found                                  |
//! | makes none differ                | nothing recorded tells it from the profile: the test fails                   |

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tipstaff::dispatch::{
    Completion, Concurrency, Conduct, DeadlineDisposition, DispatchPolicy, ErrorSurface, Failure, HandlerCancellation,
    HandlerClassification, LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry,
    SyncHandlers,
};

use super::compare::differences;
use super::deviations::expected;
use super::drivers::{self, Driver};
use super::run::run;
use super::scenario::Scenario;
use super::world::Pace;
use super::corpus;
use crate::rig::show;

/// A profile with one other value.
struct Mutant {
    field: String,
    from: Value,
    to: Value,
    policy: Value,
}

/// What a changed value comes to.
enum Fate {
    /// A rule refuses it.
    Refused(String),
    /// The first scenario that differs.
    Red(String),
    /// No scenario differs.
    Unseen,
}

/// Every other value of a field, by its serialised name.
fn others(field: &str) -> Vec<Value> {
    let all = |names: Vec<&'static str>| names.into_iter().map(|name| json!(name)).collect();
    match field {
        "selector" => all(Selector::ALL.iter().map(|value| value.as_str()).collect()),
        "concurrency" => all(Concurrency::ALL.iter().map(|value| value.as_str()).collect()),
        "sync_handlers" => all(SyncHandlers::ALL.iter().map(|value| value.as_str()).collect()),
        "handler_classification" => all(HandlerClassification::ALL.iter().map(|value| value.as_str()).collect()),
        "returned_value_classifier" => all(ReturnedValueClassifier::ALL.iter().map(|value| value.as_str()).collect()),
        "returned_awaitable" => all(ReturnedAwaitable::ALL.iter().map(|value| value.as_str()).collect()),
        "sync_entry" => all(SyncEntry::ALL.iter().map(|value| value.as_str()).collect()),
        "predicate_failure" | "filter_failure" => all(PredicateFailure::ALL.iter().map(|value| value.as_str()).collect()),
        "late_registrations" => all(LateRegistrations::ALL.iter().map(|value| value.as_str()).collect()),
        "failure" => all(Failure::ALL.iter().map(|value| value.as_str()).collect()),
        "completion" => all(Completion::ALL.iter().map(|value| value.as_str()).collect()),
        "error_surface" => all(ErrorSurface::ALL.iter().map(|value| value.as_str()).collect()),
        "handler_cancellation" => all(HandlerCancellation::ALL.iter().map(|value| value.as_str()).collect()),
        "deadline_disposition" => all(DeadlineDisposition::ALL.iter().map(|value| value.as_str()).collect()),
        "conduct" => all(Conduct::ALL.iter().map(|value| value.as_str()).collect()),
        // One millisecond: no recorded handler that waits is done by then.
        "deadline_ms" => vec![json!(1)],
        other => panic!("the field {other} has no list of values here"),
    }
}

/// Every policy that differs from this one in one value.
fn mutants(policy: &Value) -> Vec<Mutant> {
    let mut found = Vec::new();
    collect(policy, "", &mut |pointer, field, from| {
        for to in others(field).into_iter().filter(|to| to != from) {
            let mut changed = policy.clone();
            *changed.pointer_mut(pointer).expect("the field is there") = to.clone();
            found.push(Mutant { field: pointer.trim_start_matches("/phases/0/").to_owned(), from: from.clone(), to, policy: changed });
        }
    });
    found
}

/// Calls with each leaf: its pointer, its name, its value.
fn collect(value: &Value, pointer: &str, leaf: &mut impl FnMut(&str, &str, &Value)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| collect(inner, &format!("{pointer}/{name}"), leaf)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, inner)| collect(inner, &format!("{pointer}/{at}"), leaf)),
        plain => leaf(pointer, pointer.rsplit('/').next().unwrap_or_default(), plain),
    }
}

fn fate(driver: &Driver, scenarios: &[Arc<Scenario>], policy: &Value) -> Fate {
    if let Err(refused) = serde_json::from_value::<DispatchPolicy>(policy.clone()) {
        return Fate::Refused(refused.to_string());
    }
    let (quick, slow): (Vec<_>, Vec<_>) =
        scenarios.iter().filter(|scenario| scenario.deterministic).partition(|scenario| driver.pace(scenario, Some(policy)) == Pace::Paused);
    // Scenarios that cost real time are asked last.
    let red = quick.into_iter().chain(slow).find(|scenario| {
        let pace = driver.pace(scenario, Some(policy));
        match run(scenario, pace, &|stage| driver.drive(stage, Some(policy.clone()))) {
            Ok(ours) => !differences(scenario, &expected(scenario).observed, &ours).is_empty(),
            Err(_) => true,
        }
    });
    red.map_or(Fate::Unseen, |scenario| Fate::Red(scenario.id.clone()))
}

fn matrix(profile: &str) {
    let driver = drivers::all().into_iter().find(|driver| driver.profile == profile).expect("it is in scope");
    let corpus = corpus::read(&[profile]);
    let scenarios = &corpus.scenarios[profile];
    let mut unseen = BTreeMap::new();
    let mut table = format!("matrix of {profile}");
    for Mutant { field, from, to, policy } in mutants(&(driver.policy)()) {
        let fate = fate(&driver, scenarios, &policy);
        let told = match &fate {
            Fate::Refused(rule) => format!("refused: {rule}"),
            Fate::Red(scenario) => format!("red: {scenario}"),
            Fate::Unseen => "NOTHING TELLS".to_owned(),
        };
        writeln!(table).and_then(|()| write!(table, "  {field:<42} {from} -> {to:<42} {told}")).expect("a text can be written to");
        if matches!(fate, Fate::Unseen) {
            unseen.insert(format!("{field} = {to}"), from);
        }
    }
    show(&table);
    assert!(unseen.is_empty(), "{profile}: no recorded trace tells {unseen:?}");
}

/// Named profiles: changing any one value of `session_observer` turns a recorded trace red.
#[test]
fn every_value_of_the_session_observer_profile_matters() {
    matrix("session_observer");
}

/// Named profiles: changing any one value of `scheduler` turns a recorded trace red.
#[test]
fn every_value_of_the_scheduler_profile_matters() {
    matrix("scheduler_signal_bus");
}

/// Named profiles: changing any one value of `terminal_callback` turns a recorded trace red.
#[test]
fn every_value_of_the_terminal_callback_profile_matters() {
    matrix("terminal_callbacks");
}

/// Named profiles: changing any one value of `broadcaster` turns a recorded trace red.
#[test]
fn every_value_of_the_broadcaster_profile_matters() {
    matrix("broadcaster");
}

/// Named profiles: changing any one value of `message_added_sync` turns a recorded trace red.
#[test]
fn every_value_of_the_message_added_sync_profile_matters() {
    matrix("message_added_sync");
}

/// Named profiles: changing any one value of `message_added_async` turns a recorded trace red.
#[test]
fn every_value_of_the_message_added_async_profile_matters() {
    matrix("message_added_async");
}
