//! An emission, as its emitter sees it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use tipstaff_core::dispatch::{DispatchError, DispatchReport, EmissionHandle};
use tokio::sync::oneshot;

use super::actor::Dispatched;

/// An emission under way; awaited, its report.
///
/// # Cancel safety
/// Dropping it drops what is in flight, and nothing more is begun (F-12). [`EmissionHandle::cancel`] is the soft way: in a compatibility profile the
/// handlers in flight are told, and may end in their own way (F-19).
#[must_use = "dropped, the emission is cancelled"]
pub struct Emission<V> {
    pub(super) handle: EmissionHandle,
    pub(super) state: State<V>,
}

pub(super) enum State<V> {
    /// The actor runs it.
    There(oneshot::Receiver<Dispatched<V>>),
    /// It runs in the emitter's own task.
    Here(BoxFuture<'static, Dispatched<V>>),
    /// It was not taken.
    Overloaded,
    /// The dispatcher has stopped for good.
    Stopped,
}

impl<V> Emission<V> {
    /// What cancels it, from wherever.
    pub fn handle(&self) -> EmissionHandle {
        self.handle.clone()
    }
}

impl<V> Future for Emission<V> {
    type Output = Result<DispatchReport<V>, EmissionError<V>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let dispatched = match &mut self.state {
            State::There(answer) => match ready!(Pin::new(answer).poll(cx)) {
                Ok(dispatched) => dispatched,
                Err(_lost) => return Poll::Ready(Err(EmissionError::Undelivered)),
            },
            State::Here(emission) => ready!(emission.as_mut().poll(cx)),
            State::Overloaded => return Poll::Ready(Err(EmissionError::Overloaded)),
            State::Stopped => return Poll::Ready(Err(EmissionError::Stopped)),
        };
        Poll::Ready(dispatched.map_err(EmissionError::Dispatch))
    }
}

impl<V> fmt::Debug for Emission<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emission").finish_non_exhaustive()
    }
}

/// Why an emission has no report as a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmissionError<V> {
    /// The policy raised what its handlers did, or refused the emission.
    #[error(transparent)]
    Dispatch(DispatchError<V>),
    /// The dispatcher has as many emissions in flight and waiting as it may (F-24). Nobody was called: try again later.
    #[error("the dispatcher is full: nobody was called, try again after other emissions have ended")]
    Overloaded,
    /// The dispatcher has stopped for good. Nobody was called.
    #[error("the dispatcher has stopped: nobody was called")]
    Stopped,
    /// The dispatcher's actor ended with the emission in hand. Some handlers may have run.
    #[error("the dispatcher did not report: some handlers may have run")]
    Undelivered,
}

impl<V> EmissionError<V> {
    /// What the policy raised, or why it refused.
    pub fn dispatch(&self) -> Option<&DispatchError<V>> {
        match self {
            Self::Dispatch(error) => Some(error),
            Self::Overloaded | Self::Stopped | Self::Undelivered => None,
        }
    }
}
