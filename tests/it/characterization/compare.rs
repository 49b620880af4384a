//! The comparison of the README: `total` as a list; `partial` by each `<who>`, by the side of the emitter's event, and by `must_precede`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::scenario::{By, EventOrder, Observed, Outcome, Scenario};

/// How a trace differs from the recorded one; nothing: it does not.
pub(super) fn differences(scenario: &Scenario, expected: &Observed, ours: &Observed) -> Vec<String> {
    let mut found = match scenario.event_order {
        EventOrder::Total => differs("events", &expected.events, &ours.events),
        EventOrder::Partial => by_who(&expected.events, &ours.events),
    };
    found.extend(misplaced(&scenario.must_precede, &ours.events));
    found.extend(differs("outcome", &whose(&expected.outcome), &whose(&ours.outcome)));
    found.extend(differs("never_awaited", &expected.never_awaited, &ours.never_awaited));
    found.extend(differs("not_run", &expected.not_run, &ours.not_run));
    found.extend(differs("logs", &total(expected), &total(ours)));
    found.extend(differs("extra", &expected.extra, &ours.extra));
    found
}

/// An outcome in which a returned cancellation says no more than whose it was: its handler's, the emitter's, or another's.
fn whose(outcome: &Outcome) -> Outcome {
    fn narrowed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(narrowed).collect(),
            Value::Object(members) => match members.get("$cancelled").and_then(Value::as_str) {
                Some(by) => json!({"$cancelled": By::from(by.to_owned())}),
                None => value.clone(),
            },
            plain => plain.clone(),
        }
    }
    match outcome {
        Outcome::Returned { value } => Outcome::Returned { value: narrowed(value) },
        other => other.clone(),
    }
}

/// Levels are the original's: the totals are compared.
fn total(observed: &Observed) -> u64 {
    observed.logs.values().sum()
}

fn differs<T: PartialEq + serde::Serialize>(member: &str, expected: &T, ours: &T) -> Vec<String> {
    if expected == ours {
        return Vec::new();
    }
    let text = |value: &T| serde_json::to_string(value).expect("traces are plain data");
    vec![format!("{member}: recorded {}, ours {}", text(expected), text(ours))]
}

fn by_who(expected: &[String], ours: &[String]) -> Vec<String> {
    let (expected, ours) = (sides(expected), sides(ours));
    let everyone: std::collections::BTreeSet<_> = expected.keys().chain(ours.keys()).collect();
    let nothing = Vec::new();
    let of = |of: &BTreeMap<String, Vec<(bool, String)>>, who: &str| of.get(who).unwrap_or(&nothing).clone();
    everyone.into_iter().flat_map(|who| differs(&format!("events of {who}"), &of(&expected, who), &of(&ours, who))).collect()
}

/// The events of each `<who>` in order, each with whether it came after the emitter's event.
fn sides(events: &[String]) -> BTreeMap<String, Vec<(bool, String)>> {
    let mut sides = BTreeMap::<String, Vec<(bool, String)>>::new();
    let mut late = false;
    for event in events {
        let who = event.split(':').next().unwrap_or_default();
        sides.entry(who.to_owned()).or_default().push((late, event.clone()));
        late |= who == "emit";
    }
    sides
}

fn misplaced(must_precede: &[(String, String)], ours: &[String]) -> Vec<String> {
    let first = |event: &String| ours.iter().position(|other| other == event);
    let holds = |(before, after): &&(String, String)| matches!((first(before), first(after)), (Some(a), Some(b)) if a < b);
    must_precede
        .iter()
        .filter(|pair| !holds(pair))
        .map(|(before, after)| format!("must_precede: {before} is not before {after} in {ours:?}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The README's rules for `partial`: the order within each `<who>`, the side of the emitter's event, and the pairs.
    #[test]
    fn a_partial_order_is_free_between_handlers_only() {
        let recorded = events("a:start b:start a:finish emit:returned b:finish");
        assert_eq!(by_who(&recorded, &events("b:start a:start a:finish emit:returned b:finish")), Vec::<String>::new());
        assert_eq!(by_who(&recorded, &events("a:finish b:start a:start emit:returned b:finish")).len(), 1);
        assert_eq!(by_who(&recorded, &events("a:start b:start a:finish b:finish emit:returned")).len(), 1);
        assert_eq!(by_who(&recorded, &events("a:start b:start a:finish emit:returned")).len(), 1);
        let pairs = [("a:start".to_owned(), "b:start".to_owned())];
        assert_eq!(misplaced(&pairs, &recorded), Vec::<String>::new());
        assert_eq!(misplaced(&pairs, &events("b:start a:start")).len(), 1);
        assert_eq!(misplaced(&pairs, &events("b:start")).len(), 1);
    }
}
