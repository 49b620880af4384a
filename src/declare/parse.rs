//! Reading JSON text strictly, so that what is judged is what was written.
//!
//! ## Why not `serde_json::from_str`?
//! It keeps the last of two equal keys, turns an integer beyond 64 bits into a nearby double, and under `arbitrary_precision` reads an object with
//! one reserved key as a number. Each of the three lets two readers of one text judge different values. None can be seen any more once a `Value` exists.

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use super::error::{ParseError, prefix};
use super::number::{Number, NumberFault, is_integer, scan};

/// Reads one JSON value from a text.
///
/// # Errors
/// [`ParseError`] with the place: a break of the grammar, a key that stands twice in its object, an integer outside `i64` and `u64`, a number too
/// large for a double, a lone surrogate, more than [`MAX_DEPTH`] levels, or text after the value.
///
/// # Examples
/// ```
/// # use tipstaff_core::declare::{ParseError, parse_json};
/// assert_eq!(parse_json("[1, 2.5]"), Ok(serde_json::json!([1, 2.5])));
/// assert!(matches!(parse_json(r#"{"a": 1, "a": 2}"#), Err(ParseError::DuplicateKey { .. })));
/// ```
pub fn parse_json(text: &str) -> Result<Value, ParseError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.space();
    let value = reader.value()?;
    reader.space();
    if reader.at == text.len() { Ok(value) } else { Err(reader.expected("the end of the text")) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> ParseError {
        ParseError::Syntax { at: self.at, expected }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, ParseError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("true, false or null"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, ParseError>) -> Result<Value, ParseError> {
        if self.depth == MAX_DEPTH {
            return Err(ParseError::TooDeep { at: self.at });
        }
        self.depth += 1;
        self.at += 1;
        self.space();
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, ParseError> {
        let mut members = Map::new();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key"));
            }
            let key = self.string()?;
            if members.contains_key(&key) {
                return Err(ParseError::DuplicateKey { at, path: String::new() }.under(&key));
            }
            self.space();
            if !self.eat(b':') {
                return Err(self.expected("`:`"));
            }
            self.space();
            let value = self.value().map_err(|error| error.under(&key))?;
            members.insert(key, value);
            self.space();
            if self.eat(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.expected("`,` or `}`"));
            }
            self.space();
        }
    }

    fn array(&mut self) -> Result<Value, ParseError> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let value = self.value().map_err(|error| error.under(&items.len().to_string()))?;
            items.push(value);
            self.space();
            if self.eat(b']') {
                return Ok(Value::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("`,` or `]`"));
            }
            self.space();
        }
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let at = self.at;
        let length = scan(&self.text.as_bytes()[at..]).ok_or_else(|| self.expected("a JSON number"))?;
        let text = &self.text[at..at + length];
        let path = String::new();
        let number = match Number::read(text) {
            Ok(Number::Natural(number)) => number.into(),
            Ok(Number::Negative(number)) => number.into(),
            Ok(Number::Double(_)) if is_integer(text) => return Err(ParseError::IntegerOutOfRange { at, path }),
            Ok(Number::Double(number)) => serde_json::Number::from_f64(number).ok_or(ParseError::NonFinite { at, path })?,
            Err(NumberFault::NonFinite) if is_integer(text) => return Err(ParseError::IntegerOutOfRange { at, path }),
            Err(NumberFault::NonFinite) => return Err(ParseError::NonFinite { at, path }),
            Err(NumberFault::Grammar) => return Err(self.expected("a JSON number")),
        };
        self.at += length;
        Ok(Value::Number(number))
    }

    fn string(&mut self) -> Result<String, ParseError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().take_while(|byte| !matches!(byte, 0..=0x1f | b'"' | b'\\')).count();
            string.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(self.expected("an escaped control character")),
                None => return Err(self.expected("`\"`")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.expected("an escape of JSON")),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, ParseError> {
        let first = self.unit()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first.into()).ok_or_else(|| self.expected("a Unicode character"));
        }
        if self.peek() == Some(b'\\') && self.text.as_bytes().get(self.at + 1) == Some(&b'u') {
            self.at += 1;
            let second = self.unit()?;
            if let Some(Ok(character)) = char::decode_utf16([first, second]).next() {
                return Ok(character);
            }
        }
        Err(self.expected("the second half of a surrogate pair"))
    }

    /// Reads `uXXXX`.
    fn unit(&mut self) -> Result<u16, ParseError> {
        let digits =
            self.text.as_bytes().get(self.at + 1..self.at + 5).ok_or_else(|| self.expected("four hexadecimal digits"))?;
        let mut unit = 0;
        for digit in digits {
            let digit = char::from(*digit).to_digit(16).ok_or_else(|| self.expected("four hexadecimal digits"))?;
            unit = unit * 16 + digit;
        }
        self.at += 5;
        Ok(u16::try_from(unit).expect("four hexadecimal digits are 16 bits"))
    }
}

