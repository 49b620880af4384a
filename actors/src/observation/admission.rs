//! Where a fact enters: the shared state of one session, outside every actor (0-architecture, "Where a fact enters").
//!
//! | the session's audit | the journal's port has room | it has none                                  |
//! |---------------------|-----------------------------|----------------------------------------------|
//! | required            | submitted                   | waits within its deadline, then a counted gap |
//! | best effort         | submitted                   | a counted gap                                 |
//! | off                 | not submitted               | not submitted                                 |
//!
//! A proposal under a required audit is refused instead of waiting for a gap (P-10): see [`SessionAudit`](super::SessionAudit).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tipstaff_core::clock::{Clock, Deadline, Timestamp};
use tipstaff_core::dispatch::{DispatchReport, JournalState, Registry};
use tipstaff_core::id::SessionId;
use tipstaff_core::observation::RecentFacts;
use tipstaff_core::operation::AuditMode;
use tipstaff_core::signal::{Redactions, Signal};
use tokio::sync::oneshot;

use super::{Emission, Owed};
use crate::journal::{Confirm, Journal, Request};
use crate::port::{Port, Reservation};

/// One session's way in. All emitters of the session share it.
pub(crate) struct Admission {
    parts: AdmissionParts,
    /// Held for the critical section only: number, journal, observer. Never across an await.
    order: Mutex<u64>,
    ended: AtomicBool,
    /// Emissions whose fan-out did not end: subscribers may have missed them, the journal did not.
    undelivered: Arc<AtomicU64>,
}

/// What a session's admission is made of.
pub(crate) struct AdmissionParts {
    pub(crate) session: SessionId,
    pub(crate) audit: AuditMode,
    /// Present unless the audit is off.
    pub(crate) journal: Option<Journal>,
    pub(crate) observer: Port<Emission>,
    pub(crate) registry: Arc<Registry<Signal>>,
    pub(crate) ring: Option<RecentFacts>,
    pub(crate) redactions: Redactions,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Admission {
    pub(crate) fn new(parts: AdmissionParts) -> Self {
        Self { parts, order: Mutex::new(0), ended: AtomicBool::new(false), undelivered: Arc::default() }
    }

    pub(crate) fn parts(&self) -> &AdmissionParts {
        &self.parts
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.parts.journal.is_some() || self.parts.ring.is_some() || !self.parts.registry.snapshot().is_empty()
    }

    pub(crate) fn undelivered(&self) -> u64 {
        self.undelivered.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// From now on emissions are late: journalled, and shown to nobody (F-23).
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Waits for a place in the journal, as the audit says; `None` where the fact goes without one.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future holds no place.
    pub(crate) async fn place(&self, deadline: Deadline) -> Option<Reservation<Request>> {
        let journal = self.parts.journal.as_ref()?;
        match self.parts.audit {
            AuditMode::Required => journal.reserve(1, deadline).await.ok(),
            AuditMode::BestEffort | AuditMode::Off => None,
        }
    }

    /// Admits a fact. Never waits, never fails; what the journal cannot take is counted there.
    ///
    /// # Ordering
    /// The journal's order of a session is the order in which its emitters pass here, and the order in which the observer begins them.
    pub(crate) fn admit(&self, fact: Signal, place: Option<&mut Reservation<Request>>, wants: Wants) -> JournalState {
        let fact = Arc::new(self.redacted(fact));
        let journal = if self.parts.journal.is_some() { JournalState::Pending } else { JournalState::Off };
        let mut number = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        *number += 1;
        if let Some(to) = &self.parts.journal {
            to.submit(Arc::clone(&fact), place, wants.confirm);
        }
        if let Some(ring) = &self.parts.ring {
            ring.push(Arc::clone(&fact));
        }
        let snapshot = self.parts.registry.snapshot();
        if self.has_ended() || (snapshot.is_empty() && wants.report.is_none()) {
            return journal;
        }
        let owed = Owed::new(&self.undelivered);
        // An emission that the observer cannot take is dropped here, and counts itself.
        let _taken = self.parts.observer.try_send(Emission { fact, snapshot, journal, report: wants.report, owed });
        journal
    }

    fn redacted(&self, fact: Signal) -> Signal {
        if self.parts.redactions.is_empty() {
            return fact;
        }
        let payload = self.parts.redactions.apply(fact.payload()).into_payload();
        fact.with_payload(payload)
    }
}

/// What the emitter of a fact waits for.
#[derive(Default)]
pub(crate) struct Wants {
    /// The commit of the fact.
    pub(crate) confirm: Option<Confirm>,
    /// The report of its fan-out.
    pub(crate) report: Option<oneshot::Sender<DispatchReport>>,
}
