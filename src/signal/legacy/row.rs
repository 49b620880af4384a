//! Rows of the original system's table `session_signals`, read as facts and written from facts.
//!
//! | column       | in the fact                                                                                          |
//! |--------------|------------------------------------------------------------------------------------------------------|
//! | `id`         | its identity                                                                                         |
//! | `session_id` | its session                                                                                          |
//! | `seq`        | beside it: the original gives a number again after a deletion, so nothing may be resumed from it alone |
//! | `kind`       | its kind, by the table in [`LegacyKind`]; the payload's type keeps the name                           |
//! | `op_id`      | its operation; empty: none                                                                           |
//! | `ts`         | its time, in whole microseconds                                                                      |
//! | `payload`    | its payload, whole. Of a hook record the closed part only: the free-form arguments stay beside the fact |

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::hook::{self, HOOK_KIND, HOOK_PAYLOAD, HookRecord};
use super::{DormantPoint, HookPoint, LegacyKind};
use crate::clock::Timestamp;
use crate::id::{InvalidId, OperationId, SessionId, SignalId};
use crate::signal::{EmitterRole, Payload, PayloadType, Signal, SignalError, SignalKind, SignalSeq};

/// The namespace of payload types that came from the original.
const NAMESPACE: &str = "lionagi.";
/// The kind of the original's hook records.
const HOOK_SIGNAL: &str = "HookSignal";

/// One row of `session_signals`, as the original has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LegacyRow {
    /// The row's identity.
    pub id: String,
    /// The session.
    pub session_id: String,
    /// The number in the session.
    pub seq: u64,
    /// The kind, by its class name.
    pub kind: String,
    /// The operation; empty: none.
    #[serde(default)]
    pub op_id: String,
    /// Seconds since 1970-01-01 UTC.
    pub ts: f64,
    /// The payload.
    #[serde(default)]
    pub payload: Value,
}

/// A row as a fact, with what the fact does not carry.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyFact {
    /// The fact.
    pub signal: Signal,
    /// The row's number.
    pub seq: SignalSeq,
    /// The free-form arguments of a hook record. Nothing decides by them.
    pub arguments: Option<Value>,
    /// What a reader should know of the row.
    pub warnings: Vec<LegacyWarning>,
}

/// What a reader should know of a row that was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyWarning {
    /// The original does not know the kind; it is kept by name (P-12).
    #[error("kind {name:?} is none of the original's: it is kept by its name")]
    UnknownKind {
        /// The name.
        name: String,
    },
    /// The hook record names no point of the original's; its payload is kept whole.
    #[error("hook point {name:?} is none of the original's: the record is kept as it is")]
    UnknownPoint {
        /// The name, empty where there is none.
        name: String,
    },
    /// Nothing of the original emits the point.
    #[error(transparent)]
    Dormant(#[from] DormantPoint),
    /// The original has cut the payload, and with it its structure.
    #[error("the payload was cut by its writer: {original_bytes} bytes were written as a remainder")]
    Truncated {
        /// How long it was, in bytes; 0 where the row does not say.
        original_bytes: u64,
    },
}

/// Why a row is no fact.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyError {
    /// An identity is empty, too long or holds a control character.
    #[error("the row {row:?} has an unusable identity")]
    Identity {
        /// The row's identity.
        row: String,
        /// Which, and why.
        #[source]
        source: InvalidId,
    },
    /// The time is no number, or beyond what microseconds of 64 bits reach.
    #[error("the row {row:?} has no usable time: {ts}")]
    Time {
        /// The row's identity.
        row: String,
        /// The time.
        ts: f64,
    },
    /// The kind cannot be the name of a payload's type.
    #[error("the row {row:?} has a kind that is no name: {name:?}")]
    Kind {
        /// The row's identity.
        row: String,
        /// The kind.
        name: String,
    },
}

impl LegacyRow {
    /// The row as a fact. What the original has no name for is kept, with a warning.
    ///
    /// # Errors
    /// [`LegacyError`] where the row cannot be a fact at all.
    pub fn read(&self) -> Result<LegacyFact, LegacyError> {
        let identity = |source| LegacyError::Identity { row: self.id.clone(), source };
        let mut warnings = Vec::new();
        let (kind, shape, value, arguments) = self.meaning(&mut warnings)?;
        let session = SessionId::new(self.session_id.as_str()).map_err(identity)?;
        let mut signal = Signal::builder(session, kind, self.occurred_at()?)
            .id(SignalId::new(self.id.as_str()).map_err(identity)?)
            .role(role(&self.payload))
            .payload(Payload::from_value(shape, value));
        if !self.op_id.is_empty() {
            signal = signal.operation(OperationId::new(self.op_id.as_str()).map_err(identity)?);
        }
        Ok(LegacyFact { signal: signal.build(), seq: SignalSeq(self.seq), arguments, warnings })
    }

