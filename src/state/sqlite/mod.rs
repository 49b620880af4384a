//! The embedded store: one SQLite file that the user names.
//!
//! - The writer owns its connection. A group is one `BEGIN IMMEDIATE` transaction, so that another process waits instead of failing; a write of
//!   several statements has a savepoint, and one of a single statement is its own.
//! - Readers share a small pool of read-only connections and keep no transaction open between calls.
//! - The log is a write-ahead log; [`Durability`] says when it is flushed.
//! - Files are created with mode 0600 (P-15). A network file system, another program's file and a newer schema are refused (L-22).

mod connection;
mod migrate;
mod place;
mod query;
mod reader;
mod record;
mod row;
mod store;
mod writer;

pub use store::{Durability, Migrate, SqliteOptions, SqliteStore};
