//! Where ours differs from the recorded behaviour on purpose: by rule, never by scenario.
//!
//! A deviation says under which circumstances of the *setup* it applies, which member differs, and what ours is, computed from what was recorded. Where
//! it applies, ours must differ from what was recorded: a listed deviation that agrees fails, so that the list cannot outlive its reason.

use std::fmt;

use serde_json::json;

use super::drivers::{GateKind, ObserverSetup as Setup};
use super::scenario::{Entry, Handler, Observed, Scenario, Step};

/// One deliberate difference.
pub(super) struct Deviation {
    pub(super) rule: &'static str,
    pub(super) why: &'static str,
    /// Whether the circumstances are those of the rule.
    applies: fn(&Scenario) -> bool,
    /// Rewrites the recorded trace as the rule has it.
    rewrite: fn(&mut Observed),
}

impl fmt::Debug for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, self.why)
    }
}

/// The list.
pub(super) const DEVIATIONS: &[Deviation] = &[
    Deviation {
        rule: "P-1",
        why: "a denial is itself a fact; recorded, an emission that its gate denied left none",
        applies: |scenario| {
            let circumstances = Circumstances::of(scenario);
            // A proposal that was only asked about left its denial in the original as well, unless its gate gave no answer at all.
            circumstances.gate_denies && (!circumstances.only_asked || circumstances.gate_breaks)
        },
        rewrite: |observed| set(observed, "denials_stored", 1),
    },
    Deviation {
        rule: "P-2 (g)",
        why: "a gate that cancels itself or fails fatally does not keep the fact from being recorded",
        applies: |scenario| {
            let circumstances = Circumstances::of(scenario);
            circumstances.gate_breaks && !circumstances.only_asked
        },
        rewrite: |observed| set(observed, "stored", 1),
    },
    Deviation {
        rule: "P-2",
        why: "neither a gate nor a failing subscriber loses the journal's row, or makes the loss counter lie",
        applies: |scenario| {
            let circumstances = Circumstances::of(scenario);
            circumstances.journal && (circumstances.gate_denies || circumstances.subscriber_fails)
        },
        rewrite: |observed| {
            set(observed, "persisted", 1);
            set(observed, "persist_unconfirmed", 0);
        },
    },
];

/// What of a scenario the rules look at. All of it is false where the mechanism stores nothing.
#[derive(Default)]
struct Circumstances {
    journal: bool,
    gate_denies: bool,
    /// The gate was cancelled by its own account, or failed outside the ordinary hierarchy.
    gate_breaks: bool,
    only_asked: bool,
    /// A subscriber fails or cancels itself without having waited for anything.
    subscriber_fails: bool,
}

impl Circumstances {
    fn of(scenario: &Scenario) -> Self {
        if !scenario.observed.extra.contains_key("denials_stored") {
            return Self::default();
        }
        let Ok(setup) = scenario.setup::<Setup>() else { return Self::default() };
        let gate = setup.gate.as_ref().map(|gate| gate.kind);
        Self {
            journal: setup.persist.is_some(),
            gate_denies: gate.is_some_and(|gate| !matches!(gate, GateKind::Absent | GateKind::Allow | GateKind::Truthy)),
            gate_breaks: matches!(gate, Some(GateKind::Cancel | GateKind::RaiseFatal)),
            only_asked: scenario.emit.entry == Entry::Authorize,
            subscriber_fails: scenario.registered().any(fails_at_once),
        }
    }
}

fn fails_at_once(handler: &Handler) -> bool {
    let fails = |steps: &[Step]| {
        let decisive = steps.iter().find(|step| {
            !matches!(
                step,
                Step::Set { .. }
                    | Step::Mark { .. }
                    | Step::Read { .. }
                    | Step::Mutate { .. }
                    | Step::Register { .. }
                    | Step::Unregister { .. }
            )
        });
        matches!(
            decisive,
            Some(Step::Raise { .. } | Step::RaiseFatal { .. } | Step::RaiseRefused {} | Step::Cancel {} | Step::Stop {})
        )
    };
    fails(&handler.invoke_script) || fails(&handler.script)
}

fn set(observed: &mut Observed, member: &str, count: u64) {
    observed.extra.insert(member.to_owned(), json!(count));
}

/// What the rules make of a recorded trace, and which of them apply.
pub(super) struct Expected {
    pub(super) observed: Observed,
    pub(super) deviations: Vec<&'static Deviation>,
    /// Deviations that are listed for this scenario and change nothing in it.
    pub(super) agreeing: Vec<&'static Deviation>,
}

/// Applies the list.
pub(super) fn expected(scenario: &Scenario) -> Expected {
    let mut expected = Expected { observed: scenario.observed.clone(), deviations: Vec::new(), agreeing: Vec::new() };
    for deviation in DEVIATIONS.iter().filter(|deviation| (deviation.applies)(scenario)) {
        let before = expected.observed.clone();
        (deviation.rewrite)(&mut expected.observed);
        if expected.observed == before {
            expected.agreeing.push(deviation);
        } else {
            expected.deviations.push(deviation);
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denied(denials_stored: u64) -> Scenario {
        let scenario = json!({
            "schema": "tipstaff.characterization/1", "id": "any/one", "profile": "session_observer", "title": "", "tags": [],
            "event_order": "total", "handlers": [], "setup": {"gate": {"kind": "deny"}}, "emit": {"entry": "async"},
            "deterministic": true,
            "observed": {
                "events": [], "outcome": {"kind": "returned", "value": []}, "never_awaited": [], "not_run": [], "logs": {},
                "extra": {"stored": 1, "denials_stored": denials_stored},
            },
        });
        serde_json::from_value(scenario).unwrap()
    }

    /// A deviation that is listed changes what is expected; one that would change nothing is found.
    #[test]
    fn a_listed_deviation_that_agrees_is_found() {
        let differs = expected(&denied(0));
        assert_eq!((differs.deviations.len(), differs.agreeing.len()), (1, 0));
        assert_eq!(differs.observed.extra["denials_stored"], 1);
        let agrees = expected(&denied(1));
        assert_eq!((agrees.deviations.len(), agrees.agreeing.len()), (0, 1));
    }
}
