//! One transaction's writes: positions, idempotency, attempts, payloads beside their rows, gaps.
//!
//! ## Why is there no savepoint around each write?
//! A statement is atomic by itself, and what a write could be refused for is looked up before its first one. So only the database can stop a
//! write halfway (a full disk, a damaged page, somebody's trigger), and that is rare, while a savepoint copies every page that its write
//! touches: with one for each write, groups of 1,024 proposals and closing facts ran at half the rate. A group therefore runs without, and where
//! a write stops halfway it is rolled back and carried out again with a savepoint around each write that has several statements.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::connection::failure;
use super::query::{find_signal, session_of};
use super::row::{self, RowError};
use super::store::StoreFile;
use crate::declare::Digest;
use crate::id::{RuntimeInstanceId, SessionId};
use crate::signal::{Signal, SignalSeq};
use crate::state::attempt::{AttemptChange, AttemptFact, RecordedAttempt, attempt_fact, step};
use crate::state::fault_point::fault_point;
use crate::state::payload::check_payload;
use crate::state::{AppendError, Appended, Gap, INLINE_PAYLOAD_BYTES, JournalWrite, StoreError};

/// Carries out writes inside an open transaction. The counters are written by [`finish`](Self::finish), once for each session.
pub(super) struct Recorder<'c, 'g> {
    connection: &'c Connection,
    file: &'c StoreFile,
    instance: &'c RuntimeInstanceId,
    savepoints: Savepoints,
    statements: Statements<'c>,
    counters: HashMap<&'g SessionId, Counter>,
}

/// How one write is kept apart from the others of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Savepoints {
    /// Not at all: a write that stops halfway stops the group.
    None,
    /// A write of several statements stands alone.
    AroundWrites,
}

/// Why a group was not carried out. Its transaction is to be rolled back.
pub(super) enum GroupFailure {
    /// A write stopped halfway and nothing keeps it apart: carry out the group again, with savepoints.
    Halfway(StoreError),
    /// The transaction is lost.
    Lost(StoreError),
}

impl From<StoreError> for GroupFailure {
    fn from(cause: StoreError) -> Self {
        Self::Lost(cause)
    }
}

impl From<GroupFailure> for StoreError {
    fn from(failure: GroupFailure) -> Self {
        match failure {
            GroupFailure::Halfway(cause) | GroupFailure::Lost(cause) => cause,
        }
    }
}

/// Where a session stands in this transaction.
#[derive(Clone, Copy)]
struct Counter {
    key: i64,
    next: i64,
    first: i64,
}

/// Why a write was not carried out.
enum Failure {
    Refused(AppendError),
    Driver(rusqlite::Error),
    Store(StoreError),
    Halfway(StoreError),
}

impl From<AppendError> for Failure {
    fn from(refused: AppendError) -> Self {
        Self::Refused(refused)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(source: rusqlite::Error) -> Self {
        Self::Driver(source)
    }
}

impl From<StoreError> for Failure {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

impl<'c, 'g> Recorder<'c, 'g> {
    pub(super) fn new(
        connection: &'c Connection,
        file: &'c StoreFile,
        instance: &'c RuntimeInstanceId,
        savepoints: Savepoints,
    ) -> Self {
        Self { connection, file, instance, savepoints, statements: Statements::default(), counters: HashMap::new() }
    }

    /// Carries out a group. A failure of one write is its answer.
    pub(super) fn record_all(&mut self, group: &'g [JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, GroupFailure> {
        let mut answers = Vec::with_capacity(group.len());
        for write in group {
            answers.push(self.record_one(write)?);
        }
        Ok(answers)
    }

    /// Writes the counters of the sessions that got facts.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        let failed = |source| failure(&self.file.path, "writing the positions", source);
        for counter in self.counters.values().filter(|counter| counter.next != counter.first) {
            let statement = self.statements.raise_counter.on(self.connection).map_err(failed)?;
            statement.execute(params![counter.next, counter.key]).map_err(failed)?;
        }
        Ok(())
    }

