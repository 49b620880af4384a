//! Which children share the fate of one that failed.
//!
//! With children started in the order a, b, c, d, and c failing:
//!
//! | strategy   | stopped, in this order | started, in this order |
//! |------------|------------------------|------------------------|
//! | OneForOne  | -                      | c                      |
//! | OneForAll  | d, b, a                | a, b, c, d             |
//! | RestForOne | d                      | c, d                   |
//! | Isolated   | -                      | c                      |
//!
//! Stopping walks the range backwards, starting walks it forwards, and nothing is started before everything in the range is down.

use std::ops::Range;

/// Which children are restarted together, and whether a spent budget ends the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Only the child that failed.
    OneForOne,
    /// All children: they depend on one another.
    OneForAll,
    /// The child that failed and those started after it: each depends on the ones before it.
    RestForOne,
    /// Only the child that failed, for ever: there is no shared budget, a failing child is restarted with capped back-off and
    /// reported as degraded meanwhile, and never takes a sibling with it. For the root of a tree.
    Isolated,
}

impl Strategy {
    /// Whether children are restarted in groups, so that their order matters after the first start too.
    pub(crate) const fn is_group(self) -> bool {
        match self {
            Self::OneForAll | Self::RestForOne => true,
            Self::OneForOne | Self::Isolated => false,
        }
    }

    /// The positions (of `count` children in start order) that go down and come back when the child at `failed` does.
    pub(crate) fn reach(self, count: usize, failed: usize) -> Range<usize> {
        match self {
            Self::OneForOne | Self::Isolated => failed..failed + 1,
            Self::OneForAll => 0..count,
            Self::RestForOne => failed..count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the module: c of a, b, c, d fails.
    #[test]
    fn each_strategy_reaches_its_range() {
        assert_eq!(Strategy::OneForOne.reach(4, 2), 2..3);
        assert_eq!(Strategy::OneForAll.reach(4, 2), 0..4);
        assert_eq!(Strategy::RestForOne.reach(4, 2), 2..4);
        assert_eq!(Strategy::Isolated.reach(4, 2), 2..3);
    }

    /// Whatever fails is in its own range, and no range leaves the list.
    #[test]
    fn the_failed_child_is_always_in_reach() {
        for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne, Strategy::Isolated] {
            for count in 1..20 {
                for failed in 0..count {
                    let reach = strategy.reach(count, failed);
                    assert!(reach.contains(&failed) && reach.end <= count, "{strategy:?} {count} {failed}");
                }
            }
        }
    }
}
