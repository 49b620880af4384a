//! Redaction of payloads before they are stored or shown (P-15).
//!
//! # What is promised, and what is not?
//! What a rule matches appears neither in the redacted payload nor in the record, member names included. The digest of the original lets
//! an investigator who has a candidate confirm it; so a short or guessable original can be confirmed by trying, and a reader of the
//! digests must be trusted as far as that.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::path::{FieldPath, Segment};
use super::{InvalidRedaction, Payload, Signal};
use crate::declare::Digest;

/// What a session wants kept out of stored and shown payloads: fields by their path, and patterns of text.
///
/// It serialises as `{fields: [..], patterns: [..]}`; reading one back validates it again.
#[derive(Debug, Clone, Default)]
pub struct Redactions {
    fields: Vec<FieldPath>,
    patterns: Vec<Regex>,
}

/// What stands in the place of what was redacted.
pub const REDACTED: &str = "[redacted]";

/// The most fields and patterns of one session, together.
pub const MAX_REDACTIONS: usize = 256;

const MAX_PATTERN_BYTES: usize = 1024;
const MAX_COMPILED_BYTES: usize = 1 << 20;

impl Redactions {
    /// Redactions from field paths, such as `$.input.token`, `$.items[*].secret`, `$['odd name']` or `$..password`, and from regular
    /// expressions.
    ///
    /// # Errors
    /// [`InvalidRedaction`] names the path or pattern and what is wrong with it.
    pub fn new(
        fields: impl IntoIterator<Item = impl AsRef<str>>,
        patterns: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, InvalidRedaction> {
        let fields = fields.into_iter().map(|text| FieldPath::from_str(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let patterns = patterns.into_iter().map(|text| pattern(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if fields.len() + patterns.len() > MAX_REDACTIONS {
            return Err(InvalidRedaction::TooMany { given: fields.len() + patterns.len() });
        }
        Ok(Self { fields, patterns })
    }

    /// Whether there is nothing to redact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.patterns.is_empty()
    }

    /// The payload without what was declared, and a record of what is gone. It is a pure function.
    ///
    /// A matching field is replaced as a whole. In every other text, member names included, each match of a pattern is replaced; a number
    /// whose text matches is replaced as a whole. A payload without a match is returned as it is, shared.
    #[must_use]
    pub fn apply(&self, payload: &Payload) -> Redacted {
        let mut work = Work { patterns: &self.patterns, path: String::from("$"), record: Vec::new() };
        let states: Vec<State<'_>> = self.fields.iter().map(|field| State(field.segments())).collect();
        match work.value(payload.value(), &states) {
            None => Redacted { payload: payload.clone(), record: Vec::new() },
            Some(value) => Redacted { payload: Payload::from_value(payload.shape().clone(), value), record: work.record },
        }
    }

    /// The fact as it may be stored and shown: its payload redacted, with the record of what is gone beside it ([`RECORD_MEMBER`]). Without a match it
    /// is the fact itself.
    #[must_use]
    pub fn redact(&self, fact: Signal) -> Signal {
        let redacted = self.apply(fact.payload());
        if redacted.record.is_empty() { fact } else { fact.with_payload(redacted.into_payload()) }
    }
}

fn pattern(text: &str) -> Result<Regex, InvalidRedaction> {
    let refused = |why: String| InvalidRedaction::Pattern { pattern: text.chars().take(MAX_PATTERN_BYTES).collect(), why };
    if text.len() > MAX_PATTERN_BYTES {
        return Err(refused(format!("it is longer than {MAX_PATTERN_BYTES} bytes")));
    }
    let regex = RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| refused(error.to_string()))?;
    if regex.is_match("") {
        return Err(refused("it matches the empty text, so it would match everywhere".to_owned()));
    }
    Ok(regex)
}

/// A payload after redaction.
#[derive(Debug, Clone)]
pub struct Redacted {
    /// What may be stored and shown.
    pub payload: Payload,
    /// What is gone, in the order in which it stood.
    pub record: Vec<RedactedField>,
}

impl Redacted {
    /// The payload with its record beside it. A payload that is no object becomes the member `value` of one.
    fn into_payload(self) -> Payload {
        let record = self.record.iter().map(|field| serde_json::json!({ "path": field.path, "digest": field.digest })).collect();
        let mut members = match self.payload.value() {
            Value::Object(members) => members.clone(),
            other => Map::from_iter([("value".to_owned(), other.clone())]),
        };
        members.insert(RECORD_MEMBER.to_owned(), Value::Array(record));
        Payload::from_value(self.payload.shape().clone(), Value::Object(members))
    }
}

/// The member under which a redacted payload says what is gone, each with its path and the digest of the original, so that a candidate can be confirmed.
pub const RECORD_MEMBER: &str = "$redacted";

/// One place that was redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactedField {
    /// The place in the redacted payload, as a path.
    pub path: String,
    /// The digest of the original value's JSON text; for a member name, of the name's.
    pub digest: Digest,
}

/// What is left to match of a field path.
#[derive(Clone, Copy)]
struct State<'a>(&'a [Segment]);

struct Work<'a> {
    patterns: &'a [Regex],
    path: String,
    record: Vec<RedactedField>,
}

