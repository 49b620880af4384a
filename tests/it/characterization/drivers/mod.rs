//! The drivers: each builds the handlers of a scenario, takes the named profile, emits, and reads the facts back.
//!
//! What Rust has no word for is mapped here, for every scenario alike:
//!
//! | in the original                         | here                                                                       |
//! |-----------------------------------------|----------------------------------------------------------------------------|
//! | `async_partial`                         | declared async                                                             |
//! | `async_callable_object`                 | declared sync, returns a coroutine, and logs no call                       |
//! | an ordinary failure named E             | a failure with the code E                                                  |
//! | StopHook outside a hook point           | a failure with the code `stop`                                             |
//! | a library error's Python class          | the variant of our error that says the same: `RuntimeError` is a refused synchronous entry or a hook that broke a service call, `ValueError` a wrong event |
//! | a gate that returns nothing, or something that counts as true | a gate that denies, or allows                        |

mod broadcaster;
mod dispatch;
mod hooks;
mod messages;
mod observer;
mod scheduler;
mod service;
mod terminal;

pub(super) use observer::{GateKind, Setup as ObserverSetup};
use serde_json::Value;

use super::run::{Driving, Stage};
use super::scenario::{Kind, Scenario};
use super::world::Pace;

/// How one mechanism is driven.
pub(super) struct Driver {
    pub(super) profile: &'static str,
    /// The named profile, serialised.
    pub(super) policy: fn() -> Value,
    /// Whether a scenario takes part in threads of ours for another reason than that its plain handlers are offloaded.
    threads: fn(&Scenario) -> bool,
    /// Drives a scenario, under the named profile or under another policy of its form.
    drive: fn(Stage, Option<Value>) -> Driving,
}

impl Driver {
    /// Real time only where a thread takes part, which a paused clock does not wait for.
    pub(super) fn pace(&self, scenario: &Scenario, policy: Option<&Value>) -> Pace {
        let plain = |kind| !matches!(kind, Kind::Async | Kind::AsyncPartial);
        let offloads = policy.map_or_else(|| offloads(&(self.policy)()), offloads);
        let threads = offloads && scenario.handlers.iter().any(|handler| plain(handler.kind));
        if threads || (self.threads)(scenario) { Pace::Real } else { Pace::Paused }
    }

    pub(super) fn drive(&self, stage: Stage, policy: Option<Value>) -> Driving {
        (self.drive)(stage, policy)
    }
}

/// Whether a policy runs plain handlers on threads of their own.
fn offloads(policy: &Value) -> bool {
    let phases = policy.get("phases").and_then(Value::as_array);
    phases.into_iter().flatten().any(|phase| phase["sync_handlers"] == "offload")
}

const fn never(_scenario: &Scenario) -> bool {
    false
}

/// Every mechanism in scope.
pub(super) fn all() -> Vec<Driver> {
    vec![
        observer::DRIVER,
        scheduler::DRIVER,
        terminal::DRIVER,
        broadcaster::DRIVER,
        messages::SYNC,
        messages::ASYNC,
        hooks::BLOCKING,
        hooks::OBSERVATIONAL,
        service::INVOKE,
        service::STREAM,
    ]
}
