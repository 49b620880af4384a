//! The observation plane as an operation sees it: [`Audit`] over the admission of one session.

use std::fmt;
use std::sync::Arc;

use tipstaff_core::clock::{Deadline, Timestamp};
use tipstaff_core::id::{AttemptId, OperationId, SessionId};
use tipstaff_core::operation::{Audit, AuditMode, AuditUnavailable, ClosingPlace, Unrecorded};
use tipstaff_core::signal::{Signal, SignalSeq};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::admission::{Admission, Wants};
use super::attempts::Claim;
use crate::journal::Request;
use crate::port::Reservation;

/// The audit of one session. Cheap to clone.
#[derive(Clone)]
pub struct SessionAudit(pub(crate) Arc<Admission>);

impl SessionAudit {
    /// Two places in the journal, as the session's audit demands them (P-10).
    async fn places(&self, deadline: Deadline) -> Result<Option<Reservation<Request>>, AuditUnavailable> {
        let parts = self.0.parts();
        match (parts.audit, &parts.journal) {
            (AuditMode::Off, _) => Ok(None),
            (AuditMode::Required, None) => Err(AuditUnavailable::NoJournal),
            (AuditMode::Required, Some(journal)) => match journal.refusal() {
                Some(refusal) => Err(refusal),
                None => journal.reserve(2, deadline).await.map(Some),
            },
            (AuditMode::BestEffort, journal) => Ok(journal.as_ref().and_then(|journal| journal.port().try_reserve(2))),
        }
    }
}

impl Audit for SessionAudit {
    type Place = Closing;

    fn session(&self) -> &SessionId {
        &self.0.parts().session
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn is_watched(&self) -> bool {
        self.0.is_watched()
    }

    fn is_recorded(&self) -> bool {
        self.0.parts().journal.is_some()
    }

    async fn propose(
        &self,
        operation: &OperationId,
        attempt: &AttemptId,
        fact: impl FnOnce() -> Signal + Send,
        deadline: Deadline,
    ) -> Result<Closing, AuditUnavailable> {
        if self.0.has_ended() {
            return Err(AuditUnavailable::SessionEnded);
        }
        let claim = self.0.parts().attempts.claim(operation, attempt)?;
        let mut places = self.places(deadline).await?;
        if self.is_watched() {
            self.0.admit(fact(), places.as_mut(), Wants::default());
        }
        Ok(Closing { admission: Arc::clone(&self.0), places, _claim: claim })
    }

    async fn confirm(&self, fact: Signal, deadline: Deadline) -> Result<SignalSeq, Unrecorded> {
        let Some(journal) = &self.0.parts().journal else { return Err(Unrecorded::NoJournal) };
        let mut place =
            journal.reserve(1, deadline).await.map_err(|unavailable| Unrecorded::Refused { reason: unavailable.to_string() })?;
        confirmed(&self.0, fact, Some(&mut place), deadline).await
    }
}

/// The reserved place of one attempt's closing fact.
pub struct Closing {
    admission: Arc<Admission>,
    places: Option<Reservation<Request>>,
    _claim: Claim,
}

impl ClosingPlace for Closing {
    fn close(mut self, fact: impl FnOnce() -> Signal) {
        if self.admission.is_watched() {
            self.admission.admit(fact(), self.places.as_mut(), Wants::default());
        }
    }

    async fn close_confirmed(mut self, fact: Signal, deadline: Deadline) -> Result<SignalSeq, Unrecorded> {
        confirmed(&self.admission, fact, self.places.as_mut(), deadline).await
    }
}

impl fmt::Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closing").field("session", &self.admission.parts().session).finish_non_exhaustive()
    }
}

/// Submits a fact and waits for its commit.
pub(crate) async fn confirmed(
    admission: &Admission,
    fact: Signal,
    place: Option<&mut Reservation<Request>>,
    deadline: Deadline,
) -> Result<SignalSeq, Unrecorded> {
    if admission.parts().journal.is_none() {
        admission.admit(fact, None, Wants::default());
        return Err(Unrecorded::NoJournal);
    }
    let (confirm, committed) = oneshot::channel();
    admission.admit(fact, place, Wants { confirm: Some(confirm), report: None });
    match timeout_at(deadline.instant(), committed).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_dropped)) => Err(Unrecorded::Refused { reason: "the journal ended before it answered".to_owned() }),
        Err(_elapsed) => Err(Unrecorded::Late),
    }
}