    fn meaning(&self, warnings: &mut Vec<LegacyWarning>) -> Result<(SignalKind, PayloadType, Value, Option<Value>), LegacyError> {
        if let Some(Value::Bool(true)) = self.payload.get("truncated") {
            let original_bytes = self.payload.get("original_bytes").and_then(Value::as_u64).unwrap_or_default();
            warnings.push(LegacyWarning::Truncated { original_bytes });
        }
        if self.kind == HOOK_SIGNAL {
            return Ok(self.hook(warnings));
        }
        let kind = match LegacyKind::parse(&self.kind) {
            Some(kind) => kind.kind(),
            None => {
                warnings.push(LegacyWarning::UnknownKind { name: self.kind.clone() });
                SignalKind::from_stored(&self.kind)
            }
        };
        Ok((kind, self.shape()?, self.payload.clone(), None))
    }

    /// A hook record: its closed part, and beside it what is free-form. One whose point is unknown is kept whole.
    fn hook(&self, warnings: &mut Vec<LegacyWarning>) -> (SignalKind, PayloadType, Value, Option<Value>) {
        let name = self.payload.get("point").and_then(Value::as_str).unwrap_or_default();
        let Some(point) = HookPoint::parse(name) else {
            warnings.push(LegacyWarning::UnknownPoint { name: name.to_owned() });
            return (hook::kind(), PayloadType::shipped(HOOK_PAYLOAD, 1), self.payload.clone(), None);
        };
        warnings.extend(DormantPoint::of(point).map(LegacyWarning::from));
        let flag = |member: &str| self.payload.get(member).is_some_and(|value| *value == Value::Bool(true));
        let has_exception = flag("has_exception") || self.payload.get("exception").is_some_and(|value| !value.is_null());
        let record = HookRecord { point, denied: flag("denied"), has_exception };
        (hook::kind(), PayloadType::shipped(HOOK_PAYLOAD, 1), record.value(), self.payload.get("kwargs").cloned())
    }

    fn shape(&self) -> Result<PayloadType, LegacyError> {
        let version = self.payload.get("schema_version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok());
        PayloadType::new(format!("{NAMESPACE}{}", self.kind), version.unwrap_or(1))
            .map_err(|_: SignalError| LegacyError::Kind { row: self.id.clone(), name: self.kind.clone() })
    }

    fn occurred_at(&self) -> Result<Timestamp, LegacyError> {
        const MAX_SECONDS: f64 = 9.0e12;
        if !self.ts.is_finite() || self.ts.abs() > MAX_SECONDS {
            return Err(LegacyError::Time { row: self.id.clone(), ts: self.ts });
        }
        #[expect(clippy::cast_possible_truncation, reason = "the line above bounds it to what fits")]
        let micros = (self.ts * 1e6).round() as i64;
        Ok(Timestamp::from_micros(micros))
    }
}

/// Whether rows of the original are written beside the journal. Reading them needs no switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LegacyRows {
    /// They are not.
    #[default]
    Off,
    /// They are, for whatever the original has a kind for.
    Written,
}

impl LegacyRows {
    /// The row of a fact at its position; `None` when rows are not written, or where the original has no kind for the fact. `arguments`: the free-form
    /// arguments of a hook, which only the row carries.
    #[must_use]
    pub fn row(self, signal: &Signal, seq: SignalSeq, arguments: Option<&Value>) -> Option<LegacyRow> {
        match self {
            Self::Off => None,
            Self::Written => row(signal, seq, arguments),
        }
    }
}

fn row(signal: &Signal, seq: SignalSeq, arguments: Option<&Value>) -> Option<LegacyRow> {
    let (kind, payload) = if signal.kind().as_str() == HOOK_KIND {
        (HOOK_SIGNAL.to_owned(), hook_payload(signal, arguments))
    } else if let Some(kind) = signal.payload().shape().name().strip_prefix(NAMESPACE) {
        (kind.to_owned(), signal.payload().value().clone())
    } else {
        (LegacyKind::of(signal.kind())?.as_str().to_owned(), wrapped(signal))
    };
    Some(LegacyRow {
        id: signal.id().as_str().to_owned(),
        session_id: signal.session().as_str().to_owned(),
        seq: seq.0,
        kind,
        op_id: signal.operation().map(|operation| operation.as_str().to_owned()).unwrap_or_default(),
        ts: seconds(signal.occurred_at()),
        payload,
    })
}

fn hook_payload(signal: &Signal, arguments: Option<&Value>) -> Value {
    let mut payload = signal.payload().value().clone();
    if let (Value::Object(members), Some(arguments)) = (&mut payload, arguments) {
        members.insert("kwargs".to_owned(), arguments.clone());
    }
    payload
}

/// A fact of here in the members that every kind of the original has.
fn wrapped(signal: &Signal) -> Value {
    json!({
        "created_at": seconds(signal.occurred_at()),
        "data": signal.payload().value(),
        "emitter_role": signal.role().as_str(),
        "metadata": Map::new(),
        "schema_version": 1,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the original's column is a double; microseconds are exact in it until the year 2255"
)]
fn seconds(at: Timestamp) -> f64 {
    at.as_micros() as f64 / 1e6
}

/// The emitter's role where the payload says it.
fn role(payload: &Value) -> EmitterRole {
    let named = payload.get("emitter_role").and_then(Value::as_str).and_then(|role| EmitterRole::new(role).ok());
    named.unwrap_or_else(|| EmitterRole::shipped("lionagi"))
}
