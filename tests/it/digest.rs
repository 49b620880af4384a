//! The identity of what is judged (I-6): one digest per value, in every process and under every feature set of `serde_json`.
//!
//! The corpus is pinned. It is run three times: as it is, with `--features serde_json/arbitrary_precision` and with
//! `--features serde_json/preserve_order`. The digests were computed outside this project, from canonical texts written by hand.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use tipstaff::declare::{CanonicalError, Digest, MAX_DEPTH, ParseError, canonical_json, digest_of, parse_json};

/// A JSON text, its canonical form and the digest of that.
const CORPUS: &[(&str, &str, &str)] = &[
    (r#"null"#, "null", "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    (r#"[]"#, "[]", "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
    (r#"{}"#, "{}", "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (r#"[ 1 , 1.0, 1e0, 10e-1 ]"#, "[1,1,1,1]", "sha256:ac91b3ec501b23593f3981b92775f32afb157e91b50c4fcc1b9f70164ac1214c"),
    (r#"[0, -0, 0.0, -0.0, 0e5]"#, "[0,0,0,0,0]", "sha256:fd76db5c8ad0929aeca788d3e83adb863069b1dc11c4c707e9c14286388dc970"),
    (
        r#"[9007199254740991, 9007199254740993, 18446744073709551615, -9223372036854775808]"#,
        "[9007199254740991,9007199254740993,18446744073709551615,-9223372036854775808]",
        "sha256:f3aa54fa57159a0789c645789998f65f086c0f6ff7d0730f705ef9c6c88d917d",
    ),
    (
        r#"[9007199254740993.0, 122.416294033786585, 1E5, 1e-7, 0.000001, 1e21, 123456789012345680000.0]"#,
        "[9007199254740992,122.41629403378658,100000,1e-7,0.000001,1e+21,123456789012345680000]",
        "sha256:a54be5845c4424a6b0caa100718e155fca16827d9b9219a702951ba55e13e459",
    ),
    (
        r#"[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]"#,
        "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
        "sha256:7c6bc86d861387d823ae596b79ca0b26567dddc22a77acb1f4e06d441f555adf",
    ),
    (
        r#"[1.7976931348623157e308, 5e-324, 1e-400]"#,
        "[1.7976931348623157e+308,5e-324,0]",
        "sha256:5be0e13494ebb39a8211af47744af987a800741407cf5a71565fde0cae1e9aaf",
    ),
    (
        r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\u2028""#,
        "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\u{2028}\"",
        "sha256:1bd1eafa12f6e91bc412a731a3710acef1d86181dfe579c791682d79afb492df",
    ),
    (
        r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
        "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
        "sha256:0d922ac8e15a6d17d5d50fab064983e86009ebae7b5998cbfc4ed172e6ff74a9",
    ),
    (
        r#"{"b":{"z":[{"y":1,"x":[]}],"a":null},"":true,"a":{"B":1,"A":2,"a":3}}"#,
        "{\"\":true,\"a\":{\"A\":2,\"B\":1,\"a\":3},\"b\":{\"a\":null,\"z\":[{\"x\":[],\"y\":1}]}}",
        "sha256:3b19651b9bd1c16d9124c9616c312c842baca6e33fda7b488bba902fc46d4e30",
    ),
];

fn canonical(value: &impl Serialize) -> String {
    String::from_utf8(canonical_json(value).expect("the value has a canonical form")).expect("canonical JSON is UTF-8")
}

/// I-6: the pinned digests, for values that `serde_json` read and for values that the strict reader read.
#[test]
fn the_corpus_has_its_pinned_digests() {
    for (text, form, digest) in CORPUS {
        let read: Value = serde_json::from_str(text).unwrap();
        let strictly = parse_json(text).unwrap();
        for value in [read, strictly] {
            assert_eq!(canonical(&value), *form, "{text}");
            assert_eq!(digest_of(&value).unwrap().to_string(), *digest, "{text}");
        }
        // The canonical form is its own canonical form. Not read strictly: a double beyond 64 bits is written like an integer.
        assert_eq!(canonical(&serde_json::from_str::<Value>(form).unwrap()), *form);
    }
}

/// I-6: a value that never was JSON has the digest of the JSON that it would be.
#[test]
fn a_typed_value_has_the_digest_of_its_json() {
    #[derive(Serialize)]
    enum Mode {
        Fast,
        Slow(u8),
        Pair(u8, u8),
        Named { z: u8, a: u8 },
    }
    #[derive(Serialize)]
    struct Wrapped(u64);
    #[derive(Serialize)]
    struct Call {
        tool: &'static str,
        modes: Vec<Mode>,
        wrapped: Wrapped,
        nothing: Option<()>,
        some: Option<char>,
        by_number: BTreeMap<i16, bool>,
        by_flag: BTreeMap<bool, f32>,
        bytes: (u8, i8),
    }
    let call = Call {
        tool: "shell",
        modes: vec![Mode::Fast, Mode::Slow(1), Mode::Pair(1, 2), Mode::Named { z: 1, a: 2 }],
        wrapped: Wrapped(u64::MAX),
        nothing: None,
        some: Some('"'),
        by_number: [(-2, true), (10, false), (9, false)].into(),
        by_flag: [(true, 0.5)].into(),
        bytes: (0, -1),
    };
    let form = concat!(
        r#"{"by_flag":{"true":0.5},"by_number":{"-2":true,"10":false,"9":false},"bytes":[0,-1],"#,
        r#""modes":["Fast",{"Slow":1},{"Pair":[1,2]},{"Named":{"a":2,"z":1}}],"nothing":null,"some":"\"","tool":"shell","#,
        r#""wrapped":18446744073709551615}"#
    );
    assert_eq!(canonical(&call), form);
    assert_eq!(digest_of(&call).unwrap(), digest_of(&serde_json::to_value(&call).unwrap()).unwrap());
}

/// I-6: the order of insertion says nothing.
#[test]
fn the_order_of_members_does_not_matter() {
    let forwards: Value = parse_json(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
    let backwards: Value = parse_json(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
    assert_eq!(digest_of(&forwards).unwrap(), digest_of(&backwards).unwrap());
    let hashed: HashMap<String, u32> = (0..200).map(|at| (format!("key{at}"), at)).collect();
    let sorted: BTreeMap<String, u32> = hashed.clone().into_iter().collect();
    assert_eq!(digest_of(&hashed).unwrap(), digest_of(&sorted).unwrap());
}

/// I-6, AH-4: what has no canonical form is refused with its path, and never panics, whatever features are on.
#[test]
fn what_has_no_canonical_form_is_refused_with_its_path() {
    #[derive(Serialize)]
    struct Load {
        sizes: Vec<f64>,
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = digest_of(&Load { sizes: vec![0.0, number] }).unwrap_err();
        assert_eq!(refused, CanonicalError::NonFinite { path: "/sizes/1".to_owned() });
    }
    let far = digest_of(&json!({ "a": 1 }).as_object().map(|_| [i128::MAX])).unwrap_err();
    assert_eq!(far, CanonicalError::IntegerOutOfRange { path: "/0".to_owned() });
    assert_eq!(canonical(&[i128::from(u64::MAX), i128::from(i64::MIN)]), "[18446744073709551615,-9223372036854775808]");
    let key = digest_of(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
    assert_eq!(key, CanonicalError::KeyNotText { path: String::new() });
    // Under `arbitrary_precision` the text is a value, otherwise it is refused when it is read.
    if let Ok(value) = serde_json::from_str::<Value>(r#"{"a":[1e400]}"#) {
        assert_eq!(digest_of(&value), Err(CanonicalError::NonFinite { path: "/a/0".to_owned() }));
    }
    assert!(matches!(parse_json("1e400"), Err(ParseError::NonFinite { .. })));
}

/// I-6: a value whose serialisation writes one key twice is refused.
#[test]
fn a_key_that_is_written_twice_is_refused() {
    #[derive(Serialize)]
    struct Inner {
        id: u8,
    }
    #[derive(Serialize)]
    struct Outer {
        id: u8,
        #[serde(flatten)]
        inner: Inner,
    }
    let refused = digest_of(&[Outer { id: 1, inner: Inner { id: 2 } }]).unwrap_err();
    assert_eq!(refused, CanonicalError::DuplicateKey { path: "/0".to_owned(), key: "id".to_owned() });
}

/// AH-7: the strict reader refuses integer texts beyond 64 bits. In a value that was read by another reader such an integer is a double under
/// every feature set, so two of them may share a digest; that is the documented limit of values.
#[test]
fn integers_beyond_64_bits_are_refused_as_text_and_doubles_as_values() {
    let texts = ["18446744073709551616", "18446744073709551617", "1.8446744073709552e19"];
    for text in &texts[..2] {
        assert!(matches!(parse_json(text), Err(ParseError::IntegerOutOfRange { .. })), "{text}");
    }
    for text in texts {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(canonical(&value), "18446744073709552000");
    }
    assert_ne!(digest_of(&u64::MAX).unwrap(), digest_of(&json!(u64::MAX as f64)).unwrap());
}

/// An object with the key by which `serde_json` hands over numbers under `arbitrary_precision` stays an object for the strict reader.
#[test]
fn a_reserved_key_of_the_serialiser_is_an_ordinary_key() {
    let text = r#"{"$serde_json::private::Number":"1"}"#;
    assert_eq!(canonical(&parse_json(text).unwrap()), text);
}

/// Depth is bounded for values as for texts.
#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| (0..depth).fold(json!(0), |inner, _| json!([inner]));
    assert!(digest_of(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(digest_of(&nested(MAX_DEPTH + 1)), Err(CanonicalError::TooDeep));
}

/// A digest is its text and back.
#[test]
fn a_digest_is_read_back_from_its_text() {
    for (_, form, text) in CORPUS {
        let digest: Digest = text.parse().unwrap();
        assert_eq!(digest, Digest::of(form.as_bytes()));
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        "\\PC*".prop_map(Value::from),
        "[\\x00-\\x7f\u{e000}-\u{ffff}\u{10000}-\u{1ffff}]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[\\x00-\\x7f\u{e000}-\u{ffff}\u{10000}-\u{1ffff}]{0,3}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The members of every object of a canonical form, in the order in which they are written.
fn keys_in_order(value: &Value, text: &str) {
    if let Value::Object(members) = value {
        let mut keys: Vec<&String> = members.keys().collect();
        keys.sort_by_key(|key| key.encode_utf16().collect::<Vec<_>>());
        let inside: String = keys
            .iter()
            .map(|key| format!("{}:{}", canonical(key), canonical(&members[key.as_str()])))
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(text, format!("{{{inside}}}"));
    }
}

proptest! {
    /// I-6: a canonical form means the same value, is canonical itself, has its members in order, and writing it in another
    /// way and reading that strictly changes nothing.
    #[test]
    fn a_canonical_form_means_its_value(value in values()) {
        let form = canonical(&value);
        let back: Value = serde_json::from_str(&form).unwrap();
        prop_assert_eq!(canonical(&back), form.clone());
        keys_in_order(&value, &form);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(digest_of(&parse_json(&pretty).unwrap()).unwrap(), digest_of(&value).unwrap());
    }

    /// I-6: different integers of 64 bits have different forms, and no double is written as another.
    #[test]
    fn numbers_are_written_without_loss(integer in any::<i64>(), natural in any::<u64>(), double in any::<f64>()) {
        prop_assert_eq!(canonical(&integer), integer.to_string());
        prop_assert_eq!(canonical(&natural), natural.to_string());
        if double.is_finite() {
            prop_assert_eq!(canonical(&double).parse::<f64>().unwrap(), double);
        }
    }

    /// The strict reader never panics, and agrees with `serde_json` on what both accept.
    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\u0-9eE+\\-.a-f ntrulsx]{0,40}") {
        if let Ok(value) = parse_json(&text) {
            let other: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&value), canonical(&other));
        }
    }
}
