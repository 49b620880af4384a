//! Authorization: one supervised owner for each sort of operation. It knows nothing of observation.

mod owner;
mod ruling;

pub(crate) use owner::{Decider, OpenPermits, Proposing, degraded};
pub use owner::{CompletionTicket, OpenPermit};
pub(crate) use ruling::Rulings;
