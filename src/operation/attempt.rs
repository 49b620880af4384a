//! One attempt on its way, and the one place where it ends.
//!
//! | it is dropped     | it ends as | why                                                   |
//! |-------------------|------------|-------------------------------------------------------|
//! | before its ruling | cancelled  | the proposer went away; nothing was performed (P-2 h) |
//! | with its permit   | abandoned  | permitted and never begun (P-14)                      |
//! | while performing  | ambiguous  | it may have had any part of its effect (P-14)         |
//! | after its end     | as it is   | the closing fact was submitted already                |

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::contained::contained;
use super::record::{self, ClosedRecord, End};
use super::{
    Audit, ClosingPlace, Granted, Operation, OperationOutcome, OperationStatus, Owner, RecordState, ResultOf, StatusCell,
    TeardownEnd, Unrecorded,
};
use crate::clock::Deadline;
use crate::declare::Digest;
use crate::interception::{Judged, Progress, Report};
use crate::signal::{EmitterRole, MAX_PAYLOAD_DEPTH, Payload, PayloadType, Signal, SignalKind};

/// An attempt that is under way. It owns the reserved place for its closing fact.
pub(super) struct Attempt<O: Owner, A: Audit> {
    pub(super) operation: Operation<O::Context>,
    pub(super) requested: Option<Digest>,
    pub(super) audit: A,
    pub(super) progress: Progress,
    pub(super) granted: Option<Granted<O>>,
    pub(super) plan: Option<Digest>,
    pub(super) report: Option<Report>,
    pub(super) status: StatusCell,
    /// How its owner's teardown ended, once it has.
    pub(super) teardown: Option<TeardownEnd>,
    place: Option<A::Place>,
    begun: Instant,
}

impl<O: Owner, A: Audit> Attempt<O, A> {
    pub(super) fn new(operation: Operation<O::Context>, requested: Option<Digest>, audit: A, place: A::Place) -> Self {
        Self {
            operation,
            requested,
            audit,
            progress: Progress::default(),
            granted: None,
            plan: None,
            report: None,
            status: StatusCell::default(),
            teardown: None,
            place: Some(place),
            begun: Instant::now(),
        }
    }

    /// Ends the attempt without waiting for the journal.
    pub(super) fn close(mut self, status: OperationStatus, end: End<'_>) -> OperationOutcome {
        let recorded = if self.audit.is_recorded() { RecordState::Submitted } else { RecordState::Off };
        self.end(status, end);
        self.outcome(status, recorded)
    }

    /// Ends the attempt and waits until its closing fact is committed: terminal evidence of the governed profile.
    pub(super) async fn close_confirmed(
        mut self,
        status: OperationStatus,
        end: End<'_>,
        deadline: Deadline,
    ) -> Result<OperationOutcome, (Unrecorded, OperationOutcome)> {
        let place = self.place.take().expect("an attempt is closed once, by value");
        let fact = self.closing_fact(status, end);
        // A refusal is reported by the cell; the first end stands (I-19).
        let _refused = self.status.set(status);
        match place.close_confirmed(fact, deadline).await {
            Ok(seq) => Ok(self.outcome(status, RecordState::Confirmed(seq))),
            Err(cause) => {
                let outcome = self.outcome(status, RecordState::Unrecorded(cause.clone()));
                Err((cause, outcome))
            }
        }
    }

    fn end(&mut self, status: OperationStatus, end: End<'_>) {
        if let Some(place) = self.place.take() {
            place.close(|| self.closing_fact(status, end));
            let _refused = self.status.set(status);
        }
    }

    fn outcome(mut self, status: OperationStatus, recorded: RecordState) -> OperationOutcome {
        OperationOutcome {
            operation: self.operation.id.clone(),
            attempt: self.operation.attempt.clone(),
            status,
            profile: self.operation.profile,
            basis: self.granted.as_ref().map(Granted::basis),
            requested: self.requested,
            effective: self.granted.as_ref().map(Granted::digest),
            report: self.report.take(),
            teardown: self.teardown.take(),
            recorded,
        }
    }

