//! Deterministic declarations: digests over canonical JSON, strict reading of JSON text, and durable names of handlers.
//!
//! What is judged, planned or persisted is named by a digest over RFC 8785 canonical JSON ([`digest_of`]). The digest is the same in every
//! process and under every `serde_json` feature set that a build turns on, so that a plan compiled today and a plan compiled elsewhere can be
//! compared by one short text.

mod callable;
mod canonical;
mod digest;
mod error;
mod number;
mod parse;

pub use callable::{CallableRef, CallableRegistry, InvalidCallable};
pub use canonical::{MAX_DEPTH, canonical_json, digest_of};
pub use digest::{Digest, InvalidDigest};
pub use error::{CanonicalError, ParseError};
pub use parse::parse_json;
