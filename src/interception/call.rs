//! Calling one interceptor: panics are caught, bounds are kept.
//!
//! | the interceptor                             | called                                     |
//! |---------------------------------------------|--------------------------------------------|
//! | answers                                     | Answered (the chain checks that it is in time) |
//! | answers with an error                       | Failed                                     |
//! | panics before it returns its future (AH-3)  | Panicked                                   |
//! | panics while it is polled                   | Panicked                                   |
//! | is pending when its bound passes            | TimedOut; its future is dropped            |
//! | is pending when the proposal is dropped     | its future is dropped, the report says so  |
//!
//! A timer exists only for a future that is pending after its first poll.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::time::{Instant, Sleep, sleep_until};

use super::denial::cut;
use super::error::{FailureKind, InterceptError};
use super::report::InFlight;
use crate::clock::Deadline;

/// The longest panic message that is kept, in bytes.
const MAX_PANIC_BYTES: usize = 1024;

type Answered<A> = Result<A, InterceptError>;

/// A failure on its way to the chain. Boxed, so that an answer stays a few words long.
pub(super) type Failure = Box<FailureKind>;

/// Calls a plain closure.
pub(super) fn plain<A>(call: impl FnOnce() -> Answered<A>) -> Result<A, Failure> {
    caught(call)?.map_err(failed)
}

/// What came of calling a closure that returns a future, and polling that once.
pub(super) enum Started<A> {
    Answered(Result<A, Failure>),
    Waiting(Called<A>),
}

/// Calls a closure that returns a future, and polls that once. Most answer at once: whatever is needed for waiting is not even built for them.
pub(super) async fn started<A>(call: impl Fn() -> BoxFuture<'static, Answered<A>>) -> Started<A> {
    poll_fn(|cx| {
        Poll::Ready(match caught(&call) {
            Ok(future) => {
                let mut called = Called(Some(future));
                match called.poll(cx) {
                    Poll::Ready(answer) => Started::Answered(answer),
                    Poll::Pending => Started::Waiting(called),
                }
            }
            Err(panicked) => Started::Answered(Err(panicked)),
        })
    })
    .await
}

/// Waits for a future that was just polled, until `by`. Dropping this future drops the interceptor's, and the report says so.
pub(super) async fn waited<A>(mut called: Called<A>, by: Deadline, mut in_flight: InFlight<'_>) -> Result<A, Failure> {
    in_flight.took_off();
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let answer = poll_fn(|cx| {
        // The first time, the future has just been polled with this very context, and only the timer is missing.
        if timer.is_some() {
            if let Poll::Ready(answer) = called.poll(cx) {
                return Poll::Ready(answer);
            }
            // A future that uses up the task's budget would keep the timer from ever firing.
            if Instant::now() >= by.instant() {
                return Poll::Ready(Err(FailureKind::TimedOut.into()));
            }
        }
        // Without a runtime, or without its timers, the timer panics: nobody can wait, so nobody is allowed.
        match caught(|| timer.get_or_insert_with(|| Box::pin(sleep_until(by.instant()))).as_mut().poll(cx)) {
            Err(panicked) => Poll::Ready(Err(panicked)),
            Ok(Poll::Ready(())) => Poll::Ready(Err(FailureKind::TimedOut.into())),
            Ok(Poll::Pending) => Poll::Pending,
        }
    })
    .await;
    in_flight.landed();
    answer
}

#[cold]
fn failed(error: InterceptError) -> Failure {
    Box::new(if error.is_cancelled() { FailureKind::Cancelled(error) } else { FailureKind::Error(error) })
}

/// Runs code of others. What it leaves behind after a panic is dropped or owned by it, so nothing of ours is left half done.
#[inline]
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(panicked)
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Failure {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (_, Some(message)) => message.clone(),
        _ => "with a payload that is no text".to_owned(),
    };
    // The payload is a value of theirs, and its drop may panic as well.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    Box::new(FailureKind::Panicked { message: cut(message, MAX_PANIC_BYTES) })
}

/// A future of others: polled and dropped with panics caught. It is taken out only to be dropped.
pub(super) struct Called<A>(Option<BoxFuture<'static, Answered<A>>>);

impl<A> Called<A> {
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<A, Failure>> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        match caught(|| future.as_mut().poll(cx)) {
            Ok(Poll::Ready(answer)) => Poll::Ready(answer.map_err(failed)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}

impl<A> Drop for Called<A> {
    #[inline]
    fn drop(&mut self) {
        let future = self.0.take();
        // A panic while cleaning up cannot change an answer any more.
        if caught(|| drop(future)).is_err() {
            tracing::warn!(target: crate::telemetry::INTERCEPTION, "an interceptor panicked while its future was dropped");
        }
    }
}
