//! The drivers: each builds the handlers of a scenario, takes the named profile, emits, and reads the facts back.

use super::run::{Driving, Stage};
use super::scenario::{Kind, Scenario};
use super::world::Pace;

/// How one mechanism is driven.
pub(super) struct Driver {
    profile: &'static str,
    /// Whether the mechanism runs plain handlers on threads of their own, which a paused clock does not wait for.
    offloads: bool,
    drive: fn(Stage) -> Driving,
}

impl Driver {
    pub(super) const fn profile(&self) -> &'static str {
        self.profile
    }

    /// Real time only where a handler is offloaded.
    pub(super) fn pace(&self, scenario: &Scenario) -> Pace {
        let plain = |kind| matches!(kind, Kind::Sync | Kind::SyncReturnsCoroutine | Kind::SyncReturnsFuture);
        let threads = self.offloads && scenario.handlers.iter().any(|handler| plain(handler.kind));
        if threads { Pace::Real } else { Pace::Paused }
    }

    pub(super) fn drive(&self, stage: Stage) -> Driving {
        (self.drive)(stage)
    }
}

/// Every mechanism in scope.
pub(super) fn all() -> Vec<Driver> {
    Vec::new()
}
