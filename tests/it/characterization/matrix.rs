//! Changes one value of each named profile at a time, and shows that a recorded trace tells.
//!
//! | a profile with one other value   | means                                                                        |
//! |----------------------------------|------------------------------------------------------------------------------|
//! | breaks a rule of validation      | it cannot be adopted at all: the rule says so                                |
//! | makes a scenario differ          | a dispatcher that adopted it would be found                                  |
//! | makes none differ, and stands in [`EQUIVALENT`] | it is another name for the same behaviour, for the reason that stands there |
//! | makes none differ otherwise      | the test fails                                                               |
//!
//! A value that stands in [`EQUIVALENT`] and makes a scenario differ fails as well.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tipstaff::compat::{HookPolicy, StopMeans};
use tipstaff::dispatch::{
    Completion, Concurrency, Conduct, DeadlineDisposition, DispatchPolicy, ErrorSurface, Failure, HandlerCancellation,
    HandlerClassification, LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry,
    SyncHandlers,
};

use super::compare::differences;
use super::corpus;
use super::deviations::expected;
use super::drivers::{self, Driver};
use super::run::run;
use super::scenario::Scenario;
use super::world::Pace;
use crate::rig::show;

/// A profile with one other value.
struct Mutant {
    field: String,
    from: Value,
    to: Value,
    policy: Value,
}

/// A changed value that behaves as the profile's own, whatever a scenario does.
struct Equivalent {
    field: &'static str,
    to: &'static [&'static str],
    /// Which profiles: by their other values.
    applies: fn(&Value) -> bool,
    reason: &'static str,
}

/// Values that nothing can tell apart in Rust, by what else the profile says.
const EQUIVALENT: &[Equivalent] = &[
    Equivalent {
        field: "handler_classification",
        to: &["by_declaration", "by_return_value"],
        applies: |phase| {
            phase["returned_awaitable"] == "await_in_invocation" && phase["returned_value_classifier"] != "not_inspected"
        },
        reason: "what is declared async can only return a native body, which both await, and what else a call returns is looked at under both",
    },
    Equivalent {
        field: "error_surface",
        to: &["return_report"],
        applies: |phase| phase["invocation"]["error_surface"] == "log_only",
        reason: "an isolated failure is in the report and in the log under both (F-10)",
    },
    Equivalent {
        field: "deadline_disposition",
        to: &["return_report"],
        applies: |phase| phase["deadline_disposition"] == "silent_stop",
        reason: "neither logs nor raises, and the report says `timed out` under both (F-21)",
    },
    Equivalent {
        field: "returned_awaitable",
        to: &["await_in_invocation"],
        applies: |phase| {
            phase["handler_classification"] == "by_declaration" && phase["returned_value_classifier"] == "not_inspected"
        },
        reason: "what a declared sync handler returns is not looked at, and so discarded unawaited under both",
    },
    Equivalent {
        field: "filter_failure",
        to: &["collect_as_handler_failure"],
        applies: |phase| phase["invocation"]["failure"] == "propagate" && phase["invocation"]["error_surface"] == "raise_first",
        reason: "a handler's failure ends the stage and is raised first, as a failed filter is",
    },
    Equivalent {
        field: "predicate_failure",
        to: &["collect_as_handler_failure", "no_match", "isolate"],
        applies: |phase| phase["sync_handlers"] == "offload" && phase["deadline_disposition"] == "silent_stop",
        reason: "the filters of terminal callbacks are data and cannot fail",
    },
];

