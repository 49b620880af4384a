//! Operations: where the planes meet, in order.
//!
//! [`perform`] is the way of an operation in a handful of lines; [`Proposed`], [`Permit`], [`Performed`] and [`Reviewed`] are its steps, each made
//! only from the one before. An [`Owner`] declares its context, its output and its stages. The module needs three things of others and names them as
//! traits: [`Authorizer`] decides, [`Audit`] records, and the body performs.
//!
//! | owner                                   | what is judged            | its own form                                                  |
//! |-----------------------------------------|---------------------------|---------------------------------------------------------------|
//! | [`ActionExecutor`]                      | a tool call               | [`Permit::perform`]                                           |
//! | [`ServiceCall`](service::ServiceCall)   | a request to an endpoint  | [`Permit::begin`], then [`Performing::run`] or [`Performing::stream`] |
//! | [`ProviderHarness`](harness::ProviderHarness) | a launch plan       | [`Permit::launch`]: compile, spawn, observe                    |
//! | [`PromptSubmission`](prompt::PromptSubmission) | a rendered prompt  | [`Permit::perform`]                                           |
//! | [`SessionLifecycle`](lifecycle::SessionLifecycle) | a transition    | [`Permit::perform`]: the commit                               |
//!
//! An owner that [`TearsDown`] leaves nothing behind when its caller goes away: the rest of the attempt goes to the owner, through the place that the
//! permit reserved (I-4, P-14).

mod answer;
mod attempt;
mod audit;
mod contained;
pub mod harness;
mod held;
pub mod lifecycle;
mod owner;
mod perform;
mod performance;
mod performed;
mod performing;
mod permit;
pub mod prompt;
mod proposal;
mod record;
pub mod service;
mod status;
mod stream;
mod teardown;
mod tool;

pub use answer::{Answer, End, OperationOutcome, RecordState};
pub use audit::{Audit, AuditMode, AuditUnavailable, ClosingPlace, Unrecorded};
pub use owner::{
    Authorizer, Completion, CompletionPlace, Grant, Owner, OwnerPlan, Profile, Proposal, ResultOf, Ruling, Shielded, Verdict,
};
pub use perform::{Proposed, perform};
pub use performance::{Failure, FailureClass, IntoPerformance, Performance};
pub use performed::{Performed, Reviewed};
pub use performing::Performing;
pub use permit::{Granted, Permit};
pub use proposal::{DEFAULT_RULING_BUDGET, Operation};
pub use status::{OperationStatus, StatusCell, StatusRefused};
pub use stream::{ChunkSource, ChunkStream, StreamState, Streams};
pub use teardown::{Ending, TeardownBudget, TeardownEnd, TearsDown};
pub use tool::{ActionExecutor, ExecutionScope, ToolCall, stage};