impl Work<'_> {
    /// The redacted value, or `None` when it stays as it is.
    fn value(&mut self, value: &Value, states: &[State<'_>]) -> Option<Value> {
        if states.is_empty() && self.patterns.is_empty() {
            return None;
        }
        if states.iter().any(|state| state.0.is_empty()) {
            return Some(self.replaced(value, Value::from(REDACTED)));
        }
        match value {
            Value::Null | Value::Bool(_) => None,
            Value::Number(number) => {
                let text = number.to_string();
                let matched = self.patterns.iter().any(|pattern| pattern.is_match(&text));
                matched.then(|| self.replaced(value, Value::from(REDACTED)))
            }
            Value::String(text) => self.text(text).map(|cleaned| self.replaced(value, Value::from(cleaned))),
            Value::Array(items) => self.array(items, states),
            Value::Object(members) => self.object(members, states),
        }
    }

    fn array(&mut self, items: &[Value], states: &[State<'_>]) -> Option<Value> {
        let mut cleaned: Option<Vec<Value>> = None;
        for (at, item) in items.iter().enumerate() {
            let inner = step(states, |segment| segment.takes_index(at));
            if let Some(value) = self.within(&format!("[{at}]"), |work| work.value(item, &inner)) {
                cleaned.get_or_insert_with(|| items.to_vec())[at] = value;
            }
        }
        cleaned.map(Value::Array)
    }

    fn object(&mut self, members: &Map<String, Value>, states: &[State<'_>]) -> Option<Value> {
        let mut changes: BTreeMap<&str, (Option<String>, Option<Value>)> = BTreeMap::new();
        for (name, value) in members {
            let inner = step(states, |segment| segment.takes_member(name));
            let renamed = self.text(name).map(|text| unused(text, members, &changes));
            let redacted = self.within(&Segment::shown(renamed.as_deref().unwrap_or(name)), |work| {
                if renamed.is_some() {
                    work.note(&Value::from(name.as_str()));
                }
                work.value(value, &inner)
            });
            if renamed.is_some() || redacted.is_some() {
                changes.insert(name, (renamed, redacted));
            }
        }
        if changes.is_empty() {
            return None;
        }
        let cleaned = members.iter().map(|(name, value)| match changes.remove(name.as_str()) {
            Some((renamed, redacted)) => (renamed.unwrap_or_else(|| name.clone()), redacted.unwrap_or_else(|| value.clone())),
            None => (name.clone(), value.clone()),
        });
        Some(Value::Object(cleaned.collect()))
    }

    /// The text with every match of every pattern replaced, or `None` without a match.
    fn text(&self, text: &str) -> Option<String> {
        let mut cleaned: Option<String> = None;
        for pattern in self.patterns {
            let before = cleaned.as_deref().unwrap_or(text);
            if pattern.is_match(before) {
                cleaned = Some(pattern.replace_all(before, regex::NoExpand(REDACTED)).into_owned());
            }
        }
        cleaned
    }

    fn replaced(&mut self, original: &Value, with: Value) -> Value {
        self.note(original);
        with
    }

    fn note(&mut self, original: &Value) {
        self.record.push(RedactedField { path: self.path.clone(), digest: Digest::of(original.to_string().as_bytes()) });
    }

    fn within<T>(&mut self, segment: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(segment);
        let result = act(self);
        self.path.truncate(length);
        result
    }
}

/// What is left of each path one step further in. A descending segment stays for every depth below.
fn step<'a>(states: &[State<'a>], takes: impl Fn(&Segment) -> bool) -> Vec<State<'a>> {
    let mut further = Vec::new();
    for &State(segments) in states {
        let Some((first, rest)) = segments.split_first() else { continue };
        if takes(first) {
            further.push(State(rest));
        }
        if first.descends() {
            further.push(State(segments));
        }
    }
    further
}

