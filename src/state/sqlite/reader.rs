//! The shared reader: a small pool of read-only connections.

use std::num::NonZeroU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::connection::open_for_reading;
use super::query;
use super::store::StoreFile;
use crate::id::{AttemptId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::SignalSeq;
use crate::state::{
    AttemptRow, JournalReader, Page, PageLimit, ReadFilter, Recorded, RecordedGap, RuntimeInstance, SessionRow, StoreError,
    Summary,
};

/// Reads on one of a bounded number of connections. A connection is opened when one is needed and none is free, and kept.
pub(super) struct SqliteReader {
    file: Arc<StoreFile>,
    /// Held for taking and giving back only; reads run outside it.
    pool: Mutex<Pool>,
    given_back: Condvar,
}

#[derive(Default)]
struct Pool {
    free: Vec<Connection>,
    open: usize,
}

impl SqliteReader {
    pub(super) fn new(file: Arc<StoreFile>) -> Self {
        Self { file, pool: Mutex::default(), given_back: Condvar::new() }
    }

    /// Runs a question on a connection. All of them taken: waits for one, no longer than for another process's lock.
    fn ask<T>(&self, question: impl FnOnce(&Connection, &StoreFile) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut lent = self.take()?;
        if lent.connection.is_none() {
            lent.connection = Some(open_for_reading(&self.file)?);
        }
        question(lent.connection.as_ref().expect("it was just opened"), &self.file)
    }

    fn take(&self) -> Result<Lent<'_>, StoreError> {
        let all_taken = |pool: &mut Pool| pool.free.is_empty() && pool.open >= self.file.options.readers;
        let waited = self.given_back.wait_timeout_while(self.lock(), self.file.options.busy_timeout, all_taken);
        let (mut pool, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(StoreError::ReadersBusy { path: self.file.path.clone(), readers: self.file.options.readers });
        }
        let connection = pool.free.pop();
        if connection.is_none() {
            pool.open += 1;
        }
        Ok(Lent { reader: self, connection })
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place of the pool. Dropping it gives it back, also when a question fails or panics.
struct Lent<'r> {
    reader: &'r SqliteReader,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.reader.lock();
        match self.connection.take() {
            Some(connection) => pool.free.push(connection),
            None => pool.open -= 1,
        }
        drop(pool);
        self.reader.given_back.notify_one();
    }
}

impl JournalReader for SqliteReader {
    fn read(&self, session: &SessionId, after: SignalSeq, filter: &ReadFilter, limit: PageLimit) -> Result<Page, StoreError> {
        self.ask(|connection, file| query::page(connection, file, session, after, filter, limit))
    }

    fn signal(&self, id: &SignalId) -> Result<Option<Recorded>, StoreError> {
        self.ask(|connection, file| Ok(query::find_signal(connection, file, id)?.map(|(_, recorded)| recorded)))
    }

    fn sessions(&self, after: Option<&SessionId>, limit: NonZeroU32) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(|connection, file| query::sessions(connection, file, after, limit.get()))
    }

    fn last_seq(&self, session: &SessionId) -> Result<Option<SignalSeq>, StoreError> {
        self.ask(|connection, file| query::last_seq(connection, file, session))
    }

    fn gaps(&self, session: &SessionId, after: SignalSeq, limit: NonZeroU32) -> Result<Vec<RecordedGap>, StoreError> {
        self.ask(|connection, file| query::gaps(connection, file, session, after, limit.get()))
    }

    fn attempt(&self, operation: &OperationId, attempt: &AttemptId) -> Result<Option<AttemptRow>, StoreError> {
        self.ask(|connection, file| query::attempt(connection, file, operation, attempt))
    }

    fn attempts(
        &self,
        operation: &OperationId,
        after: Option<&AttemptId>,
        limit: NonZeroU32,
    ) -> Result<Vec<AttemptRow>, StoreError> {
        self.ask(|connection, file| query::attempts(connection, file, operation, after, limit.get()))
    }

    fn open_proposals(
        &self,
        after: Option<(&OperationId, &AttemptId)>,
        limit: NonZeroU32,
    ) -> Result<Vec<AttemptRow>, StoreError> {
        self.ask(|connection, file| query::open_proposals(connection, file, after, limit.get()))
    }

    fn instances(&self, after: Option<&RuntimeInstanceId>, limit: NonZeroU32) -> Result<Vec<RuntimeInstance>, StoreError> {
        self.ask(|connection, file| query::instances(connection, file, after, limit.get()))
    }

    fn summary(&self, session: Option<&SessionId>) -> Result<Summary, StoreError> {
        self.ask(|connection, file| query::summary(connection, file, session))
    }
}
