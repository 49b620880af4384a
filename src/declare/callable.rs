//! Durable names of handlers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest reference, in bytes.
const MAX_BYTES: usize = 256;

/// The durable name of a handler, with a version: `myapp::guards::no_force_push@3` (I-7).
///
/// A persisted declaration stores references; the composition root resolves them to handlers. The version is part of the name: whoever changes
/// what a handler decides gives it the next version, so that the digest of every plan that uses it changes as well.
///
/// A reference is one or more segments of ASCII letters, digits, `_` and `-`, separated by `::` (or `.` or `/`), then `@` and a version without a leading zero.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallableRef(Cow<'static, str>);

/// A text that names no handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no reference to a handler: {remedy}")]
pub struct InvalidCallable {
    text: String,
    remedy: &'static str,
}

impl CallableRef {
    /// A reference from a text.
    ///
    /// # Errors
    /// [`InvalidCallable`] when the text does not have the shape `path::to::handler@version`.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidCallable> {
        let text = text.into();
        match fault(text.as_bytes()) {
            None => Ok(Self(Cow::Owned(text))),
            Some(remedy) => Err(InvalidCallable { text, remedy }),
        }
    }

    /// A reference from a literal. In a `const`, a bad literal stops the build.
    ///
    /// # Panics
    /// When the literal does not have the shape `path::to::handler@version`.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(fault(text.as_bytes()).is_none(), "a reference is written path::to::handler@version");
        Self(Cow::Borrowed(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is wrong with a reference. A byte loop, so that literals are checked while compiling.
const fn fault(text: &[u8]) -> Option<&'static str> {
    if text.is_empty() || text.len() > MAX_BYTES {
        return Some("give it 1 to 256 bytes");
    }
    let mut at = 0;
    let mut segment = 0;
    while at < text.len() && text[at] != b'@' {
        match text[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => segment += 1,
            b':' | b'.' | b'/' if segment == 0 => return Some("a segment of its path is empty"),
            b'.' | b'/' => segment = 0,
            b':' if at + 1 < text.len() && text[at + 1] == b':' => {
                at += 1;
                segment = 0;
            }
            _ => return Some("its path holds ASCII letters, digits, `_`, `-`, and `::` between segments"),
        }
        at += 1;
    }
    if segment == 0 {
        return Some("a segment of its path is empty");
    }
    if at + 1 >= text.len() {
        return Some("end it with `@` and a version");
    }
    if text[at + 1] == b'0' && at + 2 < text.len() {
        return Some("its version has a leading zero");
    }
    at += 1;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            return Some("its version is a decimal number");
        }
        at += 1;
    }
    None
}

impl fmt::Display for CallableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CallableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallableRef({})", self.0)
    }
}

impl Serialize for CallableRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CallableRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// An immutable snapshot of the handlers that a composition root offers, by reference. Cheap to clone.
///
/// There is no registry of the process: whoever compiles a plan hands the snapshot over.
pub struct CallableRegistry<H>(Arc<BTreeMap<CallableRef, H>>);

impl<H> CallableRegistry<H> {
    /// A snapshot of some handlers. The later of two handlers under one reference would silently win, so both are handed back instead.
    ///
    /// # Errors
    /// The reference that stands twice.
    pub fn new(handlers: impl IntoIterator<Item = (CallableRef, H)>) -> Result<Self, CallableRef> {
        let mut map = BTreeMap::new();
        for (callable, handler) in handlers {
            if map.contains_key(&callable) {
                return Err(callable);
            }
            map.insert(callable, handler);
        }
        Ok(Self(Arc::new(map)))
    }

    /// The handler of a reference.
    #[must_use]
    pub fn resolve(&self, callable: &CallableRef) -> Option<&H> {
        self.0.get(callable)
    }

    /// Every reference, in order.
    pub fn refs(&self) -> impl Iterator<Item = &CallableRef> {
        self.0.keys()
    }
}

impl<H> Clone for CallableRegistry<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H> fmt::Debug for CallableRegistry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I-7: a reference is a declared text of one shape.
    #[test]
    fn references_have_one_shape() {
        for good in ["a@0", "myapp::guards::no_force_push@3", "x-y/z.q::w@10"] {
            assert_eq!(CallableRef::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a", "a@", "@1", "a::@1", "::a@1", "a:b@1", "a@01", "a@1x", "a b@1", "ä@1", "a@1@2"] {
            assert!(CallableRef::new(bad).is_err(), "{bad:?}");
        }
        assert!(CallableRef::new("a".repeat(300) + "@1").is_err());
    }

    #[test]
    fn two_handlers_under_one_reference_are_refused() {
        let one = CallableRef::from_static("a@1");
        assert_eq!(CallableRegistry::new([(one.clone(), 1), (one.clone(), 2)]).unwrap_err(), one);
        let registry = CallableRegistry::new([(one.clone(), 1)]).unwrap();
        assert_eq!(registry.resolve(&one), Some(&1));
        assert_eq!(registry.resolve(&CallableRef::from_static("a@2")), None);
    }
}
