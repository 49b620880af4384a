//! The escapes of `$'..'`.
//!
//! | escape                          | stands for                                  |
//! |---------------------------------|---------------------------------------------|
//! | `\a \b \e \E \f \n \r \t \v`    | a control character                         |
//! | `\\ \' \" \?`                   | the character                               |
//! | `\N`, `\NN`, `\NNN`             | a byte, octal                               |
//! | `\xN`, `\xNN`                   | a byte, hexadecimal                         |
//! | `\uN`.., `\UN`..                | a character, up to 4 or 8 hexadecimal digits |
//! | `\cX`                           | a control character                         |
//! | a NUL by any of these           | the end of the text                         |
//! | anything else                   | itself, the backslash included              |

/// The text that the escapes stand for; nothing, if it is no UTF-8 or bash's versions differ.
pub(super) fn decode(source: &str) -> Option<String> {
    let mut reader = Reader { bytes: source.as_bytes(), at: 0, text: Vec::with_capacity(source.len()) };
    while let Some(byte) = reader.next() {
        if byte == b'\\' { reader.escape()? } else { reader.text.push(byte) }
    }
    let end = reader.text.iter().position(|byte| *byte == 0).unwrap_or(reader.text.len());
    reader.text.truncate(end);
    String::from_utf8(reader.text).ok()
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    text: Vec<u8>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let Some(escaped) = self.next() else {
            self.text.push(b'\\');
            return Some(());
        };
        match escaped {
            b'a' => self.text.push(7),
            b'b' => self.text.push(8),
            b'e' | b'E' => self.text.push(27),
            b'f' => self.text.push(12),
            b'n' => self.text.push(b'\n'),
            b'r' => self.text.push(b'\r'),
            b't' => self.text.push(b'\t'),
            b'v' => self.text.push(11),
            b'\\' | b'\'' | b'"' | b'?' => self.text.push(escaped),
            b'0'..=b'7' => self.octal(),
            // Braces around the digits are read by some versions only.
            b'x' if self.bytes.get(self.at) == Some(&b'{') => return None,
            b'x' => self.byte(),
            b'u' => self.character(b'u', 4)?,
            b'U' => self.character(b'U', 8)?,
            b'c' => self.control()?,
            _ => self.text.extend([b'\\', escaped]),
        }
        Some(())
    }

    fn octal(&mut self) {
        self.at -= 1;
        let (value, _) = self.digits(3, 8);
        self.text.push((value & 0xff) as u8);
    }

    fn byte(&mut self) {
        match self.digits(2, 16) {
            (_, 0) => self.text.extend(b"\\x"),
            (value, _) => self.text.push((value & 0xff) as u8),
        }
    }

    fn character(&mut self, letter: u8, most: usize) -> Option<()> {
        match self.digits(most, 16) {
            (_, 0) => self.text.extend([b'\\', letter]),
            (value, _) => {
                let character = char::from_u32(value)?;
                self.text.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Some(())
    }

    fn control(&mut self) -> Option<()> {
        let letter = self.next().filter(u8::is_ascii)?;
        if letter == b'\\' && self.bytes.get(self.at) == Some(&b'\\') {
            self.at += 1;
        }
        self.text.push(if letter == b'?' { 0x7f } else { letter.to_ascii_uppercase() & 0x1f });
        Some(())
    }

    /// The number that begins here, and how many digits it has.
    fn digits(&mut self, most: usize, radix: u32) -> (u32, usize) {
        let (mut value, mut count) = (0_u32, 0);
        while count < most {
            let digit = self.bytes.get(self.at).and_then(|byte| char::from(*byte).to_digit(radix));
            let Some(digit) = digit else { break };
            value = (value << radix.trailing_zeros()) | digit;
            (self.at, count) = (self.at + 1, count + 1);
        }
        (value, count)
    }
}