    fn record_one(&mut self, write: &'g JournalWrite) -> Result<Result<Appended, AppendError>, GroupFailure> {
        if let Err(cause) = fault_point!(self.file.options.faults, Append) {
            return Ok(Err(AppendError::Unavailable(Arc::new(cause))));
        }
        let answer = match write {
            JournalWrite::Append(signal) => self.append(signal, signal.session()),
            JournalWrite::Gap(gap) => self.append_gap(gap),
        };
        let cause = match answer {
            Ok(appended) => return Ok(Ok(appended)),
            Err(Failure::Refused(refused)) => return Ok(Err(refused)),
            Err(Failure::Driver(source)) => self.failed(source),
            Err(Failure::Store(cause)) => cause,
            Err(Failure::Halfway(cause)) => return Err(GroupFailure::Halfway(cause)),
        };
        // Some failures end the whole transaction; nothing of the group is recorded then.
        if self.connection.is_autocommit() {
            Err(GroupFailure::Lost(cause))
        } else {
            Ok(Err(AppendError::Unavailable(Arc::new(cause))))
        }
    }

    fn append_gap(&mut self, gap: &'g Gap) -> Result<Appended, Failure> {
        let signal = gap.to_signal();
        let counter = self.counter(&gap.session)?;
        let recorded = self.together(|recorder| {
            let appended = recorder.append(&signal, &gap.session)?;
            if !appended.repeated {
                let lost = gap.known_lost.map(|lost| i64::try_from(lost.get()).unwrap_or(i64::MAX));
                recorder.statements.insert_gap.on(recorder.connection)?.execute(params![
                    counter.key,
                    counter.next,
                    gap.id.as_str(),
                    gap.reason.as_str(),
                    gap.first_at.as_micros(),
                    gap.last_at.as_micros(),
                    lost,
                ])?;
            }
            Ok(appended)
        });
        if recorded.is_err() {
            // The row that took the position is undone.
            self.counters.insert(&gap.session, counter);
        }
        recorded
    }

    fn append(&mut self, signal: &Signal, session: &'g SessionId) -> Result<Appended, Failure> {
        check_payload(signal)?;
        let counter = self.counter(session)?;
        let change = match attempt_fact(signal)? {
            None => None,
            Some(about) => match step(signal, about, self.recorded_attempt(signal, about, counter)?) {
                Ok(change) => Some((about, change)),
                // The very same fact may be what the attempt has already.
                Err(refused) => return self.repeated(signal)?.ok_or(Failure::Refused(refused)),
            },
        };
        let wire = signal.payload().wire();
        let inserted = if change.is_none() && wire.len() <= INLINE_PAYLOAD_BYTES {
            self.insert(signal, counter, Some(&wire))?
        } else {
            self.together(|recorder| {
                let inline = (wire.len() <= INLINE_PAYLOAD_BYTES).then_some(&*wire);
                let inserted = recorder.insert(signal, counter, inline)?;
                if inserted && inline.is_none() {
                    recorder.insert_large(&wire, counter)?;
                }
                if let Some((about, change)) = change.filter(|_| inserted) {
                    recorder.change_attempt(about, change, counter)?;
                }
                Ok(inserted)
            })?
        };
        if !inserted {
            let (path, row) = (self.file.path.clone(), format!("fact {}", signal.id()));
            let neither = StoreError::Unreadable { path, row, what: "the database neither took it nor has it" };
            return self.repeated(signal)?.ok_or(neither.into());
        }
        self.counters.insert(session, Counter { next: counter.next + 1, ..counter });
        Ok(Appended { seq: SignalSeq(counter.next.cast_unsigned()), repeated: false })
    }

