//! Bounded ports: typed, cloneable handles on roles whose owners may be restarted behind them.
//!
//! An actor's own mailbox is unbounded, dies with the actor, and its references do not survive a restart. So the queue belongs to the
//! *port*: the actor's mailbox only ever carries "look".
//!
//! - A [`Port`] is the sender's handle; a [`Mailbox`] is the owner's side; a [`Handler`] is one incarnation of the owner.
//! - Every lane is bounded, and what a full port does is fixed at its creation: [`Overflow`].
//! - Who refuses a message hands it back; what is dropped is counted: [`PortMetrics::accounted`].
//! - A crash loses the message in hand and no other. Handles and queued messages survive.
//!
//! # Why no handle closes a port
//! "The last handle is gone, so stop" ends owners by accident: a clone kept somewhere keeps a role alive, a clone dropped early ends it. A
//! port ends when its supervisor says so, or when its [`Mailbox`] is dropped.
//!
//! # Why an accepted message has no deadline of its own
//! The deadline of [`Port::send`] ends the wait for room. Were it to travel on, a fact whose sender was told `Ok` could expire in the queue.
//! The deadline of a [`Port::call`] travels with the message, because a late answer is work for nobody.

pub(crate) mod actor;
mod core;
mod error;
mod facade;
mod handle;
mod handler;
mod mailbox;
mod metrics;
mod places;
mod poison;
mod reply;
mod reservation;
mod serving;
mod shared;
mod spec;
mod thread;
mod wait;

pub use self::core::{Lane, Overflow};
pub use actor::{End, Incarnation, spawn};
pub use error::{CallError, HandlerError, ReserveError, SendError, SpawnError};
pub use handle::{Admission, Availability, Port};
pub use handler::{Context, Doorbell, Handler};
pub use mailbox::Mailbox;
pub use metrics::PortMetrics;
pub(crate) use places::Places;
pub use reply::Reply;
pub use reservation::Reservation;
pub use spec::{PoisonRule, PortSpec};
pub use thread::{Next, ThreadMailbox};
