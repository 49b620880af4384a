//! An emission of an adapter, with what cancels it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

/// An emission under way; awaited, what it comes to.
///
/// # Cancel safety
/// Dropping it drops what is in flight (F-12). Cancelling its [`canceller`](Self::canceller) tells the handlers in flight, which may end in their own way (F-19).
#[must_use = "dropped, the emission is cancelled"]
pub struct Cancellable<T> {
    canceller: Canceller,
    rest: BoxFuture<'static, T>,
}

/// Cancels one emission. Cheap to clone; keeps nothing alive that runs.
#[derive(Clone)]
pub struct Canceller(Arc<dyn Fn() + Send + Sync>);

impl Canceller {
    pub(super) fn new(cancel: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(cancel))
    }

    /// Tells the handlers that are in flight now. What they make of it is theirs, and the profile says what that means.
    pub fn cancel(&self) {
        (self.0)();
    }
}

impl<T> Cancellable<T> {
    pub(super) fn new(cancel: impl Fn() + Send + Sync + 'static, rest: impl Future<Output = T> + Send + 'static) -> Self {
        Self { canceller: Canceller::new(cancel), rest: Box::pin(rest) }
    }

    /// What cancels it, from wherever.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl<T> Future for Cancellable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.rest.as_mut().poll(cx)
    }
}

impl<T> fmt::Debug for Cancellable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellable").finish_non_exhaustive()
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Canceller")
    }
}
