//! What a chain judges.

use serde_json::Value;

use crate::declare::{CanonicalError, Digest, digest_of};

/// A value that interceptors judge, with its identity (I-6).
///
/// # Contract
/// The digest covers exactly what is judged and nothing else: no time, sequence, attempt or trace, since two equal proposals must have one
/// digest. Whatever an interceptor may decide by must be covered, since a guard runs again only if the digest changed (I-5). Equal values have equal
/// digests in every process. For a value that serialises, it is one line:
///
/// ```
/// use tipstaff_core::declare::{CanonicalError, Digest, digest_of};
/// use tipstaff_core::interception::Judged;
///
/// struct Call {
///     tool: String,
///     arguments: serde_json::Value,
///     received_at_us: i64, // Not judged.
/// }
///
/// impl Judged for Call {
///     fn digest(&self) -> Result<Digest, CanonicalError> {
///         digest_of(&(&self.tool, &self.arguments))
///     }
/// }
/// ```
pub trait Judged: Send + Sync + 'static {
    /// The digest of what is judged. Computed once at the start of a chain and once per change.
    ///
    /// # Errors
    /// [`CanonicalError`] when the value has no canonical form. Nobody is called with such a value.
    fn digest(&self) -> Result<Digest, CanonicalError>;
}

impl Judged for Value {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

impl Judged for String {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

/// For plans without result stages.
impl Judged for () {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}
