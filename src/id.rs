//! Typed identifiers.
//!
//! Every identifier is a text that its owner chose, or a fresh version 7 UUID. Two identifiers of different kinds never compare.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest identifier, in bytes.
pub const MAX_ID_BYTES: usize = 512;

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidId {
    /// The text is empty.
    #[error("{kind} is empty: give it at least one character")]
    Empty {
        /// Which identifier was to be built.
        kind: &'static str,
    },
    /// The text is longer than [`MAX_ID_BYTES`].
    #[error("{kind} has {bytes} bytes: at most {MAX_ID_BYTES} are allowed")]
    TooLong {
        /// Which identifier was to be built.
        kind: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The text holds a control character.
    #[error("{kind} holds a control character at byte {at}: identifiers are printable text")]
    Control {
        /// Which identifier was to be built.
        kind: &'static str,
        /// Where the character stands.
        at: usize,
    },
}

fn check(kind: &'static str, text: &str) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty { kind });
    }
    if text.len() > MAX_ID_BYTES {
        return Err(InvalidId::TooLong { kind, bytes: text.len() });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(InvalidId::Control { kind, at }),
        None => Ok(()),
    }
}

macro_rules! identifiers {
    ($($(#[$docs:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// An identifier that its owner chose.
            ///
            /// # Errors
            /// [`InvalidId`] when the text is empty, too long or holds a control character.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidId> {
                let text = text.into();
                check(stringify!($name), &text)?;
                Ok(Self(text))
            }

            /// A fresh identifier: a version 7 UUID, ordered by its time of birth within one process.
            #[must_use]
            pub fn generate() -> Self {
                let mut text = uuid::Uuid::encode_buffer();
                Self((&*uuid::Uuid::now_v7().hyphenated().encode_lower(&mut text)).into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

identifiers! {
    /// One observed session: the scope of a sequence, an observer and an audit.
    SessionId,
    /// The invocation that a fact belongs to.
    InvocationId,
    /// One admitted execution attempt. A retry is a new attempt (I-12).
    AttemptId,
    /// One operation over all its attempts.
    OperationId,
    /// One fact. Appending it again under the same identity returns its first position.
    SignalId,
    /// One opening of a store by one process (L-22).
    RuntimeInstanceId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_texts_are_refused_with_their_place() {
        assert_eq!(SessionId::new("").unwrap_err(), InvalidId::Empty { kind: "SessionId" });
        assert_eq!(SessionId::new("a\nb").unwrap_err(), InvalidId::Control { kind: "SessionId", at: 1 });
        let long = "x".repeat(MAX_ID_BYTES + 1);
        assert_eq!(AttemptId::new(long).unwrap_err(), InvalidId::TooLong { kind: "AttemptId", bytes: MAX_ID_BYTES + 1 });
        assert!(serde_json::from_str::<SignalId>("\"\"").is_err());
    }

    #[test]
    fn fresh_identifiers_differ() {
        assert_ne!(SignalId::generate(), SignalId::generate());
    }
}
