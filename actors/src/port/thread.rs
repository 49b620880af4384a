//! A consumer that is a thread: the store's single writer blocks on its port.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use super::core::{Bell, Grants, Popped, Serve};
use super::reply;
use super::shared::Shared;

/// Reads a port from a dedicated thread.
///
/// Messages count as in hand until the next call of [`next`](Self::next): so a thread may take a first message with `next` and more with
/// [`try_next`](Self::try_next), and finish them together. A panic of the thread loses those in hand, and counts them.
pub struct ThreadMailbox<M: Send + 'static> {
    shared: Arc<Shared<M>>,
    attached: Option<(ThreadId, u64)>,
    in_hand: u64,
    keys: Vec<u64>,
}

/// What a thread found in its mailbox.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// A message, now in hand.
    Message(M),
    /// Nothing came in time.
    TimedOut,
    /// The port is closed, or another consumer has taken over: the thread can end.
    Closed,
}

impl<M: Send + 'static> ThreadMailbox<M> {
    pub(super) fn new(shared: Arc<Shared<M>>) -> Self {
        Self { shared, attached: None, in_hand: 0, keys: Vec::new() }
    }

    /// Finishes what is in hand, then waits up to `timeout` for a message. Blocks the thread; wakes for a message and for a close.
    pub fn next(&mut self, timeout: Duration) -> Next<M> {
        self.finish();
        let consumer = self.consumer();
        let began = Instant::now();
        loop {
            match self.shared.core.look(consumer, 0, || Serve::All, Grants::AtOnce) {
                Popped::Empty => {}
                found => match self.take(found) {
                    Some(next) => return next,
                    None => continue,
                },
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Next::TimedOut;
            }
            thread::park_timeout(left);
        }
    }

    /// One more message, if there is one, without waiting and without finishing what is in hand.
    pub fn try_next(&mut self) -> Option<M> {
        let consumer = self.consumer();
        loop {
            match self.shared.core.pop(consumer, 0, Serve::All, Grants::AtOnce) {
                Popped::Empty | Popped::Closed | Popped::Superseded => return None,
                found => match self.take(found) {
                    Some(Next::Message(message)) => return Some(message),
                    Some(Next::TimedOut | Next::Closed) => return None,
                    None => {}
                },
            }
        }
    }

    /// Counts what is in hand as handled. [`next`](Self::next) does so by itself.
    pub fn finish(&mut self) {
        if self.in_hand > 0 {
            self.shared.core.pause(std::mem::take(&mut self.in_hand));
            self.keys.drain(..).for_each(|key| self.shared.handled_well(Some(key)));
        }
    }

    /// Takes what was popped in hand; `None` when it is not for the thread.
    fn take(&mut self, popped: Popped<M>) -> Option<Next<M>> {
        match popped {
            Popped::Message(message) => {
                self.in_hand += 1;
                let key = self.shared.poison_key(&message);
                if self.shared.is_condemned(key) {
                    self.in_hand -= 1;
                    self.shared.set_aside(message);
                    return None;
                }
                self.keys.extend(key);
                Some(Next::Message(message))
            }
            Popped::Expired(message) => {
                reply::drop_expired(message);
                None
            }
            Popped::Empty => None,
            Popped::Closed | Popped::Superseded => Some(Next::Closed),
        }
    }

    /// Attaches the calling thread, once: a bell unparks one thread.
    fn consumer(&mut self) -> u64 {
        let current = thread::current();
        match self.attached {
            Some((thread, consumer)) if thread == current.id() => consumer,
            _ => {
                let thread = current.id();
                let consumer = self.shared.core.attach(Box::new(Unpark(current)));
                self.attached = Some((thread, consumer));
                consumer
            }
        }
    }
}

impl<M: Send + 'static> Drop for ThreadMailbox<M> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.crashed(std::mem::take(&mut self.in_hand), &self.keys);
        } else {
            self.finish();
        }
    }
}

impl<M: Send + 'static> fmt::Debug for ThreadMailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadMailbox").field("port", &self.shared.name).field("in_hand", &self.in_hand).finish_non_exhaustive()
    }
}

struct Unpark(Thread);

impl Bell for Unpark {
    fn ring(&self) {
        self.0.unpark();
    }
}
