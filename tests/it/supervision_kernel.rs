//! Supervision by its public face: real actors, paused time, and tokio's own count of tasks.
//!
//! Tests that guard against a known pitfall of supervision name its number, see `pitfalls.rs`.

mod ends;
pub(crate) mod probe;
mod restarts;
mod serving;
mod subtrees;
