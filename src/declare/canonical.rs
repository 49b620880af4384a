//! RFC 8785 canonical JSON from anything that serialises, without building a value in between.
//!
//! | value                                        | canonical form                                            |
//! |----------------------------------------------|-----------------------------------------------------------|
//! | integer of `i64` or `u64`                    | its decimal digits, also beyond 2^53                      |
//! | `i128`, `u128`                               | the same inside `i64` and `u64`, otherwise refused        |
//! | other finite number                          | the double, as ECMAScript writes it; `-0` is `0`          |
//! | infinite or not a number                     | refused                                                   |
//! | text                                         | shortest escapes, everything else as it is                |
//! | map, struct                                  | members ordered by the UTF-16 units of their keys         |
//! | two equal keys                               | refused                                                   |
//! | integer, boolean or character as key         | its text                                                  |
//! | `None`, unit                                 | `null`                                                    |
//! | enum                                         | as `serde_json` writes it: `"V"`, `{"V":..}`              |
//! | bytes                                        | an array of integers                                      |
//!
//! ## Why not from a `serde_json::Value`?
//! A value costs one allocation per member and per text, and what a `Value` holds depends on `serde_json`'s features: under `arbitrary_precision` a
//! number is a text. Written from the serialisation itself, both kinds of number meet in one place and come out equal (I-6).
//!
//! ## Why is the whole form buffered before it is hashed?
//! The members of an object are not known to be in order before the last one has come. Members that come in order stay where they were written.

mod keys;
mod writer;

use serde::Serialize;

use super::{CanonicalError, Digest};

/// How deep objects and arrays may nest. A few levels less than a journal keeps, so that whatever has a digest can stand inside a record.
pub const MAX_DEPTH: usize = 120;

/// The SHA-256 digest of a value's canonical JSON (I-6): the identity of what was judged.
///
/// # Errors
/// [`CanonicalError`] when the value has no canonical form: a number that is not finite or too long, two equal keys, a key that is no text, more
/// than [`MAX_DEPTH`] levels, or a refusal of its own. Trying again gives the same answer.
///
/// # Examples
/// ```
/// # use tipstaff_core::declare::digest_of;
/// let one = digest_of(&serde_json::json!({ "b": 1.0, "a": [true] }))?;
/// let other = digest_of(&serde_json::json!({ "a": [true], "b": 1 }))?;
/// assert_eq!(one, other);
/// # Ok::<(), tipstaff_core::declare::CanonicalError>(())
/// ```
pub fn digest_of<T: Serialize + ?Sized>(value: &T) -> Result<Digest, CanonicalError> {
    canonical_json(value).map(|bytes| Digest::of(&bytes))
}

/// The canonical JSON of a value, as UTF-8.
///
/// # Errors
/// As [`digest_of`].
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut writer = writer::Writer::new();
    match value.serialize(&mut writer) {
        Ok(()) => Ok(writer.finish()),
        Err(fault) => Err(fault.into_error()),
    }
}

#[cfg(test)]
mod tests;
