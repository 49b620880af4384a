//! What the handles of a port, its mailbox and its consumer share.

use std::sync::Arc;

use super::core::Core;
use super::poison::Poison;
use tipstaff_core::telemetry;

pub(super) struct Shared<M> {
    pub(super) name: Arc<str>,
    pub(super) core: Core<M>,
    pub(super) kind: Option<fn(&M) -> Option<u64>>,
    pub(super) poison: Option<Poison<M>>,
}

impl<M> Shared<M> {
    /// Names this port among all of the process, for as long as it lives.
    pub(super) fn identity(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Under which key a message is watched for poison.
    pub(super) fn poison_key(&self, message: &M) -> Option<u64> {
        self.poison.as_ref().and_then(|poison| (poison.rule.key)(message))
    }

    pub(super) fn is_condemned(&self, key: Option<u64>) -> bool {
        match (key, &self.poison) {
            (Some(key), Some(poison)) => poison.is_condemned(key),
            (None, _) | (_, None) => false,
        }
    }

    /// Gives a condemned message, which counts as in hand, to its hook.
    pub(super) fn set_aside(&self, message: M) {
        self.core.set_aside();
        if let Some(poison) = &self.poison {
            (poison.rule.set_aside)(message);
        }
    }

    /// Notes that a message with this key did not crash its owner. The count of handled messages follows at the next pop.
    pub(super) fn handled_well(&self, key: Option<u64>) {
        if let (Some(key), Some(poison)) = (key, &self.poison) {
            poison.handled(key);
        }
    }

    /// Accounts for messages that a crash took out of their owner's hand.
    pub(super) fn crashed(&self, messages: u64, keys: &[u64]) {
        self.core.crashed(messages);
        let Some(poison) = &self.poison else { return };
        for key in poison.crashed(keys) {
            tracing::error!(target: telemetry::PORT, port = &*self.name, key, "poison: messages with this key are set aside from now on");
        }
    }
}

/// Rings the owner of some port.
pub(super) trait Ring: Send + Sync {
    fn ring(&self);
}

impl<M: Send> Ring for Shared<M> {
    fn ring(&self) {
        self.core.ring();
    }
}
