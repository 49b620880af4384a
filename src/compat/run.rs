//! One turn of one handler.
//!
//! | the handler                                                  | its turn ends as                                    |
//! |--------------------------------------------------------------|-----------------------------------------------------|
//! | returns, fails, stops                                        | that                                                |
//! | panics                                                       | failed, with the code `panic`                       |
//! | cancels itself                                               | cancelled by itself                                 |
//! | is asked by the handle, and ends within the grace            | as it ended; a cancellation is the emitter's        |
//! | is asked by the handle, and does not                         | dropped; cancelled by the emitter                   |
//! | runs into its deadline, and ends within the grace            | as it ended; a cancellation is a timeout            |
//! | runs into its deadline, and does not                         | dropped; timed out                                  |
//! | returned a future that nobody is to await                    | returned, unawaited: the future is dropped unpolled |

use std::any::Any;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt, poll};
use tokio::time::{sleep_until, timeout};

use super::edge::{Edge, InFlight};
use super::hook::{Called, Hook, HookError, HookReturn, HookReturned};
use crate::cancel::Cancellation;
use crate::clock::Deadline;
use crate::dispatch::{HandlerClassification, HandlerFailure, PANIC_CODE};

/// How long a handler that is asked to end may take. Then it is dropped.
pub const GRACE: Duration = Duration::from_secs(1);

/// How a turn ended.
pub(super) enum Ran {
    Returned(serde_json::Value),
    Unawaited,
    /// Never [`HookError::Cancelled`].
    Error(HookError),
    TimedOut,
    Cancelled(By),
}

/// Whose cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Itself,
    Emitter,
}

/// Which returned futures are awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaiting {
    /// All, whatever was declared.
    ByReturnValue,
    /// Those of declared async handlers.
    ByDeclaration,
}

impl From<HandlerClassification> for Awaiting {
    fn from(classification: HandlerClassification) -> Self {
        match classification {
            HandlerClassification::ByDeclaration => Self::ByDeclaration,
            HandlerClassification::ByReturnValue => Self::ByReturnValue,
        }
    }
}

/// What ends a turn from outside.
pub(super) struct Limits<'a> {
    pub(super) edge: &'a Edge,
    pub(super) deadline: Option<Deadline>,
    /// Counts as the deadline.
    pub(super) stop: Option<&'a Cancellation>,
}

/// Runs one turn of a handler.
pub(super) async fn turn<A: 'static>(hook: &Hook<A>, arguments: &Arc<A>, awaiting: Awaiting, limits: Limits<'_>) -> Ran {
    let flight = limits.edge.enter();
    match caught(|| hook.call(arguments, flight.token())) {
        Ok(Called::Async(future)) => awaited(future, &flight, &limits).await,
        Ok(Called::Sync(Ok(HookReturn::Coroutine(future) | HookReturn::Awaitable(future))))
            if awaiting == Awaiting::ByReturnValue =>
        {
            awaited(future, &flight, &limits).await
        }
        plain => {
            flight.was_plain();
            match plain {
                Ok(Called::Sync(Ok(HookReturn::Value(value)))) => Ran::Returned(value),
                Ok(Called::Sync(Err(error))) => ended(Err(error), None),
                Ok(Called::Sync(Ok(HookReturn::Coroutine(future) | HookReturn::Awaitable(future))) | Called::Async(future)) => {
                    match caught(|| drop(future)) {
                        Ok(()) => Ran::Unawaited,
                        Err(failure) => Ran::Error(HookError::Failed(failure)),
                    }
                }
                Err(failure) => Ran::Error(HookError::Failed(failure)),
            }
        }
    }
}

/// Runs a future that stands for a handler: the core of a call.
pub(super) async fn future(call: impl FnOnce(Cancellation) -> BoxFuture<'static, HookReturned>, limits: Limits<'_>) -> Ran {
    let flight = limits.edge.enter();
    match caught(|| call(flight.token().clone())) {
        Ok(future) => awaited(future, &flight, &limits).await,
        Err(failure) => Ran::Error(HookError::Failed(failure)),
    }
}

/// What ended a turn from outside.
#[derive(Clone, Copy)]
enum Asked {
    ByEmitter,
    ByDeadline,
}

async fn awaited(future: BoxFuture<'static, HookReturned>, flight: &InFlight, limits: &Limits<'_>) -> Ran {
    let mut future = AssertUnwindSafe(future).catch_unwind();
    if let Poll::Ready(end) = poll!(&mut future) {
        return at_once(end.unwrap_or_else(|panic| Err(panicked(panic))), flight);
    }
    let asked = {
        let interrupted = pin!(interrupted(flight, limits));
        match select(&mut future, interrupted).await {
            Either::Left((end, _)) => return ended(end.unwrap_or_else(|panic| Err(panicked(panic))), reached(flight)),
            Either::Right((asked, _)) => asked,
        }
    };
    flight.ask();
    match timeout(GRACE, &mut future).await {
        Ok(end) => ended(end.unwrap_or_else(|panic| Err(panicked(panic))), Some(asked)),
        Err(_elapsed) => ended(Err(HookError::Cancelled), Some(asked)),
    }
}

/// A future that never waited has met no cancellation, unless it says so: the next one that waits is meant.
fn at_once(end: HookReturned, flight: &InFlight) -> Ran {
    if end == Err(HookError::Cancelled) {
        return ended(end, reached(flight));
    }
    flight.was_plain();
    ended(end, None)
}

async fn interrupted(flight: &InFlight, limits: &Limits<'_>) -> Asked {
    let late = async {
        match limits.deadline {
            Some(deadline) => sleep_until(deadline.instant()).await,
            None => pending().await,
        }
    };
    let stopped = async {
        match limits.stop {
            Some(stop) => stop.cancelled().await,
            None => pending().await,
        }
    };
    let (late, stopped) = (pin!(late), pin!(stopped));
    match select(pin!(flight.token().cancelled()), select(late, stopped)).await {
        Either::Left(_) => Asked::ByEmitter,
        Either::Right(_) => Asked::ByDeadline,
    }
}

/// A handler that ends in the very poll in which it was asked has been asked all the same.
fn reached(flight: &InFlight) -> Option<Asked> {
    flight.is_reached().then_some(Asked::ByEmitter)
}

fn ended(end: HookReturned, asked: Option<Asked>) -> Ran {
    match (end, asked) {
        (Ok(value), _) => Ran::Returned(value),
        (Err(HookError::Cancelled), None) => Ran::Cancelled(By::Itself),
        (Err(HookError::Cancelled), Some(Asked::ByEmitter)) => Ran::Cancelled(By::Emitter),
        (Err(HookError::Cancelled), Some(Asked::ByDeadline)) => Ran::TimedOut,
        (Err(error), _) => Ran::Error(error),
    }
}

/// Runs code of others; a panic is an ordinary failure.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, HandlerFailure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(failure)
}

fn panicked(panic: Box<dyn Any + Send>) -> HookError {
    HookError::Failed(failure(panic))
}

fn failure(panic: Box<dyn Any + Send>) -> HandlerFailure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let failure = HandlerFailure::new(PANIC_CODE, text.unwrap_or("a panic without a message"));
    // What a panic carries is a value of theirs, and its drop may panic as well.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
    failure
}
