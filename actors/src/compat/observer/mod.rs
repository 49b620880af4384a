//! The session observer: a gate, routes, and subscribers that hand values back.
//!
//! In the original the durable sink was one of the subscribers, so that a gate, or any subscriber that failed, lost the audit row. Here the order is P-2's:
//!
//! | step of an emission                    | fails or denies                             | what the journal and the ring hold               |
//! |----------------------------------------|---------------------------------------------|--------------------------------------------------|
//! | the gate: the owner `session_policy` is asked, and its rule is on record (P-9) | denied: nobody is shown the fact | the denial (P-1), and the fact: it has happened |
//! | admission                              | -                                           | the fact, whatever comes after                   |
//! | routes, in order                       | raised; no subscriber is called             | as above                                         |
//! | subscribers, by the profile `session_observer` | as the profile says                 | as above                                         |
//!
//! The emitter may go away at any step: what was not admitted yet is admitted then.

mod answer;
mod emit;
mod gate;
mod pending;

pub use answer::{ObserveError, Observed};
pub use emit::{SessionObserver, SessionObserverBuilder};
