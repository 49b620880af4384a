//! An operation that is answered in chunks: driven by its consumer, never ahead of it.
//!
//! | state     | input                      | next      | the attempt ends as               | the teardown runs          |
//! |-----------|----------------------------|-----------|-----------------------------------|----------------------------|
//! | open      | a chunk                    | open      |                                   |                            |
//! | open      | the end of the chunks      | completed | completed                         | when it is closed          |
//! | open      | an error or a panic        | failed    | failed                            | when it is closed          |
//! | open      | the time limit             | timed out | timed out                         | when it is closed          |
//! | open      | closed by its consumer     | closed    | completed: it was performed       | in the consumer's task     |
//! | open      | cancelled by its consumer  | cancelled | ambiguous (P-14)                  | when it is closed          |
//! | open      | dropped by its consumer    |           | ambiguous (P-14)                  | with the owner, shielded   |
//! | any other | a further pull             | the same  |                                   |                            |
//! | any other | closed                     | the same  | as the state says                 | in the consumer's task     |
//! | any other | dropped                    |           | as the state says                 | with the owner, shielded   |
//!
//! The source of the chunks is dropped before the teardown runs, in every row.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout_at;

use super::contained::{contained, panic_text};
use super::performance::FailureClass;
use super::teardown::{Ending, TearsDown};
use super::{Answer, Audit, CompletionPlace, Failure, Granted, Owner, Performance, Performing, ResultOf, StatusCell};
use crate::clock::Deadline;

/// An owner whose operations may be answered in chunks.
pub trait Streams: TearsDown {
    /// The output of an operation whose answer went to its consumer in chunks.
    fn streamed(state: StreamState, chunks: u64) -> Self::Output;
}

/// Where the chunks of a streamed answer come from. It is asked for one chunk at a time, and only when the consumer wants one.
///
/// # Contract
/// After `None` or an error it is not asked again. It must be correct when its future is dropped at any await: a consumer may go away.
pub trait ChunkSource: Send + 'static {
    /// The next chunk; `None` at the end.
    fn next_chunk(&mut self) -> impl Future<Output = Option<Result<Value, Failure>>> + Send;
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// More may come.
    Open,
    /// It came to its end.
    Completed,
    /// It failed.
    Failed,
    /// It ran into its time limit.
    TimedOut,
    /// Its consumer closed it before its end.
    Closed,
    /// Its consumer cancelled it.
    Cancelled,
}

/// A streamed answer, on its way to its consumer. Close it to learn how the attempt ended; dropped, it is torn down all the same (I-4).
#[must_use = "dropped, the stream is torn down by its owner and the attempt is recorded as ambiguous"]
pub struct ChunkStream<O: Streams, A: Audit, P: CompletionPlace> {
    // Dropped before the attempt: fields drop in this order.
    source: Chunks,
    performing: Performing<O, A, P>,
    until: Option<Deadline>,
    chunks: u64,
    state: StreamState,
    ended: Option<Arc<ResultOf<O>>>,
}

impl<O: Streams, A: Audit, P: CompletionPlace> Performing<O, A, P> {
    /// Opens the stream. An error or a panic of opening it is the failure of the stream, at its first pull.
    ///
    /// # Cancel safety
    /// Dropping the future drops what opens the stream wherever it stands. The teardown runs with the owner; the attempt is recorded as ambiguous.
    pub async fn stream<F, Fut, S, E>(self, open: F) -> ChunkStream<O, A, P>
    where
        F: FnOnce(Granted<O>) -> Fut + Send,
        Fut: Future<Output = Result<S, E>> + Send,
        S: ChunkSource,
        E: fmt::Display,
    {
        let until = self.budget().map(Deadline::after);
        let granted = self.granted().clone();
        let opening = AssertUnwindSafe(async move {
            match open(granted).await {
                Ok(source) => Ok(Box::new(source) as Box<dyn Source>),
                Err(error) => Err(Failure::new(error)),
            }
        });
        let opened = within(until, opening.catch_unwind()).await;
        let mut stream =
            ChunkStream { source: Chunks(None), performing: self, until, chunks: 0, state: StreamState::Open, ended: None };
        match opened {
            Some(Ok(Ok(source))) => stream.source = Chunks(Some(source)),
            Some(Ok(Err(failure))) => stream.end(StreamState::Failed, Performance::Failed(failure)),
            Some(Err(panic)) => stream.end(StreamState::Failed, panicked(panic)),
            None => stream.end(StreamState::TimedOut, Performance::TimedOut),
        }
        stream
    }
}

