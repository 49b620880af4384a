//! tipstaff: guardrails that fail closed, an audit that no denial can suppress, delivery that survives a crash.

#[cfg(feature = "shell-guards")]
pub use tipstaff_core::guard;
#[cfg(feature = "testing")]
pub use tipstaff_core::testing;
pub use tipstaff_core::transcript;
pub use tipstaff_core::{
    clock, declare, dispatch, id, interception, observation as observe, operation, signal, state, telemetry,
};

mod authorization;
#[cfg(feature = "cli")]
pub mod cli;
mod crash;
#[cfg(feature = "shell-guards")]
mod guards;
mod journal;
mod observation;
pub mod port;
#[cfg(feature = "shell-guards")]
pub mod replay;
mod runtime;
mod session;
pub mod supervision;
mod tree;

pub use authorization::{CompletionTicket, OpenPermit};
#[cfg(feature = "testing")]
pub use crash::{CrashPoint, CrashPoints};
#[cfg(feature = "shell-guards")]
pub use guards::{GUARD, REWRITER, policy_plan, policy_registrations};
pub use observation::SessionAudit;
pub use runtime::{Runtime, RuntimeBuilder, RuntimeError, action_plan};
pub use session::{CallAnswer, CallPermit, EmitError, ProposedCall, Session, SessionBuilder};
pub use tree::OwnerBounds;