/// A redacted member name that no other member has.
fn unused(text: String, members: &Map<String, Value>, changes: &BTreeMap<&str, (Option<String>, Option<Value>)>) -> String {
    let taken = |name: &str| {
        members.contains_key(name)
            || changes.values().any(|(renamed, _)| renamed.as_deref().is_some_and(|renamed| renamed == name))
    };
    if !taken(&text) {
        return text;
    }
    (2u64..)
        .map(|number| format!("{text} {number}"))
        .find(|name| !taken(name))
        .expect("a map has fewer members than there are numbers")
}

impl PartialEq for Redactions {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields && self.patterns.iter().map(Regex::as_str).eq(other.patterns.iter().map(Regex::as_str))
    }
}

impl Eq for Redactions {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    patterns: Vec<String>,
}

impl Serialize for Redactions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored {
            fields: self.fields.iter().map(ToString::to_string).collect(),
            patterns: self.patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Redactions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        Self::new(stored.fields, stored.patterns).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for RedactedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::signal::PayloadType;

    fn payload(value: Value) -> Payload {
        Payload::from_value(PayloadType::new("test", 1).unwrap(), value)
    }

    fn digest(value: &Value) -> Digest {
        Digest::of(value.to_string().as_bytes())
    }

    const NONE: [&str; 0] = [];

    /// P-15: a declared field is gone as a whole, and the record names its place and the digest of the original.
    #[test]
    fn a_declared_field_is_replaced_and_recorded() {
        let redactions = Redactions::new(["$.input.token", "$.items[*].key", "$.list[1]", "$..password"], NONE).unwrap();
        let before = payload(json!({
            "input": {"token": {"inner": 7}, "other": 1},
            "items": [{"key": "k0"}, {"name": "n"}, {"key": "k2"}],
            "list": ["a", "b", "c"],
            "deep": [{"er": {"password": "p"}}],
            "token": "not at this path",
        }));
        let Redacted { payload: after, record } = redactions.apply(&before);
        assert_eq!(
            *after.value(),
            json!({
                "input": {"token": REDACTED, "other": 1},
                "items": [{"key": REDACTED}, {"name": "n"}, {"key": REDACTED}],
                "list": ["a", REDACTED, "c"],
                "deep": [{"er": {"password": REDACTED}}],
                "token": "not at this path",
            })
        );
        assert_eq!(after.shape(), before.shape());
        let expected = [
            ("$.deep[0].er.password", json!("p")),
            ("$.input.token", json!({"inner": 7})),
            ("$.items[0].key", json!("k0")),
            ("$.items[2].key", json!("k2")),
            ("$.list[1]", json!("b")),
        ];
        let mut found: Vec<_> = record.into_iter().map(|field| (field.path, field.digest)).collect();
        found.sort();
        assert_eq!(found, expected.map(|(path, original)| (path.to_owned(), digest(&original))));
    }

