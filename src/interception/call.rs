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

/// Calls a plain closure.
pub(super) fn plain<A>(call: impl FnOnce() -> Answered<A>) -> Result<A, FailureKind> {
    caught(call)?.map_err(failed)
}

/// Calls a closure that returns a future, and waits for it until `by`. `in_flight` takes off only if there is something to wait for.
///
/// Dropping this future drops the interceptor's.
pub(super) async fn future<A>(
    call: impl FnOnce() -> BoxFuture<'static, Answered<A>>,
    by: Deadline,
    mut in_flight: InFlight<'_>,
) -> Result<A, FailureKind> {
    let mut called = Called(Some(caught(call)?));
    match poll_fn(|cx| Poll::Ready(called.poll(cx))).await? {
        Poll::Ready(answer) => answer.map_err(failed),
        Poll::Pending => {
            in_flight.took_off();
            let answer = waited(&mut called, by).await;
            in_flight.landed();
            answer?.map_err(failed)
        }
    }
}

/// Waits for a future that was just polled.
async fn waited<A>(called: &mut Called<A>, by: Deadline) -> Result<Answered<A>, FailureKind> {
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        // The first time, the future has just been polled with this very context, and only the timer is missing.
        if timer.is_some() {
            match called.poll(cx) {
                Err(panicked) => return Poll::Ready(Err(panicked)),
                Ok(Poll::Ready(answer)) => return Poll::Ready(Ok(answer)),
                Ok(Poll::Pending) => {}
            }
            // A future that uses up the task's budget would keep the timer from ever firing.
            if Instant::now() >= by.instant() {
                return Poll::Ready(Err(FailureKind::TimedOut));
            }
        }
        // Without a runtime, or without its timers, the timer panics: nobody can wait, so nobody is allowed.
        let rung = caught(|| timer.get_or_insert_with(|| Box::pin(sleep_until(by.instant()))).as_mut().poll(cx));
        match rung {
            Err(panicked) => Poll::Ready(Err(panicked)),
            Ok(Poll::Ready(())) => Poll::Ready(Err(FailureKind::TimedOut)),
            Ok(Poll::Pending) => Poll::Pending,
        }
    })
    .await
}

fn failed(error: InterceptError) -> FailureKind {
    if error.is_cancelled() { FailureKind::Cancelled(error) } else { FailureKind::Error(error) }
}

/// Runs code of others. What it leaves behind after a panic is dropped or owned by it, so nothing of ours is left half done.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, FailureKind> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(message), _) => (*message).to_owned(),
            (_, Some(message)) => message.clone(),
            _ => "with a payload that is no text".to_owned(),
        };
        // The payload is a value of theirs, and its drop may panic as well.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        FailureKind::Panicked { message: cut(message, MAX_PANIC_BYTES) }
    })
}

/// A future of others: polled and dropped with panics caught.
struct Called<A>(Option<BoxFuture<'static, Answered<A>>>);

impl<A> Called<A> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Result<Poll<Answered<A>>, FailureKind> {
        match &mut self.0 {
            Some(future) => caught(|| future.as_mut().poll(cx)),
            None => Ok(Poll::Pending),
        }
    }
}

impl<A> Drop for Called<A> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            // A panic while cleaning up cannot change an answer any more.
            if caught(|| drop(future)).is_err() {
                tracing::warn!(target: crate::telemetry::INTERCEPTION, "an interceptor panicked while its future was dropped");
            }
        }
    }
}
