//! The model in memory: the same promises as a store on disk, but for the disk.
//!
//! It is the oracle of the property tests, and a store for tests with paused time. One short lock around plain collections; nothing waits
//! inside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::attempt::{AttemptChange, attempt_fact, step};
use super::fault_point::fault_point;
use super::payload::check_payload;
use super::recovery::ambiguous;
use super::{
    AppendError, Appended, AttemptRow, Closed, ClosedByRecovery, DeathEvidence, Gap, InstanceIdentity, InstanceVerdict,
    JournalReader, JournalWrite, JournalWriter, MAX_SCAN, Page, PageLimit, ReadFilter, Recorded, RecordedGap, Recovered,
    RuntimeInstance, SessionRow, Store, StoreError, StoreSize, Summary,
};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::id::{AttemptId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::{Signal, SignalSeq};
#[cfg(feature = "testing")]
use crate::testing::Faults;

/// A store in memory. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    /// Held for plain changes of the collections only.
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    #[cfg(feature = "testing")]
    faults: Faults,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, Log>,
    positions: HashMap<SignalId, (SessionId, SignalSeq)>,
    attempts: BTreeMap<(OperationId, AttemptId), AttemptRow>,
    instances: BTreeMap<RuntimeInstanceId, RuntimeInstance>,
}

/// A session: the fact of position n stands at n - 1.
#[derive(Default)]
struct Log {
    facts: Vec<Arc<Signal>>,
    gaps: BTreeMap<SignalSeq, Gap>,
}

impl MemoryStore {
    /// An empty store under the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store under a clock of the caller's.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            clock,
            #[cfg(feature = "testing")]
            faults: Faults::new(),
        }))
    }

    /// An empty store that a test can break.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_faults(clock: Arc<dyn Clock>, faults: Faults) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), clock, faults }))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn open_writer(&self, instance: &InstanceIdentity) -> Result<Box<dyn JournalWriter>, StoreError> {
        let writer = MemoryWriter { shared: Arc::clone(&self.0), instance: instance.clone() };
        writer.record_instance(|record| record.ended_at = None)?;
        Ok(Box::new(writer))
    }

    fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError> {
        Ok(Arc::clone(&self.0) as Arc<dyn JournalReader>)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        Ok(StoreSize::default())
    }
}

struct MemoryWriter {
    shared: Arc<Shared>,
    instance: InstanceIdentity,
}

impl JournalWriter for MemoryWriter {
    fn instance(&self) -> &RuntimeInstanceId {
        &self.instance.id
    }

