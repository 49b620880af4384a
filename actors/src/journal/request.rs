//! What travels to the writer thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tipstaff_core::observation::{LossLedger, LossReason, Lost};
use tipstaff_core::operation::Unrecorded;
use tipstaff_core::signal::{LifecycleKind, Signal, SignalSeq};
use tipstaff_core::telemetry;
use tokio::sync::oneshot;

use super::handle::Health;

/// Where a confirmation is awaited.
pub(crate) type Confirm = oneshot::Sender<Result<SignalSeq, Unrecorded>>;

/// One request to the writer.
pub(crate) enum Request {
    /// Record a fact.
    Append(Entry),
    /// Answer once everything before it is settled.
    Barrier(oneshot::Sender<()>),
}

/// A fact on its way to the journal. Dropped before its end is known, it counts itself as lost: no path can lose it in silence (P-2). A closing fact
/// that is lost leaves its attempt owed an end (I-17).
pub(crate) struct Entry {
    fact: Arc<Signal>,
    confirm: Option<Confirm>,
    ledger: LossLedger,
    health: Health,
    settled: bool,
}

impl Entry {
    pub(crate) fn new(fact: Arc<Signal>, confirm: Option<Confirm>, ledger: LossLedger, health: Health) -> Self {
        Self { fact, confirm, ledger, health, settled: false }
    }

    pub(crate) fn fact(&self) -> &Arc<Signal> {
        &self.fact
    }

    /// It is committed.
    pub(crate) fn recorded(mut self, seq: SignalSeq) {
        self.settled = true;
        self.confirm(Ok(seq));
    }

    /// It will not be recorded; counts the loss.
    pub(crate) fn lost(mut self, reason: LossReason, why: Unrecorded) {
        self.count(reason);
        self.confirm(Err(why));
    }

    fn count(&mut self, reason: LossReason) {
        if !std::mem::replace(&mut self.settled, true) {
            self.ledger.record(self.fact.session(), reason, self.fact.occurred_at(), Lost::ONE);
            // Also one that the store refused for its content: unless its attempt has an end, that one is as open as any other.
            if self.fact.kind().lifecycle().is_some_and(LifecycleKind::closes_operation) {
                self.health.owe_end(Arc::clone(&self.fact));
            }
            tracing::warn!(target: telemetry::JOURNAL, session = %self.fact.session(), kind = %self.fact.kind(), reason = reason.as_str(), "a fact is lost");
        }
    }

    fn confirm(&mut self, answer: Result<SignalSeq, Unrecorded>) {
        if let Some(confirm) = self.confirm.take() {
            // Whoever waited may have gone; the fact's end stands all the same.
            let _unheard = confirm.send(answer);
        }
    }
}

/// The groups that a writer held when it crashed. The next one writes them once more, under the same identities, so that what was committed already
/// keeps its position and no loss is counted that is none. A group that crashes a second writer is given up, and counts itself.
#[derive(Clone, Default)]
pub(crate) struct Left(Arc<Mutex<Vec<Vec<Entry>>>>);

impl Left {
    pub(super) fn take(&self) -> Vec<Vec<Entry>> {
        std::mem::take(&mut *self.groups())
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Vec<Entry>>> {
        // Held for one push or one exchange.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The group in a writer's hand. Dropped by a panic, it is left to the next writer.
pub(super) struct Hand {
    entries: Vec<Entry>,
    left: Option<Left>,
}

impl Hand {
    /// `left` is `None` for a group that was left before.
    pub(super) fn new(entries: Vec<Entry>, left: Option<Left>) -> Self {
        Self { entries, left }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn put_down(mut self) -> Vec<Entry> {
        self.left = None;
        std::mem::take(&mut self.entries)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if let Some(left) = self.left.take() {
            left.groups().push(std::mem::take(&mut self.entries));
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.count(LossReason::Unconfirmed);
    }
}
