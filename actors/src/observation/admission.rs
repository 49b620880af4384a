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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tipstaff_core::clock::{Clock, Deadline, Timestamp};
use tipstaff_core::dispatch::{DispatchReport, Dispatcher, Emit, JournalState, Snapshot};
use tipstaff_core::id::SessionId;
use tipstaff_core::observation::RecentFacts;
use tipstaff_core::operation::AuditMode;
use tipstaff_core::signal::{Redactions, Signal};
use tokio::sync::oneshot;

use super::{Emission, OpenAttempts, Undelivered};
use crate::journal::{Confirm, Journal, Request};
use crate::port::{Port, Reservation};

/// One session's way in. All emitters of the session share it.
pub(crate) struct Admission {
    parts: AdmissionParts,
    /// Held for the critical section only: journal, ring, observer. Never across an await, and no user code runs under it.
    order: Mutex<()>,
    ended: AtomicBool,
    /// Emissions that subscribers missed; the journal did not.
    undelivered: Arc<AtomicU64>,
}

/// What a session's admission is made of.
pub(crate) struct AdmissionParts {
    pub(crate) session: SessionId,
    pub(crate) audit: AuditMode,
    /// Present unless the audit is off.
    pub(crate) journal: Option<Journal>,
    /// Shared by all sessions of the runtime.
    pub(crate) attempts: OpenAttempts,
    pub(crate) observer: Port<Emission>,
    pub(crate) dispatcher: Arc<Dispatcher<Signal>>,
    pub(crate) ring: Option<RecentFacts>,
    pub(crate) redactions: Redactions,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Admission {
    pub(crate) fn new(parts: AdmissionParts) -> Self {
        Self { parts, order: Mutex::default(), ended: AtomicBool::new(false), undelivered: Arc::default() }
    }

    pub(crate) fn parts(&self) -> &AdmissionParts {
        &self.parts
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.parts.journal.is_some() || self.parts.ring.is_some() || !self.parts.dispatcher.snapshot().is_empty()
    }

    pub(crate) fn undelivered(&self) -> u64 {
        self.undelivered.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// From now on emissions are late: journalled, and shown to nobody (F-23).
    pub(crate) fn end(&self) {
        // Under the order: each fact is either before the end or late, and its emitter is told which.
        let _order = self.order();
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
    pub(crate) fn admit(&self, fact: Signal, place: Option<&mut Reservation<Request>>, wants: Wants) -> Admitted {
        let (fact, snapshot) = self.entering(fact);
        self.admit_entered(fact, &snapshot, place, wants)
    }

    /// As [`Self::admit`], for an emitter that shows the fact to others than the session's own subscribers as well: the fact as it may be shown.
    #[cfg(feature = "compat")]
    pub(crate) fn admit_shared(&self, fact: Signal) -> (Arc<Signal>, Admitted) {
        let (fact, snapshot) = self.entering(fact);
        let admitted = self.admit_entered(Arc::clone(&fact), &snapshot, None, Wants::default());
        (fact, admitted)
    }

    fn admit_entered(
        &self,
        fact: Arc<Signal>,
        snapshot: &Snapshot<Signal>,
        place: Option<&mut Reservation<Request>>,
        wants: Wants,
    ) -> Admitted {
        let Wants { confirm, report } = wants;
        let _order = self.order();
        let admitted = self.record(&fact, place, confirm);
        if admitted.late || (snapshot.is_empty() && report.is_none()) {
            return admitted;
        }
        let undelivered = Undelivered::counted_by(&self.undelivered);
        let emission = Emission { emit: snapshot.emit(&fact), journal: admitted.journal, report, undelivered };
        // What the port does not keep counts itself where it is dropped.
        let _kept = self.parts.observer.try_send(emission);
        admitted
    }

    /// Admits a fact that its emitter fans out itself: a handler that emits on its own session has its emission's place and needs no other (F-14).
    ///
    /// # Ordering
    /// As [`Self::admit`].
    pub(crate) fn admit_here(&self, fact: Signal, place: Option<&mut Reservation<Request>>, confirm: Option<Confirm>) -> Here {
        let (fact, snapshot) = self.entering(fact);
        let (admitted, emit) = {
            let _order = self.order();
            (self.record(&fact, place, confirm), snapshot.emit(&fact))
        };
        Here { emit, admitted, undelivered: Undelivered::counted_by(&self.undelivered) }
    }

    /// How deep the handler that runs now stands in emissions of this session; `None` for everybody else.
    pub(crate) fn depth(&self) -> Option<usize> {
        self.parts.dispatcher.depth()
    }

    /// The fact as it may be stored and shown, and who sees it. The snapshot is taken before the order and outlives it: whoever drops the last one
    /// drops handlers, whose destructors are user code and may emit.
    fn entering(&self, fact: Signal) -> (Arc<Signal>, Snapshot<Signal>) {
        (Arc::new(self.parts.redactions.redact(fact)), self.parts.dispatcher.snapshot())
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under the order: to the journal and to the ring.
    fn record(&self, fact: &Arc<Signal>, place: Option<&mut Reservation<Request>>, confirm: Option<Confirm>) -> Admitted {
        let journal = match &self.parts.journal {
            Some(to) => to.submit(Arc::clone(fact), place, confirm),
            None => JournalState::Off,
        };
        if let Some(ring) = &self.parts.ring {
            ring.push(Arc::clone(fact));
        }
        Admitted { journal, late: self.has_ended() }
    }
}

/// What became of a fact at its admission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admitted {
    /// What is known of its row.
    pub(crate) journal: JournalState,
    /// It came after the session's end: nobody is shown it (F-23).
    pub(crate) late: bool,
}

/// A fact that its emitter fans out itself.
pub(crate) struct Here {
    pub(crate) emit: Emit<Signal>,
    pub(crate) admitted: Admitted,
    pub(crate) undelivered: Undelivered,
}

/// What the emitter of a fact waits for.
#[derive(Default)]
pub(crate) struct Wants {
    /// The commit of the fact.
    pub(crate) confirm: Option<Confirm>,
    /// The report of its fan-out.
    pub(crate) report: Option<oneshot::Sender<DispatchReport>>,
}
