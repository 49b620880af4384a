//! The record of a hook point, as a fact and as the original's row.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HookPoint;
use crate::clock::Timestamp;
use crate::id::SessionId;
use crate::signal::{EmitterRole, Payload, PayloadType, Signal, SignalKind, UserKind};

/// The kind of facts that record a hook point.
pub const HOOK_KIND: &str = "lionagi.hook_signal";
/// The payload type of facts that record a hook point.
pub(super) const HOOK_PAYLOAD: &str = "lionagi.HookSignal";

/// What is recorded of an emission at a hook point. The free-form arguments of the original stand in the row only: see
/// [`LegacyFact`](super::LegacyFact).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The point.
    pub point: HookPoint,
    /// Whether the emitter was kept from going on.
    pub denied: bool,
    /// Whether a failure reached the emitter.
    pub has_exception: bool,
}

impl HookRecord {
    /// The record as a fact.
    #[must_use]
    pub fn signal(&self, session: SessionId, occurred_at: Timestamp) -> Signal {
        Signal::builder(session, kind(), occurred_at)
            .role(EmitterRole::shipped("hook"))
            .payload(Payload::from_value(PayloadType::shipped(HOOK_PAYLOAD, 1), self.value()))
            .build()
    }

    pub(super) fn value(self) -> Value {
        json!({ "point": self.point, "denied": self.denied, "has_exception": self.has_exception })
    }

    /// Reads the record of a fact; `None` where the fact records no hook point.
    #[must_use]
    pub fn from_signal(signal: &Signal) -> Option<Self> {
        let of_hook = signal.kind().as_str() == HOOK_KIND && signal.payload().shape().name() == HOOK_PAYLOAD;
        of_hook.then(|| Self::deserialize(signal.payload().value()).ok()).flatten()
    }
}

pub(super) fn kind() -> SignalKind {
    SignalKind::User(UserKind::new(HOOK_KIND).expect("the literal is a namespaced name"))
}