    /// Inserts the row; `false` when the identity is taken.
    fn insert(&mut self, signal: &Signal, counter: Counter, inline: Option<&str>) -> Result<bool, Failure> {
        let bytes = signal.payload().wire().len();
        let statement = self.statements.insert_signal.on(self.connection)?;
        let changed = statement.execute(params![
            counter.key,
            counter.next,
            signal.id().as_str(),
            signal.kind().as_str(),
            signal.role().as_str(),
            signal.invocation().map(|id| id.as_str()),
            signal.attempt().map(|id| id.as_str()),
            signal.operation().map(|id| id.as_str()),
            signal.subject().map(|subject| subject.kind()),
            signal.subject().map(|subject| subject.id()),
            signal.payload().shape().name(),
            signal.payload().shape().version(),
            signal.occurred_at().as_micros(),
            bytes as i64,
            inline,
        ])?;
        Ok(changed == 1)
    }

    fn insert_large(&mut self, wire: &str, counter: Counter) -> Result<(), Failure> {
        let digest = Digest::of(wire.as_bytes());
        let row = params![counter.key, counter.next, wire.len() as i64, digest.as_bytes(), wire];
        self.statements.insert_large.on(self.connection)?.execute(row)?;
        Ok(())
    }

    fn recorded_attempt(
        &mut self,
        signal: &Signal,
        about: AttemptFact<'_>,
        counter: Counter,
    ) -> Result<Option<RecordedAttempt>, Failure> {
        let statement = self.statements.find_attempt.on(self.connection)?;
        let mut rows = statement.query(params![about.operation.as_str(), about.attempt.as_str()])?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let read = || {
            let key: i64 = found.get(0)?;
            // The usual case needs no look: it is the session of the fact.
            let session = if key == counter.key { signal.session().clone() } else { session_of(self.connection, key)? };
            let (proposed, closed) = (row::position(found, 1)?, row::closed(found, 2, 3)?);
            Ok(RecordedAttempt { session, proposed, closed })
        };
        let named = || format!("attempt {} of operation {}", about.attempt, about.operation);
        read().map(Some).map_err(|cause: RowError| cause.at(self.file, named).into())
    }

    fn change_attempt(&mut self, about: AttemptFact<'_>, change: AttemptChange, counter: Counter) -> Result<(), Failure> {
        let (operation, attempt) = (about.operation.as_str(), about.attempt.as_str());
        let (key, seq, instance) = (counter.key, counter.next, self.instance.as_str());
        let kind = about.kind.as_str();
        match change {
            AttemptChange::Open => {
                let statement = self.statements.open_attempt.on(self.connection)?;
                statement.execute(params![operation, attempt, key, instance, seq])?;
            }
            AttemptChange::Close => {
                let statement = self.statements.close_attempt.on(self.connection)?;
                statement.execute(params![seq, kind, operation, attempt])?;
            }
            AttemptChange::CloseUnproposed => {
                let statement = self.statements.close_unproposed.on(self.connection)?;
                statement.execute(params![operation, attempt, key, instance, seq, kind])?;
            }
        }
        Ok(())
    }

    /// The answer for a fact whose identity is recorded already: its first position, or a conflict. `None` when it is not.
    fn repeated(&mut self, signal: &Signal) -> Result<Option<Appended>, Failure> {
        let Some((session, recorded)) = find_signal(self.connection, self.file, signal.id())? else { return Ok(None) };
        if *recorded.signal == *signal {
            Ok(Some(Appended { seq: recorded.seq, repeated: true }))
        } else {
            Err(AppendError::Conflict { id: signal.id().clone(), session, seq: recorded.seq }.into())
        }
    }

    /// The counter of a session, read once in a transaction. A new session is written with its first fact.
    fn counter(&mut self, session: &'g SessionId) -> Result<Counter, Failure> {
        if let Some(counter) = self.counters.get(session) {
            return Ok(*counter);
        }
        let statement = self.statements.find_session.on(self.connection)?;
        let found = statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (key, next) = match found {
            Some(found) => found,
            None => (self.statements.insert_session.on(self.connection)?.insert([session.as_str()])?, 1),
        };
        let counter = Counter { key, next, first: next };
        self.counters.insert(session, counter);
        Ok(counter)
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        failure(&self.file.path, "recording a fact", source)
    }

