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

#[cfg(test)]
mod tests {
    use super::super::handler::HandlerError;
    use super::super::policy::StagePolicy;
    use super::super::value::{Failure, HandlerCancellation};
    use super::*;

    fn failed(at: usize, error: HandlerError) -> (usize, Member) {
        let HandlerError::Failed(failure) = error else { panic!("a failure") };
        (at, Member { registration: format!("h{at}").into(), end: MemberEnd::Failed(failure) })
    }

    fn ordinary(at: usize) -> (usize, Member) {
        failed(at, HandlerError::failed("e", at))
    }

    fn cancelled(at: usize) -> (usize, Member) {
        (at, Member { registration: format!("h{at}").into(), end: MemberEnd::Cancelled(CancelledBy::Itself) })
    }

    fn raised(conduct: Conduct, completion: Completion, surface: ErrorSurface, of: Stage, kept: Kept) -> Option<Surfaced> {
        let stage = StagePolicy::new(Failure::Collect, completion, surface, HandlerCancellation::Collect);
        kept.surface(&Rules { stage, conduct, sequential: false }, of)
    }

    fn natively(surface: ErrorSurface, surfaced: Vec<(usize, Member)>) -> Option<RaisedError> {
        let kept = Kept { surfaced, translated: Vec::new() };
        raised(Conduct::Native, Completion::AwaitAll, surface, Stage::Invocation, kept).map(|raised| raised.error)
    }

    /// F-2, F-3: the table of surfaces, row by row; a group is in registration order, whoever failed first.
    #[test]
    fn each_surface_raises_what_it_says() {
        use ErrorSurface::*;
        for surface in ErrorSurface::ALL {
            assert_eq!(natively(*surface, Vec::new()), None, "{surface}");
        }
        let several = || vec![ordinary(2), cancelled(0), ordinary(1)];
        let in_order: Vec<_> = [cancelled(0), ordinary(1), ordinary(2)].into_iter().map(|(_, member)| member).collect();
        assert_eq!(natively(ReturnReport, several()), None);
        assert_eq!(natively(LogOnly, several()), None);
        assert_eq!(natively(RaiseFirst, several()), Some(RaisedError::One(ordinary(2).1)), "the first in time");
        assert_eq!(natively(RaiseGroup, several()), Some(RaisedError::Group(in_order.clone())));
        assert_eq!(natively(RaiseGroup, vec![ordinary(1)]), Some(RaisedError::Group(vec![ordinary(1).1])));
        assert_eq!(natively(UnwrapSingleElseGroup, several()), Some(RaisedError::Group(in_order)));
        assert_eq!(natively(UnwrapSingleElseGroup, vec![ordinary(1)]), Some(RaisedError::One(ordinary(1).1)));
    }

    /// F-12: a cancellation that is raised alone is one, and is no failure.
    #[test]
    fn a_lone_cancellation_is_raised_as_one() {
        let alone = Some(RaisedError::Cancelled { by: CancelledBy::Itself, registration: Some("h0".into()) });
        assert_eq!(natively(ErrorSurface::UnwrapSingleElseGroup, vec![cancelled(0)]), alone);
        assert_eq!(natively(ErrorSurface::RaiseFirst, vec![cancelled(0)]), alone);
        assert_eq!(natively(ErrorSurface::RaiseFirst, vec![cancelled(0), ordinary(1)]), Some(RaisedError::One(ordinary(1).1)));
    }

    /// A translated cancellation wins over failures, which are its cause.
    #[test]
    fn a_translated_cancellation_has_the_failures_as_its_cause() {
        let translated = |surfaced| {
            let kept = Kept { surfaced, translated: vec![cancelled(3), cancelled(1)] };
            raised(Conduct::Recorded, Completion::AwaitAll, ErrorSurface::RaiseGroup, Stage::Invocation, kept).unwrap()
        };
        let alone = translated(Vec::new());
        assert_eq!((alone.error, alone.cause), (RaisedError::HandlerCancelled, Some(Cause::One(cancelled(1).1))));
        let beside = translated(vec![ordinary(2), ordinary(0)]);
        assert_eq!(beside.cause, Some(Cause::Group(vec![ordinary(0).1, ordinary(2).1])));
    }

    /// The recorded conduct raises the store's refusal alone where callbacks are drained, and names all failures behind what it raises of a gathering.
    #[test]
    fn the_recorded_surfaces_differ_in_their_rows_only() {
        let refused = || failed(1, HandlerError::store_refused("s", ""));
        let kept = || Kept { surfaced: vec![cancelled(0), refused(), ordinary(2)], translated: Vec::new() };
        let unwrap = ErrorSurface::UnwrapSingleElseGroup;
        let drained = raised(Conduct::Recorded, Completion::AwaitAll, unwrap, Stage::Invocation, kept()).unwrap();
        assert_eq!((drained.error, drained.overruled), (RaisedError::One(refused().1), vec![ordinary(2).1]));
        let native = raised(Conduct::Native, Completion::AwaitAll, unwrap, Stage::Invocation, kept()).unwrap();
        assert!(matches!(native.error, RaisedError::Group(members) if members.len() == 3));
        let one = || Kept { surfaced: vec![ordinary(2)], translated: Vec::new() };
        let cancels = Completion::CancelRemainingOnFailure;
        let gathered = raised(Conduct::Recorded, cancels, unwrap, Stage::ReturnedAwaitables, one()).unwrap();
        assert_eq!(gathered.cause, Some(Cause::Group(vec![ordinary(2).1])));
        assert_eq!(raised(Conduct::Recorded, cancels, unwrap, Stage::Invocation, one()).unwrap().cause, None);
        assert_eq!(raised(Conduct::Native, cancels, unwrap, Stage::ReturnedAwaitables, one()).unwrap().cause, None);
    }
}
