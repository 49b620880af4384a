//! Supervision: who starts an actor, who notices its end, and what follows.
//!
//! A [`Supervisor`] starts the children of its [`SupervisorSpec`] in order, starts them again by their class ([`Restart`]), its
//! [`Strategy`], a budget ([`Intensity`]) and a wait ([`Backoff`]), and stops them in reverse. Children may be added later, and
//! may be supervisors themselves.
//!
//! # What it promises
//!
//! - It serves always: a start that hangs, a stop that takes its time and a wait between restarts run beside it.
//! - Two incarnations of a child never run at once: the next start waits until the task of the last one has ended and its state
//!   is dropped.
//! - Whoever spends a budget ends in order: children are stopped gracefully, last one first, each within its stop timeout, then
//!   killed.
//! - A failure on the way up is a failure like any other: it is counted, backed off and escalated.
//! - An explicit stop is final, whatever the class, and acts on whichever incarnation runs.
//! - A child that has ended for good leaves nothing behind.
//! - Several trees live in one process without knowing of one another: nothing has a global name.
//! - However the tree ends, also by the death of its host, no task of it is left, and every owner of a queue has been told
//!   [`Standing::Gone`].
//!
//! # What it does not
//!
//! - State is not handed over to the next incarnation. What must survive lives in a store or outside the actor.
//! - A child that blocks its thread without awaiting cannot be stopped by anyone; it is reported as overdue, and not started a
//!   second time.
//! - A host that kills the tree, or dies, gives the children no chance to stop gracefully. Nothing may depend on that chance.
//!
//! # Where things are
//!
//! `restart`, `strategy`, `intensity` and `backoff` are the rules, one table each; `kernel` applies them, `supervisor` performs
//! what the kernel decides, `tasks` is where anything waits, `handle` is the owner's side, `child` the bridge to the actor
//! substrate.
//!
//! # Why not an existing supervisor?
//!
//! Those that exist for this substrate kill instead of stopping, take a kill for a normal end, need process-global names, or
//! restart a group once for each child that failed with it.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use tipstaff::clock::Deadline;
//! use tipstaff::supervision::{ChildSpec, Restart, Strategy, Supervisor, SupervisorSpec};
//!
//! struct Worker;
//!
//! #[ractor::actor(message = (), state = ())]
//! impl Worker {
//!     async fn pre_start(&self, _: ractor::ActorRef<()>, _: ()) -> Result<(), ractor::ActorProcessingErr> {
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = ChildSpec::new("worker", Restart::Permanent, |parent| async move { parent.spawn(Worker, ()).await });
//! let tree = Supervisor::spawn(SupervisorSpec::new("example", Strategy::OneForOne).child(worker)).await?;
//! let soon = || Deadline::after(Duration::from_secs(5));
//! tree.started(soon()).await?;
//! assert!(tree.children(soon()).await?[0].running);
//! tree.shutdown(soon()).await?;
//! # Ok(())
//! # }
//! ```

mod backoff;
mod child;
mod early;
mod end;
mod error;
mod event;
mod handle;
mod incarnation;
mod intensity;
mod kernel;
mod restart;
mod shared;
mod spec;
mod strategy;
mod supervisor;
mod tasks;

pub use backoff::Backoff;
pub use child::{ChildId, Parent, Standing, Started};
pub use end::{Cause, End};
pub use error::{
    AskError, EndCause, ShutdownError, SpawnError, StartChildError, StartError, StartupError, StopChildError, SupervisorEnded,
};
pub use event::{ReportKind, ReportSink, ReportStream, SupervisionReport, reports};
pub use handle::{ChildInfo, SupervisorHandle, SupervisorPhase, SupervisorStatus};
pub use intensity::Intensity;
pub use restart::Restart;
pub use spec::{ChildSpec, SupervisorSpec};
pub use strategy::Strategy;
pub use supervisor::Supervisor;