impl ParseError {
    fn under(mut self, segment: &str) -> Self {
        match &mut self {
            Self::DuplicateKey { path, .. } | Self::IntegerOutOfRange { path, .. } | Self::NonFinite { path, .. } => {
                prefix(path, segment);
            }
            Self::Syntax { .. } | Self::TooDeep { .. } => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let text = r#" { "a" : [ null , true, false , -1.5e3, 0, "x\"\\\/\b\f\n\r\té\ud83d\ude00é" ] , "" : { } , "b":[] } "#;
        let value = json!({ "a": [null, true, false, -1500.0, 0, "x\"\\/\u{8}\u{c}\n\r\té😀é"], "": {}, "b": [] });
        assert_eq!(parse_json(text).unwrap(), value);
    }

    /// I-6: duplicate keys are refused where text is parsed, with the path.
    #[test]
    fn a_key_that_stands_twice_is_refused_with_its_path() {
        let refused = parse_json(r#"{"a": [{"x/y": 1, "x/y": 1}]}"#).unwrap_err();
        assert_eq!(refused, ParseError::DuplicateKey { at: 18, path: "/a/0/x~1y".to_owned() });
        assert!(matches!(parse_json(r#"{"a":1,"\u0061":1}"#), Err(ParseError::DuplicateKey { .. })));
    }

    /// AH-7: integer texts beyond 64 bits are refused; the neighbouring float text is a double.
    #[test]
    fn integers_beyond_64_bits_are_refused_where_text_is_read() {
        for text in ["18446744073709551616", "18446744073709551617", "-9223372036854775809"] {
            let refused = parse_json(&format!("[{text}]")).unwrap_err();
            assert_eq!(refused, ParseError::IntegerOutOfRange { at: 1, path: "/0".to_owned() });
        }
        let long = "9".repeat(400);
        assert!(matches!(parse_json(&long), Err(ParseError::IntegerOutOfRange { .. })));
        assert_eq!(parse_json("18446744073709551615").unwrap(), json!(u64::MAX));
        assert_eq!(parse_json("1.8446744073709552e19").unwrap(), json!(18_446_744_073_709_551_616.0_f64));
    }

    #[test]
    fn bad_texts_are_refused_with_their_place() {
        let table = [
            ("", 0),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("{1:2}", 1),
            ("nul", 0),
            ("01", 1),
            ("1 2", 2),
            ("\"a", 2),
            ("\"\n\"", 1),
            ("\"\\x\"", 2),
            ("\"\\ud800\"", 7),
            ("\"\\u12\"", 2),
            ("[1", 2),
        ];
        for (text, place) in table {
            match parse_json(text) {
                Err(ParseError::Syntax { at, .. }) => assert_eq!(at, place, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        assert_eq!(parse_json("[1e400]"), Err(ParseError::NonFinite { at: 1, path: "/0".to_owned() }));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_json(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse_json(&nested(MAX_DEPTH + 1)), Err(ParseError::TooDeep { at: MAX_DEPTH }));
        assert_eq!(parse_json(&"[".repeat(100_000)), Err(ParseError::TooDeep { at: MAX_DEPTH }));
    }
}
