//! What a port tells about itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::core::Counts;
use super::shared::Shared;

/// What a port holds at one instant, and what it has counted since it was made.
///
/// `accepted` is always the sum of `handled`, `answered`, the drops, `expired`, `set_aside`, `crashed_in_hand`, `in_hand` and the depths of
/// the three lanes: see [`accounted`](Self::accounted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortMetrics {
    /// The port's name.
    pub port: Arc<str>,
    /// Messages queued in the control lane.
    pub control_depth: usize,
    /// Messages queued in the completion lane.
    pub completion_depth: usize,
    /// Messages queued in the data lane.
    pub data_depth: usize,
    /// Places held by reservations, of both lanes.
    pub reserved: usize,
    /// Senders that stand in line.
    pub waiting: usize,
    /// How long the oldest queued message has been queued, at most: messages queued one behind the other share readings of the clock.
    pub oldest_age: Option<Duration>,
    /// Messages that the port took: their sender got `Ok`.
    pub accepted: u64,
    /// Messages that the owner handled.
    pub handled: u64,
    /// Messages that the port answered while it was suspended.
    pub answered: u64,
    /// New messages dropped because the port was full.
    pub dropped_newest: u64,
    /// Queued messages dropped because newer ones came to a full port.
    pub dropped_oldest: u64,
    /// Messages that were queued when the port was closed.
    pub dropped_at_close: u64,
    /// Control messages whose kind was queued already.
    pub coalesced: u64,
    /// Messages whose deadline passed in the queue.
    pub expired: u64,
    /// Messages set aside as poison.
    pub set_aside: u64,
    /// Messages in hand when their owner crashed.
    pub crashed_in_hand: u64,
    /// Messages that the owner has in hand.
    pub in_hand: u64,
    /// Messages handed back, and reservations refused.
    pub refused: u64,
    /// Senders that had to stand in line.
    pub waits: u64,
    /// The longest time that one of them stood there, of those who have left the line.
    pub longest_wait: Duration,
}

impl PortMetrics {
    pub(super) fn of<M>(shared: &Shared<M>) -> Self {
        let snapshot = shared.core.snapshot();
        let Counts {
            accepted,
            handled,
            answered,
            dropped_newest,
            dropped_oldest,
            dropped_at_close,
            coalesced,
            expired,
            set_aside,
            crashed_in_hand,
            in_hand,
            refused,
            waits,
            longest_wait,
        } = snapshot.counts;
        Self {
            port: Arc::clone(&shared.name),
            control_depth: snapshot.control,
            completion_depth: snapshot.completions,
            data_depth: snapshot.data,
            reserved: snapshot.reserved,
            waiting: snapshot.waiting,
            oldest_age: snapshot.oldest.map(|queued| Instant::now().saturating_duration_since(queued)),
            accepted,
            handled,
            answered,
            dropped_newest,
            dropped_oldest,
            dropped_at_close,
            coalesced,
            expired,
            set_aside,
            crashed_in_hand,
            in_hand,
            refused,
            waits,
            longest_wait,
        }
    }

    /// Messages queued in all lanes.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.control_depth + self.completion_depth + self.data_depth
    }

    /// What became of the accepted messages, summed up. Equal to `accepted` in every snapshot: a loss that nobody counts is a bug.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        let dropped = self.dropped_newest + self.dropped_oldest + self.dropped_at_close + self.coalesced;
        let ended = self.handled + self.answered + dropped + self.expired + self.set_aside + self.crashed_in_hand;
        ended + self.in_hand + self.depth() as u64
    }
}
