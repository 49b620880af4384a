//! Facts: what occurred, immutable from emission onward.
//!
//! A [`Signal`] is an envelope around a typed payload. It carries no decision and nothing can be denied or replaced through it (P-3).

mod error;
mod fact;
mod filter;
mod kind;
#[cfg(feature = "compat")]
pub mod legacy;
mod path;
mod payload;
mod redact;

pub use error::{InvalidRedaction, PredicateError, SignalError};
pub use fact::{EmitterRole, Signal, SignalBuilder, SignalSeq, Subject};
pub use filter::{DeclaredFilter, Filter};
pub use kind::{LifecycleKind, SignalKind, UserKind};
pub use payload::{MAX_PAYLOAD_DEPTH, Payload, PayloadType};
pub use redact::{MAX_REDACTIONS, RECORD_MEMBER, REDACTED, Redacted, RedactedField, Redactions};
