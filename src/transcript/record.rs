//! What stands on a line: none, one or several whole objects.
//!
//! | line | taken | shape |
//! |---|---|---|
//! | white space | nothing | blank |
//! | one object | it | whole |
//! | two or more objects, whatever follows | all of them | glued |
//! | an object, then anything else | the object | broken |
//! | half an object, then a whole one that begins alike | the whole one | broken |
//! | anything else | nothing | broken |

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The most values that a line may hold. Each costs up to some hundred bytes of memory however short it is written.
pub(super) const MAX_VALUES: usize = 262_144;
/// Lines up to this length cannot be dear enough to be worth counting.
const CHEAP_BYTES: usize = 256 * 1024;

/// What was found on a line.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Blank,
    TooManyValues,
    Records { records: Vec<Map<String, Value>>, shape: Shape, replaced: bool },
}

/// The shape of a line that is not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    Glued,
    /// With the number of bytes that were understood.
    Broken(usize),
}

/// Reads one line.
pub(super) fn read(bytes: &[u8]) -> Content {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Content::Blank;
    }
    // The check is several times faster than the replacement, which would copy nothing either.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let mut replaced = matches!(text, Cow::Owned(_));
    if is_too_dear(&text) {
        return Content::TooManyValues;
    }
    let (mut records, mut shape) = objects(&text);
    if matches!(shape, Shape::Broken(_)) {
        // Clients that cut a text in the middle of a surrogate pair write half of it as an escape, which is no valid text.
        if let Some(mended) = without_lone_surrogates(&text) {
            let (again, mended_shape) = objects(&mended);
            if again.len() > records.len() || mended_shape == Shape::Whole {
                (records, shape, replaced) = (again, mended_shape, true);
            }
        }
    }
    if records.is_empty() {
        records.extend(whole_behind_half(bytes));
    }
    Content::Records { records, shape, replaced }
}

/// Reads the JSON text inside a string, under the same limit as a line.
pub(super) fn inner(text: &str) -> Option<Value> {
    if is_too_dear(text) { None } else { serde_json::from_str(text).ok() }
}

fn is_too_dear(text: &str) -> bool {
    text.len() > CHEAP_BYTES && values_at_most(text.as_bytes()) > MAX_VALUES
}

fn objects(text: &str) -> (Vec<Map<String, Value>>, Shape) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut records = Vec::with_capacity(1);
    let mut clean = true;
    for value in &mut stream {
        match value {
            Ok(Value::Object(record)) => records.push(record),
            Ok(_) => clean = false,
            Err(_) => {
                clean = false;
                break;
            }
        }
    }
    let shape = match records.len() {
        2.. => Shape::Glued,
        1 if clean => Shape::Whole,
        _ => Shape::Broken(stream.byte_offset()),
    };
    (records, shape)
}

/// An upper bound for the values in a JSON text: what stands between separators outside of strings.
fn values_at_most(text: &[u8]) -> usize {
    let mut values = 1;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b',' | b'[' | b'{' => values += 1,
                _ => {}
            }
        }
    }
    values
}

/// The whole record behind a half one: a writer was stopped in mid-record, and wrote on without a line feed between.
///
/// Only a tail that begins as the line does counts. Any tail that happens to parse would not do: the inner objects of a truncated record
/// parse as well, and are no records.
fn whole_behind_half(line: &[u8]) -> Option<Map<String, Value>> {
    const ATTEMPTS: usize = 16;
    /// Long enough to hold the first member's name, or the type of an item that stands bare.
    const BEGINNING: usize = 12;
    // On the bytes: a half may end in the middle of a character.
    let line = line.trim_ascii();
    let begins_alike = |at: &usize| line[*at] == b'{' && line[*at..].starts_with(&line[..BEGINNING.min(*at)]);
    let mut tails = (1..line.len()).filter(begins_alike).take(ATTEMPTS);
    tails.find_map(|at| serde_json::from_str(&String::from_utf8_lossy(&line[at..])).ok())
}