    fn commit(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError> {
        // Nothing that a reader can see happens before the last point of these, which is to it the same as a rolled back transaction.
        let admitted: Vec<Result<(), StoreError>> = group.iter().map(|_| fault_point!(self.shared.faults, Append)).collect();
        fault_point!(self.shared.faults, AppendBeforeCommit)?;
        let mut state = self.shared.lock();
        let record = |(write, admitted): (&JournalWrite, Result<(), StoreError>)| match admitted {
            Ok(()) => state.record(write, &self.instance.id),
            Err(cause) => Err(AppendError::Unavailable(Arc::new(cause))),
        };
        let answers = group.iter().zip(admitted).map(record).collect();
        drop(state);
        fault_point!(self.shared.faults, AppendAfterCommit)?;
        Ok(answers)
    }

    fn recover(&mut self, judge: &mut dyn FnMut(&RuntimeInstance) -> InstanceVerdict) -> Result<Recovered, StoreError> {
        let owners = self.shared.lock().owners_of_open_proposals(&self.instance.id);
        let mut recovered = Recovered::default();
        for owner in owners {
            let verdict = judge(&owner);
            let owned = &owner.identity.id;
            match verdict {
                InstanceVerdict::Dead(evidence) => {
                    fault_point!(self.shared.faults, RecoverBeforeCommit)?;
                    recovered.closed.extend(self.shared.lock().close_proposals_of(
                        owned,
                        &self.instance.id,
                        evidence,
                        self.now(),
                    ));
                    fault_point!(self.shared.faults, RecoverAfterCommit)?;
                }
                InstanceVerdict::Alive | InstanceVerdict::Unknown(_) => {
                    recovered.left_open += self.shared.lock().open_proposals_of(owned).len() as u64;
                }
            }
            recovered.judged.push((owner, verdict));
        }
        Ok(recovered)
    }

    fn touch(&mut self) -> Result<(), StoreError> {
        self.record_instance(|_| {})
    }

    fn checkpoint_when_idle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(), StoreError> {
        self.record_instance(|record| record.ended_at = Some(record.last_seen_at))
    }
}

impl MemoryWriter {
    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    fn record_instance(&self, change: impl FnOnce(&mut RuntimeInstance)) -> Result<(), StoreError> {
        fault_point!(self.shared.faults, InstanceBeforeCommit)?;
        let now = self.now();
        let fresh = || RuntimeInstance { identity: self.instance.clone(), started_at: now, last_seen_at: now, ended_at: None };
        let mut state = self.shared.lock();
        let record = state.instances.entry(self.instance.id.clone()).or_insert_with(fresh);
        record.last_seen_at = now;
        change(record);
        drop(state);
        fault_point!(self.shared.faults, InstanceAfterCommit)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change below is made after everything that could refuse it, so a panic elsewhere leaves no half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn record(&mut self, write: &JournalWrite, instance: &RuntimeInstanceId) -> Result<Appended, AppendError> {
        let (signal, gap) = match write {
            JournalWrite::Append(signal) => (Arc::clone(signal), None),
            JournalWrite::Gap(gap) => (Arc::new(gap.to_signal()), Some(gap)),
        };
        check_payload(&signal)?;
        let about = attempt_fact(&signal)?;
        if let Some((session, seq)) = self.positions.get(signal.id()) {
            let recorded = self.sessions.get(session).and_then(|log| log.fact(*seq));
            return if recorded.is_some_and(|recorded| *recorded == signal) {
                Ok(Appended { seq: *seq, repeated: true })
            } else {
                Err(AppendError::Conflict { id: signal.id().clone(), session: session.clone(), seq: *seq })
            };
        }
        let change = match about {
            Some(fact) => {
                let key = (fact.operation.clone(), fact.attempt.clone());
                Some((step(&signal, fact, self.attempts.get(&key).map(Into::into))?, fact.kind, key))
            }
            None => None,
        };
        let log = self.sessions.entry(signal.session().clone()).or_default();
        log.facts.push(Arc::clone(&signal));
        let seq = log.last();
        if let Some(gap) = gap {
            log.gaps.insert(seq, gap.clone());
        }
        self.positions.insert(signal.id().clone(), (signal.session().clone(), seq));
        if let Some((change, kind, key)) = change {
            let row = self.attempts.entry(key).or_insert_with_key(|(operation, attempt)| AttemptRow {
                operation: operation.clone(),
                attempt: attempt.clone(),
                session: signal.session().clone(),
                instance: instance.clone(),
                proposed: None,
                closed: None,
            });
            match change {
                AttemptChange::Open => row.proposed = Some(seq),
                AttemptChange::Close | AttemptChange::CloseUnproposed => row.closed = Some(Closed { kind, seq }),
            }
        }
        Ok(Appended { seq, repeated: false })
    }

    fn owners_of_open_proposals(&self, but: &RuntimeInstanceId) -> Vec<RuntimeInstance> {
        let open = self.attempts.values().filter(|row| row.closed.is_none() && row.instance != *but);
        let owners: BTreeSet<&RuntimeInstanceId> = open.map(|row| &row.instance).collect();
        owners.into_iter().filter_map(|id| self.instances.get(id).cloned()).collect()
    }

    fn open_proposals_of(&self, owner: &RuntimeInstanceId) -> Vec<AttemptRow> {
        self.attempts.values().filter(|row| row.closed.is_none() && row.instance == *owner).cloned().collect()
    }

    fn close_proposals_of(
        &mut self,
        owner: &RuntimeInstanceId,
        by: &RuntimeInstanceId,
        evidence: DeathEvidence,
        now: Timestamp,
    ) -> Vec<ClosedByRecovery> {
        let open = self.open_proposals_of(owner);
        let close = |row: AttemptRow| {
            let proposed = row.proposed.and_then(|seq| self.sessions.get(&row.session)?.fact(seq));
            let (invocation, subject) = proposed.map(|fact| (fact.invocation().cloned(), fact.subject().cloned())).unzip();
            let closing = ambiguous(&row, invocation.flatten(), subject.flatten(), evidence, now);
            let closing = JournalWrite::Append(Arc::new(closing));
            let appended = self.record(&closing, by).expect("the attempt is open, and the fact is new");
            ClosedByRecovery { session: row.session, operation: row.operation, attempt: row.attempt, seq: appended.seq }
        };
        open.into_iter().map(close).collect()
    }
}

impl Log {
    fn fact(&self, seq: SignalSeq) -> Option<&Arc<Signal>> {
        self.facts.get(usize::try_from(seq.0).ok()?.checked_sub(1)?)
    }

