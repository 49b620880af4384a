//! The runtime's handle on its journal.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tipstaff_core::clock::Deadline;
use tipstaff_core::dispatch::JournalState;
use tipstaff_core::observation::{LossLedger, LossReason};
use tipstaff_core::operation::{AuditUnavailable, Unrecorded};
use tipstaff_core::signal::Signal;
use tipstaff_core::state::{JournalReader, Store};
use tipstaff_core::telemetry;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::request::{Confirm, Entry, Request};
use crate::port::{Admission, Port, Reservation, ReserveError, SendError};

/// The journal of one runtime. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Journal {
    port: Port<Request>,
    health: Health,
    ledger: LossLedger,
    store: Arc<dyn Store>,
    reader: Arc<dyn JournalReader>,
}

impl Journal {
    pub(crate) fn new(
        port: Port<Request>,
        health: Health,
        ledger: LossLedger,
        store: Arc<dyn Store>,
        reader: Arc<dyn JournalReader>,
    ) -> Self {
        Self { port, health, ledger, store, reader }
    }

    pub(crate) fn port(&self) -> &Port<Request> {
        &self.port
    }

    pub(crate) fn reader(&self) -> &Arc<dyn JournalReader> {
        &self.reader
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Why the journal takes no proposals now, if so (P-10).
    pub(crate) fn refusal(&self) -> Option<AuditUnavailable> {
        self.health.refusal().map(|reason| AuditUnavailable::Refusing { reason })
    }

    /// Takes places, without waiting where they are free.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future holds no place.
    pub(crate) async fn reserve(&self, places: usize, deadline: Deadline) -> Result<Reservation<Request>, AuditUnavailable> {
        if let Some(places) = self.port.try_reserve(places) {
            return Ok(places);
        }
        self.port.reserve(places, deadline).await.map_err(|error| match error {
            ReserveError::Closed => AuditUnavailable::Refusing { reason: "the journal has stopped".to_owned() },
            _ => AuditUnavailable::Full,
        })
    }

    /// Submits a fact into a reserved place, or tries without one. What is not admitted is counted, and the answer says so.
    pub(crate) fn submit(
        &self,
        fact: Arc<Signal>,
        place: Option<&mut Reservation<Request>>,
        confirm: Option<Confirm>,
    ) -> JournalState {
        let request = Request::Append(Entry::new(fact, confirm, self.ledger.clone(), self.health.clone()));
        let sent = match place {
            Some(place) => place.send(request),
            None => self.port.try_send(request),
        };
        let refused = match sent {
            Ok(Admission::Queued | Admission::EvictedOldest) => return JournalState::Pending,
            // Dropped where it was taken, it has counted itself.
            Ok(Admission::DroppedNewest | Admission::Coalesced | Admission::Answered) => {
                return JournalState::Unconfirmed(LossReason::Unconfirmed.as_str());
            }
            Err(refused) => refused,
        };
        let reason = if matches!(refused, SendError::Closed(_)) { LossReason::StoreAbsent } else { LossReason::NoRoom };
        if let Request::Append(entry) = refused.into_message() {
            entry.lost(reason, Unrecorded::Refused { reason: "the journal's port took no more facts".to_owned() });
        }
        JournalState::Unconfirmed(reason.as_str())
    }

    /// Waits until everything submitted before is settled: committed, or counted as lost.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only stops the waiting.
    pub(crate) async fn settled(&self, deadline: Deadline) -> Result<(), Unrecorded> {
        let (done, settled) = oneshot::channel();
        if self.port.send(Request::Barrier(done), deadline).await.is_err() {
            return Err(Unrecorded::Refused { reason: "the journal's port took no more requests".to_owned() });
        }
        match timeout_at(deadline.instant(), settled).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_dropped)) => Err(Unrecorded::Refused { reason: "the journal ended".to_owned() }),
            Err(_elapsed) => Err(Unrecorded::Late),
        }
    }
}

/// Attempts that may be owed an end at the same time. Those beyond are closed by the recovery of a later runtime.
const MAX_OWED: usize = 4096;

/// What the writer and the handles share: whether the store takes writes, as its last answer said, and which attempts are owed an end.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<Inner>);

#[derive(Default)]
struct Inner {
    refusing: AtomicBool,
    reason: Mutex<String>,
    /// The closing facts that were lost (I-17). Held for one push or one look.
    owed: Mutex<VecDeque<Arc<Signal>>>,
}

impl Health {
    /// What the store last said when it refused; `None` while it takes writes.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.0.refusing.load(Ordering::Acquire).then(|| self.reason().clone())
    }

    pub(crate) fn refused(&self, reason: String) {
        if !self.0.refusing.load(Ordering::Acquire) {
            tracing::error!(target: telemetry::JOURNAL, %reason, "the store refuses writes");
        }
        *self.reason() = reason;
        self.0.refusing.store(true, Ordering::Release);
    }

    pub(crate) fn accepted(&self) {
        if self.0.refusing.swap(false, Ordering::AcqRel) {
            tracing::info!(target: telemetry::JOURNAL, "the store takes writes again");
        }
    }

    /// A closing fact was lost.
    pub(crate) fn owe_end(&self, lost: Arc<Signal>) {
        let mut owed = self.owed();
        if owed.len() < MAX_OWED {
            owed.push_back(lost);
        }
    }

    /// How many attempts are owed an end now.
    pub(crate) fn owed_now(&self) -> usize {
        self.owed().len()
    }

    /// The oldest lost closing fact whose attempt has no end yet. It stays first until [`Self::end_paid`]: only a writer takes it away.
    pub(crate) fn first_owed(&self) -> Option<Arc<Signal>> {
        self.owed().front().cloned()
    }

    /// The attempt of this one, the oldest, has an end.
    pub(crate) fn end_paid(&self, lost: &Arc<Signal>) {
        let mut owed = self.owed();
        if owed.front().is_some_and(|first| Arc::ptr_eq(first, lost)) {
            owed.pop_front();
        }
    }

    fn owed(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Signal>>> {
        self.0.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reason(&self) -> std::sync::MutexGuard<'_, String> {
        // Held for one assignment or copy; never across an await.
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
