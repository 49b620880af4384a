//! The reader: lines in, events out.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::iter::FusedIterator;
use std::num::NonZeroUsize;
use std::path::Path;

use serde_json::{Map, Value};

use super::claude::Claude;
use super::codex::Codex;
use super::counts::{Counts, Damage, DamageKind, Details, cut};
use super::error::TranscriptError;
use super::event::{Event, Place};
use super::identity::{Clues, Product, Thread};
use super::ledger::Ledger;
use super::lines::Lines;
use super::record::{self, Content, Shape};

/// How many lines are looked at to find product and thread.
const LOOK_AHEAD_LINES: usize = 32;
/// How many bytes of them: one line is always looked at.
const LOOK_AHEAD_BYTES: u64 = 1024 * 1024;
/// A byte order mark, which some editors put before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The limits of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderOptions {
    /// The longest line, in bytes, that is kept and parsed. 64 MiB by default; real lines of some MiB occur.
    pub line_bytes: NonZeroUsize,
    /// How many calls, and how many calls and results together, are remembered to know repeats by. 262,144 by default, which takes at most
    /// some 40 MiB, and nothing before it is needed.
    pub remembered: NonZeroUsize,
    /// How many calls may wait for their results at once. 65,536 by default.
    pub open_calls: NonZeroUsize,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        let size = |n| NonZeroUsize::new(n).expect("not zero");
        Self { line_bytes: size(64 * 1024 * 1024), remembered: size(262_144), open_calls: size(65_536) }
    }
}

/// Reads one transcript: an iterator of [`Event`]s in file order.
///
/// An `Err` is a failed read and ends the iteration; damage in the file is counted and read past. The last event is [`Event::End`].
///
/// # Ordering
/// A call comes before its outcome, and every call has exactly one outcome before the end.
#[derive(Debug)]
pub struct Reader<R> {
    name: String,
    lines: Lines<R>,
    ahead: VecDeque<Line>,
    ledger: Ledger,
    grammar: Grammar,
    done: bool,
}

#[derive(Debug)]
enum Grammar {
    Claude(Claude),
    Codex(Box<Codex>),
}

/// A line that was read, but not yet booked.
#[derive(Debug)]
struct Line {
    line: u64,
    offset: u64,
    length: u64,
    /// `None`: over the limit.
    content: Option<Content>,
}

/// Blank lines among the first ones.
#[derive(Debug, Default)]
struct Blank {
    lines: u64,
    longest: u64,
}