    /// The digest of a performance, for the record; `None` where nothing looks at it.
    pub(super) fn digest_of(&self, performance: &ResultOf<O>) -> Option<Digest> {
        if self.audit.is_watched() { contained(|| performance.digest().ok()).ok().flatten() } else { None }
    }

    fn closing_fact(&self, status: OperationStatus, end: End<'_>) -> Signal {
        let granted = self.granted.as_ref();
        let replaced = granted.filter(|granted| Some(granted.digest()) != self.requested);
        let record = ClosedRecord::<O> {
            owner: O::NAME,
            status,
            profile: self.operation.profile,
            basis: granted.map(Granted::basis),
            requested: self.requested,
            effective: granted.map(Granted::digest),
            context: replaced.map(Granted::context),
            plan: self.plan,
            end,
            labels: granted.map(Granted::labels).unwrap_or_default(),
            teardown: self.teardown.as_ref(),
            report: self.report.as_ref().map(Report::record),
            elapsed_us: u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        let kind = status.closing_kind().expect("an attempt closes with a terminal status");
        fact::<O, A>(&self.operation, &self.audit, kind.into(), "tipstaff.operation_closed", &record)
    }
}

/// A fact of an operation. A payload that cannot be written leaves a fact that says so: the record is never lost for it.
pub(super) fn fact<O: Owner, A: Audit>(
    operation: &Operation<O::Context>,
    audit: &A,
    kind: SignalKind,
    payload_type: &'static str,
    record: &impl serde::Serialize,
) -> Signal {
    let payload = match contained(|| record::payload(payload_type, record)) {
        Ok(Ok(payload)) if !payload.nests_within(MAX_PAYLOAD_DEPTH) => {
            unwritable(&format!("it is nested more than {MAX_PAYLOAD_DEPTH} levels deep"))
        }
        Ok(Ok(payload)) => payload,
        Ok(Err(error)) => unwritable(&error.to_string()),
        Err(panic) => unwritable(&panic),
    };
    let mut signal = Signal::builder(audit.session().clone(), kind, audit.now())
        .operation(operation.id.clone())
        .attempt(operation.attempt.clone())
        .role(EmitterRole::shipped("operation"))
        .payload(payload);
    if let Some(invocation) = &operation.invocation {
        signal = signal.invocation(invocation.clone());
    }
    if let Ok(Some(subject)) = contained(|| O::subject(&operation.context)) {
        signal = signal.subject(subject);
    }
    signal.build()
}

fn unwritable(why: &str) -> Payload {
    Payload::from_value(PayloadType::shipped("tipstaff.unwritable", 1), serde_json::json!({ "unwritable": why }))
}

impl<O: Owner, A: Audit> Drop for Attempt<O, A> {
    fn drop(&mut self) {
        if self.place.is_none() {
            return;
        }
        let (status, reason) = match (self.status.get(), &self.granted) {
            (OperationStatus::Running, _) => {
                (OperationStatus::Ambiguous, "the caller went away while the operation was being performed".to_owned())
            }
            (_, Some(_)) => (OperationStatus::Abandoned, "the permit was dropped before the operation began".to_owned()),
            (_, None) => (OperationStatus::Cancelled, self.cancelled_where()),
        };
        let never_called: Vec<Arc<str>> =
            if status == OperationStatus::Cancelled { self.progress.never_called() } else { Vec::new() };
        self.end(status, End { reason: Some(&reason), never_called, ..End::default() });
    }
}

impl<O: Owner, A: Audit> Attempt<O, A> {
    fn cancelled_where(&self) -> String {
        match self.progress.awaited() {
            Some(name) => format!("the proposer went away while {name} was being asked"),
            None => "the proposer went away before any interceptor was asked".to_owned(),
        }
    }
}

impl<O: Owner, A: Audit> fmt::Debug for Attempt<O, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attempt({} {} {})", O::NAME, self.operation.attempt, self.status.get().as_str())
    }
}
