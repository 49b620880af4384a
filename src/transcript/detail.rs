//! The small object that a moment carries: chosen members, cut short.

use serde_json::{Map, Value};

use super::counts::cut;

const MAX_TEXT_BYTES: usize = 256;

/// The chosen members that are there: texts cut, numbers and flags as they are, anything larger left out.
pub(super) fn keep(record: &Map<String, Value>, members: &[&str]) -> Map<String, Value> {
    let short = |value: &Value| match value {
        Value::String(text) => Some(Value::from(cut(text, MAX_TEXT_BYTES))),
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    members.iter().filter_map(|member| Some(((*member).to_owned(), short(record.get(*member)?)?))).collect()
}

/// How long a text is that is not passed on.
pub(super) fn size_of(text: &str) -> Map<String, Value> {
    Map::from_iter([("bytes".to_owned(), Value::from(text.len()))])
}
