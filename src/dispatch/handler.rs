//! What a user writes: handlers, conditions, and the ways in which a handler can end.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::context::HandlerContext;

/// How a handler ended by itself.
pub type HandlerResult<V = ()> = Result<V, HandlerError>;

/// The code of a failure that is a caught panic.
pub const PANIC_CODE: &str = "panic";

/// The code of a fatal failure.
pub const FATAL_CODE: &str = "fatal";

/// The code of a sync handler's failure that returned an awaitable although its policy rejects that.
pub const RETURNED_AWAITABLE_CODE: &str = "returned_awaitable";

const FAILED_CODE: &str = "failed";
const MAX_CODE_BYTES: usize = 64;
const MAX_MESSAGE_BYTES: usize = 2048;

/// Why a handler did not return.
///
/// It is deliberately no `std::error::Error`, so that `?` turns every error into one. The cancellation of a task that the handler awaited
/// stays a cancellation on that way (F-12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerError {
    /// It failed.
    Failed(HandlerFailure),
    /// It was cancelled. This is never folded into a failure (F-12).
    Cancelled,
}

impl HandlerError {
    /// A failure with a code of the handler's own.
    #[must_use]
    pub fn failed(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::Failed(HandlerFailure::new(code, message))
    }

    /// A failure outside the ordinary hierarchy, with the code [`FATAL_CODE`]. Native profiles treat it as any failure; the compatibility profiles as
    /// recorded.
    #[must_use]
    pub fn fatal(message: impl fmt::Display) -> Self {
        Self::Failed(HandlerFailure::new(FATAL_CODE, message).of_kind(FailureKind::Fatal))
    }

    /// The store refused what the handler wrote: the code and the message are the store's own and surface as such. The message profiles raise it alone.
    #[must_use]
    pub fn store_refused(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::Failed(HandlerFailure::new(code, message).of_kind(FailureKind::StoreRefused))
    }
}

impl<E: std::error::Error + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        match any.downcast_ref::<tokio::task::JoinError>() {
            Some(join) if join.is_cancelled() => Self::Cancelled,
            Some(_) | None => Self::failed(FAILED_CODE, Chain(&error)),
        }
    }
}

/// A failure, as the report keeps it: a code and a bounded message.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerFailure(Box<Described>);

#[derive(Clone, PartialEq, Eq)]
struct Described {
    code: Cow<'static, str>,
    message: String,
    kind: FailureKind,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// An error or a panic.
    Ordinary,
    /// A failure outside the ordinary hierarchy.
    Fatal,
    /// The store refused what the handler wrote.
    StoreRefused,
}

impl HandlerFailure {
    /// A failure. The code is cut to 64 bytes, the message to 2,048.
    #[must_use]
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        let code = match code.into() {
            Cow::Owned(mut code) => {
                cut(&mut code, MAX_CODE_BYTES);
                Cow::Owned(code)
            }
            Cow::Borrowed(code) => Cow::Borrowed(&code[..code.floor_boundary(MAX_CODE_BYTES)]),
        };
        let mut message = message.to_string();
        cut(&mut message, MAX_MESSAGE_BYTES);
        Self(Box::new(Described { code, message, kind: FailureKind::Ordinary }))
    }

    fn of_kind(mut self, kind: FailureKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What kind of failure: ordinary, unless it was made by [`HandlerError::fatal`] or [`HandlerError::store_refused`].
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// The handler's own code, `failed` for an error that was passed on, or [`PANIC_CODE`].
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What it said.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Debug for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFailure").field("code", &self.0.code).field("message", &self.0.message).finish()
    }
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

/// What a handler may return: nothing, or a result. It cannot return a decision or a changed fact (P-3): what it returns is the value that its
/// dispatcher is made for, which is nothing unless a compatibility profile hands values back to its emitter.
pub trait HandlerReturn {
    /// What a handler that returned hands back.
    type Value;

    /// How the handler ended.
    ///
    /// # Errors
    /// The handler's own.
    fn into_result(self) -> HandlerResult<Self::Value>;
}

impl HandlerReturn for () {
    type Value = ();

    fn into_result(self) -> HandlerResult {
        Ok(())
    }
}

impl<V, E: Into<HandlerError>> HandlerReturn for Result<V, E> {
    type Value = V;

    fn into_result(self) -> HandlerResult<V> {
        self.map_err(Into::into)
    }
}

/// What the call of a sync handler may return: a value, or a future in one of two shapes, which existing systems treat differently.
pub enum Returned<V = ()> {
    /// A plain value.
    Value(V),
    /// A native async body.
    Coroutine(ReturnedFuture<V>),
    /// Any other awaitable, such as the receiving end of a channel.
    Awaitable(ReturnedFuture<V>),
}

impl<V: 'static> Returned<V> {
    /// A native async body.
    #[must_use]
    pub fn coroutine(body: impl Future<Output = HandlerResult<V>> + Send + 'static) -> Self {
        Self::Coroutine(ReturnedFuture::new(Box::pin(body)))
    }

    /// An awaitable that is no native async body.
    #[must_use]
    pub fn awaitable(future: impl Future<Output = HandlerResult<V>> + Send + 'static) -> Self {
        Self::Awaitable(ReturnedFuture::new(Box::pin(future)))
    }
}

impl<V> fmt::Debug for Returned<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "Value",
            Self::Coroutine(_) => "Coroutine",
            Self::Awaitable(_) => "Awaitable",
        })
    }
}

