//! Places that are held for messages to come.

use std::fmt;
use std::sync::Arc;

use super::core::Lane;
use super::error::SendError;
use super::handle::{Admission, carry_out};
use super::shared::Shared;

/// Places of one lane. Each accepts one message, synchronously and whatever the overflow rule, even when the lane is otherwise full; what was
/// sent through it is never evicted. Unused places return when this is dropped.
pub struct Reservation<M> {
    shared: Arc<Shared<M>>,
    lane: Lane,
    places: usize,
}

impl<M> Reservation<M> {
    pub(super) fn new(shared: Arc<Shared<M>>, lane: Lane, places: usize) -> Self {
        Self { shared, lane, places }
    }

    /// Places that are left.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Puts a message into one of the places. A suspended port answers it at once.
    ///
    /// # Errors
    /// [`SendError::Closed`] hands the message back; [`SendError::Full`] only when no place is left in this reservation.
    pub fn send(&mut self, message: M) -> Result<Admission, SendError<M>> {
        let Some(left) = self.places.checked_sub(1) else {
            return Err(SendError::Full(message));
        };
        self.places = left;
        carry_out(self.shared.core.fill(self.lane, message)).map(|(admission, _)| admission)
    }

    /// Takes `places` of these places out into a reservation of their own. `None`: there are fewer.
    #[must_use]
    pub fn split(&mut self, places: usize) -> Option<Self> {
        self.places = self.places.checked_sub(places)?;
        Some(Self::new(Arc::clone(&self.shared), self.lane, places))
    }
}

impl<M> Drop for Reservation<M> {
    fn drop(&mut self) {
        if self.places > 0 {
            self.shared.core.release(self.lane, self.places);
        }
    }
}

impl<M> fmt::Debug for Reservation<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("port", &self.shared.name)
            .field("lane", &self.lane)
            .field("places", &self.places)
            .finish()
    }
}
