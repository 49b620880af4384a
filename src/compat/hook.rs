//! Handlers of the original system's hooks: declared sync or async, with the shapes that a call of them may return.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::cancel::Cancellation;
use crate::dispatch::HandlerFailure;

/// How a handler ended by itself.
pub type HookReturned = Result<Value, HookError>;

/// Why a handler gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// It failed.
    #[error("{0}")]
    Failed(HandlerFailure),
    /// It failed outside the ordinary hierarchy of failures: never isolated.
    #[error("fatal: {0}")]
    Fatal(HandlerFailure),
    /// The store refused what it needs: not isolated at an observational point.
    #[error("the store refused: {0}")]
    StoreRefused(HandlerFailure),
    /// It was cancelled. Never folded into a failure (F-12).
    #[error("cancelled")]
    Cancelled,
    /// It ends the chain, which is no failure at a hook point.
    #[error("stopped")]
    Stop,
}

impl HookError {
    /// An ordinary failure with a code of the handler's own.
    #[must_use]
    pub fn failed(code: impl Into<std::borrow::Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::Failed(HandlerFailure::new(code, message))
    }

    /// A fatal failure with a code of the handler's own.
    #[must_use]
    pub fn fatal(code: impl Into<std::borrow::Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::Fatal(HandlerFailure::new(code, message))
    }

    /// A refusal by the store.
    #[must_use]
    pub fn store_refused(message: impl fmt::Display) -> Self {
        Self::StoreRefused(HandlerFailure::new("store_refused", message))
    }
}

/// Whose cancellation it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookCanceller {
    /// The emitter's, by its handle.
    Emitter,
    /// This handler's own.
    Hook(Arc<str>),
}

/// What a call of a declared sync handler may return. Existing systems treat the two futures differently.
pub enum HookReturn {
    /// A plain value.
    Value(Value),
    /// A future, as a native async body.
    Coroutine(BoxFuture<'static, HookReturned>),
    /// Any other awaitable.
    Awaitable(BoxFuture<'static, HookReturned>),
}

impl HookReturn {
    /// A future, as a native async body.
    pub fn coroutine(future: impl Future<Output = HookReturned> + Send + 'static) -> Self {
        Self::Coroutine(Box::pin(future))
    }

    /// Any other awaitable.
    pub fn awaitable(future: impl Future<Output = HookReturned> + Send + 'static) -> Self {
        Self::Awaitable(Box::pin(future))
    }
}

impl From<Value> for HookReturn {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

type SyncCall<A> = dyn Fn(&Arc<A>, &Cancellation) -> Result<HookReturn, HookError> + Send + Sync;
type AsyncCall<A> = dyn Fn(Arc<A>, Cancellation) -> BoxFuture<'static, HookReturned> + Send + Sync;

/// A named handler over arguments `A`. Cheap to clone.
pub struct Hook<A> {
    name: Arc<str>,
    call: Call<A>,
}

enum Call<A> {
    Sync(Arc<SyncCall<A>>),
    Async(Arc<AsyncCall<A>>),
}

impl<A: 'static> Hook<A> {
    /// A handler that is declared sync. What it returns may be a future all the same.
    pub fn declared_sync(
        name: impl Into<Arc<str>>,
        call: impl Fn(&Arc<A>, &Cancellation) -> Result<HookReturn, HookError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), call: Call::Sync(Arc::new(call)) }
    }

    /// A handler that is declared async.
    pub fn declared_async<Fut>(
        name: impl Into<Arc<str>>,
        call: impl Fn(Arc<A>, Cancellation) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = HookReturned> + Send + 'static,
    {
        Self { name: name.into(), call: Call::Async(Arc::new(move |arguments, token| Box::pin(call(arguments, token)))) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Calls it. A declared async one returns a coroutine.
    pub(super) fn call(&self, arguments: &Arc<A>, token: &Cancellation) -> Called {
        match &self.call {
            Call::Sync(call) => Called::Sync(call(arguments, token)),
            Call::Async(call) => Called::Async(call(Arc::clone(arguments), token.clone())),
        }
    }
}

/// What a call gave.
pub(super) enum Called {
    Sync(Result<HookReturn, HookError>),
    Async(BoxFuture<'static, HookReturned>),
}

impl<A> Clone for Hook<A> {
    fn clone(&self) -> Self {
        let call = match &self.call {
            Call::Sync(call) => Call::Sync(Arc::clone(call)),
            Call::Async(call) => Call::Async(Arc::clone(call)),
        };
        Self { name: Arc::clone(&self.name), call }
    }
}

impl<A> fmt::Debug for Hook<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.name).finish()
    }
}

impl fmt::Debug for HookReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "HookReturn(value)",
            Self::Coroutine(_) => "HookReturn(coroutine)",
            Self::Awaitable(_) => "HookReturn(awaitable)",
        })
    }
}
