//! The fan-out kernel: which handlers see a fact, how they run, and what is reported. It is generic over the fact.
//!
//! A [`Registry`] holds the subscribers of one dispatcher outside any actor. Each emission takes a [`Snapshot`] of it and runs
//! [`fan_out`], which answers with a [`DispatchReport`] that names every matched registration. What happens in between is declared by a
//! [`DispatchPolicy`]: plain data, validated when it is made, printable as a row of a table.
//!
//! A registry is built for the [`profile::observation`] policy; there is no way to run a policy that a caller put together.
//!
//! # Why does dropping a `Registration` not unregister?
//! A registration outlives the code that made it, as it outlives a restart of its dispatcher's actor. With a guard, `let _ = observe(..)`
//! would silently end the subscription at once. So the handle is plain data, and [`Registry::unregister`] is explicit.
//!
//! # What is not promised
//! Under `panic = "abort"` a panicking handler ends the process. An inline handler that blocks holds its emission and its thread, and no
//! deadline can end it (F-17).

mod error;
mod fanout;
mod handler;
mod policy;
pub mod profile;
mod registration;
mod report;
mod validate;
mod value;

pub use error::{PolicyError, RegisterError, Rule};
pub use fanout::fan_out;
pub use handler::{Condition, HandlerError, HandlerFailure, HandlerResult, HandlerReturn, PANIC_CODE};
pub use policy::{DetachBounds, DispatchPolicy, Phase, StagePolicy};
pub use registration::{Declared, MAX_REGISTRATIONS, Registration, Registry, Snapshot, Subscriber};
pub use report::{DispatchReport, JournalState, NotStarted, Outcome, ReportEntry};
pub use value::{
    Completion, Concurrency, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};
