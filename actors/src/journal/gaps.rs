//! What sessions have lost, on its way into the journal (P-10).
//!
//! | the store says         | the gaps of the session                                                            |
//! |------------------------|------------------------------------------------------------------------------------|
//! | committed              | are written; where it refused one of them, all are written once more, later        |
//! | it failed, or panicked | are written once more, later: what was committed all the same is there already     |
//!
//! "Once more" is under the same identities, also by another writer: a loss is on record once.

use std::sync::{Arc, Mutex, PoisonError};

use tipstaff_core::id::{SessionId, SignalId};
use tipstaff_core::observation::{GapRecord, LossLedger, LossReason, Lost, TakenGaps};
use tipstaff_core::state::{Gap, GapReason, JournalWrite, JournalWriter, StoreError};

use super::handle::Health;

/// The gaps that are being written, at most one group for each session that has lost something. Shared by the writers that follow one another.
#[derive(Clone, Default)]
pub(crate) struct GapsInHand(Arc<Mutex<Vec<Group>>>);

struct Group {
    taken: TakenGaps,
    writes: Vec<JournalWrite>,
}

impl GapsInHand {
    /// Writes what sessions have lost. Success shows that the store takes writes.
    ///
    /// # Errors
    /// [`StoreError`] of the store: nothing more is tried, and nothing is forgotten.
    pub(super) fn write(&self, writer: &mut dyn JournalWriter, ledger: &LossLedger, health: &Health) -> Result<(), StoreError> {
        // Only the one writer looks here, and it may panic: what is not known to be written is in hand at each moment.
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for session in ledger.pending() {
            if groups.iter().all(|group| *group.taken.session() != session) {
                groups.extend(ledger.take_pending(&session).map(Group::new));
            }
        }
        let mut next = 0;
        while let Some(group) = groups.get(next) {
            // The store may refuse one session's gaps alone: those of others are not held back by it.
            if writer.commit(&group.writes)?.iter().all(Result::is_ok) {
                groups.remove(next).taken.written();
                health.accepted();
            } else {
                next += 1;
            }
        }
        Ok(())
    }
}

impl Group {
    fn new(taken: TakenGaps) -> Self {
        let writes = taken.records().iter().map(|record| gap(taken.session(), record)).collect();
        Self { taken, writes }
    }
}

fn gap(session: &SessionId, record: &GapRecord) -> JournalWrite {
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
    JournalWrite::Gap(Gap { id: SignalId::generate(), session: session.clone(), reason, first_at, last_at, known_lost })
}
