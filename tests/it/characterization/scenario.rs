//! A scenario file, strictly: a member that is not known here is an error, so that nothing recorded is silently not compared.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The schema that this runner reads.
pub(super) const SCHEMA: &str = "tipstaff.characterization/1";

/// One file of the folder.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    #[serde(rename = "schema")]
    _schema: String,
    pub(super) id: String,
    #[serde(rename = "profile")]
    _profile: String,
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "tags")]
    _tags: Vec<String>,
    pub(super) event_order: EventOrder,
    #[serde(default)]
    pub(super) must_precede: Vec<(String, String)>,
    /// Two tasks must both take their first step before a failure is acted on. Ours do, so the flag changes nothing here.
    #[serde(default, rename = "timing_sensitive")]
    _timing_sensitive: bool,
    pub(super) handlers: Vec<Handler>,
    /// Of the profile: see [`Scenario::setup`].
    #[serde(default)]
    setup: Option<Value>,
    pub(super) emit: Emit,
    #[serde(default)]
    pub(super) deadline_ms: Option<u64>,
    #[serde(default)]
    pub(super) settle_ms: u64,
    pub(super) deterministic: bool,
    pub(super) observed: Observed,
    /// The other traces of a scenario that is not deterministic.
    #[serde(default, rename = "variants")]
    _variants: Vec<Value>,
}

impl Scenario {
    /// The preparation, as the profile reads it; an absent one is the profile's default.
    pub(super) fn setup<S: DeserializeOwned + Default>(&self) -> Result<S, String> {
        let setup = self.setup.clone().map(serde_json::from_value).transpose();
        setup.map(Option::unwrap_or_default).map_err(|error| format!("setup: {error}"))
    }

    /// The handlers that are registered before the emission, in order.
    pub(super) fn registered(&self) -> impl Iterator<Item = &Handler> {
        self.handlers.iter().filter(|handler| handler.registered)
    }
}

/// What of a file has to be known before it can be read strictly.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope {
    pub(super) schema: String,
    pub(super) profile: String,
}

/// How `observed.events` is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventOrder {
    Total,
    Partial,
}

/// One registration, or several of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handler {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) script: Vec<Step>,
    #[serde(default)]
    pub(super) invoke_script: Vec<Step>,
    #[serde(default)]
    pub(super) on_cancel: OnCancel,
    #[serde(default = "yes")]
    pub(super) registered: bool,
    #[serde(default = "one")]
    pub(super) times: u32,
    /// Of the profile: see [`Handler::filter`].
    #[serde(default)]
    filter: Option<Value>,
    #[serde(default)]
    pub(super) registration: Option<String>,
    #[serde(default, rename = "override")]
    pub(super) overrides: bool,
    #[serde(default)]
    pub(super) role: Option<Role>,
    #[serde(default)]
    pub(super) exit: bool,
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

impl Handler {
    /// The filter, as the profile reads it.
    pub(super) fn filter<F: DeserializeOwned>(&self) -> Result<Option<F>, String> {
        self.filter.clone().map(serde_json::from_value).transpose().map_err(|error| format!("{}.filter: {error}", self.name))
    }
}

const fn yes() -> bool {
    true
}

const fn one() -> u32 {
    1
}

/// What a handler is declared as, and what its call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Sync,
    Async,
    AsyncPartial,
    AsyncCallableObject,
    SyncReturnsCoroutine,
    SyncReturnsFuture,
}

/// The part of a service hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Pre,
    Core,
    Post,
}

/// One step of a script. Steps without members are written as empty structs: a unit variant would take unknown members.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    Return { value: Value },
    Raise { error: String },
    RaiseFatal { error: String },
    RaiseRefused {},
    Cancel {},
    Stop {},
    Sleep { ms: u64 },
    Hang {},
    Set { latch: String },
    Await { latch: String },
    Mark { label: String },
    Mutate { key: String, value: Value },
    Read { key: String },
    Register { handler: String },
    Unregister { handler: String },
}

/// What a body does when a cancellation arrives from outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum OnCancel {
    Propagate {},
    Return {
        #[serde(default)]
        value: Value,
    },
    Raise {
        error: String,
    },
}

