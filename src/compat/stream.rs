//! A hooked call that is answered in chunks.
//!
//! | the stream                     | its state | the post hook runs                      | its caller sees                     |
//! |--------------------------------|-----------|-----------------------------------------|-------------------------------------|
//! | comes to its end               | completed | when it is closed, with its own deadline | the data                            |
//! | fails                          | failed    | the same                                | the failure                         |
//! | is closed early                | closed    | in the teardown                         | the data so far                     |
//! | is cancelled by the handle     | cancelled | in the teardown                         | the cancellation                    |
//! | is dropped                     |           | in the teardown, with the owner         |                                     |

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use serde_json::Value;

use super::event::{HookedAnswer, HookedEnd};
use super::hook::{HookCanceller, HookError};
use super::run::{By, Ran};
use super::service::{HookedCall, HookedEvent, Run, ServiceHook};
use crate::cancel::Cancellation;
use crate::operation::{Audit, ChunkSource, ChunkStream, CompletionPlace, Failure, Permit, StreamState};
use crate::telemetry;

/// Where the chunks come from. It is asked for one at a time, and only when the consumer wants one.
pub trait HookedChunks: Send + 'static {
    /// The next chunk; `None` at the end.
    fn next_chunk(&mut self) -> impl Future<Output = Option<Result<Value, HookError>>> + Send;
}

/// A streamed answer with its hooks. Close it to learn how the call ended.
#[must_use = "dropped, the stream is torn down by its owner and the attempt is recorded as ambiguous"]
pub struct HookedStream<A: Audit, P: CompletionPlace> {
    stream: ChunkStream<HookedEvent, A, P>,
    call: HookedCall,
}

impl HookedCall {
    /// Makes the call and opens its stream. That opening failed is told by the stream's end.
    ///
    /// # Cancel safety
    /// Dropping the future drops what opens the stream. The post hook runs with the owner, shielded, and the attempt is recorded as ambiguous.
    pub async fn stream<A, P, F, Fut, S>(self, permit: Permit<HookedEvent, A, P>, core: F) -> HookedStream<A, P>
    where
        A: Audit,
        P: CompletionPlace,
        F: FnOnce(Arc<Value>, Cancellation) -> Fut + Send,
        Fut: Future<Output = Result<S, HookError>> + Send,
        S: HookedChunks,
    {
        self.stream_begins();
        let performing = permit.begin(self.teardown());
        let (run, hooks) = (self.run(), &self.chunks);
        let open = async |_granted| {
            let flight = run.edge.enter();
            match core(Arc::clone(self.request()), flight.token().clone()).await {
                Ok(source) => {
                    flight.was_plain();
                    Ok(Chunks { source, run: Arc::clone(run), hooks: hooks.clone() })
                }
                Err(HookError::Cancelled) if flight.is_reached() => Err(run.core_failed(Ran::Cancelled(By::Emitter))),
                Err(error) => Err(failed(run, error)),
            }
        };
        let stream = performing.stream(open).await;
        HookedStream { stream, call: self }
    }
}

impl<A: Audit, P: CompletionPlace> HookedStream<A, P> {
    /// The next chunk; `None` once the stream has ended, in whatever way: [`Self::close`] tells.
    ///
    /// # Cancel safety
    /// As the source's own: a chunk that it was making may be lost. The stream stays open.
    pub async fn next(&mut self) -> Option<Value> {
        if self.stream.state() != StreamState::Open {
            return None;
        }
        let flight = self.call.run().edge.enter();
        let next = {
            let chunk = pin!(self.stream.next());
            match select(chunk, pin!(flight.token().cancelled())).await {
                // A cancellation that came with a chunk is not lost: the next pull meets it.
                Either::Left((chunk, _)) => {
                    flight.was_plain();
                    Some(chunk)
                }
                Either::Right(_) => None,
            }
        };
        next.unwrap_or_else(|| {
            self.call.run().raise(HookedEnd::Cancelled { by: HookCanceller::Emitter });
            self.call.run().end_early();
            self.stream.cancel();
            None
        })
    }

    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> StreamState {
        self.stream.state()
    }

    /// Closes the stream, early or at its end.
    ///
    /// # Cancel safety
    /// Dropping the future hands what is left over to the owner.
    pub async fn close(self) -> HookedAnswer {
        let Self { stream, call } = self;
        let state = match stream.state() {
            StreamState::Open => {
                call.run().end_early();
                StreamState::Closed
            }
            state => state,
        };
        let answer = stream.close().await;
        call.answered(answer, Some(state))
    }
}

/// The chunks on their way through their hooks.
struct Chunks<S> {
    source: S,
    run: Arc<Run>,
    hooks: BTreeMap<Arc<str>, ServiceHook>,
}

impl<S: HookedChunks> ChunkSource for Chunks<S> {
    async fn next_chunk(&mut self) -> Option<Result<Value, Failure>> {
        match self.source.next_chunk().await? {
            Ok(chunk) => match self.hook_of(&chunk) {
                Some(hook) => Some(hooked(&hook, &self.run, chunk).await),
                None => Some(Ok(chunk)),
            },
            Err(error) => Some(Err(failed(&self.run, error))),
        }
    }
}

impl<S> Chunks<S> {
    fn hook_of(&self, chunk: &Value) -> Option<ServiceHook> {
        chunk.get("type").and_then(Value::as_str).and_then(|key| self.hooks.get(key)).cloned()
    }
}

/// A chunk, after its hook.
async fn hooked(hook: &ServiceHook, run: &Run, chunk: Value) -> Result<Value, Failure> {
    let chunk = Arc::new(chunk);
    let ran = hook.turn(&chunk, &super::edge::Edge::default(), None).await;
    let error = match ran {
        Ran::Returned(_) | Ran::Unawaited => None,
        Ran::Error(error) => Some(error),
        Ran::TimedOut => Some(HookError::failed("timed_out", "the hook of a chunk did not return in time")),
        Ran::Cancelled(_) => Some(HookError::Cancelled),
    };
    match error {
        Some(error) if hook.exits() || error == HookError::Cancelled => {
            let by = Arc::clone(hook.name());
            let failure = Failure::new(&error);
            run.raise(match error {
                HookError::Cancelled => HookedEnd::Cancelled { by: HookCanceller::Hook(by) },
                error => HookedEnd::Raised { by, error },
            });
            Err(failure)
        }
        Some(error) => {
            tracing::warn!(target: telemetry::COMPAT, hook = %hook.name(), %error, "the hook of a chunk did not return; the chunk stands");
            Ok(Arc::unwrap_or_clone(chunk))
        }
        None => Ok(Arc::unwrap_or_clone(chunk)),
    }
}

fn failed(run: &Run, error: HookError) -> Failure {
    run.core_failed(match error {
        HookError::Cancelled => Ran::Cancelled(By::Itself),
        error => Ran::Error(error),
    })
}

impl<A: Audit, P: CompletionPlace> fmt::Debug for HookedStream<A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedStream").field("state", &self.state()).finish_non_exhaustive()
    }
}
