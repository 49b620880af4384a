//! Facts: what occurred, immutable from emission onward.
//!
//! A [`Signal`] is an envelope around a typed payload. It carries no decision and nothing can be denied or replaced through it (P-3).

mod error;
mod fact;
mod filter;
mod kind;
mod path;
mod payload;
mod redact;

pub use error::SignalError;
pub use fact::{EmitterRole, Signal, SignalBuilder, SignalSeq, Subject};
pub use filter::{DeclaredFilter, Filter, PredicateError};
pub use kind::{LifecycleKind, SignalKind, UserKind};
pub use payload::{Payload, PayloadType};
pub use redact::{RECORD_MEMBER, InvalidRedaction, MAX_REDACTIONS, REDACTED, Redacted, RedactedField, Redactions};
