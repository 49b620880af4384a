//! How long to wait before a child is started again.
//!
//! | failures in a row | longest wait                |
//! |-------------------|-----------------------------|
//! | 1                 | first                       |
//! | 2                 | first * 2                   |
//! | n                 | first * 2^(n-1), up to cap  |
//!
//! Jitter shortens a wait by up to its percentage, and never lengthens it: the cap holds. A child that was up for the quiet time
//! starts a new row.

use std::time::Duration;

/// The waits between the restarts of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    jitter_percent: u8,
    quiet: Duration,
}

impl Backoff {
    /// No wait: a failed child is started again at once. Only its restart budget slows a crash loop.
    pub const NONE: Self = Self { first: Duration::ZERO, cap: Duration::ZERO, jitter_percent: 0, quiet: Duration::ZERO };

    /// Waits that double from `first` up to `cap`, with a jitter of 20 % and a quiet time of twice the cap.
    #[must_use]
    pub const fn exponential(first: Duration, cap: Duration) -> Self {
        Self { first, cap, jitter_percent: 20, quiet: cap.saturating_mul(2) }
    }

    /// Shortens each wait at random by up to `percent` of it; values above 100 count as 100. Children that failed together then
    /// come back apart.
    #[must_use]
    pub const fn with_jitter(mut self, percent: u8) -> Self {
        self.jitter_percent = if percent > 100 { 100 } else { percent };
        self
    }

    /// A child that was up this long before it failed starts at the first wait again.
    #[must_use]
    pub const fn with_quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// The longest wait.
    #[must_use]
    pub const fn cap(self) -> Duration {
        self.cap
    }

    /// The number of failures in a row after one more, given how long the child had been up (`None`: it never came up).
    pub(crate) fn row(self, failures: u32, up_for: Option<Duration>) -> u32 {
        match up_for {
            Some(up_for) if up_for >= self.quiet => 1,
            Some(_) | None => failures.saturating_add(1),
        }
    }

    /// The wait after that many failures in a row.
    pub(crate) fn delay(self, failures: u32, entropy: &mut Entropy) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let longest = self.first.saturating_mul(1 << doublings).min(self.cap);
        let cut = longest.mul_f64(f64::from(self.jitter_percent) / 100.0 * entropy.unit());
        longest.saturating_sub(cut)
    }
}

impl Default for Backoff {
    /// From 50 milliseconds up to 10 seconds, with a jitter of 20 % and a quiet time of 20 seconds.
    fn default() -> Self {
        Self::exponential(Duration::from_millis(50), Duration::from_secs(10))
    }
}

/// A small deterministic source of spread (SplitMix64). Not for secrets.
#[derive(Debug)]
pub(crate) struct Entropy(u64);

impl Entropy {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, and without, 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The table of the module.
    #[test]
    fn waits_double_up_to_the_cap() {
        let backoff = Backoff::exponential(10 * MS, 60 * MS).with_jitter(0);
        let waits: Vec<_> = (1..=5).map(|n| backoff.delay(n, &mut Entropy::seeded(0))).collect();
        assert_eq!(waits, [10 * MS, 20 * MS, 40 * MS, 60 * MS, 60 * MS]);
        assert_eq!(backoff.delay(u32::MAX, &mut Entropy::seeded(0)), 60 * MS);
        assert_eq!(Backoff::NONE.delay(9, &mut Entropy::seeded(0)), Duration::ZERO);
    }

    /// Jitter only shortens, by at most its share, and two draws differ.
    #[test]
    fn jitter_spreads_below_the_wait_and_keeps_the_cap() {
        let backoff = Backoff::exponential(100 * MS, 1_000 * MS).with_jitter(30);
        let plain = backoff.with_jitter(0);
        let mut entropy = Entropy::seeded(1);
        let mut seen = std::collections::HashSet::new();
        for n in 0..4_000 {
            let (longest, wait) = (plain.delay(n, &mut Entropy::seeded(0)), backoff.delay(n, &mut entropy));
            assert!(wait <= longest && wait >= longest.mul_f64(0.699), "{n}: {wait:?} of {longest:?}");
            seen.insert(wait);
        }
        assert!(seen.len() > 1_000);
    }

    /// Only an uptime of the quiet time ends a row; a start that failed continues it.
    #[test]
    fn a_quiet_time_starts_a_new_row() {
        let backoff = Backoff::exponential(10 * MS, 100 * MS).with_quiet(500 * MS);
        assert_eq!(backoff.row(4, Some(500 * MS)), 1);
        assert_eq!(backoff.row(4, Some(499 * MS)), 5);
        assert_eq!(backoff.row(4, None), 5);
        assert_eq!(backoff.row(u32::MAX, None), u32::MAX);
    }
}
