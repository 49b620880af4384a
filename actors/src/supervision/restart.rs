//! What follows from the end of a child: which ends a class of child comes back from, and what a spent budget means.
//!
//! | class     | stopped by itself | asked to stop | failed  | killed  | task cancelled | start failed |
//! |-----------|-------------------|---------------|---------|---------|----------------|--------------|
//! | Permanent | restart           | forget        | restart | restart | restart        | restart      |
//! | Transient | forget            | forget        | restart | restart | restart        | restart      |
//! | Temporary | forget            | forget        | forget  | forget  | forget         | forget       |
//!
//! A kill is abnormal although the substrate reports it as a termination. "Asked to stop" means asked through the supervisor, and
//! is final for every class.
//!
//! | strategy                  | budget   | left    | spent    |
//! |---------------------------|----------|---------|----------|
//! | OneForOne                 | shared   | restart | escalate |
//! | OneForOne                 | own      | restart | give up  |
//! | OneForAll, RestForOne     | shared   | restart | escalate |
//! | OneForAll, RestForOne     | own      | restart | escalate |
//! | Isolated                  | none     | -       | degrade  |
//! | Isolated                  | own      | restart | degrade  |
//!
//! Under a group strategy a child is never given up alone: those that were started after it stand on it.

use super::end::End;
use super::strategy::Strategy;

/// After which ends a child is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Restart {
    /// After every end, unless its supervisor was asked to stop it.
    Permanent,
    /// After an abnormal end only: a failure, a kill, a cancelled task, a failed start.
    Transient,
    /// Never.
    Temporary,
}

/// Whether a child comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is started again, if the budget allows.
    Restart,
    /// It has ended for good, and nothing of it is kept.
    Forget,
}

/// The first table.
pub(crate) fn verdict(class: Restart, end: &End) -> Verdict {
    match (class, end) {
        (_, End::Asked { .. }) | (Restart::Temporary, _) | (Restart::Transient, End::Stopped { .. }) => Verdict::Forget,
        (Restart::Permanent, End::Stopped { .. })
        | (Restart::Permanent | Restart::Transient, End::Failed(_) | End::Killed | End::Cancelled | End::StartFailed(_)) => {
            Verdict::Restart
        }
    }
}

/// Which budget a restart is counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// The supervisor's, shared by its children.
    Shared,
    /// The child's own.
    Own,
    /// None: an isolating supervisor has no shared budget.
    None,
}

/// What a restart that is due leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Start it again after its back-off.
    Restart,
    /// Start it again after its back-off, and report it as degraded until it is up.
    Degrade,
    /// Leave this child down; its siblings go on.
    GiveUp,
    /// Stop all children and end, so that the level above decides.
    Escalate,
}

/// The second table.
pub(crate) fn consequence(strategy: Strategy, budget: Budget, spent: bool) -> Consequence {
    match (strategy, budget, spent) {
        (Strategy::Isolated, Budget::None | Budget::Shared, _) | (Strategy::Isolated, Budget::Own, true) => Consequence::Degrade,
        (_, _, false) => Consequence::Restart,
        (Strategy::OneForOne, Budget::Own, true) => Consequence::GiveUp,
        (Strategy::OneForOne | Strategy::OneForAll | Strategy::RestForOne, _, true) => Consequence::Escalate,
    }
}

#[cfg(test)]
mod tests {
    use super::super::end::Cause;
    use super::super::error::StartError;
    use super::*;

    fn ends() -> [End; 6] {
        [
            End::Stopped { reason: None },
            End::Asked { killed: false },
            End::Failed(Cause::text("boom")),
            End::Killed,
            End::Cancelled,
            End::StartFailed(StartError::NotLinked),
        ]
    }

    /// The first table of the module, row by row.
    #[test]
    fn every_class_follows_its_row() {
        use Verdict::{Forget, Restart as Again};
        let rows = [
            (Restart::Permanent, [Again, Forget, Again, Again, Again, Again]),
            (Restart::Transient, [Forget, Forget, Again, Again, Again, Again]),
            (Restart::Temporary, [Forget; 6]),
        ];
        for (class, expected) in rows {
            for (end, expected) in ends().iter().zip(expected) {
                assert_eq!(verdict(class, end), expected, "{class:?} after {end:?}");
            }
        }
    }

    /// The second table of the module, row by row.
    #[test]
    fn a_spent_budget_escalates_unless_the_child_stands_alone() {
        use Consequence::{Degrade, Escalate, GiveUp, Restart as Again};
        let rows = [
            (Strategy::OneForOne, Budget::Shared, Again, Escalate),
            (Strategy::OneForOne, Budget::Own, Again, GiveUp),
            (Strategy::OneForAll, Budget::Shared, Again, Escalate),
            (Strategy::OneForAll, Budget::Own, Again, Escalate),
            (Strategy::RestForOne, Budget::Shared, Again, Escalate),
            (Strategy::RestForOne, Budget::Own, Again, Escalate),
            (Strategy::Isolated, Budget::None, Degrade, Degrade),
            (Strategy::Isolated, Budget::Own, Again, Degrade),
        ];
        for (strategy, budget, left, spent) in rows {
            assert_eq!(consequence(strategy, budget, false), left, "{strategy:?} {budget:?} left");
            assert_eq!(consequence(strategy, budget, true), spent, "{strategy:?} {budget:?} spent");
        }
    }
}
