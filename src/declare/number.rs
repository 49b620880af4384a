//! Numbers in canonical form: integers of `i64` and `u64` exactly, every other number as the double that ECMAScript writes.

/// A number text of JSON, read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// An integer below zero.
    Negative(i64),
    /// An integer from zero on.
    Natural(u64),
    /// A finite double: the text has a fraction or an exponent, or is an integer outside `i64` and `u64`.
    Double(f64),
}

/// Why a text is no number that a digest can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFault {
    /// Not the grammar of a JSON number.
    Grammar,
    /// Too large for a double.
    NonFinite,
}

impl Number {
    /// Reads a JSON number. An integer outside `i64` and `u64` becomes a double; the strict reader refuses it by [`is_integer`].
    pub(super) fn read(text: &str) -> Result<Self, NumberFault> {
        if !is_number(text.as_bytes()) {
            return Err(NumberFault::Grammar);
        }
        if is_integer(text) {
            if let Ok(natural) = text.parse() {
                return Ok(Self::Natural(natural));
            }
            match text.parse::<i64>() {
                Ok(0) => return Ok(Self::Natural(0)),
                Ok(negative) => return Ok(Self::Negative(negative)),
                Err(_) => {}
            }
        }
        match text.parse::<f64>() {
            Ok(double) if double.is_finite() => Ok(Self::Double(double)),
            Ok(_) => Err(NumberFault::NonFinite),
            Err(_) => Err(NumberFault::Grammar),
        }
    }
}

/// Whether a number text has neither fraction nor exponent.
pub(super) fn is_integer(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// The length of the JSON number at the front of some bytes, if there is one.
pub(super) fn scan(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    match bytes.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at += digits(at),
        _ => return None,
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

fn is_number(bytes: &[u8]) -> bool {
    scan(bytes) == Some(bytes.len())
}

/// Appends an unsigned integer in decimal.
pub(super) fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("a remainder of ten is below ten");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a signed integer in decimal.
pub(super) fn push_i64(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_u64(out, number.unsigned_abs());
}

/// Appends a finite double as ECMAScript writes it (RFC 8785, section 3.2.2.3).
pub(super) fn push_f64(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64) -> String {
        let mut out = Vec::new();
        push_f64(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    /// I-6: doubles are written as ECMAScript writes them.
    #[test]
    fn doubles_are_written_as_ecmascript_writes_them() {
        let table = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (0.000_001, "0.000001"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ];
        for (number, text) in table {
            assert_eq!(written(number), text);
        }
    }

    /// I-6: integers of i64 and u64 are exact; a longer integer is a double.
    #[test]
    fn number_texts_are_read_without_loss_inside_64_bits() {
        assert_eq!(Number::read("18446744073709551615"), Ok(Number::Natural(u64::MAX)));
        assert_eq!(Number::read("-9223372036854775808"), Ok(Number::Negative(i64::MIN)));
        assert_eq!(Number::read("-0"), Ok(Number::Natural(0)));
        assert_eq!(Number::read("18446744073709551616"), Ok(Number::Double(18_446_744_073_709_551_616.0)));
        assert_eq!(Number::read("1e400"), Err(NumberFault::NonFinite));
        for text in ["", "-", "01", "+1", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN", "inf"] {
            assert_eq!(Number::read(text), Err(NumberFault::Grammar), "{text:?}");
        }
    }

    #[test]
    fn integers_are_written_in_decimal() {
        let mut out = Vec::new();
        push_i64(&mut out, i64::MIN);
        out.push(b' ');
        push_u64(&mut out, u64::MAX);
        out.push(b' ');
        push_i64(&mut out, 0);
        assert_eq!(out, b"-9223372036854775808 18446744073709551615 0");
    }
}
