//! Durable state: one store behind small traits (spec 4, "State").
//!
//! Today it holds the journal: facts with their positions, gaps, attempts of operations and the runtime instances that wrote them.
//! [`Store`] gives out one [`JournalWriter`] and a shared [`JournalReader`]. Two backends pass the same suite: SQLite, and a model in memory
//! which is the oracle of the property tests.

mod attempt;
#[cfg(feature = "testing")]
pub mod conformance;
mod error;
mod fault_point;
mod gap;
mod instance;
mod memory;
mod payload;
mod port;
mod process;
mod read;
mod recovery;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use error::{AppendError, DriverError, StoreError};
pub use gap::{Gap, GapReason};
pub use instance::{
    DeathEvidence, ExecutorIdentity, InstanceIdentity, InstanceVerdict, ProcessSeen, RuntimeInstance, UnknownBecause, judge,
};
pub use memory::MemoryStore;
pub use payload::{INLINE_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES};
pub use port::{Appended, JournalReader, JournalWrite, JournalWriter, Store};
pub use process::Here;
pub use read::{
    AttemptRow, Closed, MAX_SCAN, Page, PageLimit, ReadFilter, Recorded, RecordedGap, SessionRow, StoreSize, Summary,
};
pub use recovery::{ClosedByRecovery, Recovered};
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, Migrate, SqliteOptions, SqliteStore};
