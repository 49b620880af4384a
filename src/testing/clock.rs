//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};

/// Wall time that stands still until it is moved. Clones share one time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at a time.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_micros())))
    }

    /// Moves the clock on. Beyond the last representable time it stays there.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let move_on = |now: i64| Some(now.saturating_add(by));
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, move_on).expect("the function always gives a time");
    }

    /// Sets the clock, backwards too: a wall clock may be set back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// 2026-01-01 00:00 UTC.
    fn default() -> Self {
        Self::at(Timestamp::from_micros(1_767_225_600_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_time_and_it_moves_only_when_told() {
        let clock = ManualClock::at(Timestamp::from_micros(5));
        let other = clock.clone();
        clock.advance(Duration::from_millis(1));
        assert_eq!(other.now(), Timestamp::from_micros(1_005));
        other.set(Timestamp::from_micros(1));
        assert_eq!(clock.now(), Timestamp::from_micros(1));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::from_micros(i64::MAX));
    }
}
