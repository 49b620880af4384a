//! Connections: their settings, and what an error of the driver means to a person.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::store::{Durability, StoreFile};
use crate::state::{DriverError, StoreError};

/// A connection that may write. `synchronous` belongs to the connection and not to the file, so it is set on each.
pub(super) fn open_for_writing(file: &StoreFile) -> Result<Connection, StoreError> {
    let failed = |source| failure(&file.path, "opening the database", source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&file.path, flags).map_err(failed)?;
    // SQLite falls back to reading where it may not write, and says nothing.
    if connection.is_readonly("main").map_err(failed)? {
        return Err(StoreError::ReadOnly { path: file.path.clone() });
    }
    connection.busy_timeout(file.options.busy_timeout).map_err(failed)?;
    let synchronous = match file.options.durability {
        Durability::PowerLoss => "FULL",
        Durability::ProcessCrash => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    // Room for the growing ends of the indices; a log that grew is cut back when it is folded in.
    connection.pragma_update(None, "cache_size", -8 * 1024).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20).map_err(failed)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(failed)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_for_reading(file: &StoreFile) -> Result<Connection, StoreError> {
    let failed = |source| failure(&file.path, "opening the database for reading", source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&file.path, flags).map_err(failed)?;
    connection.busy_timeout(file.options.busy_timeout).map_err(failed)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(failed)?;
    Ok(connection)
}

/// How long to wait before the switch to a write-ahead log is tried again.
const SWITCH_AGAIN: Duration = Duration::from_millis(5);

/// Gives the file a write-ahead log. The mode is kept in the file.
///
/// SQLite does not consult the busy timeout for this switch: where two processes make one new file at once, one of them is refused at once. So the
/// patience is ours.
pub(super) fn prepare_log(connection: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    let failed = |source| failure(&file.path, "switching to a write-ahead log", source);
    let began = Instant::now();
    let mode = loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)).map_err(failed) {
            Err(StoreError::Busy { .. }) if began.elapsed() < file.options.busy_timeout => {
                std::thread::park_timeout(SWITCH_AGAIN)
            }
            switched => break switched?,
        }
    };
    if mode.eq_ignore_ascii_case("wal") { Ok(()) } else { Err(failed(rusqlite::Error::InvalidQuery)) }
}

/// What an error of the driver means.
pub(super) fn failure(path: &Path, operation: &'static str, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, operation, source: DriverError::new(source) },
        _ => StoreError::Driver { path, operation, source: DriverError::new(source) },
    }
}