impl Default for OnCancel {
    fn default() -> Self {
        Self::Propagate {}
    }
}

/// What the emitter does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Emit {
    pub(super) entry: Entry,
    #[serde(default)]
    pub(super) cancel_on_latch: Option<String>,
    #[serde(default)]
    pub(super) cancel_after_ms: Option<u64>,
    #[serde(default)]
    pub(super) emitter_role: Option<String>,
    #[serde(default)]
    pub(super) event: Option<String>,
}

/// Through which door the emitter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    Async,
    Sync,
    BlockingEmit,
    Emit,
    Authorize,
}

/// A trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observed {
    pub(super) events: Vec<String>,
    pub(super) outcome: Outcome,
    pub(super) never_awaited: Vec<String>,
    pub(super) not_run: Vec<String>,
    pub(super) logs: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) extra: BTreeMap<String, Value>,
}

/// How the emission ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Outcome {
    #[default]
    Hung,
    Returned {
        value: Value,
    },
    Raised {
        error: Raised,
    },
}

impl Outcome {
    /// The emitter's own event.
    pub(super) const fn event(&self) -> &'static str {
        match self {
            Self::Hung => "emit:hung",
            Self::Returned { .. } => "emit:returned",
            Self::Raised { .. } => "emit:raised",
        }
    }
}

/// An error. Only the outermost has a cause; an absent one is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Raised {
    Ordinary {
        name: String,
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    Fatal {
        name: String,
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    Group {
        members: Vec<Raised>,
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    Cancelled {
        by: By,
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    HandlerCancelled {
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    StoreRefused {
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
    Library {
        class: String,
        #[serde(default)]
        cause: Option<Box<Raised>>,
    },
}

impl Raised {
    /// The same error with a cause.
    pub(super) fn caused_by(mut self, by: Self) -> Self {
        match &mut self {
            Self::Ordinary { cause, .. }
            | Self::Fatal { cause, .. }
            | Self::Group { cause, .. }
            | Self::Cancelled { cause, .. }
            | Self::HandlerCancelled { cause }
            | Self::StoreRefused { cause }
            | Self::Library { cause, .. } => *cause = Some(Box::new(by)),
        }
        self
    }
}

/// Whose cancellation it was. Which of `scope` and `unnamed` is reported is a detail of the original: both are "another's".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) enum By {
    Handler(String),
    Emitter,
    Other,
}

impl From<String> for By {
    fn from(text: String) -> Self {
        match text.strip_prefix("handler:") {
            Some(handler) => Self::Handler(handler.to_owned()),
            None if text == "emitter" => Self::Emitter,
            None => Self::Other,
        }
    }
}

impl From<By> for String {
    fn from(by: By) -> Self {
        by.to_string()
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(name) => write!(f, "handler:{name}"),
            Self::Emitter => f.write_str("emitter"),
            Self::Other => f.write_str("other"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is not known is refused wherever it stands, also beside a step that has no members.
    #[test]
    fn an_unknown_member_is_an_error() {
        let step = |step: Value| serde_json::from_value::<Step>(step).is_ok();
        assert!(step(json!({"op": "hang"})) && step(json!({"op": "sleep", "ms": 1})));
        assert!(
            !step(json!({"op": "hang", "ms": 1}))
                && !step(json!({"op": "sleep", "ms": 1, "s": 1}))
                && !step(json!({"op": "nap"}))
        );
        let handler = json!({"name": "h", "kind": "sync", "script": []});
        assert!(serde_json::from_value::<Handler>(handler.clone()).is_ok());
        let mut more = handler;
        more["once"] = json!(true);
        assert!(serde_json::from_value::<Handler>(more).is_err());
        assert!(serde_json::from_value::<OnCancel>(json!({"do": "propagate", "value": 1})).is_err());
        assert!(serde_json::from_value::<Raised>(json!({"type": "store_refused", "name": "E"})).is_err());
        assert!(serde_json::from_value::<Outcome>(json!({"kind": "hung"})).is_ok());
    }
}
