//! What kind of fact a signal is. The shipped kinds are closed and stand here (P-12).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SignalError;

macro_rules! lifecycle_kinds {
    ($($(#[$docs:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// The shipped kinds. The set is closed: a new one must stop the build where it matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LifecycleKind { $($(#[$docs])* $variant),+ }

        impl LifecycleKind {
            /// Every shipped kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in the store and on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

lifecycle_kinds! {
    /// A run began.
    RunStarted = "run_started",
    /// A run ended without a failure.
    RunEnded = "run_ended",
    /// A run failed.
    RunFailed = "run_failed",
    /// A node was created.
    NodeSpawned = "node_spawned",
    /// A node waits for its turn.
    NodeQueued = "node_queued",
    /// A node began.
    NodeStarted = "node_started",
    /// A node ended with a result.
    NodeCompleted = "node_completed",
    /// A node failed.
    NodeFailed = "node_failed",
    /// A node was not run.
    NodeSkipped = "node_skipped",
    /// A node was cancelled.
    NodeCancelled = "node_cancelled",
    /// A node asked for a decision above it.
    NodeEscalated = "node_escalated",
    /// A node was paused.
    NodePaused = "node_paused",
    /// A node waits for an approval.
    NodeAwaitingApproval = "node_awaiting_approval",
    /// A message joined a conversation.
    MessageAdded = "message_added",
    /// A structured output was produced.
    StructuredOutput = "structured_output",
    /// A reviewer reached a verdict.
    VerdictRaised = "verdict_raised",
    /// A budget's threshold was crossed, or the budget is spent.
    BudgetCrossed = "budget_crossed",
    /// The invocation that owns a subscription is settled.
    InvocationSettled = "invocation_settled",
    /// An operation was proposed; nothing has run (P-9).
    OperationProposed = "operation_proposed",
    /// The operation was denied; it was not performed.
    OperationDenied = "operation_denied",
    /// Capacity deferred the operation; it was not performed (I-9).
    OperationDeferred = "operation_deferred",
    /// The operation waits for an approver; this attempt is over (I-10).
    OperationEscalated = "operation_escalated",
    /// The operation was performed and returned.
    OperationCompleted = "operation_completed",
    /// The operation was performed and failed, panicked or ran past its deadline: the payload says which.
    OperationFailed = "operation_failed",
    /// The operation was cancelled before it was performed.
    OperationCancelled = "operation_cancelled",
    /// A permit was never used.
    OperationAbandoned = "operation_abandoned",
    /// It is not known whether, or how far, the operation was performed.
    OperationAmbiguous = "operation_ambiguous",
    /// Facts are missing here.
    CaptureGap = "capture_gap",
}

impl LifecycleKind {
    /// Whether a fact of this kind ends an attempt of an operation. Each attempt has exactly one (P-9).
    #[must_use]
    pub const fn closes_operation(self) -> bool {
        matches!(
            self,
            Self::OperationDenied
                | Self::OperationDeferred
                | Self::OperationEscalated
                | Self::OperationCompleted
                | Self::OperationFailed
                | Self::OperationCancelled
                | Self::OperationAbandoned
                | Self::OperationAmbiguous
        )
    }
}

/// A kind under its author's own namespace: `namespace.name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserKind(Arc<str>);

impl UserKind {
    /// A kind from its full name, `namespace.name`.
    ///
    /// # Errors
    /// [`SignalError::Kind`] when the name has no namespace, an empty part, more than 128 bytes, or anything but lower-case ASCII letters,
    /// digits, `_`, `-` and dots between its parts.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, SignalError> {
        let name = name.into();
        let plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        };
        let remedy = if !name.contains('.') {
            "put your own namespace before it, as in `mytool.finished`"
        } else if name.len() > 128 {
            "use at most 128 bytes"
        } else if !name.split('.').all(plain) {
            "use only these characters, and no empty part"
        } else {
            return Ok(Self(name));
        };
        Err(SignalError::Kind { name: name.to_string(), remedy })
    }

    /// The full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SignalKind {
    /// One of the shipped kinds.
    Lifecycle(LifecycleKind),
    /// A kind of a user's own.
    User(UserKind),
    /// A kind that this version does not know: kept by name and passed on (P-12). Only reading makes one.
    Unknown(Arc<str>),
}

impl SignalKind {
    /// A user's kind from its full name, `namespace.name`.
    ///
    /// # Errors
    /// [`SignalError::Kind`], as [`UserKind::new`].
    pub fn user(name: impl Into<Arc<str>>) -> Result<Self, SignalError> {
        UserKind::new(name).map(Self::User)
    }

    /// Reads a stored name. It never fails: what is not known is kept by name.
    #[must_use]
    pub fn from_stored(name: &str) -> Self {
        match LifecycleKind::parse(name) {
            Some(kind) => Self::Lifecycle(kind),
            None => UserKind::new(name).map_or_else(|_| Self::Unknown(name.into()), Self::User),
        }
    }

    /// The name in the store and on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Lifecycle(kind) => kind.as_str(),
            Self::User(kind) => kind.as_str(),
            Self::Unknown(name) => name,
        }
    }

    /// The shipped kind, if it is one.
    #[must_use]
    pub const fn lifecycle(&self) -> Option<LifecycleKind> {
        match self {
            Self::Lifecycle(kind) => Some(*kind),
            Self::User(_) | Self::Unknown(_) => None,
        }
    }
}

impl From<LifecycleKind> for SignalKind {
    fn from(kind: LifecycleKind) -> Self {
        Self::Lifecycle(kind)
    }
}

impl From<UserKind> for SignalKind {
    fn from(kind: UserKind) -> Self {
        Self::User(kind)
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for SignalKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SignalKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_stored(&Cow::<'de, str>::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-12: every shipped kind survives the store, and an unknown one is kept by name.
    #[test]
    fn every_kind_is_read_back_as_it_was_written() {
        for &kind in LifecycleKind::ALL {
            assert_eq!(SignalKind::from_stored(kind.as_str()), SignalKind::Lifecycle(kind));
        }
        assert_eq!(SignalKind::from_stored("my.kind"), SignalKind::user("my.kind").unwrap());
        let later = SignalKind::from_stored("Kind Of A Later Version");
        assert_eq!(later.as_str(), "Kind Of A Later Version");
        assert_eq!(later, SignalKind::Unknown("Kind Of A Later Version".into()));
    }

    #[test]
    fn a_user_kind_needs_a_namespace() {
        for name in ["plain", ".x", "x.", "a..b", "A.b", "a.b c"] {
            assert!(SignalKind::user(name).is_err(), "{name}");
        }
    }
}
