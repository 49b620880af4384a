//! Authorization: one supervised owner for each sort of operation. It knows nothing of observation.

mod owner;
mod ruling;

pub(crate) use owner::{Decider, Proposing, degraded};
pub use owner::{CompletionTicket, OpenPermit, OpenPermits};
pub(crate) use ruling::Rulings;
