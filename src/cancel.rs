//! Asking work to end: one side asks, the other looks or waits. Nothing is taken away from work that was asked; who asks decides how long it waits.

use std::fmt;

use tokio::sync::watch;

/// A pair: what asks, and what the work looks at.
#[must_use]
pub fn cancellation() -> (Canceller, Cancellation) {
    let (sender, receiver) = watch::channel(false);
    (Canceller(sender), Cancellation(receiver))
}

/// Asks work to end. Cheap to clone. Dropping every clone asks for nothing.
#[derive(Clone)]
pub struct Canceller(watch::Sender<bool>);

/// Says whether work is asked to end. Cheap to clone.
#[derive(Clone)]
pub struct Cancellation(watch::Receiver<bool>);

impl Canceller {
    /// Asks. A second time changes nothing.
    pub fn cancel(&self) {
        self.0.send_if_modified(|asked| !std::mem::replace(asked, true));
    }

    /// Whether it has asked.
    #[must_use]
    pub fn has_cancelled(&self) -> bool {
        *self.0.borrow()
    }
}

impl Cancellation {
    /// One that never asks.
    #[must_use]
    pub fn never() -> Self {
        cancellation().1
    }

    /// Whether the work is asked to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the work is asked to end. For ever, if nobody can ask any more.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only stops the waiting.
    pub async fn cancelled(&self) {
        let asked = self.0.clone().wait_for(|asked| *asked).await.is_ok();
        if !asked {
            std::future::pending::<()>().await;
        }
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Canceller(asked: {})", self.has_cancelled())
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancellation(asked: {})", self.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-19: work learns that it is asked to end, also what begins to wait afterwards; a dropped asker asks for nothing.
    #[tokio::test]
    async fn who_waits_learns_that_it_is_asked() {
        let (asks, asked) = cancellation();
        let ((), ()) = futures::join!(asked.cancelled(), async { asks.cancel() });
        asked.clone().cancelled().await;
        assert!(asked.is_cancelled() && asks.has_cancelled());

        let (asks, never) = cancellation();
        let mut waiting = Box::pin(never.cancelled());
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(asks);
        assert!(futures::poll!(&mut waiting).is_pending() && !Cancellation::never().is_cancelled());
    }
}