    /// P-15: a pattern finds texts, numbers and member names; what surrounds a match stays.
    #[test]
    fn a_pattern_is_replaced_wherever_it_stands() {
        let redactions = Redactions::new(NONE, ["sk-[a-z0-9]+", "^4111[0-9]{4}$"]).unwrap();
        let before = payload(json!({
            "command": "curl -H sk-abc1 -H sk-abc2 x",
            "card": 41_112_222,
            "sk-one": 1,
            "sk-two": {"b": "sk-three"},
            "[redacted]": "taken",
        }));
        let Redacted { payload: after, record } = redactions.apply(&before);
        assert_eq!(
            *after.value(),
            json!({
                "command": "curl -H [redacted] -H [redacted] x",
                "card": REDACTED,
                "[redacted] 2": 1,
                "[redacted] 3": {"b": REDACTED},
                "[redacted]": "taken",
            })
        );
        let paths: Vec<_> = record.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["$.card", "$.command", "$['[redacted] 2']", "$['[redacted] 3']", "$['[redacted] 3'].b"]);
        assert_eq!(record[1].digest, digest(&json!("curl -H sk-abc1 -H sk-abc2 x")));
        assert_eq!(record[2].digest, digest(&json!("sk-one")));
    }

    #[test]
    fn a_payload_without_a_match_is_shared() {
        let before = payload(json!({"a": [1, "b", null], "c": {}}));
        let redacted = Redactions::new(["$.x.y"], ["secret"]).unwrap().apply(&before);
        assert!(redacted.record.is_empty());
        assert!(std::ptr::eq(redacted.payload.value(), before.value()));
    }

    /// P-15: only the payload of a fact changes, and it says what is gone; a fact without a match stays as it is.
    #[test]
    fn a_redacted_fact_differs_in_its_payload_only_and_says_so() {
        let at = crate::clock::Timestamp::from_micros(5);
        let fact = |value| {
            let session = crate::id::SessionId::new("s").unwrap();
            let id = crate::id::SignalId::new("f").unwrap();
            Signal::builder(session, crate::signal::LifecycleKind::MessageAdded, at).id(id).payload(payload(value)).build()
        };
        let secrets = Redactions::new(NONE, ["sk-[0-9]"]).unwrap();
        let record = json!([{"path": "$.a", "digest": digest(&json!("sk-1"))}]);
        assert_eq!(secrets.redact(fact(json!({"a": "sk-1"}))), fact(json!({"a": REDACTED, RECORD_MEMBER: record})));
        let record = json!([{"path": "$", "digest": digest(&json!("sk-1"))}]);
        assert_eq!(secrets.redact(fact(json!("sk-1"))), fact(json!({"value": REDACTED, RECORD_MEMBER: record})));
        assert_eq!(secrets.redact(fact(json!({"a": 1}))), fact(json!({"a": 1})));
    }

    #[test]
    fn unusable_redactions_are_refused_by_name() {
        for bad in ["(", "a*", "", "x{100000}", &"x".repeat(1025)] {
            assert!(matches!(Redactions::new(NONE, [bad]), Err(InvalidRedaction::Pattern { .. })), "{bad}");
        }
        assert!(matches!(Redactions::new(["input"], NONE), Err(InvalidRedaction::Path { .. })));
        let many = vec!["$.a"; MAX_REDACTIONS + 1];
        assert_eq!(Redactions::new(many, NONE), Err(InvalidRedaction::TooMany { given: MAX_REDACTIONS + 1 }));
        assert!(serde_json::from_value::<Redactions>(json!({"fields": ["x"]})).is_err());
    }

    #[test]
    fn the_declaration_survives_its_stored_form() {
        let redactions = Redactions::new(["$.a[*]['b c']", "$..d"], ["e+"]).unwrap();
        let stored = serde_json::to_value(&redactions).unwrap();
        assert_eq!(stored, json!({"fields": ["$.a[*]['b c']", "$..d"], "patterns": ["e+"]}));
        assert_eq!(serde_json::from_value::<Redactions>(stored).unwrap(), redactions);
    }

    fn json_with_secrets() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z ]{0,6}", "[a-z]{0,3}SECRET[0-9]{2}[a-z]{0,3}"];
        let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), text.clone().prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(text.clone(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn leaves(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(leaves).sum::<usize>(),
            Value::Object(members) => 1 + members.values().map(leaves).sum::<usize>(),
            _ => 1,
        }
    }

    proptest! {
        /// P-15: the original is in neither the payload nor the record, and nothing but the original goes.
        #[test]
        fn no_secret_survives(value in json_with_secrets()) {
            let redactions = Redactions::new(NONE, ["SECRET[0-9]{2}"]).unwrap();
            let before = payload(value);
            let after = redactions.apply(&before);
            prop_assert!(!after.payload.wire().contains("SECRET"));
            prop_assert!(!serde_json::to_string(&after.record).unwrap().contains("SECRET"));
            prop_assert_eq!(leaves(after.payload.value()), leaves(before.value()));
            prop_assert_eq!(after.record.is_empty(), !before.wire().contains("SECRET"));
            prop_assert_eq!(redactions.apply(&before).payload, after.payload.clone());
            prop_assert!(redactions.apply(&after.payload).record.is_empty());
        }
    }
}
