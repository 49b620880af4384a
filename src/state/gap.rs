//! Gaps: what is known about facts that never reached the journal (P-10).

use std::num::NonZeroU64;

use serde_json::json;

use crate::clock::Timestamp;
use crate::id::{SessionId, SignalId};
use crate::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal};

/// A known degradation of the audit: facts of a session that happened and are not recorded.
///
/// It takes a position of its own in the session's sequence, as a fact of kind `capture_gap`, so that a forward reader meets it where the facts
/// are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Its identity. Recording it again under the same identity returns the first position.
    pub id: SignalId,
    /// The session that misses facts.
    pub session: SessionId,
    /// Why they are missing.
    pub reason: GapReason,
    /// When the first missing fact occurred.
    pub first_at: Timestamp,
    /// When the last missing fact occurred.
    pub last_at: Timestamp,
    /// How many are missing; `None` is unknown. A gap of none is no gap, so it cannot be written.
    pub known_lost: Option<NonZeroU64>,
}

/// Why facts are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapReason {
    /// The journal's queue had no room, and the session's audit did not wait for it.
    QueueFull,
    /// The journal's queue had no room before the deadline.
    DeadlinePassed,
    /// The store could not take them.
    StoreUnavailable,
    /// The writer ended while it held them.
    WriterLost,
    /// The journal refused them, for example because their identity was taken by other content.
    Refused,
}

impl GapReason {
    /// Every reason.
    pub const ALL: &'static [Self] =
        &[Self::QueueFull, Self::DeadlinePassed, Self::StoreUnavailable, Self::WriterLost, Self::Refused];

    /// The name in the store and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::DeadlinePassed => "deadline_passed",
            Self::StoreUnavailable => "store_unavailable",
            Self::WriterLost => "writer_lost",
            Self::Refused => "refused",
        }
    }

    /// Reads a stored name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }
}

impl Gap {
    /// The fact that stands for the gap in the sequence: kind `capture_gap`, role `journal`, payload `tipstaff.capture_gap` version 1.
    #[must_use]
    pub fn to_signal(&self) -> Signal {
        let value = json!({
            "reason": self.reason.as_str(),
            "first_at_us": self.first_at.as_micros(),
            "last_at_us": self.last_at.as_micros(),
            "known_lost": self.known_lost,
        });
        Signal::builder(self.session.clone(), LifecycleKind::CaptureGap, self.last_at)
            .id(self.id.clone())
            .role(EmitterRole::shipped("journal"))
            .payload(Payload::from_value(PayloadType::shipped("tipstaff.capture_gap", 1), value))
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-10: the count of a gap is known or unknown, and what is unknown is not written as a number.
    #[test]
    fn an_unknown_loss_is_null_and_never_zero() {
        let mut gap = Gap {
            id: SignalId::generate(),
            session: SessionId::new("s").unwrap(),
            reason: GapReason::QueueFull,
            first_at: Timestamp::from_micros(1),
            last_at: Timestamp::from_micros(2),
            known_lost: None,
        };
        assert!(gap.to_signal().payload().value()["known_lost"].is_null());
        gap.known_lost = NonZeroU64::new(7);
        assert_eq!(gap.to_signal().payload().value()["known_lost"], 7);
    }

    #[test]
    fn every_reason_is_read_back() {
        assert!(GapReason::ALL.iter().all(|reason| GapReason::parse(reason.as_str()) == Some(*reason)));
        assert_eq!(GapReason::parse("later"), None);
    }
}
