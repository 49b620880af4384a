//! Service calls: the owner of requests to a model, an embedder or any other endpoint, answered whole or as a stream.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Owner;
use super::stream::{ChunkStream, StreamState, Streams};
use super::teardown::{TeardownBudget, TearsDown};
use crate::declare::{CanonicalError, Digest, digest_of};
use crate::interception::{Judged, ResultOn, StageSpec};
use crate::signal::Subject;

/// The owner of service calls.
///
/// Its order: a guard and a transform before the request is made -> a guard and a transform before it is sent -> *invoke or stream* -> post / error ->
/// *teardown*. The steps in italics are its own. The teardown survives the caller for 5 s, and has 1 s more to stop (I-4).
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall;

/// The stages of service calls.
pub mod stage {
    /// Guard: may this request be made.
    pub const PRE_CREATE_GUARD: &str = "pre_create_guard";
    /// Transform: makes the request what it shall be.
    pub const PRE_CREATE: &str = "pre_create";
    /// Guard: may this request be sent.
    pub const PRE_INVOKE_GUARD: &str = "pre_invoke_guard";
    /// Transform: the last word on what is sent. The guards run again on it (I-5).
    pub const PRE_INVOKE: &str = "pre_invoke";
    /// Own step: the call, answered whole.
    pub const INVOKE: &str = "invoke";
    /// Own step: the call, answered in chunks.
    pub const STREAM: &str = "stream";
    /// Result: the call returned, or its stream ended or was closed.
    pub const POST: &str = "post";
    /// Result: the call failed or timed out.
    pub const ERROR: &str = "error";
    /// Own step: what the call leaves behind.
    pub const TEARDOWN: &str = "teardown";
}

impl Owner for ServiceCall {
    const NAME: &'static str = "service_call";
    type Context = ServiceRequest;
    type Output = ServiceReply;

    fn stages() -> Vec<StageSpec> {
        vec![
            StageSpec::guard(stage::PRE_CREATE_GUARD),
            StageSpec::transform(stage::PRE_CREATE),
            StageSpec::guard(stage::PRE_INVOKE_GUARD),
            StageSpec::transform(stage::PRE_INVOKE),
            StageSpec::own_step(stage::INVOKE),
            StageSpec::own_step(stage::STREAM),
            StageSpec::result(stage::POST, ResultOn::Returned),
            StageSpec::result(stage::ERROR, ResultOn::Error),
            StageSpec::own_step(stage::TEARDOWN).shielded(Self::TEARDOWN.bound),
        ]
    }

    /// The endpoint.
    fn subject(request: &ServiceRequest) -> Option<Subject> {
        Subject::new("endpoint", Arc::clone(&request.endpoint)).ok()
    }

    /// The request's own timeout.
    fn time_limit(request: &ServiceRequest) -> Option<Duration> {
        request.timeout()
    }
}

impl TearsDown for ServiceCall {
    const TEARDOWN: TeardownBudget = TeardownBudget { bound: Duration::from_secs(5), grace: Duration::from_secs(1) };
}

impl Streams for ServiceCall {
    fn streamed(state: StreamState, chunks: u64) -> ServiceReply {
        ServiceReply::Streamed { state, chunks }
    }
}

/// A streamed answer of a service call.
pub type ServiceStream<A, P> = ChunkStream<ServiceCall, A, P>;

/// A proposed service call: what is judged, and exactly what will be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceRequest {
    endpoint: Arc<str>,
    request: Value,
    #[serde(default)]
    streaming: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_attempts: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

impl ServiceRequest {
    /// A request to an endpoint, by name.
    #[must_use]
    pub fn new(endpoint: impl Into<Arc<str>>, request: Value) -> Self {
        Self { endpoint: endpoint.into(), request, streaming: false, max_attempts: None, timeout_ms: None }
    }

    /// Asks for the answer in chunks.
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Says how often the caller would try in all. Each try is an attempt of its own (I-12); nothing here retries.
    #[must_use]
    pub fn max_attempts(mut self, attempts: NonZeroU32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets how long it may be performed, in whole milliseconds. It is judged with the request, and bounds it.
    #[must_use]
    pub fn timeout_after(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The same call with another request: what a transform makes.
    #[must_use]
    pub fn with_request(&self, request: Value) -> Self {
        Self { request, ..self.clone() }
    }

    /// The same call of another endpoint: what a transform makes.
    #[must_use]
    pub fn with_endpoint(&self, endpoint: impl Into<Arc<str>>) -> Self {
        Self { endpoint: endpoint.into(), ..self.clone() }
    }

    /// The endpoint's name.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What is asked.
    #[must_use]
    pub fn request(&self) -> &Value {
        &self.request
    }

    /// Whether the answer is wanted in chunks.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// How often the caller would try in all.
    #[must_use]
    pub fn attempts(&self) -> Option<NonZeroU32> {
        self.max_attempts
    }

    /// How long it may be performed.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

impl Judged for ServiceRequest {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

/// What a service call gave back.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceReply {
    /// The whole answer.
    Whole(Value),
    /// The answer went to its consumer in chunks.
    Streamed {
        /// How the stream ended.
        state: StreamState,
        /// How many chunks its consumer took.
        chunks: u64,
    },
}

impl ServiceReply {
    /// The whole answer, if it came whole.
    #[must_use]
    pub const fn whole(&self) -> Option<&Value> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Streamed { .. } => None,
        }
    }
}
