//! Facts to those who watch: no veto, and no influence on the work.
//!
//! The recent-facts ring, the live stream and the journal are subscriptions of their own: each can be on without the others (P-5). What
//! the journal loses is counted in the [`LossLedger`] and written as a gap when it accepts again.

mod condition;
mod loss;
mod ring;
mod stream;

pub use loss::{GapRecord, LossCount, LossCounts, LossLedger, LossReason, Lost, TakenGaps};
pub use ring::{Recent, RecentFacts};
pub use stream::{LiveFeed, LiveStream, Next, StreamClosed, live_stream};
