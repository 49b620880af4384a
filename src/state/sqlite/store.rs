//! Opening a file as a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::connection::{open_for_writing, prepare_log};
use super::migrate::migrate;
use super::place;
use super::reader::SqliteReader;
use super::writer::SqliteWriter;
use crate::clock::{Clock, SystemClock};
use crate::state::{InstanceIdentity, JournalReader, JournalWriter, Store, StoreError, StoreSize};
#[cfg(feature = "testing")]
use crate::testing::Faults;

/// A store in one SQLite file. Clones share it.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// use tipstaff_core::state::{Here, JournalWrite, SqliteStore, Store as _};
/// # use tipstaff_core::{clock::Timestamp, id::SessionId, signal::{LifecycleKind, Signal}};
///
/// let store = SqliteStore::open(folder.path().join("tipstaff.db"))?;
/// let mut writer = store.open_writer(&Here::read().instance("example"))?;
/// let fact = Signal::builder(SessionId::new("s-1")?, LifecycleKind::RunStarted, Timestamp::from_micros(0)).build();
/// let answers = writer.commit(&[JournalWrite::Append(fact.into())])?;
/// assert_eq!(answers[0].as_ref().map(|appended| appended.seq.0).ok(), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    file: Arc<StoreFile>,
    reader: Arc<SqliteReader>,
}

/// A checked file and how it is opened.
pub(super) struct StoreFile {
    pub(super) path: PathBuf,
    pub(super) options: SqliteOptions,
}

/// When the log is flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// Before each commit is confirmed (`synchronous = FULL`): what was confirmed survives a crash of the process and a loss of power.
    #[default]
    PowerLoss,
    /// At checkpoints only (`synchronous = NORMAL`): what was confirmed survives a crash of the process; **a loss of power or a crash of the
    /// operating system may take back the newest confirmed groups**, whole groups and never a middle one. For replays and tests.
    ProcessCrash,
}

/// Whether opening may migrate an older file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Migrate {
    /// Migrate it.
    #[default]
    Allowed,
    /// Refuse it. An empty file is still made a store.
    Refused,
}

/// How a file is opened.
#[derive(Clone)]
pub struct SqliteOptions {
    pub(super) durability: Durability,
    pub(super) migrate: Migrate,
    pub(super) busy_timeout: Duration,
    pub(super) readers: usize,
    pub(super) clock: Arc<dyn Clock>,
    #[cfg(feature = "testing")]
    pub(super) faults: Faults,
}

impl Default for SqliteOptions {
    /// Durable against a loss of power, migrations allowed, a busy timeout of 10 s, at most 4 readers, the machine's clock.
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            migrate: Migrate::default(),
            busy_timeout: Duration::from_secs(10),
            readers: 4,
            clock: Arc::new(SystemClock),
            #[cfg(feature = "testing")]
            faults: Faults::new(),
        }
    }
}

impl SqliteOptions {
    /// When the log is flushed.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether an older file is migrated.
    #[must_use]
    pub fn migrate(mut self, migrate: Migrate) -> Self {
        self.migrate = migrate;
        self
    }

    /// How long to wait for another process's lock; at least 5 s (L-22), a shorter time is raised to that.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout.max(Duration::from_secs(5));
        self
    }

    /// How many connections read at the same time, at least 1; further readers wait for one.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// The store's clock: leases, graces and stamps of instances come from it (L-1).
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The fault points of this store.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }
}

impl SqliteStore {
    /// Opens a file with the usual options, and creates it if it is not there. The folder must exist.
    ///
    /// # Durability
    /// When this returns `Ok`, the file has the schema of this program.
    ///
    /// # Errors
    /// [`StoreError`] for a file that is not to be used; its text names the file and what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`StoreError::OlderSchema`] where migrating is refused.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let path = place::prepare(path.as_ref())?;
        let file = Arc::new(StoreFile { path, options });
        let mut connection = open_for_writing(&file)?;
        migrate(&mut connection, &file, prepare_log)?;
        let reader = Arc::new(SqliteReader::new(Arc::clone(&file)));
        Ok(Self { file, reader })
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &Arc<StoreFile> {
        &self.file
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

impl Store for SqliteStore {
    fn open_writer(&self, instance: &InstanceIdentity) -> Result<Box<dyn JournalWriter>, StoreError> {
        Ok(Box::new(SqliteWriter::open(Arc::clone(&self.file), instance)?))
    }

    fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError> {
        Ok(Arc::clone(&self.reader) as Arc<dyn JournalReader>)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        place::size(&self.file.path)
    }
}
