//! Transcripts of agent sessions, read as events: Claude Code session files and Codex rollout files, told apart by content.
//!
//! [`Reader`] is an iterator. It reads any [`std::io::Read`] line by line, and hands out one [`Event`] after the other in file order:
//! a call, the outcome of a call, a moment in the session's life, and at last one [`End`]. Nothing is executed, sorted or invented.
//!
//! ```
//! use tipstaff_core::transcript::{Event, Outcome, Reader, ReaderOptions};
//!
//! let session = r#"
//! {"type":"assistant","sessionId":"s","uuid":"a","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
//! {"type":"user","sessionId":"s","uuid":"b","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"README.md"}]}}
//! "#;
//! let reader = Reader::from_read("session.jsonl", session.as_bytes(), ReaderOptions::default())?;
//! let events: Vec<_> = reader.collect::<Result<_, _>>()?;
//! let [Event::Call(call), Event::Result(result), Event::End(end)] = events.as_slice() else { panic!("three events") };
//! assert_eq!((&*call.name, call.key.as_str()), ("Bash", "claude/s/t1"));
//! assert_eq!((&result.key, &result.outcome), (&call.key, &Outcome::Succeeded));
//! assert!(end.open.is_empty());
//! # Ok::<(), tipstaff_core::transcript::TranscriptError>(())
//! ```
//!
//! # What is bounded
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | a line | [`ReaderOptions::line_bytes`] | read past without keeping it; counted and named as [`DamageKind::TooLong`] |
//! | values in a line | 262,144 | the line is not parsed; counted and named as [`DamageKind::TooManyValues`] |
//! | calls, results and repeats remembered | [`ReaderOptions::remembered`] blocks, as digests of 16 bytes | the older half is forgotten, see below |
//! | calls without a result so far | [`ReaderOptions::open_calls`] | the oldest ends as [`UnknownBecause::TooManyOpen`] |
//! | distinct names in a count | 4,096 | the rest is counted together in [`Names::other`] |
//! | damage listed by place | 64 | counted, not listed |
//!
//! What happens when a call is forgotten? Its repeat counts as a call again, a second result of it as an orphan. The operation key is the
//! same as before, so whoever records by key records it once. The alternative, a set that grows with the file, would make a file of
//! some gigabytes need some gigabytes.
//!
//! # Questions
//!
//! *When does an interrupted call end?* With the next turn or prompt, or at the end of the file, as unknown: a client may write the
//! outcome of a stopped call just behind the notice of the interrupt, and one known outcome is better than two.
//!
//! *Does a file that grows yield the same keys?* Yes: a key is made of product, thread, call id and, for an id that is used again, the
//! number of the use in file order. The thread comes from the file's name or from its first 32 lines.

mod claude;
mod codex;
mod counts;
mod detail;
mod error;
mod event;
mod identity;
mod items;
mod key;
mod ledger;
mod lines;
mod outcome;
mod pairing;
mod reader;
mod record;

pub use counts::{Counts, Damage, DamageKind, Details, Names};
pub use error::TranscriptError;
pub use event::{Call, CallResult, End, Event, Lifecycle, LifecycleName, Place, UnmatchedReason, UnmatchedResult};
pub use identity::{Layout, Parent, Product, Thread};
pub use outcome::{ErrorClass, Outcome, UnknownBecause};
pub use reader::{Reader, ReaderOptions};
