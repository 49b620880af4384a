//! How the ends that a stage has kept reach the emitter. Pure decisions.
//!
//! | error surface              | kept                         | raised                                                               |
//! |----------------------------|------------------------------|----------------------------------------------------------------------|
//! | any                        | a translated cancellation    | `HandlerCancelled`; its cause is the group of failures, or else itself |
//! | any                        | nothing                      | nothing                                                              |
//! | `return_report`, `log_only` | anything                    | nothing                                                              |
//! | `raise_first`              | anything                     | the failure that came first, or else the first cancellation          |
//! | `raise_group`              | anything                     | all of them, in registration order                                   |
//! | `unwrap_single_else_group` | one                          | that one as itself                                                   |
//! | `unwrap_single_else_group` | several                      | all of them, in registration order                                   |
//!
//! Under the recorded conduct, a stage that drains and unwraps raises a refusal of the store alone, and what else failed becomes a warning
//! (`message_added_sync/store_refused_beside_failure`); and what is raised from gathered awaitables has the group of them as its cause
//! (`session_observer/async_failure_first`).

use super::context::CancelledBy;
use super::handler::FailureKind;
use super::meaning::Rules;
use super::raised::{Cause, Member, MemberEnd, RaisedError};
use super::report::Stage;
use super::value::{Completion, Conduct, ErrorSurface};

/// What a stage has kept, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) surfaced: Vec<(usize, Member)>,
    pub(super) translated: Vec<(usize, Member)>,
}

/// What is raised, and what gave way to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Surfaced {
    pub(super) error: RaisedError,
    pub(super) cause: Option<Cause>,
    pub(super) overruled: Vec<Member>,
}

impl Surfaced {
    pub(super) fn plain(error: RaisedError) -> Self {
        Self { error, cause: None, overruled: Vec::new() }
    }
}

impl Kept {
    /// Whether a failure is among them.
    pub(super) fn holds_a_failure(&self) -> bool {
        self.surfaced.iter().any(|(_, member)| matches!(member.end, MemberEnd::Failed(_)))
    }

    /// What is raised of them.
    pub(super) fn surface(self, rules: &Rules, stage: Stage) -> Option<Surfaced> {
        let Self { surfaced, translated } = self;
        let first = surfaced.iter().find(|(_, member)| matches!(member.end, MemberEnd::Failed(_))).or(surfaced.first()).cloned();
        let members = in_registration_order(surfaced);
        if let Some(cancelled) = in_registration_order(translated).into_iter().next() {
            let failures: Vec<_> = members.into_iter().filter(|member| matches!(member.end, MemberEnd::Failed(_))).collect();
            let cause = if failures.is_empty() { Cause::One(cancelled) } else { Cause::Group(failures) };
            return Some(Surfaced { error: RaisedError::HandlerCancelled, cause: Some(cause), overruled: Vec::new() });
        }
        let (_, first) = first?;
        let recorded = rules.conduct == Conduct::Recorded;
        let cause = (recorded && stage == Stage::ReturnedAwaitables).then(|| Cause::Group(members.clone()));
        match rules.stage.error_surface {
            ErrorSurface::ReturnReport | ErrorSurface::LogOnly => None,
            ErrorSurface::RaiseFirst => Some(Surfaced { error: as_itself(first), cause, overruled: Vec::new() }),
            ErrorSurface::RaiseGroup => Some(Surfaced { error: RaisedError::Group(members), cause, overruled: Vec::new() }),
            ErrorSurface::UnwrapSingleElseGroup if recorded && rules.stage.completion == Completion::AwaitAll => {
                Some(refused_alone(members))
            }
            ErrorSurface::UnwrapSingleElseGroup => Some(Surfaced { error: unwrapped(members), cause, overruled: Vec::new() }),
        }
    }
}

fn in_registration_order(mut kept: Vec<(usize, Member)>) -> Vec<Member> {
    kept.sort_by_key(|(at, _)| *at);
    kept.into_iter().map(|(_, member)| member).collect()
}

/// One end, as itself: a cancellation stays one (F-12).
pub(super) fn as_itself(member: Member) -> RaisedError {
    match member.end {
        MemberEnd::Failed(_) => RaisedError::One(member),
        MemberEnd::Cancelled(CancelledBy::Itself) => {
            RaisedError::Cancelled { by: CancelledBy::Itself, registration: Some(member.registration) }
        }
        MemberEnd::Cancelled(by) => RaisedError::Cancelled { by, registration: None },
    }
}

fn unwrapped(mut members: Vec<Member>) -> RaisedError {
    match members.len() {
        1 => as_itself(members.remove(0)),
        _ => RaisedError::Group(members),
    }
}

/// The store's refusal alone, if there is one; the other failures give way to it, and cancellations are gone.
fn refused_alone(mut members: Vec<Member>) -> Surfaced {
    let Some(at) = members.iter().position(|member| member.end.is_of(FailureKind::StoreRefused)) else {
        return Surfaced::plain(unwrapped(members));
    };
    let refusal = members.remove(at);
    members.retain(|member| matches!(member.end, MemberEnd::Failed(_)));
    Surfaced { error: RaisedError::One(refusal), cause: None, overruled: members }
}