/// The text with every escaped half of a surrogate pair replaced by U+FFFD; `None` when there is none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let escape = bytes.get(at..at + 6)?;
        if !escape.starts_with(b"\\u") || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
    };
    let mut mended: Option<String> = None;
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                let mended = mended.get_or_insert_default();
                mended.push_str(&text[kept..at]);
                mended.push_str("\\ufffd");
                kept = at + 6;
                6
            }
            // An escaped character: never looked at twice, so that `\\ud800` stays a backslash and five letters.
            _ => 2,
        };
        if at >= bytes.len() {
            break;
        }
    }
    if let Some(mended) = &mut mended {
        mended.push_str(&text[kept..]);
    }
    mended
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(line: &[u8]) -> (Vec<Value>, Shape, bool) {
        match read(line) {
            Content::Records { records, shape, replaced } => (records.into_iter().map(Value::Object).collect(), shape, replaced),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_shape_of_a_line_is_told() {
        assert_eq!(read(b" \t\r"), Content::Blank);
        assert_eq!(taken(b"{\"a\":1}\r"), (vec![json!({"a": 1})], Shape::Whole, false));
        assert_eq!(taken(b"{\"a\":1}{\"b\":2} "), (vec![json!({"a": 1}), json!({"b": 2})], Shape::Glued, false));
        assert_eq!(taken(b"{\"a\":1}{\"b\":2}{\"c\"").0.len(), 2);
        assert_eq!(taken(b"{\"a\":1}{\"b\":2}{\"c\"").1, Shape::Glued);
        assert_eq!(taken(b"{\"a\":1} tail"), (vec![json!({"a": 1})], Shape::Broken(8), false));
        assert_eq!(taken(b"[1]"), (vec![], Shape::Broken(3), false));
        assert!(matches!(taken(b"{\"a\":{\"b\":1}"), (none, Shape::Broken(_), false) if none.is_empty()));
    }

    #[test]
    fn the_whole_record_behind_a_half_is_taken() {
        let (records, shape, _) = taken(br#"{"type":"x","in":{"type":"x","in":{"a":1}}"#);
        assert_eq!((records, matches!(shape, Shape::Broken(_))), (vec![json!({"type": "x", "in": {"a": 1}})], true));
        let (records, _, _) = taken(br#"{"parentUuid":"a","in":{"type{"parentUuid":"b"}"#);
        assert_eq!(records, vec![json!({"parentUuid": "b"})]);
        // An inner object of a truncated record is no record.
        assert!(taken(br#"{"type":"x","in":{"type":"y","a":1}"#).0.is_empty());
        assert!(taken("{".repeat(100_000).as_bytes()).0.is_empty());
    }

    #[test]
    fn text_that_is_no_text_is_replaced_and_said_so() {
        assert_eq!(taken(b"{\"a\":\"\xff\"}"), (vec![json!({"a": "\u{fffd}"})], Shape::Whole, true));
        let halves = br#"{"a":"\ud83d","b":"\ude00x","c":"\ud83d\ude00","d":"\\ud83d"}"#;
        let expected = json!({"a": "\u{fffd}", "b": "\u{fffd}x", "c": "\u{1f600}", "d": "\\ud83d"});
        assert_eq!(taken(halves), (vec![expected], Shape::Whole, true));
    }

    #[test]
    fn a_line_of_countless_values_is_not_parsed() {
        let mut line = b"{\"a\":[0".to_vec();
        line.extend_from_slice(&b",0".repeat(MAX_VALUES));
        line.extend_from_slice(b"]}");
        assert_eq!(read(&line), Content::TooManyValues);
        assert_eq!(inner(std::str::from_utf8(&line).unwrap()), None);
        let text = format!("{{\"a\":\"{}\"}}", ",\\\"[{".repeat(MAX_VALUES));
        assert_eq!(taken(text.as_bytes()).1, Shape::Whole);
    }
}
