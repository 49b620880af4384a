//! A live stream for a reader that may be slow: bounded, lossy, and honest about it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::dispatch::{HandlerError, Subscriber};
use crate::signal::Signal;

/// A live stream of at most `capacity` unread facts. When its reader is slower than the emissions, the oldest unread facts are dropped
/// and counted; no emitter ever waits for it.
#[must_use]
pub fn live_stream(capacity: NonZeroUsize) -> (LiveFeed, LiveStream) {
    let unread = Unread { facts: VecDeque::new(), unreported: 0, missed: 0, reader: None, feeds: 1, open: true };
    let shared = Arc::new(Shared { capacity, unread: Mutex::new(unread) });
    (LiveFeed(Arc::clone(&shared)), LiveStream(shared))
}

/// The writing end. Cheap to clone; the stream ends when every clone is gone.
#[derive(Debug)]
pub struct LiveFeed(Arc<Shared>);

/// The reading end.
#[derive(Debug)]
pub struct LiveStream(Arc<Shared>);

/// One fact of a live stream.
#[derive(Debug, Clone)]
pub struct Next {
    /// How many facts were dropped between the one read before and this one.
    pub missed: u64,
    /// The fact.
    pub fact: Arc<Signal>,
}

/// Nobody reads the stream any more. The fact comes back.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the live stream has no reader any more: unregister its subscriber")]
pub struct StreamClosed(pub Arc<Signal>);

impl LiveFeed {
    /// Adds a fact; never waits. A full stream drops its oldest unread fact and counts it.
    ///
    /// # Errors
    /// [`StreamClosed`] when the reader is gone: stop feeding.
    pub fn push(&self, fact: Arc<Signal>) -> Result<(), StreamClosed> {
        let mut unread = self.0.lock();
        if !unread.open {
            return Err(StreamClosed(fact));
        }
        let oldest = if unread.facts.len() == self.0.capacity.get() {
            unread.unreported += 1;
            unread.missed += 1;
            unread.facts.pop_front()
        } else {
            None
        };
        unread.facts.push_back(fact);
        let reader = unread.reader.take();
        drop(unread);
        drop(oldest);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// How many facts the reader has missed, or will have when it next reads.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.0.lock().missed
    }

    /// The subscriber that feeds this stream. Once the reader is gone it fails with the code `stream_closed`.
    #[must_use]
    pub fn subscriber(&self, name: impl Into<Arc<str>>) -> Subscriber<Signal> {
        let feed = self.clone();
        Subscriber::declared_sync(name, move |fact: &Arc<Signal>| {
            feed.push(Arc::clone(fact)).map_err(|closed| HandlerError::failed("stream_closed", closed))
        })
    }
}

impl LiveStream {
    /// The next fact, with what was missed before it; `None` once every feed is gone and all is read.
    ///
    /// # Cancel safety
    /// Nothing is lost: a fact leaves the stream only when it is returned.
    pub async fn next(&mut self) -> Option<Next> {
        poll_fn(|cx| {
            let mut unread = self.0.lock();
            match unread.take() {
                Some(next) => Poll::Ready(Some(next)),
                None if unread.feeds == 0 => Poll::Ready(None),
                None => {
                    let before = unread.reader.replace(cx.waker().clone());
                    drop(unread);
                    drop(before);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The next fact, if there is one now.
    pub fn try_next(&mut self) -> Option<Next> {
        self.0.lock().take()
    }

    /// How many facts have been missed in all.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.0.lock().missed
    }
}

impl Clone for LiveFeed {
    fn clone(&self) -> Self {
        self.0.lock().feeds += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        let mut unread = self.0.lock();
        unread.feeds -= 1;
        let reader = if unread.feeds == 0 { unread.reader.take() } else { None };
        drop(unread);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        let mut unread = self.0.lock();
        unread.open = false;
        let (facts, reader) = (std::mem::take(&mut unread.facts), unread.reader.take());
        drop(unread);
        drop((facts, reader));
    }
}

#[derive(Debug)]
struct Shared {
    capacity: NonZeroUsize,
    /// Locked for a few lines that never wait and call no other code.
    unread: Mutex<Unread>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Unread {
    facts: VecDeque<Arc<Signal>>,
    /// Dropped since the last fact that was read.
    unreported: u64,
    /// Dropped in all.
    missed: u64,
    reader: Option<Waker>,
    feeds: usize,
    /// Whether there is a reader.
    open: bool,
}

impl Unread {
    fn take(&mut self) -> Option<Next> {
        let fact = self.facts.pop_front()?;
        Some(Next { missed: std::mem::take(&mut self.unreported), fact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::id::SessionId;
    use crate::signal::LifecycleKind;

    fn fact() -> Arc<Signal> {
        let session = SessionId::new("s").unwrap();
        Arc::new(Signal::builder(session, LifecycleKind::NodeStarted, Timestamp::from_micros(0)).build())
    }

    fn stream(capacity: usize) -> (LiveFeed, LiveStream) {
        live_stream(NonZeroUsize::new(capacity).unwrap())
    }

    /// Session observation, live stream: the reader learns how many facts it missed, exactly where they are missing.
    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed() {
        let (feed, mut reader) = stream(2);
        for _ in 0..5 {
            feed.push(fact()).unwrap();
        }
        assert_eq!(reader.next().await.unwrap().missed, 3);
        assert_eq!(reader.next().await.unwrap().missed, 0);
        assert!(reader.try_next().is_none());
        feed.push(fact()).unwrap();
        assert_eq!(reader.try_next().unwrap().missed, 0);
        assert_eq!((feed.missed(), reader.missed()), (3, 3));
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken_by_a_fact_and_by_the_end() {
        let (feed, mut reader) = stream(1);
        let (next, ()) = futures::join!(reader.next(), async { feed.push(fact()).unwrap() });
        assert_eq!(next.unwrap().missed, 0);
        let (end, ()) = futures::join!(reader.next(), async { drop(feed) });
        assert!(end.is_none());
    }

    #[test]
    fn a_feed_without_a_reader_hands_the_fact_back() {
        let (feed, reader) = stream(1);
        feed.push(fact()).unwrap();
        drop(reader);
        let refused = fact();
        assert!(Arc::ptr_eq(&feed.push(Arc::clone(&refused)).unwrap_err().0, &refused));
    }
}
