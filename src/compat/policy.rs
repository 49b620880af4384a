//! The two profiles of hook points, as plain data. They are closed: a point takes one as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::declare::{Digest, digest_of};
use crate::dispatch::HandlerClassification;

/// What a chain of hooks does with their ends. Both profiles have in common that the chain is sequential and its hooks are interceptors.
///
/// # Where does the founding document differ?
/// It says that hooks are told apart by their declaration. The recorded system awaits whatever a call returns, and so do these profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookPolicy {
    /// How it is known whether what a call returned is awaited.
    pub handler_classification: HandlerClassification,
    /// What becomes of an ordinary failure.
    pub failure: HookFailure,
    /// What a stop means.
    pub stop: StopMeans,
}

/// What becomes of a hook's ordinary failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailure {
    /// It ends the chain and is raised.
    Propagate,
    /// It is logged, and the chain goes on.
    Isolate,
}

/// What it means that a hook stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMeans {
    /// The chain ends, as a success.
    EndsChain,
    /// It is an ordinary failure with the code `stop`.
    Failure,
}

impl HookPolicy {
    /// At blocking points: the first ordinary failure ends the chain and is raised.
    #[must_use]
    pub const fn blocking() -> Self {
        Self { failure: HookFailure::Propagate, ..Self::observational() }
    }

    /// At all others: ordinary failures are logged.
    #[must_use]
    pub const fn observational() -> Self {
        Self {
            handler_classification: HandlerClassification::ByReturnValue,
            failure: HookFailure::Isolate,
            stop: StopMeans::EndsChain,
        }
    }

    /// The row of the specification's table.
    #[must_use]
    pub fn describe(&self) -> String {
        self.to_string()
    }

    /// The digest of its canonical JSON. Any other value changes it.
    ///
    /// # Panics
    /// Never: it holds names only.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest_of(self).expect("it holds names only")
    }
}

impl HookFailure {
    /// Every value, by its serialised name.
    pub const ALL: &'static [Self] = &[Self::Propagate, Self::Isolate];
}

impl StopMeans {
    /// Every value.
    pub const ALL: &'static [Self] = &[Self::EndsChain, Self::Failure];
}

impl fmt::Display for HookPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failure = match self.failure {
            HookFailure::Propagate => "first ordinary failure ends and is raised",
            HookFailure::Isolate => "isolate and log",
        };
        let stop = match self.stop {
            StopMeans::EndsChain => "a stop ends the chain",
            StopMeans::Failure => "a stop is a failure",
        };
        write!(f, "sequential, interceptor | {} | {failure}; {stop}", self.handler_classification)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Named profiles, `hook_blocking` and `hook_observational`: this test fails when any one value changes.
    #[test]
    fn the_hook_profiles_are_pinned() {
        let (blocking, observational) = (HookPolicy::blocking(), HookPolicy::observational());
        assert_eq!(
            blocking.describe(),
            "sequential, interceptor | by return value | first ordinary failure ends and is raised; a stop ends the chain"
        );
        assert_eq!(
            observational.describe(),
            "sequential, interceptor | by return value | isolate and log; a stop ends the chain"
        );
        assert_ne!(blocking.digest(), observational.digest());
        let text = serde_json::to_string(&blocking).unwrap();
        assert_eq!(text, r#"{"handler_classification":"by_return_value","failure":"propagate","stop":"ends_chain"}"#);
        assert_eq!(serde_json::from_str::<HookPolicy>(&text).unwrap(), blocking);
    }
}
