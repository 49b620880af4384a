//! What is registered: a name, a condition, a handler, and what the registration asks for.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::context::HandlerContext;
use super::handler::{Condition, Handler, HandlerError, HandlerReturn, Returned};

/// A subscriber to be registered: a name, a condition, and a handler that is declared sync or async.
pub struct Subscriber<F, V = ()> {
    pub(super) name: Arc<str>,
    pub(super) condition: Option<Asked<F>>,
    pub(super) handler: Handler<F, V>,
    pub(super) asks: Asks,
}

/// A condition, by what its failure counts as.
pub(super) enum Asked<F> {
    Predicate(Box<dyn Condition<F>>),
    Filter(Box<dyn Condition<F>>),
}

/// What a registration asks for beyond its handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asks {
    pub(super) offload: bool,
    pub(super) overriding: bool,
    pub(super) ordered: Option<OrderedQueue>,
}

/// The queue of a registration that is called for one emission at a time (F-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderedQueue {
    /// How many emissions may wait.
    pub capacity: NonZeroUsize,
    /// What happens to one more.
    pub overflow: QueueOverflow,
}

/// Which emission a full queue of an ordered registration does without. Each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueOverflow {
    /// The new one; its report says `not started (queue full)`.
    DropNewest,
    /// The one that waited longest; its report said `queued`.
    DropOldest,
}

impl<F: 'static, V: 'static> Subscriber<F, V> {
    /// A subscriber whose handler runs on the emission's task. It must not block: while it does, it holds that emission and that worker
    /// thread (F-17).
    #[must_use]
    pub fn declared_sync<H, R>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(&Arc<F>) -> R + Send + Sync + 'static,
        R: HandlerReturn<Value = V> + 'static,
    {
        Self::new(name.into(), Handler::Sync(Box::new(move |fact| handler(fact).into_result())))
    }

    /// A subscriber whose handler is awaited. It is dropped at the emission's deadline, or with the emission.
    #[must_use]
    pub fn declared_async<H, A, R>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(Arc<F>) -> A + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
        R: HandlerReturn<Value = V> + 'static,
    {
        let handler = Handler::Async(Box::new(move |fact| {
            let ending = handler(fact);
            Box::pin(async move { ending.await.into_result() })
        }));
        Self::new(name.into(), handler)
    }

    /// As [`Self::declared_sync`], with the call's context, and free to return a future in either shape. What becomes of a returned future is the policy's
    /// to say: under `observation` it is a failure.
    #[must_use]
    pub fn declared_sync_with<H>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(&Arc<F>, &HandlerContext) -> Result<Returned<V>, HandlerError> + Send + Sync + 'static,
    {
        Self::new(name.into(), Handler::SyncWith(Box::new(handler)))
    }

    /// As [`Self::declared_async`], with the call's context.
    #[must_use]
    pub fn declared_async_with<H, A, R>(name: impl Into<Arc<str>>, handler: H) -> Self
    where
        H: Fn(Arc<F>, HandlerContext) -> A + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
        R: HandlerReturn<Value = V> + 'static,
    {
        let handler = Handler::AsyncWith(Box::new(move |fact, context| {
            let ending = handler(fact, context);
            Box::pin(async move { ending.await.into_result() })
        }));
        Self::new(name.into(), handler)
    }

    /// Takes only the facts for which the predicate holds. The last condition given stands.
    #[must_use]
    pub fn when(mut self, predicate: impl Condition<F>) -> Self {
        self.condition = Some(Asked::Predicate(Box::new(predicate)));
        self
    }

    /// Takes only the facts that the filter lets through. It differs from a predicate only where the policy says so: the session observer of the original
    /// system isolates a failing predicate and raises a failing filter. The last condition given stands.
    #[must_use]
    pub fn filtered_by(mut self, filter: impl Condition<F>) -> Self {
        self.condition = Some(Asked::Filter(Box::new(filter)));
        self
    }

    /// Asks for one of the dispatcher's own threads, under a policy that runs sync handlers inline (F-17). An async handler has no use for it.
    #[must_use]
    pub fn offloaded(mut self) -> Self {
        self.asks.offload = true;
        self
    }

    /// Asks to be called for one emission at a time, in the order of their admission (F-18). The emission does not wait, and its report says `queued`.
    #[must_use]
    pub fn ordered(mut self, queue: OrderedQueue) -> Self {
        self.asks.ordered = Some(queue);
        self
    }

    /// Takes the place of those that do not override: when one that does matches, only those that do are called.
    #[must_use]
    pub fn overriding(mut self) -> Self {
        self.asks.overriding = true;
        self
    }

    fn new(name: Arc<str>, handler: Handler<F, V>) -> Self {
        Self { name, condition: None, handler, asks: Asks::default() }
    }
}

impl<F, V> fmt::Debug for Subscriber<F, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("name", &self.name).finish_non_exhaustive()
    }
}
