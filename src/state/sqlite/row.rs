//! Rows back to values. Nothing here trusts the file: what cannot be read is an error with its place.

use std::num::NonZeroU64;
use std::sync::Arc;

use rusqlite::Row;
use rusqlite::types::{FromSqlError, ValueRef};

use super::connection::failure;
use super::store::StoreFile;
use crate::clock::Timestamp;
use crate::declare::Digest;
use crate::id::{AttemptId, InvocationId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal, SignalKind, SignalSeq, Subject};
use crate::state::{
    AttemptRow, Closed, ExecutorIdentity, Gap, GapReason, InstanceIdentity, Recorded, RecordedGap, RuntimeInstance, StoreError,
};

/// Why a row could not be read.
pub(super) enum RowError {
    Driver(rusqlite::Error),
    Unreadable(&'static str),
}

impl RowError {
    /// The error of a store, with the row that it is about.
    pub(super) fn at(self, file: &StoreFile, row: impl FnOnce() -> String) -> StoreError {
        match self {
            Self::Driver(source) => failure(&file.path, "reading a row", source),
            Self::Unreadable(what) => StoreError::Unreadable { path: file.path.clone(), row: row(), what },
        }
    }
}

impl From<rusqlite::Error> for RowError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Driver(source)
    }
}

impl From<FromSqlError> for RowError {
    fn from(_: FromSqlError) -> Self {
        Self::Unreadable("a column has another type")
    }
}

/// The columns of [`fact`], of table `signals`.
macro_rules! fact_columns {
    () => {
        "seq, signal_id, kind, role, invocation_id, attempt_id, operation_id, subject_kind, subject_id, payload_type, \
         payload_version, occurred_at_us, payload_bytes, payload"
    };
}
pub(super) use fact_columns;

/// How many columns [`fact_columns`] has.
pub(super) const FACT_COLUMNS: usize = 14;

/// The columns of [`attempt`], of table `attempts` as `a` and `sessions` as `n`.
macro_rules! attempt_columns {
    () => {
        "a.operation_id, a.attempt_id, n.session_id, a.instance_id, a.proposed_seq, a.closed_seq, a.closed_kind"
    };
}
pub(super) use attempt_columns;

/// A recorded fact of a session. `large` is asked for a payload that is stored beside the row.
pub(super) fn fact(
    row: &Row<'_>,
    session: &SessionId,
    large: impl FnOnce(SignalSeq) -> Result<String, RowError>,
) -> Result<Recorded, RowError> {
    let seq = SignalSeq(unsigned(row, 0)?);
    let shape = PayloadType::new(text(row, 9)?, u32::try_from(unsigned(row, 10)?).map_err(|_| bad("payload version"))?);
    let shape = shape.map_err(|_| bad("payload type"))?;
    let payload = match row.get_ref(13)? {
        ValueRef::Null => parse(&large(seq)?)?,
        inline => parse(inline.as_str()?)?,
    };
    let mut signal =
        Signal::builder(session.clone(), SignalKind::from_stored(text(row, 2)?), Timestamp::from_micros(row.get(11)?))
            .id(SignalId::new(text(row, 1)?).map_err(|_| bad("identity"))?)
            .role(EmitterRole::new(text(row, 3)?).map_err(|_| bad("role"))?)
            .payload(Payload::from_value(shape, payload));
    if let Some(id) = optional(row, 4)? {
        signal = signal.invocation(InvocationId::new(id).map_err(|_| bad("invocation"))?);
    }
    if let Some(id) = optional(row, 5)? {
        signal = signal.attempt(AttemptId::new(id).map_err(|_| bad("attempt"))?);
    }
    if let Some(id) = optional(row, 6)? {
        signal = signal.operation(OperationId::new(id).map_err(|_| bad("operation"))?);
    }
    if let Some(subject) = subject(row, 7, 8)? {
        signal = signal.subject(subject);
    }
    Ok(Recorded { seq, signal: Arc::new(signal.build()) })
}

/// A payload that is stored beside its row, checked against its size and digest (P-11). Columns: `bytes, digest, body`.
pub(super) fn large_payload(row: &Row<'_>) -> Result<String, RowError> {
    let body: String = row.get(2)?;
    let digest = row.get_ref(1)?.as_blob()?;
    if body.len() as u64 != unsigned(row, 0)? || Digest::of(body.as_bytes()).as_bytes() != digest {
        return Err(bad("payload does not match its digest"));
    }
    Ok(body)
}

