//! Time: wall time for records, monotonic deadlines for waiting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Wall time of a record: microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

/// Where wall time comes from. Decisions never read it: it only stamps records.
pub trait Clock: Send + Sync + 'static {
    /// The wall time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one door to wall time")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The monotonic instant at which a wait ends. One deadline is one budget: it is handed on, never renewed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// The instant that lies `budget` from now. A budget beyond thirty years is cut to that.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
        Self(Instant::now() + budget.min(FAR))
    }

    /// At a given instant.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// The earlier of two deadlines.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// What is left of the budget; zero when it is spent.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether the budget is spent.
    #[must_use]
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deadline(in {:?})", self.remaining())
    }
}
