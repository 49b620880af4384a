//! Lines of bytes, split at LF only, none of them kept beyond a limit.

use std::io::{self, BufRead as _, BufReader, Read};

/// The size of one read.
const CHUNK: usize = 128 * 1024;
/// A buffer that one long line made larger than this is given back.
const KEEP: usize = 1024 * 1024;

/// Splits what it reads into lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    limit: usize,
    buffer: Vec<u8>,
    /// Lines handed out so far.
    line: u64,
    /// Bytes consumed so far: where the next line begins.
    offset: u64,
    ends_with_newline: bool,
}

/// One line, without its LF.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawLine<'a> {
    /// From 1.
    pub(super) line: u64,
    /// Where it begins.
    pub(super) offset: u64,
    /// Its length.
    pub(super) length: u64,
    /// Its bytes, unless it is over the limit.
    pub(super) bytes: Option<&'a [u8]>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        let input = BufReader::with_capacity(CHUNK, input);
        Self { input, limit, buffer: Vec::new(), line: 0, offset: 0, ends_with_newline: false }
    }

    /// The next line; `None` at the end of the input.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEEP);
        // One byte more than the limit: the line feed of the longest line, or the proof that there is none.
        let most = (self.limit as u64).saturating_add(1);
        let mut consumed = self.input.by_ref().take(most).read_until(b'\n', &mut self.buffer)? as u64;
        if consumed == 0 {
            return Ok(None);
        }
        self.ends_with_newline = self.buffer.ends_with(b"\n");
        let too_long = consumed == most && !self.ends_with_newline;
        if too_long {
            self.buffer = Vec::new();
            consumed += self.skip_line()?;
        }
        if self.ends_with_newline {
            self.buffer.pop();
        }
        let start = self.offset;
        self.offset += consumed;
        self.line += 1;
        let length = consumed - u64::from(self.ends_with_newline);
        Ok(Some(RawLine { line: self.line, offset: start, length, bytes: (!too_long).then_some(&self.buffer) }))
    }

    /// Reads past the rest of a line, piece by piece; returns how many bytes that took.
    fn skip_line(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            self.buffer.clear();
            let piece = self.input.by_ref().take(CHUNK as u64).read_until(b'\n', &mut self.buffer)?;
            skipped += piece as u64;
            self.ends_with_newline = self.buffer.ends_with(b"\n");
            if self.ends_with_newline || piece == 0 {
                return Ok(skipped);
            }
        }
    }

    /// The number of the line that comes next, and where it begins.
    pub(super) const fn position(&self) -> (u64, u64) {
        (self.line + 1, self.offset)
    }

    pub(super) const fn ends_with_newline(&self) -> bool {
        self.ends_with_newline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(input: &[u8], limit: usize) -> Vec<(u64, u64, u64, Option<String>)> {
        let mut lines = Lines::new(input, limit);
        let mut all = Vec::new();
        while let Some(raw) = lines.next().unwrap() {
            all.push((raw.line, raw.offset, raw.length, raw.bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())));
        }
        all
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let lines = split("a\r\n\u{2028}b\n\nlast".as_bytes(), 100);
        let expected = [(1, 0, 2, "a\r"), (2, 3, 4, "\u{2028}b"), (3, 8, 0, ""), (4, 9, 4, "last")]
            .map(|(a, b, c, d)| (a, b, c, Some(d.to_owned())));
        assert_eq!(lines, expected);
        assert!(split(b"", 10).is_empty());
    }

    #[test]
    fn a_line_over_the_limit_is_read_past_and_the_next_one_is_whole() {
        let mut input = vec![b'x'; 3 * CHUNK];
        input.extend_from_slice(b"\nnext\n12345\n123456");
        let lines = split(&input, 5);
        let long = 3 * CHUNK as u64;
        assert_eq!(lines[0], (1, 0, long, None));
        assert_eq!(lines[1], (2, long + 1, 4, Some("next".into())));
        assert_eq!(lines[2].3.as_deref(), Some("12345"));
        assert_eq!((lines[3].2, &lines[3].3), (6, &None));
    }
}
