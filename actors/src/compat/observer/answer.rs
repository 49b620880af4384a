//! What an emission of a session observer comes to.

use serde_json::Value;
use tipstaff_core::dispatch::{DispatchReport, HandlerError, HandlerFailure};
use tipstaff_core::interception::Denial;

use crate::dispatcher::EmissionError;

/// What an emission came to.
#[derive(Debug)]
pub enum Observed {
    /// The gate did not let the fact be shown. It is on record all the same (P-2).
    Denied(Denial),
    /// It was shown.
    Reported(DispatchReport<Value>),
}

/// Why an emission has no report as a value. The fact is on record in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The gate was cancelled, by its own account.
    #[error("the session's gate was cancelled")]
    GateCancelled,
    /// The gate failed fatally.
    #[error("the session's gate failed fatally: {0}")]
    GateFatal(HandlerFailure),
    /// A route's condition failed, or was cancelled. No subscriber was called.
    #[error("the condition of route {route} failed")]
    Route {
        /// Its place among the routes.
        route: usize,
        /// How.
        error: HandlerError,
    },
    /// The emitter cancelled before the fact was shown.
    #[error("the emission was cancelled")]
    Cancelled,
    /// The session has ended: nobody is shown the fact (F-23).
    #[error("the session has ended: the fact is journalled and shown to nobody")]
    SessionEnded,
    /// What the profile raises, or why there was no dispatch.
    #[error(transparent)]
    Emission(EmissionError<Value>),
}
