//! Pointers to evidence.

use serde::Serialize;
use serde_json::Value;

use crate::declare::{CanonicalError, canonical_json};

/// The longest reference, in bytes of its canonical JSON.
pub const MAX_EVIDENCE_BYTES: usize = 10 * 1024;

/// An opaque pointer to evidence: recorded as it came, never followed.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceRef(Value);

/// Why a value is no evidence reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// Longer than [`MAX_EVIDENCE_BYTES`].
    #[error(
        "an evidence reference has {bytes} canonical bytes: at most {MAX_EVIDENCE_BYTES} are allowed, so store the evidence and point to it"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has no canonical form.
    #[error("an evidence reference has no canonical form")]
    NotCanonical(#[from] CanonicalError),
}

impl EvidenceRef {
    /// A reference from a text or another JSON value.
    ///
    /// # Errors
    /// [`EvidenceError::TooLong`] beyond [`MAX_EVIDENCE_BYTES`]; [`EvidenceError::NotCanonical`] when the value has no canonical form.
    pub fn new(pointer: impl Into<Value>) -> Result<Self, EvidenceError> {
        let pointer = pointer.into();
        match canonical_json(&pointer)?.len() {
            bytes if bytes > MAX_EVIDENCE_BYTES => Err(EvidenceError::TooLong { bytes }),
            _ => Ok(Self(pointer)),
        }
    }

    /// The pointer.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }
}

impl Serialize for EvidenceRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 2, decision: an evidence reference has at most 10 KiB canonical.
    #[test]
    fn evidence_is_bounded_by_its_canonical_length() {
        let longest = "x".repeat(MAX_EVIDENCE_BYTES - 2);
        assert!(EvidenceRef::new(longest.as_str()).is_ok());
        let refused = EvidenceRef::new(longest + "x").unwrap_err();
        assert_eq!(refused, EvidenceError::TooLong { bytes: MAX_EVIDENCE_BYTES + 1 });
    }
}
