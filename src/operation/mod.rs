//! Operations: where the planes meet, in order.
//!
//! [`perform`] is the way of an operation in a handful of lines; [`Proposed`], [`Permit`], [`Performed`] and [`Reviewed`] are its steps, each made
//! only from the one before. An [`Owner`] declares its context, its output and its stages; [`ActionExecutor`] is the owner of tool calls. The
//! module needs three things of others and names them as traits: [`Authorizer`] decides, [`Audit`] records, and the body performs.

mod answer;
mod attempt;
mod audit;
mod owner;
mod perform;
mod performance;
mod performed;
mod permit;
mod proposal;
mod record;
mod status;
mod tool;

pub use answer::{Answer, End, OperationOutcome, RecordState};
pub use audit::{Audit, AuditMode, AuditUnavailable, ClosingPlace, Unrecorded};
pub use owner::{
    Authorizer, Completion, CompletionPlace, Grant, Owner, OwnerPlan, Profile, Proposal, ResultOf, Ruling, Verdict,
};
pub use perform::{Proposed, perform};
pub use performance::{Failure, FailureClass, IntoPerformance, Performance};
pub use performed::{Performed, Reviewed};
pub use permit::{Granted, Permit};
pub use proposal::{DEFAULT_RULING_BUDGET, Operation};
pub use status::{OperationStatus, StatusCell, StatusRefused};
pub use tool::{ActionExecutor, ExecutionScope, ToolCall, stage};