impl<O: Streams, A: Audit, P: CompletionPlace> ChunkStream<O, A, P> {
    /// The next chunk; `None` once the stream has ended, in whatever way: [`Self::close`] tells.
    ///
    /// # Cancel safety
    /// As the source's own: a chunk that it was making may be lost. The stream stays open.
    pub async fn next(&mut self) -> Option<Value> {
        let source = self.source.0.as_mut()?;
        let next = AssertUnwindSafe(async move { source.next().await }).catch_unwind();
        match within(self.until, next).await {
            Some(Ok(Some(Ok(chunk)))) => {
                self.chunks += 1;
                return Some(chunk);
            }
            Some(Ok(Some(Err(failure)))) => self.end(StreamState::Failed, Performance::Failed(failure)),
            Some(Ok(None)) => self.end(StreamState::Completed, self.reply(StreamState::Completed)),
            Some(Err(panic)) => self.end(StreamState::Failed, panicked(panic)),
            None => self.end(StreamState::TimedOut, Performance::TimedOut),
        }
        None
    }

    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> StreamState {
        self.state
    }

    /// What was permitted.
    #[must_use]
    pub fn granted(&self) -> &Granted<O> {
        self.performing.granted()
    }

    /// The status of the attempt, for those who wait for its end.
    #[must_use]
    pub fn status(&self) -> StatusCell {
        self.performing.status()
    }

    /// Ends the stream as its consumer's cancellation would: the source is dropped where it stands, and it is not known how much of its effect the
    /// operation had. Close it then. Nothing happens to a stream that has ended.
    pub fn cancel(&mut self) {
        if self.state == StreamState::Open {
            let reason = format!("its consumer cancelled the stream after {} chunks", self.chunks);
            self.end(StreamState::Cancelled, Performance::Unknown { reason });
        }
    }

    /// Closes the stream, early or at its end: the result stages, the teardown and the record follow.
    ///
    /// # Cancel safety
    /// Dropping the future hands what is left over to the owner: the teardown runs, and the attempt is recorded as the stream stood.
    pub async fn close(mut self) -> Answer<O> {
        if self.state == StreamState::Open {
            self.end(StreamState::Closed, self.reply(StreamState::Closed));
        }
        let Self { performing, state, ended, .. } = self;
        let performance = ended.expect("a stream that is not open has ended");
        let ending = ending::<O>(state, &performance);
        performing.ended_as(ending, performance).review().await.record().await
    }

    fn reply(&self, state: StreamState) -> Performance<O::Output> {
        match contained(|| O::streamed(state, self.chunks)) {
            Ok(output) => Performance::Returned(output),
            Err(panic) => Performance::Failed(Failure::of(FailureClass::Panic, panic)),
        }
    }

    /// Drops the source and notes how the stream ended, so that a drop from here on records that.
    fn end(&mut self, state: StreamState, performance: Performance<O::Output>) {
        self.source = Chunks(None);
        let performance = Arc::new(performance.map(Arc::new));
        self.performing.note(ending::<O>(state, &performance), Arc::clone(&performance));
        (self.state, self.ended) = (state, Some(performance));
    }
}

fn ending<O: Owner>(state: StreamState, performance: &ResultOf<O>) -> Ending {
    match state {
        StreamState::Closed => Ending::Closed,
        StreamState::Cancelled => Ending::CallerGone,
        StreamState::Open | StreamState::Completed | StreamState::Failed | StreamState::TimedOut => Ending::from(performance),
    }
}

fn panicked<T>(panic: Box<dyn std::any::Any + Send>) -> Performance<T> {
    Performance::Failed(Failure::of(FailureClass::Panic, panic_text(panic)))
}

/// The output, unless the deadline comes first.
async fn within<T>(until: Option<Deadline>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        None => Some(work.await),
        Some(deadline) => timeout_at(deadline.instant(), work).await.ok(),
    }
}

/// [`ChunkSource`] behind a pointer.
trait Source: Send {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Value, Failure>>>;
}

impl<S: ChunkSource> Source for S {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Value, Failure>>> {
        Box::pin(self.next_chunk())
    }
}

/// The source, while there is one. A panic of theirs while it is dropped takes nothing with it.
struct Chunks(Option<Box<dyn Source>>);

impl Drop for Chunks {
    fn drop(&mut self) {
        let source = self.0.take();
        if let Err(panic) = contained(|| drop(source)) {
            tracing::warn!(target: crate::telemetry::OPERATION, panic, "the source of a stream panicked while it was dropped");
        }
    }
}

impl<O: Streams, A: Audit, P: CompletionPlace> fmt::Debug for ChunkStream<O, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkStream").field("state", &self.state).field("chunks", &self.chunks).finish_non_exhaustive()
    }
}
