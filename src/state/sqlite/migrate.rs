//! Numbered, forward-only migrations, each in one transaction.
//!
//! | file                                        | what happens                                   |
//! |---------------------------------------------|------------------------------------------------|
//! | empty                                       | becomes a store: every migration               |
//! | ours, older, migrating allowed              | the missing migrations                         |
//! | ours, older, migrating refused              | `OlderSchema`                                  |
//! | ours, this version, the same migrations     | nothing                                        |
//! | ours, another migration under a known number | `OtherMigration`                              |
//! | ours, newer                                 | `NewerSchema`; not one byte is changed         |
//! | a database without our mark                 | `OtherProgram`                                 |
//! | no database                                 | `NotADatabase`                                 |

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::connection::failure;
use super::store::{Migrate, StoreFile};
use crate::declare::Digest;
use crate::state::StoreError;

/// The mark of our files: `tips`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tips");

/// Every migration, oldest first. A released one is never edited: its digest is in the files.
const MIGRATIONS: &[Migration] = &[Migration { name: "journal", sql: include_str!("migrations/0001_journal.sql") }];

struct Migration {
    name: &'static str,
    sql: &'static str,
}

const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS tipstaff_schema (
        version        INTEGER PRIMARY KEY,
        name           TEXT NOT NULL,
        checksum       TEXT NOT NULL,
        applied_at_us  INTEGER NOT NULL,
        program_version TEXT NOT NULL
    ) STRICT";

/// Brings a file to the schema of this program. `prepare_log` is called once it is known that the file is ours to change.
pub(super) fn migrate(
    connection: &mut Connection,
    file: &StoreFile,
    prepare_log: impl Fn(&Connection, &StoreFile) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let known = version_number(MIGRATIONS.len());
    match look(connection, &file.path)? {
        Found::Empty => {}
        Found::Ours(version) if version > known => return Err(newer(file, version)),
        Found::Ours(version) if version == known => return check_ledger(connection, file),
        Found::Ours(version) if file.options.migrate == Migrate::Refused => {
            return Err(StoreError::OlderSchema { path: file.path.clone(), found: version, known });
        }
        Found::Ours(_) => check_ledger(connection, file)?,
    }
    prepare_log(connection, file)?;
    while apply_next(connection, file)? {}
    check_ledger(connection, file)
}

/// Refuses a file that another program has migrated beyond us since it was opened.
pub(super) fn still_known(connection: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    match look(connection, &file.path)? {
        Found::Ours(version) if version > version_number(MIGRATIONS.len()) => Err(newer(file, version)),
        Found::Ours(_) | Found::Empty => Ok(()),
    }
}

enum Found {
    Empty,
    Ours(u32),
}

/// Looks at one moment of the file: another process may be making it ours, and half of that would look like the file of another program.
fn look(connection: &Connection, path: &Path) -> Result<Found, StoreError> {
    let failed = |source| failure(path, "reading the schema version", source);
    // A savepoint holds one moment inside a transaction and outside of one.
    connection.execute_batch("SAVEPOINT look").map_err(failed)?;
    let found = marks(connection, path);
    connection.execute_batch("RELEASE look").map_err(failed)?;
    found
}

fn marks(connection: &Connection, path: &Path) -> Result<Found, StoreError> {
    let failed = |source| failure(path, "reading the schema version", source);
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).map_err(failed);
    let (application_id, version) = (number("application_id")?, number("user_version")?);
    if application_id == APPLICATION_ID {
        return Ok(Found::Ours(version.unsigned_abs()));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    if application_id == 0 && version == 0 && tables == 0 {
        return Ok(Found::Empty);
    }
    Err(StoreError::OtherProgram { path: path.to_owned(), application_id: application_id.cast_unsigned() })
}

/// Applies the next migration, if one is missing. Another process may have applied it meanwhile, so the version is read under the lock.
fn apply_next(connection: &mut Connection, file: &StoreFile) -> Result<bool, StoreError> {
    let failed = |source| failure(&file.path, "migrating the schema", source);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let applied = match look(&transaction, &file.path)? {
        Found::Empty => 0,
        Found::Ours(version) => version as usize,
    };
    let Some(next) = MIGRATIONS.get(applied) else { return Ok(false) };
    transaction.execute_batch(LEDGER).map_err(failed)?;
    transaction.execute_batch(next.sql).map_err(failed)?;
    let row = params![
        version_number(applied + 1),
        next.name,
        Digest::of(next.sql.as_bytes()).to_string(),
        file.options.clock.now().as_micros(),
        env!("CARGO_PKG_VERSION"),
    ];
    transaction.execute("INSERT INTO tipstaff_schema VALUES (?1, ?2, ?3, ?4, ?5)", row).map_err(failed)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", version_number(applied + 1)).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(true)
}

/// Compares the digests of the applied migrations with ours.
fn check_ledger(connection: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    let failed = |source| failure(&file.path, "reading the applied migrations", source);
    let mut statement = connection.prepare("SELECT version, checksum FROM tipstaff_schema ORDER BY version").map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let version: u32 = row.get(0).map_err(failed)?;
        let checksum: String = row.get(1).map_err(failed)?;
        let ours = MIGRATIONS.get((version as usize).wrapping_sub(1)).map(|ours| Digest::of(ours.sql.as_bytes()).to_string());
        if ours.as_deref() != Some(checksum.as_str()) {
            return Err(StoreError::OtherMigration { path: file.path.clone(), version });
        }
    }
    Ok(())
}

fn newer(file: &StoreFile, found: u32) -> StoreError {
    StoreError::NewerSchema { path: file.path.clone(), found, known: version_number(MIGRATIONS.len()) }
}

fn version_number(migrations: usize) -> u32 {
    u32::try_from(migrations).expect("there are few migrations")
}
