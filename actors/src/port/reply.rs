//! The way back of a call.

use std::cell::Cell;
use std::fmt;

use tokio::sync::oneshot;

/// Where the owner of a port sends the answer to one call. Dropped without an answer, it ends the call at once.
pub struct Reply<R> {
    answer: Option<oneshot::Sender<Result<R, Lost>>>,
}

impl<R> Reply<R> {
    /// Answers the call.
    ///
    /// # Errors
    /// The answer comes back when nobody waits for it any more.
    pub fn send(mut self, answer: R) -> Result<(), R> {
        let sender = self.answer.take().expect("a reply is consumed by its one answer");
        sender.send(Ok(answer)).map_err(|unsent| unsent.expect("an answer was sent, not a loss"))
    }

    /// Resolves when the caller has gone: work for it would be work for nobody.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only stops the waiting.
    pub async fn closed(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.closed().await;
        }
    }

    /// Whether the caller has gone: work for it would be work for nobody.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if let Some(sender) = self.answer.take() {
            // The caller may have gone; then nobody needs the reason.
            let _unheard = sender.send(Err(CAUSE.get()));
        }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("is_closed", &self.is_closed()).finish()
    }
}

/// Why a reply was dropped without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// By its owner: it crashed, or its handler let the reply fall.
    InHand,
    /// By the port, because the deadline had passed before the owner took it in hand.
    Expired,
}

thread_local! {
    // A port cannot see the reply inside a message that it drops. So the reason stands here for the length of that drop.
    static CAUSE: Cell<Lost> = const { Cell::new(Lost::InHand) };
}

/// Drops a message that expired in the queue.
pub(super) fn drop_expired<M>(message: M) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            CAUSE.set(Lost::InHand);
        }
    }
    CAUSE.set(Lost::Expired);
    let _restore = Restore;
    drop(message);
}

/// A reply and the end at which its caller waits.
pub(super) fn pair<R>() -> (Reply<R>, oneshot::Receiver<Result<R, Lost>>) {
    let (answer, receiver) = oneshot::channel();
    (Reply { answer: Some(answer) }, receiver)
}
