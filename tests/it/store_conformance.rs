//! Every backend of the store keeps the same promises, and agrees with the model in memory on every read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tipstaff_core::clock::Clock;
use tipstaff_core::state::conformance::{self, Backend};
use tipstaff_core::state::{Durability, MemoryStore, SqliteOptions, SqliteStore, Store};
use tipstaff_core::testing::Faults;

struct Memory;

impl Backend for Memory {
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store> {
        Arc::new(MemoryStore::with_faults(clock, faults))
    }
}

struct Sqlite {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

impl Backend for Sqlite {
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store> {
        let path = self.folder.path().join(format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed)));
        let options = SqliteOptions::default().clock(clock).faults(faults).durability(Durability::ProcessCrash);
        Arc::new(SqliteStore::open_with(path, options).unwrap())
    }
}

/// L-21, L-22, P-9 to P-11, I-19: the suite on the model.
#[test]
fn the_model_in_memory_keeps_the_promises_of_a_store() {
    conformance::run(&Memory);
}

/// L-21, L-22, P-9 to P-11, I-19: the suite on SQLite.
#[test]
fn sqlite_keeps_the_promises_of_a_store() {
    conformance::run(&Sqlite { folder: tempfile::tempdir().unwrap(), made: AtomicU32::new(0) });
}
