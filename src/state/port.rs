//! The small traits that every backend implements. One method is one state transition or one question; none executes SQL for its caller.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::{
    AppendError, AttemptRow, Gap, InstanceIdentity, InstanceVerdict, Page, PageLimit, ReadFilter, Recorded, RecordedGap,
    Recovered, RuntimeInstance, SessionRow, StoreError, StoreSize, Summary,
};
use crate::id::{AttemptId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::{Signal, SignalSeq};

/// A store: where writers and readers come from.
///
/// Several processes, and several stores of one process, may have one file open (L-22). Within a runtime there is one writer, owned by one
/// thread; readers are shared.
pub trait Store: Send + Sync + 'static {
    /// Opens a writer in the name of a runtime instance and records that instance (L-22). Opening again under the same identity goes on with
    /// the same record: a restarted writer of one runtime stays the owner of its open proposals.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written; the text says what to do.
    fn open_writer(&self, instance: &InstanceIdentity) -> Result<Box<dyn JournalWriter>, StoreError>;

    /// The shared reader.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError>;

    /// What the store occupies on disk.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a file cannot be looked at.
    fn size(&self) -> Result<StoreSize, StoreError>;
}

/// One thing to record.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalWrite {
    /// A fact.
    Append(Arc<Signal>),
    /// A known loss.
    Gap(Gap),
}

/// Where a fact was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its position in its session.
    pub seq: SignalSeq,
    /// Whether it was there before: the same identity with the same content.
    pub repeated: bool,
}

/// The single writer of a journal. Synchronous, because it is owned by one thread that does nothing else.
///
/// A writer that panicked or whose thread ended is dropped; another is opened in its place, and what was committed is there.
pub trait JournalWriter: Send + 'static {
    /// The runtime instance in whose name this writes.
    fn instance(&self) -> &RuntimeInstanceId;

    /// Records a group in one transaction and answers each write, in the order of the group.
    ///
    /// # Ordering
    /// Positions of one session follow the order of the group, start at 1 and have no gaps in commit order (L-21); a refused write takes none.
    ///
    /// # Durability
    /// When this returns `Ok`, every write that is answered `Ok` is committed under the store's durability. When it returns `Err`, it is not
    /// known whether the group was committed, wholly or not at all: record it again under the same identities, and what was recorded answers
    /// with its first position. A crash inside leaves the whole group or nothing of it.
    ///
    /// # Errors
    /// An answer is [`AppendError`] when its write alone was refused. The call is [`StoreError`] when the transaction could not begin or commit.
    fn commit(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError>;

    /// Closes the open proposals of dead instances as `operation_ambiguous` (P-9), each exactly once, whoever else recovers at the same time.
    /// Those of live and unknown instances, and of this writer's own, are left open. Each instance with open proposals is judged once.
    ///
    /// # Durability
    /// Committed in bounded groups. After a crash inside, the next recovery goes on.
    ///
    /// # Errors
    /// [`StoreError`] when a transaction fails: try again.
    fn recover(&mut self, judge: &mut dyn FnMut(&RuntimeInstance) -> InstanceVerdict) -> Result<Recovered, StoreError>;

    /// Records that this writer's instance is alive, by the store's clock.
    ///
    /// # Errors
    /// [`StoreError`] when the transaction fails.
    fn touch(&mut self) -> Result<(), StoreError>;

    /// Uses a quiet moment to fold the write-ahead log into the database, if no reader is in the way. It never waits for one.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be written.
    fn checkpoint_when_idle(&mut self) -> Result<(), StoreError>;

    /// Closes the record of this writer's instance, at an orderly stop. What it left open is closed as ambiguous by the next recovery.
    ///
    /// # Errors
    /// [`StoreError`] when the transaction fails.
    fn end(self: Box<Self>) -> Result<(), StoreError>;
}

/// The questions that a journal answers. Calls block for short reads: make them on a thread that may.
///
/// Every answer is one consistent moment of the store, and bounded: lists come in pages.
pub trait JournalReader: Send + Sync + 'static {
    /// The facts of a session after a position, oldest first, with whole payloads. An unknown session is empty.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read; [`StoreError::Unreadable`] names a damaged row.
    fn read(&self, session: &SessionId, after: SignalSeq, filter: &ReadFilter, limit: PageLimit) -> Result<Page, StoreError>;

    /// A fact by its identity.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn signal(&self, id: &SignalId) -> Result<Option<Recorded>, StoreError>;

    /// The sessions that have facts, by identity, after one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn sessions(&self, after: Option<&SessionId>, limit: NonZeroU32) -> Result<Vec<SessionRow>, StoreError>;

    /// The position of a session's newest fact; `None` for a session without one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn last_seq(&self, session: &SessionId) -> Result<Option<SignalSeq>, StoreError>;

    /// The gaps of a session after a position, oldest first.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn gaps(&self, session: &SessionId, after: SignalSeq, limit: NonZeroU32) -> Result<Vec<RecordedGap>, StoreError>;

    /// One attempt of an operation.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn attempt(&self, operation: &OperationId, attempt: &AttemptId) -> Result<Option<AttemptRow>, StoreError>;

    /// The attempts of an operation, by identity, after one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn attempts(
        &self,
        operation: &OperationId,
        after: Option<&AttemptId>,
        limit: NonZeroU32,
    ) -> Result<Vec<AttemptRow>, StoreError>;

    /// The attempts without a closing fact, by operation and attempt, after one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn open_proposals(&self, after: Option<(&OperationId, &AttemptId)>, limit: NonZeroU32)
    -> Result<Vec<AttemptRow>, StoreError>;

    /// The runtime instances that opened this store, by identity, after one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn instances(&self, after: Option<&RuntimeInstanceId>, limit: NonZeroU32) -> Result<Vec<RuntimeInstance>, StoreError>;

    /// Counts over one session, or over all. It reads every row: an operator's question, not one for each fact.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn summary(&self, session: Option<&SessionId>) -> Result<Summary, StoreError>;
}
