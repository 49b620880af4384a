//! Where ours differs from the recorded behaviour on purpose: by rule, never by scenario.
//!
//! A deviation says under which circumstances of the *setup* it applies, which member differs, and what ours is, computed from what was recorded. Where
//! it applies, ours must differ from what was recorded: a listed deviation that agrees fails, so that the list cannot outlive its reason.

use std::fmt;

use super::scenario::{Observed, Scenario};

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
pub(super) const DEVIATIONS: &[Deviation] = &[];

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