impl Reader<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`TranscriptError::Open`] when it cannot be opened; else as [`Reader::from_read`].
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Self, TranscriptError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::from_read(name, file, options),
            Err(source) => Err(TranscriptError::Open { name, source }),
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads from anything. `name` is the file's name as far as there is one: it stands in errors, and names the thread where the records do
    /// not. The input is buffered here.
    ///
    /// # Errors
    /// [`TranscriptError::Empty`] and [`TranscriptError::UnknownProduct`] tell a file that is no transcript; [`TranscriptError::Read`] a
    /// failed read of its first lines.
    pub fn from_read(name: impl Into<String>, read: R, options: ReaderOptions) -> Result<Self, TranscriptError> {
        let name = name.into();
        let mut lines = Lines::new(read, options.line_bytes.get());
        let mut ahead = VecDeque::new();
        let mut clues = Clues::default();
        let mut bytes = 0;
        let mut blank = Blank::default();
        while ahead.len() < LOOK_AHEAD_LINES && bytes < LOOK_AHEAD_BYTES && !clues.is_enough() {
            let line = match next_line(&mut lines) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(source) => return Err(read_error(&name, &lines, source)),
            };
            if line.content == Some(Content::Blank) {
                // Blank lines tell nothing and never run out the look-ahead, so they are counted and not kept.
                blank.lines += 1;
                blank.longest = blank.longest.max(line.length);
                continue;
            }
            bytes += line.length;
            line.records().for_each(|record| clues.look_at(record));
            ahead.push_back(line);
        }
        let Some(thread) = clues.thread(&name) else {
            return Err(no_transcript(name, &lines, &ahead));
        };
        let product = thread.product;
        let mut ledger = Ledger::new(thread, &options);
        ledger.counts.physical_lines = blank.lines;
        ledger.details.blank_lines = blank.lines;
        ledger.details.longest_line_bytes = blank.longest;
        let grammar = match product {
            Product::Claude => Grammar::Claude(Claude::default()),
            Product::Codex => Grammar::Codex(Box::new(Codex::new(&ledger))),
        };
        Ok(Self { name, lines, ahead, ledger, grammar, done: false })
    }

    fn step(&mut self) -> Result<(), TranscriptError> {
        let line = match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => next_line(&mut self.lines).map_err(|source| read_error(&self.name, &self.lines, source))?,
        };
        match line {
            Some(line) => self.book(line),
            None => {
                self.ledger.details.ends_with_newline = self.lines.ends_with_newline();
                self.ledger.finish();
                self.done = true;
            }
        }
        Ok(())
    }

    fn book(&mut self, line: Line) {
        let Line { line, offset, length, content } = line;
        let Ledger { counts, details, .. } = &mut self.ledger;
        counts.physical_lines += 1;
        details.longest_line_bytes = details.longest_line_bytes.max(length);
        let (records, shape, replaced) = match content {
            Some(Content::Records { records, shape, replaced }) => (records, shape, replaced),
            Some(Content::Blank) => {
                details.blank_lines += 1;
                return;
            }
            Some(Content::TooManyValues) => {
                counts.skipped_lines += 1;
                return self.ledger.damaged(line, offset, DamageKind::TooManyValues { bytes: length });
            }
            None => {
                counts.skipped_lines += 1;
                return self.ledger.damaged(line, offset, DamageKind::TooLong { bytes: length });
            }
        };
        let taken = u32::try_from(records.len()).unwrap_or(u32::MAX);
        counts.records += u64::from(taken);
        counts.replaced_lines += u64::from(replaced);
        match shape {
            Shape::Whole => {}
            Shape::Glued => {
                counts.malformed_lines += 1;
                counts.glued_lines += 1;
                details.records_in_glued_lines += u64::from(taken);
                self.ledger.damaged(line, offset, DamageKind::Glued { records: taken });
            }
            Shape::Broken(understood) => {
                counts.malformed_lines += 1;
                counts.broken_lines += 1;
                self.ledger.damaged(line, offset, DamageKind::Broken { understood: understood as u64, records: taken });
            }
        }
        for (part, record) in (0..).zip(records) {
            let place = Place { line, offset, part };
            match &mut self.grammar {
                Grammar::Claude(claude) => claude.read(&mut self.ledger, record, place),
                Grammar::Codex(codex) => codex.read(&mut self.ledger, record, place),
            }
        }
    }
}

impl<R> Reader<R> {
    /// Who wrote the file.
    #[must_use]
    pub fn product(&self) -> Product {
        self.ledger.thread.product
    }

    /// Which thread it records.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.ledger.thread
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.ledger.counts
    }

    /// What else was counted so far, for whoever checks a reader.
    #[must_use]
    pub fn details(&self) -> &Details {
        &self.ledger.details
    }

    /// The first 64 damaged places so far; the counts tell how many there are.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.ledger.damage
    }

    /// The name under which the file was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.ledger.out.pop_front() {
                return Some(Ok(event));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.step() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

impl<R: Read> FusedIterator for Reader<R> {}

impl Line {
    fn records(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let records = match &self.content {
            Some(Content::Records { records, .. }) => records.as_slice(),
            _ => &[],
        };
        records.iter()
    }
}

fn next_line<R: Read>(lines: &mut Lines<R>) -> io::Result<Option<Line>> {
    let Some(raw) = lines.next()? else { return Ok(None) };
    let content = raw.bytes.map(|bytes| {
        let bytes = if raw.offset == 0 { bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes) } else { bytes };
        record::read(bytes)
    });
    Ok(Some(Line { line: raw.line, offset: raw.offset, length: raw.length, content }))
}

fn read_error<R: Read>(name: &str, lines: &Lines<R>, source: io::Error) -> TranscriptError {
    let (line, offset) = lines.position();
    TranscriptError::Read { name: name.to_owned(), line, offset, source }
}

fn no_transcript<R: Read>(name: String, lines: &Lines<R>, ahead: &VecDeque<Line>) -> TranscriptError {
    let Some(first) = ahead.front() else {
        return TranscriptError::Empty { name, bytes: lines.position().1 };
    };
    let found = match (&first.content, first.records().next()) {
        (None, _) => format!("{} bytes, which is over the limit for a line", first.length),
        (Some(Content::TooManyValues), _) => format!("more than {} values", record::MAX_VALUES),
        (_, Some(record)) => match record.get("type").and_then(Value::as_str) {
            Some(kind) => format!("a record of type {:?}", cut(kind, 64)),
            None => {
                let keys: Vec<_> = record.keys().take(8).map(|key| cut(key, 32)).collect();
                format!("an object with the members {keys:?}")
            }
        },
        (_, None) => "no whole JSON object".to_owned(),
    };
    TranscriptError::UnknownProduct { name, line: first.line, offset: first.offset, found }
}
