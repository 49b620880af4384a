//! The single writer: group commit, recovery and the record of its runtime instance.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::connection::{failure, open_for_writing};
use super::migrate::still_known;
use super::query;
use super::record::{GroupFailure, Recorder, Savepoints};
use super::store::StoreFile;
use crate::id::RuntimeInstanceId;
use crate::state::fault_point::fault_point;
use crate::state::recovery::ambiguous;
use crate::state::{
    AppendError, Appended, AttemptRow, ClosedByRecovery, DeathEvidence, InstanceIdentity, InstanceVerdict, JournalWrite,
    JournalWriter, Recovered, RuntimeInstance, StoreError,
};

/// How many proposals one transaction of a recovery closes.
const RECOVERED_AT_ONCE: u32 = 256;

/// Owns the connection that writes.
pub(super) struct SqliteWriter {
    connection: Connection,
    file: Arc<StoreFile>,
    instance: InstanceIdentity,
}

impl SqliteWriter {
    pub(super) fn open(file: Arc<StoreFile>, instance: &InstanceIdentity) -> Result<Self, StoreError> {
        let connection = open_for_writing(&file)?;
        still_known(&connection, &file)?;
        let mut writer = Self { connection, file, instance: instance.clone() };
        writer.record_instance(Seen::Opened)?;
        Ok(writer)
    }

    fn begin(&mut self, operation: &'static str) -> Result<Transaction<'_>, StoreError> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map_err(|source| failure(&self.file.path, operation, source))
    }

    fn record_instance(&mut self, seen: Seen) -> Result<(), StoreError> {
        let file = Arc::clone(&self.file);
        let identity = self.instance.clone();
        let failed = |source| failure(&file.path, "recording the runtime instance", source);
        let now = file.options.clock.now().as_micros();
        let transaction = self.begin("recording the runtime instance")?;
        let executor = &identity.executor;
        let row = params![
            identity.id.as_str(),
            &*identity.program,
            executor.host.as_deref(),
            executor.boot.as_deref(),
            executor.pid_namespace.as_deref(),
            executor.pid,
            executor.started_ticks.map(u64::cast_signed),
            now,
            (seen == Seen::Ended).then_some(now),
            seen == Seen::Stays,
        ];
        // The record may have been made by an earlier writer of the same runtime, which a restart continues.
        let sql = "INSERT INTO runtime_instances VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) ON CONFLICT (instance_id) \
                   DO UPDATE SET last_seen_at_us = ?8, ended_at_us = iif(?10, ended_at_us, ?9)";
        transaction.execute(sql, row).map_err(failed)?;
        fault_point!(file.options.faults, InstanceBeforeCommit)?;
        transaction.commit().map_err(failed)?;
        fault_point!(file.options.faults, InstanceAfterCommit)
    }

    fn commit_group(
        &mut self,
        group: &[JournalWrite],
        savepoints: Savepoints,
    ) -> Result<Vec<Result<Appended, AppendError>>, GroupFailure> {
        let (file, instance) = (Arc::clone(&self.file), self.instance.id.clone());
        let transaction = self.begin("recording facts")?;
        let mut recorder = Recorder::new(&transaction, &file, &instance, savepoints);
        let answers = recorder.record_all(group)?;
        recorder.finish()?;
        fault_point!(file.options.faults, AppendBeforeCommit)?;
        transaction.commit().map_err(|source| failure(&file.path, "committing facts", source))?;
        fault_point!(file.options.faults, AppendAfterCommit)?;
        Ok(answers)
    }

    /// Closes some open proposals of a dead instance in one transaction; `false` when none was left.
    fn close_some(
        &mut self,
        owner: &RuntimeInstanceId,
        evidence: DeathEvidence,
        closed: &mut Vec<ClosedByRecovery>,
    ) -> Result<bool, StoreError> {
        let file = Arc::clone(&self.file);
        let by = self.instance.id.clone();
        let transaction = self.begin("recovering open proposals")?;
        // Read under the lock: another recovery may have closed them since they were seen.
        let open = query::open_proposals_of(&transaction, &file, owner, RECOVERED_AT_ONCE)?;
        if open.is_empty() {
            return Ok(false);
        }
        let group = open.iter().map(|row| closing_fact(&transaction, &file, row, evidence)).collect::<Result<Vec<_>, _>>()?;
        let mut recorder = Recorder::new(&transaction, &file, &by, Savepoints::AroundWrites);
        let answers = recorder.record_all(&group)?;
        let mut done = Vec::with_capacity(open.len());
        for (row, answer) in open.into_iter().zip(answers) {
            // Nothing but the disk can refuse a closing fact of an attempt that is open under this lock.
            let appended = answer.map_err(|refused| StoreError::RecoveryRefused { path: file.path.clone(), source: refused })?;
            let AttemptRow { session, operation, attempt, .. } = row;
            done.push(ClosedByRecovery { session, operation, attempt, seq: appended.seq });
        }
        recorder.finish()?;
        fault_point!(file.options.faults, RecoverBeforeCommit)?;
        transaction.commit().map_err(|source| failure(&file.path, "recovering open proposals", source))?;
        fault_point!(file.options.faults, RecoverAfterCommit)?;
        closed.append(&mut done);
        Ok(true)
    }
}

