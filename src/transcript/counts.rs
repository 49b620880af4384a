//! What a reader counted.

use std::collections::BTreeMap;
use std::fmt;

use super::outcome::ErrorClass;

/// What is counted while reading, for the user. Complete once the reader has handed out [`Event::End`](super::Event::End).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines separated by LF. What follows the last LF counts as a line.
    pub physical_lines: u64,
    /// Whole JSON objects, those of glued lines included.
    pub records: u64,
    /// Records by kind.
    pub record_kinds: Names,
    /// Records of a kind that this version does not know, by kind. They are also in `record_kinds`.
    pub unknown_kinds: Names,
    /// Distinct calls, those included that ran at the vendor or were inherited.
    pub calls: u64,
    /// Calls by the tool's name.
    pub calls_by_name: Names,
    /// Calls of sub-agents, included in `calls`.
    pub sidechain_calls: u64,
    /// Calls before a fork's first own turn, included in `calls`.
    pub inherited_calls: u64,
    /// Calls that are known only because they already ran, not included in `calls`.
    pub already_ran_calls: u64,
    /// Distinct results.
    pub results: u64,
    /// Results that tell an error.
    pub error_results: u64,
    /// Those by class.
    pub error_classes: BTreeMap<ErrorClass, u64>,
    /// Calls that no result settled, known when the file has ended.
    pub calls_without_result: u64,
    /// Those by the tool's name.
    pub calls_without_result_by_name: Names,
    /// Results whose call is not in the file.
    pub orphan_results: u64,
    /// Glued lines and broken lines.
    pub malformed_lines: u64,
    /// Lines with two or more whole objects.
    pub glued_lines: u64,
    /// Lines that are not JSON objects from end to end, and no glued ones.
    pub broken_lines: u64,
    /// Lines that were not parsed because they are over a limit.
    pub skipped_lines: u64,
    /// Lines with bytes that are no UTF-8, or with half of a surrogate pair: replaced by U+FFFD.
    pub replaced_lines: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Compactions of the model's context.
    pub compactions: u64,
}

/// What else is counted, for whoever checks a reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Lines of white space.
    pub blank_lines: u64,
    /// The longest line, without its LF.
    pub longest_line_bytes: u64,
    /// Whether the last byte is an LF.
    pub ends_with_newline: bool,
    /// Records on glued lines.
    pub records_in_glued_lines: u64,
    /// Repeats of a call, byte for byte.
    pub duplicate_call_records: u64,
    /// Repeats of a result, byte for byte.
    pub duplicate_result_records: u64,
    /// Different calls under an identifier that was used before.
    pub call_id_reused: u64,
    /// Results that found their call.
    pub paired_results: u64,
    /// Results of a call that has its result already.
    pub extra_results: u64,
    /// Calls that carry their own outcome.
    pub self_settled_calls: u64,
    /// Times that old results were dropped from the model's context.
    pub micro_compactions: u64,
    /// Turns begun.
    pub turn_starts: u64,
    /// Turns ended.
    pub turn_ends: u64,
    /// Notices of a failed request.
    pub api_error_messages: u64,
    /// Records of a request tried again.
    pub api_error_records: u64,
    /// Blocks of tools that ran at the vendor.
    pub server_tool_uses: u64,
    /// Records of sub-agents.
    pub sidechain_records: u64,
    /// Records that name a thread.
    pub session_meta_records: u64,
    /// Errors reported by the client.
    pub error_events: u64,
    /// Reports of a command's end.
    pub exec_ends: u64,
    /// Completed items by type.
    pub items_completed: Names,
    /// Digests of calls and results that were forgotten.
    pub forgotten: u64,
}

/// Counts by name. At most 4,096 names are kept; a name is cut to 128 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    names: BTreeMap<Box<str>, u64>,
    other: u64,
}

const MAX_NAMES: usize = 4096;
const MAX_NAME_BYTES: usize = 128;

impl Names {
    /// Each name with its count, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.names.iter().map(|(name, count)| (&**name, *count))
    }

    /// The count of one name.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.names.get(name).copied().unwrap_or(0)
    }

    /// The count of all names for which there was no room.
    #[must_use]
    pub const fn other(&self) -> u64 {
        self.other
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn add(&mut self, name: &str) {
        let name = cut(name, MAX_NAME_BYTES);
        if let Some(count) = self.names.get_mut(name) {
            *count += 1;
        } else if self.names.len() < MAX_NAMES {
            self.names.insert(name.into(), 1);
        } else {
            self.other += 1;
        }
    }
}

/// The longest beginning of at most `bytes` bytes that ends between two characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// A place where the file is not as it should be. Nothing of it stops a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The line, from 1.
    pub line: u64,
    /// The byte offset of the line in the file.
    pub offset: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// The line holds several whole objects; all were taken.
    Glued {
        /// How many.
        records: u32,
    },
    /// The line is not JSON from end to end, or holds something that is no object. Whole objects before the break were taken.
    Broken {
        /// How many bytes of the line were understood.
        understood: u64,
        /// How many whole objects were taken from it.
        records: u32,
    },
    /// The line is over the reader's limit and was not kept.
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// The line holds more values than a record may have.
    TooManyValues {
        /// Its length.
        bytes: u64,
    },
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glued { records } => write!(f, "{records} records on one line; all were taken"),
            Self::Broken { understood, records } => {
                write!(f, "broken after {understood} bytes; {records} whole records were taken from it")
            }
            Self::TooLong { bytes } => write!(f, "{bytes} bytes are over the reader's limit; the line was skipped"),
            Self::TooManyValues { bytes } => write!(f, "too many values in {bytes} bytes; the line was skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_nothing_goes_uncounted() {
        let mut names = Names::default();
        for n in 0..MAX_NAMES + 10 {
            names.add(&n.to_string());
        }
        names.add("0");
        names.add(&"é".repeat(100));
        assert_eq!(names.iter().count(), MAX_NAMES);
        assert_eq!((names.get("0"), names.other()), (2, 11));
    }
}
