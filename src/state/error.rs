//! Why a store cannot be opened, or could not do what it was asked.

use std::path::PathBuf;
use std::sync::Arc;

use super::payload::MAX_PAYLOAD_BYTES;
use crate::id::{AttemptId, OperationId, SessionId, SignalId};
use crate::signal::{LifecycleKind, MAX_PAYLOAD_DEPTH, SignalSeq};

/// Why one write of a group was not recorded. The other writes of the group are not touched by it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The identity is taken by another fact. Trying again is useless.
    #[error(
        "fact {id} is recorded already with other content, at position {seq} of session {session}: a fact never changes; give the new one an identity of its own"
    )]
    Conflict {
        /// The identity.
        id: SignalId,
        /// The session of the recorded fact.
        session: SessionId,
        /// Its position.
        seq: SignalSeq,
    },
    /// A fact about an operation does not say which operation or which attempt. Trying again is useless.
    #[error("fact {id} of kind {kind} names no operation or no attempt: set both when the fact is built")]
    Unidentified {
        /// The fact.
        id: SignalId,
        /// Its kind.
        kind: &'static str,
    },
    /// The attempt was proposed before, by another fact (I-12: a retry is a new attempt).
    #[error(
        "attempt {attempt} of operation {operation} was proposed before, at position {seq} of session {session}: a retry is a new attempt"
    )]
    AlreadyProposed {
        /// The operation.
        operation: OperationId,
        /// The attempt.
        attempt: AttemptId,
        /// The session of the proposal.
        session: SessionId,
        /// The position of the proposal.
        seq: SignalSeq,
    },
    /// The attempt has its closing fact (P-9, I-19). The second one is refused, also after a restart.
    #[error("attempt {attempt} of operation {operation} has ended already as {}, at position {seq} of session {session}: an attempt ends once", closed_as.as_str())]
    AlreadyClosed {
        /// The operation.
        operation: OperationId,
        /// The attempt.
        attempt: AttemptId,
        /// How it ended.
        closed_as: LifecycleKind,
        /// The session of the closing fact.
        session: SessionId,
        /// Its position.
        seq: SignalSeq,
    },
    /// The attempt belongs to another session than the fact.
    #[error("attempt {attempt} of operation {operation} was proposed in session {session}: close it there")]
    OtherSession {
        /// The operation.
        operation: OperationId,
        /// The attempt.
        attempt: AttemptId,
        /// The session of its proposal.
        session: SessionId,
    },
    /// The payload is nested too deeply to be read back from its JSON text. Trying again is useless.
    #[error(
        "the payload of fact {id} is nested more than {MAX_PAYLOAD_DEPTH} levels deep and could not be read back: flatten it"
    )]
    TooDeep {
        /// The fact.
        id: SignalId,
    },
    /// The payload is larger than a store can keep. It is refused whole, because nothing is ever cut (P-11). Trying again is useless.
    #[error(
        "the payload of fact {id} has {bytes} bytes, at most {MAX_PAYLOAD_BYTES} can be kept: store it elsewhere and record where"
    )]
    TooLarge {
        /// The fact.
        id: SignalId,
        /// The size of its JSON text.
        bytes: usize,
    },
    /// The store could not take it. Nothing is known to be wrong with the fact: try again under the same identity.
    #[error("the journal could not take the fact")]
    Unavailable(#[source] Arc<StoreError>),
}

/// What the driver of a backend said. Its type is private, so that no driver stands in our signatures.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DriverError(Box<dyn std::error::Error + Send + Sync>);

impl DriverError {
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only backends with a driver have driver errors"))]
    pub(super) fn new(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// Why a store cannot be opened, or could not do what it was asked. Each text names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder of the file does not exist.
    #[error("{}: the folder {} does not exist: create it, or name another file", path.display(), folder.display())]
    MissingFolder {
        /// The file.
        path: PathBuf,
        /// The folder that is missing.
        folder: PathBuf,
    },
    /// The path names something that is no regular file.
    #[error("{}: this is {what}, not a file: name a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The file is no SQLite database.
    #[error("{}: this is not an SQLite database: move it away, or name another file", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("{}: this database belongs to another program (application id {application_id:#010x}): name another file", path.display())]
    OtherProgram {
        /// The file.
        path: PathBuf,
        /// The other program's mark; 0 when it set none.
        application_id: u32,
    },
    /// The file was written by a newer version. Nothing was changed.
    #[error("{}: its schema is version {found}, this program knows versions up to {known}: upgrade this program", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The file has an older schema and migrating was not allowed.
    #[error("{}: its schema is version {found}, this program writes version {known}: open it once with migrations allowed", path.display())]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version that this program writes.
        known: u32,
    },
    /// A migration that the file has is not the one that this program knows under the number.
    #[error("{}: its migration {version} is not the one of this program: it was made by a build with other migrations; use that build", path.display())]
    OtherMigration {
        /// The file.
        path: PathBuf,
        /// The number of the migration.
        version: u32,
    },
    /// The file cannot be written.
    #[error("{}: the file, its folder or its file system is read-only: make it writable for this user, or name another file", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file lies on a network file system, whose locks cannot be trusted (L-22).
    #[error("{}: the file lies on {file_system}, a network file system, where SQLite loses data: put it on a local disk", path.display())]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The type of the file system.
        file_system: String,
    },
    /// Another process held the write lock for longer than the busy timeout.
    #[error("{}: another process held the lock for too long: end it, or raise the busy timeout", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Every reader was taken for longer than the busy timeout.
    #[error("{}: all {readers} readers were taken for too long: read less at a time, or allow more readers", path.display())]
    ReadersBusy {
        /// The file.
        path: PathBuf,
        /// How many there are.
        readers: usize,
    },
    /// The closing fact of an open proposal was refused, so that the recovery stopped.
    #[error("{}: recovering open proposals failed", path.display())]
    RecoveryRefused {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: AppendError,
    },
    /// The disk is full. What was answered is recorded; this was not.
    #[error("{}: the disk is full: free some space and try again", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("{}: the database is damaged ({operation}): restore a backup, or save what is readable with `sqlite3 FILE .recover`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: DriverError,
    },
    /// A recorded row cannot be read as what it should be.
    #[error("{}: the row of {row} cannot be read ({what}): restore a backup, or leave the row out", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Which row.
        row: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refused to read or create a file.
    #[error("{}: {operation} failed", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The driver refused a statement.
    #[error("{}: {operation} failed", path.display())]
    Driver {
        /// The file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: DriverError,
    },
    /// A fault point of a test refused.
    #[cfg(feature = "testing")]
    #[error("the fault point {point} refused")]
    Injected {
        /// The point.
        point: crate::testing::FaultPoint,
    },
}
