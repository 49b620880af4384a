//! What a fact does to the attempt that it is about (P-9, I-19). Pure; every backend asks here.
//!
//! | recorded              | fact     | answer                                        |
//! |-----------------------|----------|-----------------------------------------------|
//! | nothing               | proposed | `Open`                                        |
//! | nothing               | closing  | `CloseUnproposed`: its proposal was lost      |
//! | open                  | proposed | refused: a retry is a new attempt             |
//! | open                  | closing  | `Close`                                       |
//! | closed                | proposed | refused: it has ended                         |
//! | closed                | closing  | refused: it has ended                         |
//! | in another session    | either   | refused                                       |
//! | anything              | another  | `None`: attempts are not concerned            |

use super::{AppendError, AttemptRow, Closed};
use crate::id::{AttemptId, OperationId, SessionId};
use crate::signal::{LifecycleKind, Signal, SignalSeq};

/// A fact that opens or closes an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptFact<'s> {
    pub(super) operation: &'s OperationId,
    pub(super) attempt: &'s AttemptId,
    pub(super) kind: LifecycleKind,
}

/// What of a recorded attempt the decision needs.
#[derive(Debug)]
pub(super) struct RecordedAttempt {
    pub(super) session: SessionId,
    pub(super) proposed: Option<SignalSeq>,
    pub(super) closed: Option<Closed>,
}

impl From<&AttemptRow> for RecordedAttempt {
    fn from(row: &AttemptRow) -> Self {
        Self { session: row.session.clone(), proposed: row.proposed, closed: row.closed }
    }
}

/// What is to be written beside the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptChange {
    Open,
    Close,
    CloseUnproposed,
}

/// Reads what a fact says about an attempt; `None` for facts about other things.
pub(super) fn attempt_fact(signal: &Signal) -> Result<Option<AttemptFact<'_>>, AppendError> {
    match signal.kind().lifecycle() {
        Some(kind) if kind == LifecycleKind::OperationProposed || kind.closes_operation() => {
            match (signal.operation(), signal.attempt()) {
                (Some(operation), Some(attempt)) => Ok(Some(AttemptFact { operation, attempt, kind })),
                _ => Err(AppendError::Unidentified { id: signal.id().clone(), kind: kind.as_str() }),
            }
        }
        _ => Ok(None),
    }
}

/// Decides by the table above.
pub(super) fn step(
    signal: &Signal,
    fact: AttemptFact<'_>,
    recorded: Option<RecordedAttempt>,
) -> Result<AttemptChange, AppendError> {
    let closing = fact.kind.closes_operation();
    let Some(RecordedAttempt { session, proposed, closed }) = recorded else {
        return Ok(if closing { AttemptChange::CloseUnproposed } else { AttemptChange::Open });
    };
    let names = || (fact.operation.clone(), fact.attempt.clone());
    if session != *signal.session() {
        let (operation, attempt) = names();
        return Err(AppendError::OtherSession { operation, attempt, session });
    }
    match (closed, proposed) {
        (Some(Closed { kind: closed_as, seq }), _) => {
            let (operation, attempt) = names();
            Err(AppendError::AlreadyClosed { operation, attempt, closed_as, session, seq })
        }
        (None, Some(seq)) if !closing => {
            let (operation, attempt) = names();
            Err(AppendError::AlreadyProposed { operation, attempt, session, seq })
        }
        (None, _) => Ok(AttemptChange::Close),
    }
}
