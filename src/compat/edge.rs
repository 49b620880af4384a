//! Cancelling by handle, as an edge: it reaches what is in flight at that moment, and nothing that starts after it.
//!
//! | when it is cancelled            | it reaches                                                    |
//! |---------------------------------|---------------------------------------------------------------|
//! | a future is in flight           | that handler                                                  |
//! | nothing is, or a plain call is  | the next handler whose future waits                           |
//! | after the last handler          | nobody: the emission has ended                                |

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cancel::{Cancellation, Canceller, cancellation};

/// Cancels an emission or a call. Cheap to clone.
#[derive(Clone)]
pub struct CancelHandle(pub(super) Edge);

impl CancelHandle {
    /// Asks the handler that is in flight to end.
    pub fn cancel(&self) {
        let mut state = self.0.lock();
        match &state.in_flight {
            Some(flight) => {
                flight.cancel();
                state.reached = true;
            }
            None => state.pending = true,
        }
    }
}

/// Where the handle and the handlers meet.
#[derive(Clone, Default)]
pub(super) struct Edge(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    in_flight: Option<Canceller>,
    /// The handler in flight was asked by the handle.
    reached: bool,
    /// Asked while nobody was in flight.
    pending: bool,
}

/// A handler in flight.
pub(super) struct InFlight {
    edge: Edge,
    canceller: Canceller,
    token: Cancellation,
}

impl Edge {
    /// One handler begins. There is one at a time.
    pub(super) fn enter(&self) -> InFlight {
        let (canceller, token) = cancellation();
        let mut state = self.lock();
        state.reached = std::mem::take(&mut state.pending);
        if state.reached {
            canceller.cancel();
        }
        state.in_flight = Some(canceller.clone());
        drop(state);
        InFlight { edge: self.clone(), canceller, token }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Held for a few lines that call no code of others.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    /// What the handler looks at.
    pub(super) const fn token(&self) -> &Cancellation {
        &self.token
    }

    /// Asks the handler to end, for another reason than the handle.
    pub(super) fn ask(&self) {
        self.canceller.cancel();
    }

    /// Whether the handle has asked.
    pub(super) fn is_reached(&self) -> bool {
        self.edge.lock().reached
    }

    /// What was called has ended without waiting. Had the handle asked meanwhile, the next one that waits is meant.
    pub(super) fn was_plain(&self) {
        let mut state = self.edge.lock();
        state.pending |= std::mem::take(&mut state.reached);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.edge.lock().in_flight = None;
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelHandle")
    }
}
