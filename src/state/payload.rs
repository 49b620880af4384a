//! What a journal asks of a payload before it writes it. Pure.

use serde_json::Value;

use super::AppendError;
use crate::signal::Signal;

/// A payload with a longer JSON text is stored beside its row, with size and digest (P-11).
pub const INLINE_PAYLOAD_BYTES: usize = 256 << 10;

/// The longest JSON text of a payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 512 << 20;

/// The deepest nesting of arrays and objects: what the JSON reader takes. A fact that could never be read back would stop every forward reader.
pub const MAX_PAYLOAD_DEPTH: usize = 127;

/// Refuses a payload that could be written and not read.
pub(super) fn check_payload(signal: &Signal) -> Result<(), AppendError> {
    if !nested_within(signal.payload().value(), MAX_PAYLOAD_DEPTH) {
        return Err(AppendError::TooDeep { id: signal.id().clone() });
    }
    let bytes = signal.payload().wire().len();
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(AppendError::TooLarge { id: signal.id().clone(), bytes });
    }
    Ok(())
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
