//! What readers of the journal ask for and get.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use super::Gap;
use crate::id::{AttemptId, InvocationId, OperationId, RuntimeInstanceId, SessionId};
use crate::signal::{EmitterRole, LifecycleKind, Signal, SignalKind, SignalSeq};

/// The most positions that one page examines: a filter that lets little through does not make a read long.
pub const MAX_SCAN: u32 = 20_000;

/// One page of a forward read.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The facts, in order of their positions.
    pub facts: Vec<Recorded>,
    /// Read on after this position. It lies behind the last fact of the page when a filter left out what follows it.
    pub next: SignalSeq,
    /// Whether the session had positions after `next` when the page was read. A page may be empty and yet have more: a filter is applied to a
    /// bounded range at a time.
    pub more: bool,
}

/// A fact with the place that the journal gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its position in its session.
    pub seq: SignalSeq,
    /// The fact, as it was emitted.
    pub signal: Arc<Signal>,
}

/// How much one page may hold. A page ends at whichever bound is reached first, and always holds at least one fact if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// At most so many rows.
    pub rows: NonZeroU32,
    /// No further fact once the payloads of the page have so many bytes. Payloads are whole, so that one page holds at most this and one payload.
    pub payload_bytes: NonZeroU64,
}

impl PageLimit {
    /// So many rows, under the usual bound of bytes.
    #[must_use]
    pub fn rows(rows: NonZeroU32) -> Self {
        Self { rows, ..Self::default() }
    }
}

impl Default for PageLimit {
    /// 500 rows or 8 MiB.
    fn default() -> Self {
        const ROWS: NonZeroU32 = NonZeroU32::new(500).expect("500 is not zero");
        const BYTES: NonZeroU64 = NonZeroU64::new(8 << 20).expect("8 MiB is not zero");
        Self { rows: ROWS, payload_bytes: BYTES }
    }
}

/// Which facts a read returns: those that meet every condition that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadFilter {
    /// One of these kinds; empty for every kind.
    pub kinds: Vec<SignalKind>,
    /// Of this invocation.
    pub invocation: Option<InvocationId>,
    /// Of this operation.
    pub operation: Option<OperationId>,
    /// Of this attempt.
    pub attempt: Option<AttemptId>,
    /// Emitted by this role.
    pub role: Option<EmitterRole>,
}

impl ReadFilter {
    /// Every fact.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The facts of some kinds.
    pub fn kinds<K: Into<SignalKind>>(kinds: impl IntoIterator<Item = K>) -> Self {
        Self { kinds: kinds.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Whether it lets a fact through. Every backend agrees with this function.
    #[must_use]
    pub fn matches(&self, signal: &Signal) -> bool {
        fn wanted<T: PartialEq>(condition: &Option<T>, member: Option<&T>) -> bool {
            condition.as_ref().is_none_or(|wanted| member == Some(wanted))
        }
        (self.kinds.is_empty() || self.kinds.contains(signal.kind()))
            && wanted(&self.invocation, signal.invocation())
            && wanted(&self.operation, signal.operation())
            && wanted(&self.attempt, signal.attempt())
            && wanted(&self.role, Some(signal.role()))
    }
}

/// A session that has at least one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// The position of its newest fact.
    pub last_seq: SignalSeq,
}

/// A gap with the place that the journal gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedGap {
    /// Its position in its session.
    pub seq: SignalSeq,
    /// The gap.
    pub gap: Gap,
}

/// What the journal knows about one attempt of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// The operation.
    pub operation: OperationId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The session of its facts.
    pub session: SessionId,
    /// The runtime instance that proposed it, or that closed it where no proposal was recorded.
    pub instance: RuntimeInstanceId,
    /// The position of its proposal; `None` where only its closing fact was recorded.
    pub proposed: Option<SignalSeq>,
    /// How and where it ended; `None` while it is open.
    pub closed: Option<Closed>,
}

/// How and where an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// The kind of its closing fact.
    pub kind: LifecycleKind,
    /// The position of that fact.
    pub seq: SignalSeq,
}

/// Counts over a journal, or over one session of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Sessions with at least one fact.
    pub sessions: u64,
    /// Facts, gaps included.
    pub facts: u64,
    /// Bytes of their payloads as JSON text, large ones included.
    pub payload_bytes: u64,
    /// Recorded gaps.
    pub gaps: u64,
    /// Attempts without a closing fact.
    pub open_proposals: u64,
    /// Facts by kind.
    pub by_kind: BTreeMap<SignalKind, u64>,
}

/// What a store occupies on disk, in bytes. Zeros for a store in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreSize {
    /// The database file.
    pub file_bytes: u64,
    /// The write-ahead log beside it.
    pub wal_bytes: u64,
}
