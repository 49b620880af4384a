//! A handler that has begun and waits: its body, or a thread that runs it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::context::HandlerContext;
use super::counts::{Counters, count};
use super::depth::Standing;
use super::handler::{HandlerError, HandlerResult, PANIC_CODE, Returned, ReturnedFuture};
use super::offload::Saturated;
use super::snapshot::{Entry, Snapshot};

/// One handler in flight.
pub(super) struct Flight<V> {
    pub(super) index: usize,
    pub(super) since: Instant,
    pub(super) context: Option<HandlerContext>,
    pub(super) work: Work<V>,
}

pub(super) enum Work<V> {
    Body(ReturnedFuture<V>),
    Thread(OnThread<V>),
}

impl<V: Send + 'static> Work<V> {
    /// The handler to its end, also where a thread returned a future.
    pub(super) async fn finish(self) -> HandlerResult<V> {
        match self {
            Self::Body(body) => body.await,
            Self::Thread(thread) => match thread.await? {
                Returned::Value(value) => Ok(value),
                Returned::Coroutine(body) | Returned::Awaitable(body) => body.await,
            },
        }
    }
}

/// A handler that has come down.
pub(super) struct Landed<V> {
    pub(super) index: usize,
    pub(super) since: Instant,
    pub(super) context: Option<HandlerContext>,
    pub(super) returned: Result<Returned<V>, HandlerError>,
}

impl<V> Future for Flight<V> {
    type Output = Landed<V>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Landed<V>> {
        let returned = match &mut self.work {
            Work::Body(body) => Pin::new(body).poll(cx).map_ok(Returned::Value),
            Work::Thread(thread) => Pin::new(thread).poll(cx),
        };
        returned.map(|returned| Landed { index: self.index, since: self.since, context: self.context.take(), returned })
    }
}

/// What a thread comes to. Dropped before, the thread is given up, and that is counted (F-17).
pub(super) struct OnThread<V> {
    result: Option<oneshot::Receiver<Result<Returned<V>, HandlerError>>>,
    counters: Arc<Counters>,
}

impl<V: Send + 'static> OnThread<V> {
    /// Calls a handler on one of the dispatcher's threads.
    pub(super) fn call<F: Send + Sync + 'static>(
        snapshot: &Snapshot<F, V>,
        entry: &Arc<Entry<F, V>>,
        fact: &Arc<F>,
        context: Option<&HandlerContext>,
    ) -> Result<Self, Saturated> {
        let (send, receive) = oneshot::channel();
        let (entry, fact, context, standing) = (Arc::clone(entry), Arc::clone(fact), context.cloned(), Standing::here());
        snapshot.0.resources.offload.run(Box::new(move || {
            let _given_up = send.send(standing.sync_scope(|| entry.handler.call(&fact, context.as_ref())));
        }))?;
        Ok(Self { result: Some(receive), counters: Arc::clone(&snapshot.0.resources.counters) })
    }
}

impl<V> Future for OnThread<V> {
    type Output = Result<Returned<V>, HandlerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(result) = &mut self.result else { return Poll::Pending };
        Pin::new(result).poll(cx).map(|result| {
            self.result = None;
            result.unwrap_or_else(|_| Err(HandlerError::failed(PANIC_CODE, "its thread ended without a result")))
        })
    }
}

impl<V> Drop for OnThread<V> {
    fn drop(&mut self) {
        if self.result.is_some() {
            count(&self.counters.abandoned);
        }
    }
}
