//! What the corpus of `tests/it/digest.rs` cannot reach: refusals deep inside, and the writer's own bookkeeping.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{Error as _, SerializeStruct, Serializer};
use serde_json::json;

use super::*;

fn form(value: &impl Serialize) -> String {
    String::from_utf8(canonical_json(value).unwrap()).unwrap()
}

/// Members that come out of order are put in order without disturbing the objects around them.
#[test]
fn nested_objects_are_ordered_on_their_own() {
    let value = [
        BTreeMap::from([("b", json!({ "d": 1, "c": [{ "z": 1, "y": { "b": 0, "a": 0 } }] })), ("a", json!({ "f": 1, "e": 2 }))]),
        BTreeMap::from([("é", json!({})), ("z", json!(null))]),
    ];
    assert_eq!(form(&value), r#"[{"a":{"e":2,"f":1},"b":{"c":[{"y":{"a":0,"b":0},"z":1}],"d":1}},{"z":null,"é":{}}]"#);
}

/// A text is written with the shortest escape of each character, as RFC 8785, section 3.2.2.2 prescribes.
#[test]
fn control_characters_have_their_shortest_escapes() {
    let controls: String = ('\u{0}'..='\u{1f}').chain(['"', '\\', '/', '\u{7f}']).collect();
    let expected = concat!(
        r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
        r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f\"\\/"#,
        "\u{7f}\""
    );
    assert_eq!(form(&controls), expected);
}

/// A number that comes as a text, as under `arbitrary_precision`, is the number.
#[test]
fn a_number_that_comes_as_a_text_is_the_number() {
    struct Text(&'static str);
    impl Serialize for Text {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut number = serializer.serialize_struct("$serde_json::private::Number", 1)?;
            number.serialize_field("$serde_json::private::Number", self.0)?;
            number.end()
        }
    }
    assert_eq!(form(&[Text("1.0"), Text("-0"), Text("18446744073709551615"), Text("1E2")]), "[1,0,18446744073709551615,100]");
    let refused = canonical_json(&BTreeMap::from([("a", Text("1e400"))])).unwrap_err();
    assert_eq!(refused, CanonicalError::NonFinite { path: "/a".to_owned() });
    assert_eq!(canonical_json(&Text("one")).unwrap_err(), CanonicalError::NumberText { path: String::new() });
}

/// JSON that comes as a text, as by `raw_value`, is the value; a text that is not strict is refused.
#[test]
fn json_that_comes_as_a_text_is_the_value() {
    struct Raw(&'static str);
    impl Serialize for Raw {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut raw = serializer.serialize_struct("$serde_json::private::RawValue", 1)?;
            raw.serialize_field("$serde_json::private::RawValue", self.0)?;
            raw.end()
        }
    }
    assert_eq!(form(&[Raw(" { \"b\" : 1 , \"a\" : [ ] } ")]), r#"[{"a":[],"b":1}]"#);
    assert!(matches!(canonical_json(&[Raw("{\"a\":1,\"a\":1}")]), Err(CanonicalError::Refused { path, .. }) if path == "/0"));
}

/// A refusal of the value's own keeps its text and gets its path.
#[test]
fn a_refusal_of_the_value_itself_has_a_path() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("not today"))
        }
    }
    #[derive(Serialize)]
    enum Deep {
        Variant(Vec<Refuses>),
    }
    let refused = canonical_json(&BTreeMap::from([("a/b~c", Deep::Variant(vec![Refuses]))])).unwrap_err();
    let expected = CanonicalError::Refused { path: "/a~1b~0c/Variant/0".to_owned(), message: "not today".to_owned() };
    assert_eq!(refused, expected);
}
