//! The typed payload of a fact.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::Value;

use super::SignalError;

/// Name and version of a payload's shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PayloadType {
    name: Arc<str>,
    version: u32,
}

impl PayloadType {
    /// A shape by name and version.
    ///
    /// # Errors
    /// [`SignalError::Name`] when the name is empty, longer than 256 bytes or holds a control character.
    pub fn new(name: impl Into<Arc<str>>, version: u32) -> Result<Self, SignalError> {
        Ok(Self { name: super::fact::plain("payload type", name.into())?, version })
    }

    /// A shape of this crate's own.
    pub(crate) fn shipped(name: &'static str, version: u32) -> Self {
        Self { name: name.into(), version }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }
}

/// The deepest nesting of arrays and objects that a journal keeps: what the JSON reader takes. A fact that could never be read back would stop every
/// forward reader.
pub const MAX_PAYLOAD_DEPTH: usize = 127;

/// A payload: one immutable value that every subscriber shares (P-3), with one wire text that is made when first asked for.
#[derive(Clone)]
pub struct Payload(Arc<Inner>);

struct Inner {
    shape: PayloadType,
    value: Value,
    wire: OnceLock<Arc<str>>,
}

impl Payload {
    /// A payload from a value that is JSON already.
    #[must_use]
    pub fn from_value(shape: PayloadType, value: Value) -> Self {
        Self(Arc::new(Inner { shape, value, wire: OnceLock::new() }))
    }

    /// A payload from anything that serialises.
    ///
    /// # Errors
    /// [`SignalError::Payload`] when it cannot be written as JSON, for example a map whose keys are no texts.
    pub fn from_serialize(shape: PayloadType, value: &impl Serialize) -> Result<Self, SignalError> {
        match serde_json::to_value(value) {
            Ok(value) => Ok(Self::from_value(shape, value)),
            Err(source) => Err(SignalError::Payload { payload_type: shape.name().to_owned(), source }),
        }
    }

    /// The declared shape.
    #[must_use]
    pub fn shape(&self) -> &PayloadType {
        &self.0.shape
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Whether it has at most so many levels of arrays and objects.
    #[must_use]
    pub fn nests_within(&self, levels: usize) -> bool {
        nested_within(&self.0.value, levels)
    }

    /// The JSON text, made once and shared.
    #[must_use]
    pub fn wire(&self) -> Arc<str> {
        Arc::clone(self.0.wire.get_or_init(|| self.0.value.to_string().into()))
    }
}

impl fmt::Debug for Payload {
    /// Names the shape only: payloads are never logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}@{})", self.0.shape.name, self.0.shape.version)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.shape == other.0.shape && self.0.value == other.0.value)
    }
}

/// Whether a value has at most so many levels. It goes no deeper than that, whatever it is given.
fn nested_within(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return !matches!(value, Value::Array(_) | Value::Object(_));
    };
    match value {
        Value::Array(items) => items.iter().all(|item| nested_within(item, below)),
        Value::Object(members) => members.values().all(|member| nested_within(member, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
    }

    /// P-11: what is recorded can be read back. The bound is the reader's own.
    #[test]
    fn the_depth_bound_is_what_the_reader_takes() {
        let readable = |value: &Value| serde_json::from_str::<Value>(&value.to_string()).is_ok();
        assert!(nested_within(&nested(MAX_PAYLOAD_DEPTH), MAX_PAYLOAD_DEPTH) && readable(&nested(MAX_PAYLOAD_DEPTH)));
        assert!(!nested_within(&nested(MAX_PAYLOAD_DEPTH + 1), MAX_PAYLOAD_DEPTH) && !readable(&nested(MAX_PAYLOAD_DEPTH + 1)));
    }
}
