//! Why a value has no canonical form, and why a text is not strict JSON.

/// Why a value has no canonical form, hence no digest. Paths are JSON pointers; the empty path is the whole value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// A number is infinite or not a number.
    #[error("the number at {path:?} is not finite: JSON has no such number")]
    NonFinite {
        /// Where it stands.
        path: String,
    },
    /// A 128-bit integer lies outside the range of `i64` and `u64`.
    #[error("the integer at {path:?} lies outside i64 and u64: write it as a text")]
    IntegerOutOfRange {
        /// Where it stands.
        path: String,
    },
    /// A number text that serialisation handed over is no number.
    #[error("the number at {path:?} is no JSON number")]
    NumberText {
        /// Where it stands.
        path: String,
    },
    /// Two members of one object have the same key.
    #[error("the object at {path:?} has the key {key:?} twice")]
    DuplicateKey {
        /// Where the object stands.
        path: String,
        /// The key.
        key: String,
    },
    /// The key of a map is neither a text, a character, a boolean nor an integer.
    #[error("the map at {path:?} has a key that is no text")]
    KeyNotText {
        /// Where the map stands.
        path: String,
    },
    /// Objects and arrays are nested more than [`MAX_DEPTH`](super::MAX_DEPTH) deep.
    #[error("the value is nested more than {} deep", super::MAX_DEPTH)]
    TooDeep,
    /// The value's own serialisation refused.
    #[error("the value at {path:?} refused to be serialised: {message}")]
    Refused {
        /// Where it stands.
        path: String,
        /// What it said.
        message: String,
    },
}

/// Why a text is not strict JSON. `at` is a byte offset; paths are JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text breaks the grammar of JSON.
    #[error("byte {at}: expected {expected}")]
    Syntax {
        /// Where reading stopped.
        at: usize,
        /// What would have been legal there.
        expected: &'static str,
    },
    /// Two members of one object have the same key (I-6).
    #[error("byte {at}: the member {path:?} stands twice in its object")]
    DuplicateKey {
        /// Where the second key stands.
        at: usize,
        /// The path of the member.
        path: String,
    },
    /// An integer text lies outside `i64` and `u64`, so that reading it would change it (AH-7).
    #[error("byte {at}: the integer at {path:?} lies outside i64 and u64: write it as a text")]
    IntegerOutOfRange {
        /// Where it stands in the text.
        at: usize,
        /// Where it stands in the value.
        path: String,
    },
    /// A number is too large for a double.
    #[error("byte {at}: the number at {path:?} is too large for a double")]
    NonFinite {
        /// Where it stands in the text.
        at: usize,
        /// Where it stands in the value.
        path: String,
    },
    /// Objects and arrays are nested more than [`MAX_DEPTH`](super::MAX_DEPTH) deep.
    #[error("byte {at}: nested more than {} deep", super::MAX_DEPTH)]
    TooDeep {
        /// Where the bound was crossed.
        at: usize,
    },
}

/// Appends one segment to the front of a JSON pointer.
pub(super) fn prefix(path: &mut String, segment: &str) {
    let escaped = segment.replace('~', "~0").replace('/', "~1");
    path.insert_str(0, &escaped);
    path.insert(0, '/');
}
