//! The journal as the runtime sees it: one bounded port, one writer thread, one supervised actor that owns the thread.
//!
//! A fact is admitted to the port in its session's order and committed by the thread in groups: block for one, take what else is queued, commit,
//! answer. What cannot be recorded is counted in the loss ledger, whichever way it is lost: a [`Request`] that is dropped unrecorded counts itself.

mod actor;
mod gaps;
mod handle;
mod request;
mod thread;
mod turn;

pub(crate) use actor::{StateWriter, WriterArguments};
pub(crate) use gaps::GapsInHand;
pub(crate) use handle::{Health, Journal};
pub(crate) use request::{Confirm, Left, Request};
pub(crate) use turn::Turns;
