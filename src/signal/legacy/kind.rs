//! The original system's signal kinds, and what they are here.
//!
//! | the original       | here                     |   | the original           | here                      |
//! |--------------------|--------------------------|---|------------------------|---------------------------|
//! | `Signal`           | `lionagi.signal`         |   | `NodeCancelled`        | `node_cancelled`          |
//! | `StructuredOutput` | `structured_output`      |   | `NodeEscalated`        | `node_escalated`          |
//! | `RunStart`         | `run_started`            |   | `NodePaused`           | `node_paused`             |
//! | `RunEnd`           | `run_ended`              |   | `NodeAwaitingApproval` | `node_awaiting_approval`  |
//! | `RunFailed`        | `run_failed`             |   | `MessageAdded`         | `message_added`           |
//! | `NodeSpawned`      | `node_spawned`           |   | `GateDenied`           | `lionagi.gate_denied`     |
//! | `NodeQueued`       | `node_queued`            |   | `DispatchSignal`       | `lionagi.dispatch_signal` |
//! | `NodeStarted`      | `node_started`           |   | `HookSignal`           | `lionagi.hook_signal`     |
//! | `NodeCompleted`    | `node_completed`         |   | any other              | kept by its name (P-12)   |
//! | `NodeFailed`       | `node_failed`            |   |                        |                           |
//! | `NodeSkipped`      | `node_skipped`           |   |                        |                           |
//!
//! `GateDenied` is no `operation_denied`: the latter closes an attempt, which the original does not have.

use std::fmt;

use crate::signal::{LifecycleKind, SignalKind, UserKind};

macro_rules! legacy_kinds {
    ($($variant:ident => $here:expr),+ $(,)?) => {
        /// The signal kinds of the original system, hook records apart. The set is closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names are the original's own")]
        pub enum LegacyKind { $($variant),+ }

        impl LegacyKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in its rows.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// Reads a name; `None` where the original had no such kind.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name { $(stringify!($variant) => Some(Self::$variant),)+ _ => None }
            }

            /// What it is here.
            #[must_use]
            pub fn kind(self) -> SignalKind {
                match self { $(Self::$variant => Here::from($here).0),+ }
            }
        }
    };
}

legacy_kinds! {
    Signal => "lionagi.signal",
    StructuredOutput => LifecycleKind::StructuredOutput,
    RunStart => LifecycleKind::RunStarted,
    RunEnd => LifecycleKind::RunEnded,
    RunFailed => LifecycleKind::RunFailed,
    NodeSpawned => LifecycleKind::NodeSpawned,
    NodeQueued => LifecycleKind::NodeQueued,
    NodeStarted => LifecycleKind::NodeStarted,
    NodeCompleted => LifecycleKind::NodeCompleted,
    NodeFailed => LifecycleKind::NodeFailed,
    NodeSkipped => LifecycleKind::NodeSkipped,
    NodeCancelled => LifecycleKind::NodeCancelled,
    NodeEscalated => LifecycleKind::NodeEscalated,
    NodePaused => LifecycleKind::NodePaused,
    NodeAwaitingApproval => LifecycleKind::NodeAwaitingApproval,
    MessageAdded => LifecycleKind::MessageAdded,
    GateDenied => "lionagi.gate_denied",
    DispatchSignal => "lionagi.dispatch_signal",
}

struct Here(SignalKind);

impl From<LifecycleKind> for Here {
    fn from(kind: LifecycleKind) -> Self {
        Self(kind.into())
    }
}

impl From<&'static str> for Here {
    fn from(name: &'static str) -> Self {
        Self(UserKind::new(name).expect("the literals are namespaced names").into())
    }
}

impl LegacyKind {
    /// The original's kind for one of here; `None` where it has none.
    #[must_use]
    pub fn of(kind: &SignalKind) -> Option<Self> {
        Self::ALL.iter().copied().find(|legacy| legacy.kind() == *kind)
    }
}

impl fmt::Display for LegacyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
