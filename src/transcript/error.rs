//! Why a transcript cannot be read.

use std::io;

/// Why a transcript cannot be read. Damage inside a transcript is no error: it is counted ([`Counts`](super::Counts)) and listed by place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The file cannot be opened.
    #[error("{name} cannot be opened: check that it exists and is readable")]
    Open {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// Reading failed part of the way. Trying again from the start is safe: the same records yield the same keys.
    #[error("{name} cannot be read on from line {line} (byte {offset}): what was read before it stands")]
    Read {
        /// The file.
        name: String,
        /// The line in question, from 1.
        line: u64,
        /// Where that line begins.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// Nothing but white space.
    #[error("{name} is empty ({bytes} bytes, no record): give a session file that was written to")]
    Empty {
        /// The file.
        name: String,
        /// Its length.
        bytes: u64,
    },
    /// Neither product's grammar.
    #[error(
        "{name} is no known transcript: line {line} (byte {offset}) holds {found}; give a Claude Code session file \
         (~/.claude/projects/.../*.jsonl) or a Codex rollout file (~/.codex/sessions/.../rollout-*.jsonl), not the output of `codex exec --json`"
    )]
    UnknownProduct {
        /// The file.
        name: String,
        /// The first line that is not blank, from 1.
        line: u64,
        /// Where that line begins.
        offset: u64,
        /// What stands there, in short.
        found: String,
    },
}