/// Which facts a subscriber wants.
///
/// # Contract
/// It is asked once per emission, on the emission's task: before any handler of that emission runs, or at its registration's turn where late
/// registrations join. It must not block. What its failure, panic or cancellation means is the policy's to say (F-21); under `observation` the handler
/// is not called, the report says so, and there is one warning.
pub trait Condition<F>: Send + Sync + 'static {
    /// Whether the subscriber wants this fact.
    ///
    /// # Errors
    /// When it cannot tell.
    fn holds(&self, fact: &F) -> Result<bool, HandlerError>;
}

impl<F, P: Fn(&F) -> bool + Send + Sync + 'static> Condition<F> for P {
    fn holds(&self, fact: &F) -> Result<bool, HandlerError> {
        Ok(self(fact))
    }
}

pub(super) type Ending<V> = Pin<Box<dyn Future<Output = HandlerResult<V>> + Send>>;

pub(super) type SyncCall<F, V> = dyn Fn(&Arc<F>) -> HandlerResult<V> + Send + Sync;
pub(super) type AsyncCall<F, V> = dyn Fn(Arc<F>) -> Ending<V> + Send + Sync;
pub(super) type SyncCallWith<F, V> = dyn Fn(&Arc<F>, &HandlerContext) -> Result<Returned<V>, HandlerError> + Send + Sync;
pub(super) type AsyncCallWith<F, V> = dyn Fn(Arc<F>, HandlerContext) -> Ending<V> + Send + Sync;

/// A declared handler. Those without a context are kept apart: they cost no allocation for one.
pub(super) enum Handler<F, V> {
    Sync(Box<SyncCall<F, V>>),
    Async(Box<AsyncCall<F, V>>),
    SyncWith(Box<SyncCallWith<F, V>>),
    AsyncWith(Box<AsyncCallWith<F, V>>),
}

impl<F, V> Handler<F, V> {
    pub(super) const fn declared(&self) -> Declared {
        match self {
            Self::Sync(_) | Self::SyncWith(_) => Declared::Sync,
            Self::Async(_) | Self::AsyncWith(_) => Declared::Async,
        }
    }

    /// A context, if the handler takes one.
    pub(super) fn context(&self) -> Option<HandlerContext> {
        match self {
            Self::Sync(_) | Self::Async(_) => None,
            Self::SyncWith(_) | Self::AsyncWith(_) => Some(HandlerContext::default()),
        }
    }

    /// Calls it; a panic is a failure.
    pub(super) fn call(&self, fact: &Arc<F>, context: Option<&HandlerContext>) -> Result<Returned<V>, HandlerError> {
        let context = || context.cloned().unwrap_or_default();
        contained(|| match self {
            Self::Sync(call) => call(fact).map(Returned::Value),
            Self::Async(call) => Ok(Returned::Coroutine(ReturnedFuture::new(call(Arc::clone(fact))))),
            Self::SyncWith(call) => call(fact, &context()),
            Self::AsyncWith(call) => Ok(Returned::Coroutine(ReturnedFuture::new(call(Arc::clone(fact), context())))),
        })
        .unwrap_or_else(|failure| Err(HandlerError::Failed(failure)))
    }
}

/// How a handler is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declared {
    /// It is called, and has ended when the call returns, unless it returned a future.
    Sync,
    /// It is awaited.
    Async,
}

/// The body of a handler, to be awaited. Neither polling nor dropping it lets a panic out.
pub struct ReturnedFuture<V>(Option<Ending<V>>);

impl<V> ReturnedFuture<V> {
    pub(super) fn new(ending: Ending<V>) -> Self {
        Self(Some(ending))
    }
}

impl<V> Future for ReturnedFuture<V> {
    type Output = HandlerResult<V>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HandlerResult<V>> {
        let Some(ending) = &mut self.0 else { return Poll::Pending };
        contained(|| ending.as_mut().poll(cx)).unwrap_or_else(|failure| Poll::Ready(Err(HandlerError::Failed(failure))))
    }
}

impl<V> Drop for ReturnedFuture<V> {
    fn drop(&mut self) {
        let ending = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(ending))) {
            discard(payload);
        }
    }
}

/// How a sync handler ends that returned an awaitable although its policy rejects that.
pub(super) fn returned_awaitable() -> HandlerError {
    HandlerError::failed(RETURNED_AWAITABLE_CODE, "a sync handler returned an awaitable: declare it async")
}

/// Runs user code; a panic is a failure with [`PANIC_CODE`].
#[inline]
pub(super) fn contained<T>(call: impl FnOnce() -> T) -> Result<T, HandlerFailure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(panicked)
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> HandlerFailure {
    let failure = match (payload.downcast_ref::<&'static str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => HandlerFailure::new(PANIC_CODE, text),
        (None, Some(text)) => HandlerFailure::new(PANIC_CODE, text),
        (None, None) => HandlerFailure::new(PANIC_CODE, "a panic without a message"),
    };
    discard(payload);
    failure
}

/// Drops what a panic carried. Its destructor is user code too: should that panic, its own payload is leaked rather than dropped.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// An error with its sources, separated by colons.
struct Chain<'a>(&'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        // A cyclic chain of sources would never end; sixteen links say enough.
        for _ in 0..16 {
            let Some(error) = source else { break };
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_boundary(most));
}

trait FloorBoundary {
    /// The last character boundary that is not beyond `most`.
    fn floor_boundary(&self, most: usize) -> usize;
}

impl FloorBoundary for str {
    fn floor_boundary(&self, most: usize) -> usize {
        (0..=most.min(self.len())).rev().find(|&at| self.is_char_boundary(at)).unwrap_or(0)
    }
}
