//! The fan-out kernel: which handlers see a fact, how they run, and what is reported. It is generic over the fact, and without actors.
//!
//! A [`Dispatcher`] holds the subscribers of one owner. Each emission takes a [`Snapshot`] of them and answers with a [`DispatchReport`] that names every
//! matched registration. What happens in between is declared by a [`DispatchPolicy`]: plain data, validated when it is made, printable as a row of a table.
//! Most programs want [`profile::observation`], which is [`Dispatcher::observation`]; the named profiles are closed, and a policy that a caller puts together
//! is none of them.
//!
//! | way in                               | for                                                                                   |
//! |--------------------------------------|---------------------------------------------------------------------------------------|
//! | [`Dispatcher::emit`]                 | an owner that awaits                                                                  |
//! | [`Dispatcher::preflight_sync`], then [`Dispatcher::emit_sync`] | a synchronous owner that must know before it changes anything (F-13) |
//!
//! # What becomes of an awaitable that nobody awaits?
//! A handler of a compatibility profile may return a future. Where the policy drops it unawaited, the report says `discarded unawaited` or `dropped
//! unawaited`, [`DispatcherCounts`] counts it, there is one `tracing` event at info level, and [`Dispatcher::discarding`] lists the registrations that rely
//! on `discard_unawaited`.
//!
//! # Why does dropping a `Registration` not unregister?
//! A registration outlives the code that made it, as it outlives a restart of its dispatcher's actor. With a guard, `let _ = observe(..)`
//! would silently end the subscription at once. So the handle is plain data, and [`Dispatcher::unregister`] is explicit.
//!
//! # What is not promised
//! Under `panic = "abort"` a panicking handler ends the process. An inline handler that blocks holds its emission and its thread, and no
//! deadline can end it (F-17).

mod ask;
mod background;
mod context;
mod counts;
mod depth;
mod dispatcher;
mod drive;
mod emit;
mod error;
mod flight;
mod handler;
mod lane;
mod meaning;
mod offload;
mod policy;
pub mod profile;
mod quick;
mod raised;
#[cfg(test)]
mod random;
mod report;
mod run;
mod snapshot;
mod stage;
mod subscriber;
mod surface;
mod turn;
mod validate;
mod value;
mod waiters;

pub use context::{CancellationToken, CancelledBy, HandlerContext};
pub use counts::DispatcherCounts;
pub use depth::MAX_DEPTH;
pub use dispatcher::{DiscardingRegistration, Dispatcher, MAX_REGISTRATIONS, OFFLOAD_THREADS, Registration};
pub use emit::{EmissionHandle, Emit, SyncSnapshot};
pub use error::{PolicyError, RegisterError, Rule};
pub use handler::{
    Condition, Declared, FATAL_CODE, FailureKind, HandlerError, HandlerFailure, HandlerResult, HandlerReturn, PANIC_CODE,
    RETURNED_AWAITABLE_CODE, Returned, ReturnedFuture,
};
pub use policy::{DetachBounds, DispatchPolicy, Phase, StagePolicy};
pub use raised::{Cause, DispatchError, Member, MemberEnd, Raised, RaisedError, Refusal};
pub use report::{DispatchReport, JournalState, NotStarted, Outcome, ReportEntry, Stage};
pub use run::GRACE;
pub use snapshot::Snapshot;
pub use subscriber::{OrderedQueue, QueueOverflow, Subscriber};
pub use value::{
    Completion, Concurrency, Conduct, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, HandlerClassification,
    LateRegistrations, PredicateFailure, ReturnedAwaitable, ReturnedValueClassifier, Selector, SyncEntry, SyncHandlers,
};