/// What is to be recorded about the instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Opened,
    Stays,
    Ended,
}

impl JournalWriter for SqliteWriter {
    fn instance(&self) -> &RuntimeInstanceId {
        &self.instance.id
    }

    fn commit(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError> {
        if group.is_empty() {
            return Ok(Vec::new());
        }
        match self.commit_group(group, Savepoints::None) {
            Err(GroupFailure::Halfway(_)) => Ok(self.commit_group(group, Savepoints::AroundWrites)?),
            answered => Ok(answered?),
        }
    }

    fn recover(&mut self, judge: &mut dyn FnMut(&RuntimeInstance) -> InstanceVerdict) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        for owner in query::owners_of_open_proposals(&self.connection, &self.file, &self.instance.id)? {
            let verdict = judge(&owner);
            match verdict {
                InstanceVerdict::Dead(evidence) => while self.close_some(&owner.identity.id, evidence, &mut recovered.closed)? {},
                InstanceVerdict::Alive | InstanceVerdict::Unknown(_) => {
                    recovered.left_open += query::count_open_proposals_of(&self.connection, &self.file, &owner.identity.id)?;
                }
            }
            recovered.judged.push((owner, verdict));
        }
        Ok(recovered)
    }

    fn touch(&mut self) -> Result<(), StoreError> {
        self.record_instance(Seen::Stays)
    }

    fn checkpoint_when_idle(&mut self) -> Result<(), StoreError> {
        let failed = |source| failure(&self.file.path, "folding the log into the database", source);
        // Without patience: a reader in the way means that the moment is not quiet.
        self.connection.busy_timeout(Duration::ZERO).map_err(failed)?;
        let folded = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.connection.busy_timeout(self.file.options.busy_timeout).map_err(failed)?;
        match folded.map_err(failed) {
            Err(StoreError::Busy { .. }) | Ok(()) => Ok(()),
            Err(refused) => Err(refused),
        }
    }

    fn end(mut self: Box<Self>) -> Result<(), StoreError> {
        self.record_instance(Seen::Ended)
    }
}

/// The closing fact of a proposal, with what its proposal says about invocation and subject. A proposal that cannot be read is closed all the
/// same: one bad row must not keep the others open.
fn closing_fact(
    transaction: &Transaction<'_>,
    file: &StoreFile,
    open: &AttemptRow,
    evidence: DeathEvidence,
) -> Result<JournalWrite, StoreError> {
    let (invocation, subject) = query::proposal_origin(transaction, file, open)?;
    Ok(JournalWrite::Append(Arc::new(ambiguous(open, invocation, subject, evidence, file.options.clock.now()))))
}

#[cfg(test)]
mod tests {
    use crate::state::{Durability, Here, SqliteOptions, SqliteStore};

    use super::*;

    fn settings_of(durability: Durability) -> (i64, String, i64) {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::default().durability(durability);
        let store = SqliteStore::open_with(folder.path().join("s.db"), options).unwrap();
        let writer = SqliteWriter::open(Arc::clone(store.file()), &Here::read().instance("test")).unwrap();
        let number = |pragma| writer.connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap();
        let mode = writer.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        (number("synchronous"), mode, number("busy_timeout"))
    }

    /// Spec 4, State: what was confirmed survives a loss of power, so the connection that writes flushes before it answers. 2 is FULL.
    #[test]
    fn the_writers_own_connection_is_durable() {
        assert_eq!(settings_of(Durability::PowerLoss), (2, "wal".to_owned(), 10_000));
    }

    /// The weaker profile is chosen by name only. 1 is NORMAL.
    #[test]
    fn the_weaker_profile_is_what_it_says() {
        assert_eq!(settings_of(Durability::ProcessCrash), (1, "wal".to_owned(), 10_000));
        assert_eq!(Durability::default(), Durability::PowerLoss);
    }
}
