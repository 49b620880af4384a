//! Authorization: one supervised owner for each sort of operation. It knows nothing of observation.

mod owner;
mod ruling;

pub use owner::{CompletionTicket, OpenPermit};
pub(crate) use owner::{Decider, OpenPermits, Proposing, degraded};
pub(crate) use ruling::Rulings;
