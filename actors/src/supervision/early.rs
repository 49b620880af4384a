//! Ends that are seen before the start they belong to has reported.
//!
//! A child is linked before its start has told the supervisor which actor it is, and may end in between. Such an end is kept
//! until every start that was under way when it came has reported; whatever is left then belongs to nobody. So nothing is kept
//! for longer than a start takes, even if there is always some start under way.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// The ends without an owner, and the starts under way.
#[derive(Debug)]
pub(crate) struct EarlyEnds<A, E> {
    next: u64,
    starts: BTreeSet<u64>,
    ends: HashMap<A, E>,
    /// In order of arrival, with the first start that cannot be meant any more.
    order: VecDeque<(u64, A)>,
}

impl<A: Copy + Eq + Hash, E> EarlyEnds<A, E> {
    pub(crate) fn new() -> Self {
        Self { next: 0, starts: BTreeSet::new(), ends: HashMap::new(), order: VecDeque::new() }
    }

    /// A start begins.
    pub(crate) fn begin(&mut self) -> u64 {
        let start = self.next;
        self.next += 1;
        self.starts.insert(start);
        start
    }

    /// An actor that no start has named yet has ended.
    pub(crate) fn seen(&mut self, actor: A, end: E) {
        if !self.starts.is_empty() {
            self.ends.insert(actor, end);
            self.order.push_back((self.next, actor));
        }
    }

    /// A start has reported; gives the end of the actor that it named, if that has been seen.
    pub(crate) fn over(&mut self, start: u64, actor: Option<A>) -> Option<E> {
        let end = actor.and_then(|actor| self.ends.remove(&actor));
        self.starts.remove(&start);
        let oldest = self.starts.first().copied();
        while let Some(&(before, actor)) = self.order.front()
            && oldest.is_none_or(|oldest| oldest >= before)
        {
            self.ends.remove(&actor);
            self.order.pop_front();
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a child that dies at once is found by its start.
    #[test]
    fn an_early_end_waits_for_its_start() {
        let mut early = EarlyEnds::new();
        let (first, second) = (early.begin(), early.begin());
        early.seen('a', 1);
        assert_eq!(early.over(second, Some('b')), None);
        assert_eq!(early.over(first, Some('a')), Some(1));
        assert!(early.ends.is_empty() && early.order.is_empty() && early.starts.is_empty());
    }

    /// Pitfall 8: foreign ends are let go although starts are always under way.
    #[test]
    fn nothing_piles_up_while_starts_overlap() {
        let mut early = EarlyEnds::new();
        let mut running = VecDeque::from([early.begin(), early.begin()]);
        for foreign in 0..10_000 {
            running.push_back(early.begin());
            early.seen(foreign, ());
            let oldest = running.pop_front().unwrap();
            early.over(oldest, None);
            assert!(early.ends.len() <= 4 && early.order.len() <= 4, "{} {}", early.ends.len(), early.order.len());
        }
        early.seen(-1, ());
        running.into_iter().for_each(|start| assert!(early.over(start, None).is_none()));
        early.seen(-2, ());
        assert!(early.ends.is_empty() && early.order.is_empty());
    }
}
