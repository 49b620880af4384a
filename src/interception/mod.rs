//! Interception: ordered control around one owner's operation.
//!
//! An owner declares its stages ([`StageSpec`]), a composition registers interceptors at them ([`Registration`]), and [`PlanBuilder::build`]
//! compiles both into an immutable [`Plan`]. [`Plan::apply`] runs the stages that stand before the operation is performed and answers with a
//! [`ChainOutcome`]; [`Plan::apply_result`] runs the ones after it. Both fill a [`Report`] that the caller owns, so that it tells what was called
//! also when the future was dropped.
//!
//! | stage     | may answer                              | its failure means, unless declared otherwise | called again after a change |
//! |-----------|-----------------------------------------|----------------------------------------------|-----------------------------|
//! | admission | admit, defer                            | denied                                       | no                          |
//! | guard     | continue, deny, ask                     | denied                                       | yes, once (I-5)             |
//! | transform | continue, replace, stop, deny, ask      | the operation fails                          | no                          |
//! | advisory  | continue                                | reported, the chain goes on                  | no                          |
//! | result    | keep, replace, withhold                 | the operation fails                          | no                          |
//! | own step  | takes no registration (I-18)            |                                              |                             |
//!
//! Any other answer is a contract violation and counts as a failure (I-15).
//!
//! ## Is a denial an error?
//! No. A denial is an answer: [`ChainOutcome::Denied`]. [`ChainOutcome::Failed`] says that an interceptor could not answer and its stage declares
//! that the operation fails with it.
//!
//! ## Where are the hooks of the process?
//! There are none. A plan is a value; two plans in one process know nothing of each other.

mod answer;
mod budget;
mod call;
mod chain;
mod decision;
mod denial;
mod error;
mod evaluator;
mod evidence;
mod judged;
mod outcome;
mod plan;
mod progress;
mod report;
mod result;
mod stage;

pub use answer::{Admission, IntoAnswer, ResultDecision, Turn};
pub use decision::{AskRequest, Decision, MAX_REMARKS, Note};
pub use denial::{Denial, DenialCause, DenialCode, InvalidCode};
pub use error::{ChainFailure, FailureKind, InterceptError, PlanError, Violation};
pub use evaluator::Evaluator;
pub use evidence::{EvidenceError, EvidenceRef, MAX_EVIDENCE_BYTES};
pub use judged::Judged;
pub use outcome::{Basis, ChainOutcome, Denied, Escalated, Escalation, Permitted, ResultOutcome, Withheld, WouldHave};
pub use plan::{Approver, Declaration, Plan, PlanBuilder, Registration};
pub use progress::Progress;
pub use report::{Answer, Report, ReportRecord, SkipReason, Step, StepRecord};
pub use stage::{OnFailure, ResultEnd, ResultOn, StageKind, StageSpec};
