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
use crate::id::{AttemptId, OperationId};
use crate::signal::{LifecycleKind, Signal};

/// A fact that opens or closes an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptFact<'s> {
    pub(super) operation: &'s OperationId,
    pub(super) attempt: &'s AttemptId,
    pub(super) kind: LifecycleKind,
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
pub(super) fn step(signal: &Signal, fact: AttemptFact<'_>, recorded: Option<&AttemptRow>) -> Result<AttemptChange, AppendError> {
    let closing = fact.kind.closes_operation();
    let Some(row) = recorded else {
        return Ok(if closing { AttemptChange::CloseUnproposed } else { AttemptChange::Open });
    };
    let (operation, attempt, session) = (fact.operation.clone(), fact.attempt.clone(), row.session.clone());
    if row.session != *signal.session() {
        return Err(AppendError::OtherSession { operation, attempt, session });
    }
    match (row.closed, row.proposed) {
        (Some(Closed { kind: closed_as, seq }), _) => {
            Err(AppendError::AlreadyClosed { operation, attempt, closed_as, session, seq })
        }
        (None, Some(seq)) if !closing => Err(AppendError::AlreadyProposed { operation, attempt, session, seq }),
        (None, _) => Ok(AttemptChange::Close),
    }
}
