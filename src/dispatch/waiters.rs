//! Handlers that have begun and wait, polled together.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::{FuturesUnordered, Stream};

/// Handlers that wait. A few are polled together at every wake, which is cheaper than a node and a waker for each of them; many are not.
pub(super) struct Waiters<W> {
    few: Vec<W>,
    many: Option<FuturesUnordered<W>>,
}

/// How many are a few.
const FEW: usize = 32;

impl<W: Future + Unpin> From<Vec<W>> for Waiters<W> {
    fn from(waiting: Vec<W>) -> Self {
        if waiting.len() <= FEW {
            Self { few: waiting, many: None }
        } else {
            Self { few: Vec::new(), many: Some(waiting.into_iter().collect()) }
        }
    }
}

impl<W: Future + Unpin> Waiters<W> {
    /// Polls those that may go on; what those came to that ended is added to the wave. Ready when nobody waits any more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, wave: &mut Vec<W::Output>) -> Poll<()> {
        let Some(many) = &mut self.many else {
            self.few.retain_mut(|one| match Pin::new(one).poll(cx) {
                Poll::Ready(ended) => {
                    wave.push(ended);
                    false
                }
                Poll::Pending => true,
            });
            return if self.few.is_empty() { Poll::Ready(()) } else { Poll::Pending };
        };
        while let Some(ended) = ready!(Pin::new(&mut *many).poll_next(cx)) {
            wave.push(ended);
        }
        Poll::Ready(())
    }

    /// Those that wait still.
    pub(super) fn late(&self) -> impl Iterator<Item = &W> {
        self.few.iter().chain(self.many.iter().flatten())
    }

    /// Adds one that was polled already.
    pub(super) fn push(&mut self, one: W) {
        match &mut self.many {
            Some(many) => many.push(one),
            None if self.few.len() < FEW => self.few.push(one),
            None => self.many = Some(self.few.drain(..).chain([one]).collect()),
        }
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Vec<W> {
        let mut taken = std::mem::take(&mut self.few);
        taken.extend(self.many.take().into_iter().flatten());
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.as_ref().is_none_or(FuturesUnordered::is_empty)
    }
}
