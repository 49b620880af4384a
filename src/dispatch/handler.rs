//! What a user writes: handlers, conditions, and the ways in which a handler can end.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How a handler ended by itself.
pub type HandlerResult = Result<(), HandlerError>;

/// The code of a failure that is a caught panic.
pub const PANIC_CODE: &str = "panic";

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
        Self(Box::new(Described { code, message }))
    }

    /// What kind of failure: the handler's own code, `failed` for an error that was passed on, or [`PANIC_CODE`].
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

/// What a handler may return: nothing, or a result of nothing. It cannot return a decision or a changed fact (P-3).
pub trait HandlerReturn {
    /// How the handler ended.
    ///
    /// # Errors
    /// The handler's own.
    fn into_result(self) -> HandlerResult;
}

impl HandlerReturn for () {
    fn into_result(self) -> HandlerResult {
        Ok(())
    }
}

impl<E: Into<HandlerError>> HandlerReturn for Result<(), E> {
    fn into_result(self) -> HandlerResult {
        self.map_err(Into::into)
    }
}

/// Which facts a subscriber wants.
///
/// # Contract
/// It is asked once per emission, before any handler of that emission runs, on the emission's task. It must not block. A condition that
/// fails or panics is isolated: the handler is not called, the report says so, and there is one warning (F-21).
pub trait Condition<F>: Send + Sync + 'static {
    /// Whether the subscriber wants this fact.
    ///
    /// # Errors
    /// When it cannot tell.
    fn holds(&self, fact: &F) -> Result<bool, HandlerFailure>;
}

impl<F, P: Fn(&F) -> bool + Send + Sync + 'static> Condition<F> for P {
    fn holds(&self, fact: &F) -> Result<bool, HandlerFailure> {
        Ok(self(fact))
    }
}

type Ending = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

type SyncCall<F> = dyn Fn(&Arc<F>) -> HandlerResult + Send + Sync;
type AsyncCall<F> = dyn Fn(Arc<F>) -> Ending + Send + Sync;

/// A declared handler.
pub(super) enum Handler<F> {
    Sync(Box<SyncCall<F>>),
    Async(Box<AsyncCall<F>>),
}

/// An async handler that has begun. Neither polling nor dropping it lets a panic out.
pub(super) struct Running(Option<Ending>);

impl Running {
    pub(super) fn new(ending: Ending) -> Self {
        Self(Some(ending))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<HandlerResult> {
        let Some(ending) = &mut self.0 else { return Poll::Pending };
        contained(|| ending.as_mut().poll(cx)).unwrap_or_else(|failure| Poll::Ready(Err(HandlerError::Failed(failure))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ending = self.0.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(ending))) {
            discard(payload);
        }
    }
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
