//! Teardown: the one step of an owner that survives its caller, for a bounded time (I-4).
//!
//! | the caller                                | the teardown runs                                   | the attempt ends as |
//! |-------------------------------------------|-----------------------------------------------------|---------------------|
//! | waits for its answer                      | in the caller's task, after the result stages       | it was performed    |
//! | goes away while the operation is performed | with the owner, in the permit's reserved place     | ambiguous (P-14)    |
//! | goes away in the result stages            | the same                                            | it was performed    |
//! | goes away in the teardown                 | the same, from where it stands                      | it was performed    |
//!
//! | the teardown                                                        | ends as          |
//! |---------------------------------------------------------------------|------------------|
//! | returns within its bound                                            | finished         |
//! | returns an error, or panics                                         | failed           |
//! | is asked to stop at its bound, and returns within its grace         | stopped          |
//! | does not                                                            | dropped          |
//! | loses its owner as well (a crash, the end of the runtime)           | nothing is known of it |
//!
//! However it ends, it changes neither the result nor the status: the operation was performed before it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::time::timeout;

use super::contained::panic_text;
use super::performance::FailureClass;
use super::{Failure, Owner, Performance};
use crate::cancel::{Cancellation, cancellation};
use crate::telemetry;

/// An owner that tears down what its operations leave behind.
pub trait TearsDown: Owner {
    /// How long a teardown may take. The owner's stages declare the same bound at its own step.
    const TEARDOWN: TeardownBudget;
}

/// How long a teardown may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeardownBudget {
    /// At its end the teardown is asked to stop.
    pub bound: Duration,
    /// How long it may take to stop; then it is dropped.
    pub grace: Duration,
}

/// How performing ended, as a teardown is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It returned.
    Returned,
    /// It failed or panicked.
    Failed,
    /// It ended at its deadline.
    TimedOut,
    /// Its body does not know how it ended.
    Unknown,
    /// Its consumer closed it early.
    Closed,
    /// Its caller went away in the middle of it.
    CallerGone,
}

/// How a teardown ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TeardownEnd {
    /// It returned within its bound.
    Finished,
    /// It returned an error or panicked.
    Failed(Failure),
    /// It was asked to stop at its bound, and did within its grace.
    Stopped,
    /// It did not stop, and was dropped.
    Dropped,
}

impl<T> From<&Performance<T>> for Ending {
    fn from(performance: &Performance<T>) -> Self {
        match performance {
            Performance::Returned(_) => Self::Returned,
            Performance::Failed(_) => Self::Failed,
            Performance::TimedOut => Self::TimedOut,
            Performance::Unknown { .. } => Self::Unknown,
        }
    }
}

type Ready = Box<dyn FnOnce(Ending, Cancellation) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// A teardown that is due. Its future stands in it, so that whoever goes on with it goes on from where it stands.
pub(super) struct Teardown {
    state: State,
    budget: TeardownBudget,
}

enum State {
    Ready(Ready),
    Running(BoxFuture<'static, TeardownEnd>),
    Ended(TeardownEnd),
}

impl Teardown {
    pub(super) fn new<F, Fut>(budget: TeardownBudget, teardown: F) -> Self
    where
        F: FnOnce(Ending, Cancellation) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let ready: Ready = Box::new(move |ending, stop| Box::pin(teardown(ending, stop)));
        Self { state: State::Ready(ready), budget }
    }

    /// Runs it to its end, which comes within the bound and the grace. Dropping the future loses nothing: run it again.
    pub(super) async fn run(&mut self, ending: Ending) -> TeardownEnd {
        loop {
            // What is taken out is put back before anything is awaited.
            self.state = match std::mem::replace(&mut self.state, State::Ended(TeardownEnd::Dropped)) {
                State::Ready(ready) => State::Running(Box::pin(bounded(ready, ending, self.budget))),
                State::Ended(end) => {
                    self.state = State::Ended(end.clone());
                    return end;
                }
                running @ State::Running(_) => running,
            };
            if let State::Running(running) = &mut self.state {
                let end = running.await;
                self.state = State::Ended(end);
            }
        }
    }
}

async fn bounded(ready: Ready, ending: Ending, budget: TeardownBudget) -> TeardownEnd {
    let (stop, stopping) = cancellation();
    let called = catch_unwind(AssertUnwindSafe(|| ready(ending, stopping)));
    let end = match called {
        Err(panic) => failed(FailureClass::Panic, panic_text(panic)),
        Ok(teardown) => {
            let mut teardown = AssertUnwindSafe(teardown).catch_unwind();
            let ended = |ended| match ended {
                Ok(Ok(())) => TeardownEnd::Finished,
                Ok(Err(failure)) => TeardownEnd::Failed(failure),
                Err(panic) => failed(FailureClass::Panic, panic_text(panic)),
            };
            match timeout(budget.bound, &mut teardown).await {
                Ok(in_time) => ended(in_time),
                Err(_elapsed) => {
                    stop.cancel();
                    match timeout(budget.grace, &mut teardown).await {
                        Ok(Err(panic)) => failed(FailureClass::Panic, panic_text(panic)),
                        Ok(Ok(_)) => TeardownEnd::Stopped,
                        Err(_elapsed) => TeardownEnd::Dropped,
                    }
                }
            }
        }
    };
    if end != TeardownEnd::Finished {
        tracing::warn!(target: telemetry::OPERATION, ?ending, ?end, "a teardown did not finish");
    }
    end
}

fn failed(class: FailureClass, message: String) -> TeardownEnd {
    TeardownEnd::Failed(Failure::of(class, message))
}