    /// Carries out the statements of one write: all of them or none.
    fn together<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.savepoints == Savepoints::None {
            return write(self).map_err(|failure| match failure {
                Failure::Driver(source) => Failure::Halfway(self.failed(source)),
                Failure::Store(cause) => Failure::Halfway(cause),
                Failure::Refused(_) | Failure::Halfway(_) => failure,
            });
        }
        self.statements.savepoint.on(self.connection)?.execute([])?;
        let done = write(self);
        if done.is_err() && !self.connection.is_autocommit() {
            self.statements.undo.on(self.connection)?.execute([])?;
        }
        if !self.connection.is_autocommit() {
            self.statements.release.on(self.connection)?.execute([])?;
        }
        done
    }
}

/// The statements of a transaction, each taken from the connection's cache when it is first needed.
struct Statements<'c> {
    find_session: Lazy<'c>,
    insert_session: Lazy<'c>,
    raise_counter: Lazy<'c>,
    insert_signal: Lazy<'c>,
    insert_large: Lazy<'c>,
    insert_gap: Lazy<'c>,
    find_attempt: Lazy<'c>,
    open_attempt: Lazy<'c>,
    close_attempt: Lazy<'c>,
    close_unproposed: Lazy<'c>,
    savepoint: Lazy<'c>,
    undo: Lazy<'c>,
    release: Lazy<'c>,
}

impl Default for Statements<'_> {
    fn default() -> Self {
        Self {
            find_session: Lazy::new("SELECT session_key, next_seq FROM sessions WHERE session_id = ?1"),
            insert_session: Lazy::new("INSERT INTO sessions (session_id, next_seq) VALUES (?1, 1)"),
            raise_counter: Lazy::new("UPDATE sessions SET next_seq = ?1 WHERE session_key = ?2"),
            insert_signal: Lazy::new(
                "INSERT INTO signals (session_key, seq, signal_id, kind, role, invocation_id, attempt_id, operation_id, subject_kind, \
                 subject_id, payload_type, payload_version, occurred_at_us, payload_bytes, payload) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT (signal_id) DO NOTHING",
            ),
            insert_large: Lazy::new(
                "INSERT INTO large_payloads (session_key, seq, bytes, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            ),
            insert_gap: Lazy::new(
                "INSERT INTO capture_gaps (session_key, seq, gap_id, reason, first_at_us, last_at_us, known_lost) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            ),
            find_attempt: Lazy::new(
                "SELECT session_key, proposed_seq, closed_seq, closed_kind FROM attempts WHERE operation_id = ?1 AND attempt_id = ?2",
            ),
            open_attempt: Lazy::new(
                "INSERT INTO attempts (operation_id, attempt_id, session_key, instance_id, proposed_seq) VALUES (?1, ?2, ?3, ?4, ?5)",
            ),
            close_attempt: Lazy::new(
                "UPDATE attempts SET closed_seq = ?1, closed_kind = ?2 WHERE operation_id = ?3 AND attempt_id = ?4",
            ),
            close_unproposed: Lazy::new(
                "INSERT INTO attempts (operation_id, attempt_id, session_key, instance_id, closed_seq, closed_kind) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            ),
            savepoint: Lazy::new("SAVEPOINT one_write"),
            undo: Lazy::new("ROLLBACK TO one_write"),
            release: Lazy::new("RELEASE one_write"),
        }
    }
}

struct Lazy<'c> {
    sql: &'static str,
    prepared: Option<CachedStatement<'c>>,
}

impl<'c> Lazy<'c> {
    const fn new(sql: &'static str) -> Self {
        Self { sql, prepared: None }
    }

    fn on(&mut self, connection: &'c Connection) -> rusqlite::Result<&mut CachedStatement<'c>> {
        match &mut self.prepared {
            Some(prepared) => Ok(prepared),
            empty => Ok(empty.insert(connection.prepare_cached(self.sql)?)),
        }
    }
}