/// A gap of a session. Columns: `seq, gap_id, reason, first_at_us, last_at_us, known_lost`.
pub(super) fn gap(row: &Row<'_>, session: &SessionId) -> Result<RecordedGap, RowError> {
    let gap = Gap {
        id: SignalId::new(text(row, 1)?).map_err(|_| bad("identity"))?,
        session: session.clone(),
        reason: GapReason::parse(text(row, 2)?).ok_or(bad("gap reason"))?,
        first_at: Timestamp::from_micros(row.get(3)?),
        last_at: Timestamp::from_micros(row.get(4)?),
        known_lost: match row.get_ref(5)? {
            ValueRef::Null => None,
            _ => Some(NonZeroU64::new(unsigned(row, 5)?).ok_or(bad("count of lost facts"))?),
        },
    };
    Ok(RecordedGap { seq: SignalSeq(unsigned(row, 0)?), gap })
}

/// An attempt.
pub(super) fn attempt(row: &Row<'_>) -> Result<AttemptRow, RowError> {
    Ok(AttemptRow {
        operation: OperationId::new(text(row, 0)?).map_err(|_| bad("operation"))?,
        attempt: AttemptId::new(text(row, 1)?).map_err(|_| bad("attempt"))?,
        session: session_id(row, 2)?,
        instance: RuntimeInstanceId::new(text(row, 3)?).map_err(|_| bad("instance"))?,
        proposed: position(row, 4)?,
        closed: closed(row, 5, 6)?,
    })
}

/// How an attempt ended, from its two columns.
pub(super) fn closed(row: &Row<'_>, seq: usize, kind: usize) -> Result<Option<Closed>, RowError> {
    let Some(seq) = position(row, seq)? else { return Ok(None) };
    match SignalKind::from_stored(text(row, kind)?).lifecycle() {
        Some(kind) if LifecycleKind::closes_operation(kind) => Ok(Some(Closed { kind, seq })),
        _ => Err(bad("kind of the closing fact")),
    }
}

/// A position, or none.
pub(super) fn position(row: &Row<'_>, column: usize) -> Result<Option<SignalSeq>, RowError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => unsigned(row, column).map(|seq| Some(SignalSeq(seq))),
    }
}

/// A session's identity.
pub(super) fn session_id(row: &Row<'_>, column: usize) -> Result<SessionId, RowError> {
    SessionId::new(text(row, column)?).map_err(|_| bad("session"))
}

/// A subject, from its two columns.
pub(super) fn subject(row: &Row<'_>, kind: usize, id: usize) -> Result<Option<Subject>, RowError> {
    match (optional(row, kind)?, optional(row, id)?) {
        (Some(kind), Some(id)) => Subject::new(kind, id).map(Some).map_err(|_| bad("subject")),
        _ => Ok(None),
    }
}

/// The columns of [`instance`], of table `runtime_instances`.
macro_rules! instance_columns {
    () => {
        "instance_id, program, host, boot, pid_namespace, pid, started_ticks, started_at_us, last_seen_at_us, ended_at_us"
    };
}
pub(super) use instance_columns;

/// A runtime instance.
pub(super) fn instance(row: &Row<'_>) -> Result<RuntimeInstance, RowError> {
    let shared = |column| Ok::<_, RowError>(optional(row, column)?.map(Arc::from));
    let executor = ExecutorIdentity {
        host: shared(2)?,
        boot: shared(3)?,
        pid_namespace: shared(4)?,
        pid: u32::try_from(unsigned(row, 5)?).map_err(|_| bad("process"))?,
        started_ticks: position(row, 6)?.map(|ticks| ticks.0),
    };
    let id = RuntimeInstanceId::new(text(row, 0)?).map_err(|_| bad("instance"))?;
    Ok(RuntimeInstance {
        identity: InstanceIdentity { id, executor, program: text(row, 1)?.into() },
        started_at: Timestamp::from_micros(row.get(7)?),
        last_seen_at: Timestamp::from_micros(row.get(8)?),
        ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_micros),
    })
}

/// A number that is never negative. SQLite has signed ones only.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, RowError> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| bad("a number is negative"))
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, RowError> {
    Ok(row.get_ref(column)?.as_str()?)
}

fn optional<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, RowError> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

fn parse(json: &str) -> Result<serde_json::Value, RowError> {
    serde_json::from_str(json).map_err(|_| bad("payload is no JSON"))
}

const fn bad(what: &'static str) -> RowError {
    RowError::Unreadable(what)
}
