//! Guardrails that fail closed, an audit that no denial can suppress, and delivery that survives a crash: three planes for agent runtimes, run by
//! supervised actors with bounded mailboxes.
//!
//! # Quick start
//!
//! A guard around a tool call, in plain tokio. No actor is seen.
//!
//! ```
//! use serde_json::json;
//! use tipstaff::declare::CallableRef;
//! use tipstaff::interception::{Decision, DenialCode, Registration};
//! use tipstaff::operation::{ToolCall, stage};
//! use tipstaff::{Runtime, action_plan};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = Registration::decide(
//!     "no-force-push",
//!     stage::ACTION_POLICY,
//!     CallableRef::from_static("myapp::guards::no_force_push@1"),
//!     |call: &ToolCall, _turn| match call.arguments()["command"].as_str() {
//!         Some(line) if line.contains("--force") => Decision::deny(DenialCode::from_static("git.force_push"), "not allowed"),
//!         _ => Decision::proceed(),
//!     },
//! );
//! let runtime = Runtime::builder().actions(action_plan("myapp").register(guard).build()?).spawn().await?;
//!
//! let call = ToolCall::new("Bash", json!({ "command": "git push --force" }));
//! let answer = runtime.perform(call, |granted| async move { Ok::<_, std::io::Error>(granted.context().arguments().clone()) }).await?;
//! assert_eq!(answer.denial().expect("it is denied").code.as_str(), "git.force_push");
//! # Ok(())
//! # }
//! ```
//!
//! Give the runtime a store ([`RuntimeBuilder::store`]) and every proposal, decision and outcome is in its journal; register a
//! [`Subscriber`](dispatch::Subscriber) with [`Session::observe`] to see facts as they happen; start the runtime below an actor of your own with
//! [`RuntimeBuilder::spawn_under`]; start an owner for service calls, launches, prompts, transitions or operations of your own with
//! [`Runtime::start_owner`]. The examples `guardrail`, `audit` and `embedded` are programs that do so.
//!
//! # The three planes
//!
//! | plane         | question                                          | its failure                                  |
//! |---------------|---------------------------------------------------|----------------------------------------------|
//! | interception  | may this operation run, and with which input?     | fails closed: the operation is denied        |
//! | observation   | what happened?                                    | is reported; the fact stands                 |
//! | delivery      | who must learn of a committed fact, for certain?  | changes delivery state only                  |
//!
//! Each has a supervision tree of its own (the file `tree.rs` shows it on one screen), so that none takes another with it. While authorization is
//! down, proposals are denied with that reason and observation goes on; while observation is down, authorization goes on deciding.
//!
//! Everything of the core is here under the same names; its page has the glossary, the code map and the list of promises with their tests.

#[cfg(feature = "shell-guards")]
pub use tipstaff_core::guard;
#[cfg(feature = "testing")]
pub use tipstaff_core::testing;
pub use tipstaff_core::transcript;
pub use tipstaff_core::{cancel, clock, declare, dispatch, id, interception, operation, signal, state, telemetry};

mod authorization;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "compat")]
pub mod compat;
mod crash;
pub mod dispatcher;
#[cfg(feature = "shell-guards")]
mod guards;
mod journal;
pub mod observation;
mod owners;
pub mod port;
#[cfg(feature = "shell-guards")]
pub mod replay;
mod runtime;
mod session;
pub mod supervision;
pub mod tree;

pub use authorization::{CompletionTicket, OpenPermit};
#[cfg(feature = "testing")]
pub use crash::{CrashPoint, CrashPoints};
#[cfg(feature = "shell-guards")]
pub use guards::{GUARD, REWRITER, policy_plan, policy_registrations};
pub use owners::{CallStream, OwnerHandle, OwnerPermit, OwnerProposed, owner_plan};
pub use runtime::{Runtime, RuntimeBuilder, RuntimeError, action_plan};
pub use session::{ACTOR_BOUND, CallAnswer, CallPermit, EmitError, ProposedCall, Session, SessionBuilder};
pub use tree::OwnerBounds;
