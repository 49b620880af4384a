//! Deterministic declarations: digests over canonical JSON, and durable names of handlers.

mod digest;

pub use digest::{Digest, InvalidDigest};