    fn last(&self) -> SignalSeq {
        SignalSeq(self.facts.len() as u64)
    }
}

impl JournalReader for Shared {
    fn read(&self, session: &SessionId, after: SignalSeq, filter: &ReadFilter, limit: PageLimit) -> Result<Page, StoreError> {
        let state = self.lock();
        let mut page = Page { facts: Vec::new(), next: after, more: false };
        let Some(log) = state.sessions.get(session) else { return Ok(page) };
        let mut bytes = 0;
        let first = usize::try_from(after.0).unwrap_or(usize::MAX).min(log.facts.len());
        for signal in log.facts[first..].iter().take(MAX_SCAN as usize) {
            page.next = SignalSeq(page.next.0 + 1);
            if filter.matches(signal) {
                bytes += signal.payload().wire().len() as u64;
                page.facts.push(Recorded { seq: page.next, signal: Arc::clone(signal) });
            }
            if page.facts.len() >= limit.rows.get() as usize || bytes >= limit.payload_bytes.get() {
                break;
            }
        }
        page.more = page.next < log.last();
        Ok(page)
    }

    fn signal(&self, id: &SignalId) -> Result<Option<Recorded>, StoreError> {
        let state = self.lock();
        let found = state.positions.get(id).and_then(|(session, seq)| {
            let signal = Arc::clone(state.sessions.get(session)?.fact(*seq)?);
            Some(Recorded { seq: *seq, signal })
        });
        Ok(found)
    }

    fn sessions(&self, after: Option<&SessionId>, limit: NonZeroU32) -> Result<Vec<SessionRow>, StoreError> {
        let state = self.lock();
        let row = |(session, log): (&SessionId, &Log)| SessionRow { session: session.clone(), last_seq: log.last() };
        Ok(state.sessions.range((behind(after), Bound::Unbounded)).take(limit.get() as usize).map(row).collect())
    }

    fn last_seq(&self, session: &SessionId) -> Result<Option<SignalSeq>, StoreError> {
        Ok(self.lock().sessions.get(session).map(Log::last))
    }

    fn gaps(&self, session: &SessionId, after: SignalSeq, limit: NonZeroU32) -> Result<Vec<RecordedGap>, StoreError> {
        let state = self.lock();
        let gaps = state.sessions.get(session).map(|log| log.gaps.range((Bound::Excluded(after), Bound::Unbounded)));
        let row = |(seq, gap): (&SignalSeq, &Gap)| RecordedGap { seq: *seq, gap: gap.clone() };
        Ok(gaps.into_iter().flatten().take(limit.get() as usize).map(row).collect())
    }

    fn attempt(&self, operation: &OperationId, attempt: &AttemptId) -> Result<Option<AttemptRow>, StoreError> {
        Ok(self.lock().attempts.get(&(operation.clone(), attempt.clone())).cloned())
    }

    fn attempts(
        &self,
        operation: &OperationId,
        after: Option<&AttemptId>,
        limit: NonZeroU32,
    ) -> Result<Vec<AttemptRow>, StoreError> {
        let state = self.lock();
        let rows = state.attempts.values().filter(|row| row.operation == *operation && after.is_none_or(|a| row.attempt > *a));
        Ok(rows.take(limit.get() as usize).cloned().collect())
    }

    fn open_proposals(
        &self,
        after: Option<(&OperationId, &AttemptId)>,
        limit: NonZeroU32,
    ) -> Result<Vec<AttemptRow>, StoreError> {
        let state = self.lock();
        let open = |row: &&AttemptRow| row.closed.is_none() && after.is_none_or(|after| (&row.operation, &row.attempt) > after);
        Ok(state.attempts.values().filter(open).take(limit.get() as usize).cloned().collect())
    }

    fn instances(&self, after: Option<&RuntimeInstanceId>, limit: NonZeroU32) -> Result<Vec<RuntimeInstance>, StoreError> {
        let state = self.lock();
        Ok(state.instances.range((behind(after), Bound::Unbounded)).take(limit.get() as usize).map(|(_, i)| i.clone()).collect())
    }

    fn summary(&self, session: Option<&SessionId>) -> Result<Summary, StoreError> {
        let state = self.lock();
        let asked = |id: &SessionId| session.is_none_or(|session| session == id);
        let mut summary = Summary::default();
        for (_, log) in state.sessions.iter().filter(|(id, _)| asked(id)) {
            summary.sessions += 1;
            summary.gaps += log.gaps.len() as u64;
            for signal in &log.facts {
                summary.facts += 1;
                summary.payload_bytes += signal.payload().wire().len() as u64;
                *summary.by_kind.entry(signal.kind().clone()).or_default() += 1;
            }
        }
        summary.open_proposals = state.attempts.values().filter(|row| row.closed.is_none() && asked(&row.session)).count() as u64;
        Ok(summary)
    }
}

fn behind<T: Clone>(after: Option<&T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone()))
}