impl Equivalent {
    fn of(mutant: &Mutant, phase: &Value) -> Option<&'static Self> {
        let field = mutant.field.rsplit('/').next().unwrap_or_default();
        EQUIVALENT.iter().find(|same| same.field == field && same.to.iter().any(|to| mutant.to == *to) && (same.applies)(phase))
    }
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
        // Hooks have no third: a policy of theirs that collects cannot be read.
        "failure" => all(Failure::ALL.iter().map(|value| value.as_str()).collect()),
        "completion" => all(Completion::ALL.iter().map(|value| value.as_str()).collect()),
        "error_surface" => all(ErrorSurface::ALL.iter().map(|value| value.as_str()).collect()),
        "handler_cancellation" => all(HandlerCancellation::ALL.iter().map(|value| value.as_str()).collect()),
        "deadline_disposition" => all(DeadlineDisposition::ALL.iter().map(|value| value.as_str()).collect()),
        "stop" => StopMeans::ALL.iter().map(|value| json!(value)).collect(),
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
            found.push(Mutant {
                field: pointer.trim_start_matches("/phases/0/").trim_start_matches('/').to_owned(),
                from: from.clone(),
                to,
                policy: changed,
            });
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
    let readable = match policy.get("phases") {
        Some(_) => serde_json::from_value::<DispatchPolicy>(policy.clone()).map(drop),
        None => serde_json::from_value::<HookPolicy>(policy.clone()).map(drop),
    };
    if let Err(refused) = readable {
        return Fate::Refused(refused.to_string());
    }
    let differs = |scenario: &Arc<Scenario>| {
        let pace = driver.pace(scenario, Some(policy));
        match run(scenario, pace, &|stage| driver.drive(stage, Some(policy.clone()))) {
            Ok(ours) => !differences(scenario, &expected(scenario).observed, &ours).is_empty(),
            Err(_) => true,
        }
    };
    let deterministic = scenarios.iter().filter(|scenario| scenario.deterministic);
    let (quick, slow): (Vec<_>, Vec<_>) = deterministic.partition(|scenario| driver.pace(scenario, Some(policy)) == Pace::Paused);
    let red = quick.into_iter().find(|scenario| differs(scenario)).or_else(|| first(&slow, &differs));
    red.map_or(Fate::Unseen, |scenario| Fate::Red(scenario.id.clone()))
}

/// The first that holds. All of them are asked, side by side: each has a runtime of its own, and nearly all of its time is waiting.
fn first<'a>(scenarios: &[&'a Arc<Scenario>], holds: &(impl Fn(&Arc<Scenario>) -> bool + Sync)) -> Option<&'a Arc<Scenario>> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = scenarios.iter().map(|scenario| (scenario, scope.spawn(move || holds(scenario)))).collect();
        let answered: Vec<_> =
            asked.into_iter().map(|(scenario, asked)| (scenario, asked.join().expect("a scenario ends"))).collect();
        answered.into_iter().find(|(_, holds)| *holds).map(|(scenario, _)| *scenario)
    })
}

fn matrix(profile: &str) {
    let driver = drivers::all().into_iter().find(|driver| driver.profile == profile).expect("it is in scope");
    let corpus = corpus::read(&[profile]);
    let scenarios: Vec<_> =
        [&corpus.scenarios, &corpus.own].into_iter().filter_map(|from| from.get(profile)).flatten().cloned().collect();
    let named = (driver.policy)();
    let mut wrong = Vec::new();
    let mut table = format!("matrix of {profile}: one other value -> the first trace that differs, of {}", scenarios.len());
    for mutant in mutants(&named) {
        let fate = fate(&driver, &scenarios, &mutant.policy);
        let same = Equivalent::of(&mutant, &named["phases"][0]);
        let told = match (&fate, same) {
            (Fate::Refused(rule), _) => format!("refused: {rule}"),
            (Fate::Red(scenario), None) => format!("red: {scenario}"),
            (Fate::Unseen, Some(same)) => format!("the same: {}", same.reason),
            (Fate::Red(scenario), Some(_)) => format!("LISTED AS THE SAME, BUT red: {scenario}"),
            (Fate::Unseen, None) => "NOTHING TELLS".to_owned(),
        };
        let Mutant { field, from, to, .. } = &mutant;
        let row = format!("{field:<38} {from} -> {to}");
        write!(table, "\n  {row:<110} {told}").expect("a text can be written to");
        if matches!((&fate, same), (Fate::Red(_), Some(_)) | (Fate::Unseen, None)) {
            wrong.push(row);
        }
    }
    show(&table);
    assert!(wrong.is_empty(), "{profile}: {wrong:#?}");
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

/// Named profiles: changing any one value of `hook_blocking` turns a recorded trace red.
#[test]
fn every_value_of_the_blocking_hook_profile_matters() {
    matrix("hookbus_blocking");
}

/// Named profiles: changing any one value of `hook_observational` turns a recorded trace red.
#[test]
fn every_value_of_the_observational_hook_profile_matters() {
    matrix("hookbus_observational");
}
