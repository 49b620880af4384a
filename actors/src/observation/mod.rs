//! Observation: the admission of facts, and the supervised observer of each session.
//!
//! A fact enters in one short critical section of its session: it is numbered, goes to the journal's port, and goes to the observer's
//! port. The observer only fans out; it never stands between a fact and the journal.

mod actor;
mod admission;
mod attempts;
mod audit;
mod observer;

pub use actor::{ActorFeed, Observed};
pub(crate) use admission::{Admission, AdmissionParts, Admitted, Here, Wants};
pub(crate) use attempts::OpenAttempts;
pub use audit::SessionAudit;
pub(crate) use observer::{Emission, Observer, Undelivered, deliver};
pub use tipstaff_core::observation::*;
