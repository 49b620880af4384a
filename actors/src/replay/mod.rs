//! Replay: a recorded session through the three planes. Nothing of a transcript is executed.
//!
//! [`Replay::file`] reads one transcript and drives it through the real runtime: each call is an operation, each lifecycle record a signal, all of it
//! submitted without waiting and confirmed every 1,000 events and at the end. What was decided is then read back from the journal, page by page
//! ([`Decisions`]), never from the reader: a journal that refused everything shows nothing.
//!
//! | of a transcript                    | becomes                                                                                       |
//! |------------------------------------|-----------------------------------------------------------------------------------------------|
//! | a call                             | signal `transcript.call`, then an operation proposed under the key (product, thread, call id) |
//! | its result                         | the outcome of the performed operation; where that has ended without it, `transcript.result`  |
//! | a call that already ran            | an operation that is proposed, decided and closed at once                                     |
//! | a call without a result            | an operation that ends as ambiguous                                                           |
//! | a lifecycle record                 | signal `transcript.<name>`                                                                    |
//! | the end of the file                | signal `transcript.session_ended`, again when the file has grown                              |
//! | inherited history of a fork        | nothing: it is context, and was counted                                                       |
//!
//! ## What happens when a file is replayed again?
//! An attempt's identity is made of the call and the policy's digest. What the journal has is passed over, so a grown file continues; under a changed
//! policy every call is a new attempt. An attempt that a killed replay left open was closed by recovery; it is tried again under a new attempt. A call
//! that was open at the end of the file has ended as ambiguous, and stays so: its late result is on record as a signal.

mod decisions;
mod driver;
mod facts;
mod shown;

pub use decisions::{Counts as DecisionCounts, Decision, Decisions, Divergence, OperationCounts};
pub use driver::{Replay, ReplayError, Replayed};
#[cfg(feature = "cli")]
pub(crate) use shown::{is_hidden, plain};
