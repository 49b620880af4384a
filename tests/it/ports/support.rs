//! Owners and small builders for the tests of ports.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tipstaff::clock::Deadline;
use tipstaff::port::{Context, Handler, HandlerError, Mailbox, Overflow, Port, PortSpec, Reply};
use tokio::sync::{Semaphore, mpsc};

/// What the test owners understand.
#[derive(Debug)]
pub(super) enum Ask {
    /// Reported, no more.
    Note(u64),
    /// Answered with its number.
    Echo(u64, Reply<u64>),
    /// Ends the owner by a panic.
    Panic(u64),
    /// Ends the owner by an error.
    Fail(u64),
}

impl Ask {
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Note(number) | Self::Echo(number, _) | Self::Panic(number) | Self::Fail(number) => *number,
        }
    }
}

/// Reports every number that it begins to handle; may be held at a gate before it handles anything.
pub(super) struct Recorder {
    pub(super) begun: mpsc::UnboundedSender<u64>,
    pub(super) gate: Option<Arc<Semaphore>>,
}

impl Handler for Recorder {
    type Message = Ask;

    async fn handle(&mut self, message: Ask, _context: &Context<Ask>) -> Result<(), HandlerError> {
        let _unread = self.begun.send(message.number());
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("the gate stays open").forget();
        }
        match message {
            Ask::Note(_) => {}
            Ask::Echo(number, reply) => {
                let _late = reply.send(number);
            }
            Ask::Panic(number) => panic!("told to panic by {number}"),
            Ask::Fail(number) => return Err(HandlerError::new(format!("told to fail by {number}"))),
        }
        Ok(())
    }
}

/// A recorder and the end at which its reports come out.
pub(super) fn recorder() -> (Recorder, mpsc::UnboundedReceiver<u64>) {
    let (begun, reports) = mpsc::unbounded_channel();
    (Recorder { begun, gate: None }, reports)
}

/// A recorder that handles nothing until the gate lets it.
pub(super) fn gated() -> (Recorder, mpsc::UnboundedReceiver<u64>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let (begun, reports) = mpsc::unbounded_channel();
    (Recorder { begun, gate: Some(Arc::clone(&gate)) }, reports, gate)
}

pub(super) fn spec<M>(capacity: usize, overflow: Overflow) -> PortSpec<M> {
    PortSpec::new("clerk", NonZeroUsize::new(capacity).expect("a port has places"), overflow)
}

pub(super) fn open<M>(capacity: usize, overflow: Overflow) -> (Port<M>, Mailbox<M>) {
    spec(capacity, overflow).open()
}

/// Generous for what must happen, so that only a hang reaches it.
pub(super) fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

pub(super) fn after_ms(ms: u64) -> Deadline {
    Deadline::after(Duration::from_millis(ms))
}

/// Lets every other task of a current-thread runtime run until it waits.
pub(super) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Starts a thread that its test joins.
#[expect(clippy::disallowed_methods, reason = "the test that calls this joins it")]
pub(super) fn start<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(run)
}

/// A message that is counted while it exists.
#[derive(Debug)]
pub(super) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Asserts that every accepted message is accounted for.
pub(super) fn assert_accounted(metrics: &tipstaff::port::PortMetrics) {
    assert_eq!(metrics.accepted, metrics.accounted(), "{metrics:?}");
}
