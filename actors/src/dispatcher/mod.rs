//! Dispatchers as actors: the fan-out kernel behind a bounded port, supervised.
//!
//! A [`DispatcherHandle`] is one dispatcher of a runtime, under one declared policy. The phases of an emission, and where each happens:
//!
//! | phase                               | where                                                                        |
//! |-------------------------------------|------------------------------------------------------------------------------|
//! | admission: its place and its snapshot | in the emitter's call, against the instance's registrations (F-8, F-18)    |
//! | `Emit`: invocation, then returned awaitables, by the policy | on a task of the actor; at most 1,024 at once (F-24) |
//! | the report                          | the emitter's answer                                                         |
//! | `preflight_sync`, `emit_sync`       | on the caller's thread, never through the mailbox (F-13)                     |
//!
//! | the emission                                          | its emitter is told                                                 |
//! |-------------------------------------------------------|---------------------------------------------------------------------|
//! | ends                                                  | the report, or what the policy raises                               |
//! | finds the port full                                   | [`EmissionError::Overloaded`]; nobody was called                    |
//! | is made by a handler of the same dispatcher           | the report; it passes the port by and runs in the handler's own task (F-14) |
//! | is lost with its actor                                | [`EmissionError::Undelivered`]                                      |
//! | is dropped by its emitter                             | nothing: what is in flight is dropped, nothing more is begun (F-12) |
//!
//! The actor has no state that matters: registrations live outside, so that a restart loses none of them (F-15).

mod actor;
mod emission;
mod handle;

pub(crate) use actor::{DispatchMessage, DispatcherActor};
pub use emission::{Emission, EmissionError};
pub use handle::DispatcherHandle;
