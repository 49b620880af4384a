//! What sessions have lost, on its way into the journal (P-10).
//!
//! | a commit of a session's gaps ended with   | at the next look the journal has | they                                                        |
//! |------------------------------------------|----------------------------------|-------------------------------------------------------------|
//! | all are committed                        | -                                | are written                                                 |
//! | a refusal, an error, or a panic          | some of them                     | are written once more under their identities                |
//! | a refusal, an error, or a panic          | none of them                     | go back to the ledger, which adds what was lost since       |
//!
//! The next look may be another writer's. So a loss is on record once, whatever became of a commit.

use std::sync::{Arc, Mutex, PoisonError};

use tipstaff_core::id::{SessionId, SignalId};
use tipstaff_core::observation::{GapRecord, LossLedger, LossReason, Lost, TakenGaps};
use tipstaff_core::state::{Gap, GapReason, JournalReader, JournalWrite, JournalWriter, StoreError};

use super::handle::Health;

/// The gaps that are being written: at most one group for each session that has lost something. Shared by the writers that follow one another.
#[derive(Clone, Default)]
pub(crate) struct GapsInHand(Arc<Mutex<Vec<Group>>>);

struct Group {
    taken: TakenGaps,
    gaps: Vec<Gap>,
}

impl GapsInHand {
    /// Writes what sessions have lost. Success shows that the store takes writes.
    ///
    /// # Errors
    /// [`StoreError`] of the store: nothing more is tried, and nothing is forgotten.
    pub(super) fn write(
        &self,
        writer: &mut dyn JournalWriter,
        reader: &dyn JournalReader,
        ledger: &LossLedger,
        health: &Health,
    ) -> Result<(), StoreError> {
        // Only the one writer looks here, and it may panic: what is not known to be written is in hand at each moment.
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        put_back_unwritten(&mut groups, reader)?;
        for session in ledger.pending() {
            if groups.iter().all(|group| *group.taken.session() != session) {
                groups.extend(ledger.take_pending(&session).map(Group::new));
            }
        }
        let mut next = 0;
        while let Some(group) = groups.get(next) {
            let writes: Vec<JournalWrite> = group.gaps.iter().cloned().map(JournalWrite::Gap).collect();
            // The store may refuse one session's gaps alone: those of others are not held back by it.
            if writer.commit(&writes)?.iter().all(Result::is_ok) {
                groups.remove(next).taken.written();
                health.accepted();
            } else {
                next += 1;
            }
        }
        Ok(())
    }
}

/// Gives the groups of which nothing is on record back to the ledger.
fn put_back_unwritten(groups: &mut Vec<Group>, reader: &dyn JournalReader) -> Result<(), StoreError> {
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        if group.is_on_record(reader)? {
            next += 1;
        } else {
            groups.remove(next).taken.put_back();
        }
    }
    Ok(())
}

impl Group {
    fn new(taken: TakenGaps) -> Self {
        let gaps = taken.records().iter().map(|record| gap(taken.session(), record)).collect();
        Self { taken, gaps }
    }

    /// Whether any of its gaps is.
    fn is_on_record(&self, reader: &dyn JournalReader) -> Result<bool, StoreError> {
        for gap in &self.gaps {
            if reader.signal(&gap.id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn gap(session: &SessionId, record: &GapRecord) -> Gap {
    let reason = match record.reason {
        LossReason::NoRoom => GapReason::QueueFull,
        LossReason::StoreAbsent => GapReason::StoreUnavailable,
        LossReason::Unconfirmed => GapReason::WriterLost,
        LossReason::Refused => GapReason::Refused,
    };
    let known_lost = match record.lost {
        Lost::Known(facts) => Some(facts),
        Lost::Unknown => None,
    };
    let (first_at, last_at) = (record.first_at, record.last_at);
    Gap { id: SignalId::generate(), session: session.clone(), reason, first_at, last_at, known_lost }
}
