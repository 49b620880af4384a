//! How many restarts within how long are healing, and from which on they are a crash loop.
//!
//! | restarts within the period, this one included | answer |
//! |------------------------------------------------|--------|
//! | up to the maximum                              | left   |
//! | more                                           | spent  |
//!
//! A restart exactly one period ago no longer counts.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// A budget of restarts: at most `restarts` within any window of `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Intensity {
    restarts: u32,
    period: Duration,
}

impl Intensity {
    /// At most `restarts` within any `period`. With zero restarts the first failure spends the budget.
    #[must_use]
    pub const fn new(restarts: u32, period: Duration) -> Self {
        Self { restarts, period }
    }

    /// The number of restarts that a window may hold.
    #[must_use]
    pub const fn restarts(self) -> u32 {
        self.restarts
    }

    /// The length of the window.
    #[must_use]
    pub const fn period(self) -> Duration {
        self.period
    }
}

impl Default for Intensity {
    /// Three restarts within five seconds.
    fn default() -> Self {
        Self::new(3, Duration::from_secs(5))
    }
}

/// The restarts of the last period. Holds at most as many instants as the budget has restarts.
#[derive(Debug)]
pub(crate) struct Window {
    budget: Intensity,
    recent: VecDeque<Instant>,
}

impl Window {
    pub(crate) const fn new(budget: Intensity) -> Self {
        Self { budget, recent: VecDeque::new() }
    }

    /// Counts a restart at `now`, and says whether it is one too many. Instants must not go backwards.
    pub(crate) fn record(&mut self, now: Instant) -> bool {
        while self.recent.front().is_some_and(|&first| now.saturating_duration_since(first) >= self.budget.period) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.budget.restarts as usize {
            return true;
        }
        self.recent.push_back(now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent_at(budget: Intensity, millis: &[u64]) -> Vec<bool> {
        let base = Instant::now();
        let mut window = Window::new(budget);
        millis.iter().map(|&at| window.record(base + Duration::from_millis(at))).collect()
    }

    /// The table of the module.
    #[test]
    fn the_restart_after_the_last_one_allowed_is_one_too_many() {
        let budget = Intensity::new(2, Duration::from_millis(100));
        assert_eq!(spent_at(budget, &[0, 10, 20]), [false, false, true]);
        assert_eq!(spent_at(budget, &[0, 10, 100]), [false, false, false]);
        assert_eq!(spent_at(budget, &[0, 10, 99]), [false, false, true]);
        assert_eq!(spent_at(Intensity::new(0, Duration::from_secs(1)), &[0]), [true]);
    }

    /// For generated instants the answer equals a count over the whole history, and memory never exceeds the budget.
    #[test]
    fn the_window_agrees_with_a_full_count() {
        let mut entropy = super::super::backoff::Entropy::seeded(7);
        for _ in 0..2_000 {
            let budget = Intensity::new((entropy.next() % 5) as u32, Duration::from_millis(1 + entropy.next() % 50));
            let base = Instant::now();
            let (mut window, mut allowed, mut at) = (Window::new(budget), Vec::new(), 0);
            for _ in 0..40 {
                at += entropy.next() % 20;
                let now = base + Duration::from_millis(at);
                let within = allowed.iter().filter(|&&then| now - then < budget.period()).count();
                let spent = window.record(now);
                assert_eq!(spent, within >= budget.restarts() as usize);
                if !spent {
                    allowed.push(now);
                }
                assert!(window.recent.len() <= budget.restarts() as usize);
            }
        }
    }
}
