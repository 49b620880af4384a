//! `HookedEvent`: one hook before a call, one after it; answered whole, or in chunks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::cancel::Cancellation;
use tipstaff::compat::{
    HookError, HookEvent, HookResponse, HookedAnswer, HookedCall, HookedChunks, HookedEnd, HookedEvent, ServiceHook, ServiceHooks,
};
use tipstaff::operation::StreamState;
use tipstaff::{OwnerHandle, Runtime, Session};

use super::dispatch::library;
use super::hooks::{awaited, cancelled, hook, hook_result, raised};
use super::observer::open;
use super::{Driver, never};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::{Entry, Handler, Outcome, Role};
use crate::characterization::script::{Body, Streamed};

pub(super) const INVOKE: Driver = Driver {
    profile: "hooked_event_invoke",
    policy: || Value::Null,
    threads: never,
    drive: |stage, _policy| drive(stage, false).boxed_local(),
};

pub(super) const STREAM: Driver = Driver {
    profile: "hooked_event_stream",
    policy: || Value::Null,
    threads: never,
    drive: |stage, _policy| drive(stage, true).boxed_local(),
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Setup {
    chunks: Option<Vec<Value>>,
    take: Option<usize>,
}

/// The mechanism, ready for its one call.
struct Service {
    owner: OwnerHandle<HookedEvent>,
    session: Session,
    core: Arc<Body>,
}

async fn drive(stage: Stage, streams: bool) -> Result<Driven, String> {
    let setup: Setup = stage.scenario.setup()?;
    if stage.scenario.emit.entry != Entry::Async {
        return Err(format!("emit.entry: {:?}", stage.scenario.emit.entry));
    }
    let runtime = Runtime::builder().spawn().await.expect("a runtime comes up");
    let session = open(&runtime).await;
    let of = |role| stage.scenario.registered().find(|handler| handler.role == Some(role));
    let core = Body::new(of(Role::Core).ok_or("no core")?, &stage.world);
    let hooks = ServiceHooks::new();
    let hooks = of(Role::Pre).into_iter().fold(hooks, |hooks, pre| hooks.pre_invocation(service_hook(&stage, pre)));
    let hooks = of(Role::Post).into_iter().fold(hooks, |hooks, post| hooks.post_invocation(service_hook(&stage, post)));
    let plan = hooks.plan("service").map_err(|error| error.to_string())?;
    let service = Service { owner: runtime.start_owner(plan).await.expect("an owner comes up"), session, core };
    stage.begin();
    let call = hooks.call(Value::Null);
    let handle = call.handle();
    // The events are read after the emission, whatever became of it.
    let mut answered = None;
    let calling = async {
        let (answer, chunks) =
            if streams { service.stream(&stage, call, setup).await } else { (service.invoke(call).await, Vec::new()) };
        let outcome = outcome(&answer, streams.then_some(chunks));
        answered = Some(answer);
        outcome
    };
    let outcome = stage.emission(move || handle.cancel(), Box::pin(calling)).await;
    stage.settle().await;
    let answer = answered.ok_or("the call has no answer to read events from")?;
    let mut extra =
        BTreeMap::from([("pre".to_owned(), event(answer.pre.as_ref())), ("post".to_owned(), event(answer.post.as_ref()))]);
    if streams {
        extra.insert("stream_state".to_owned(), json!(answer.stream.map(state)));
    }
    Ok(Driven { outcome, extra })
}

fn service_hook(stage: &Stage, handler: &Handler) -> ServiceHook {
    let body = Body::new(handler, &stage.world);
    let hook = ServiceHook::new(hook(&body, handler.name.clone())).exit(handler.exit);
    match handler.timeout_ms {
        Some(ms) => hook.deadline(stage.world.pace.span(ms)),
        None => hook,
    }
}

impl Service {
    async fn invoke(&self, call: HookedCall) -> HookedAnswer {
        let core = Arc::clone(&self.core);
        let made = self
            .owner
            .invoke_hooked(&self.session, call, move |_request, asked| async move { awaited(core.awaitable(), asked).await });
        made.await
    }

    /// Takes chunks as a consumer does, until the stream ends or it has enough.
    async fn stream(&self, stage: &Stage, call: HookedCall, setup: Setup) -> (HookedAnswer, Vec<Value>) {
        let Setup { chunks, take } = setup;
        let source = Source { chunks: chunks.unwrap_or_else(|| vec![json!(1), json!(2)]).into(), body: None };
        let core = Arc::clone(&self.core);
        let opened = self
            .owner
            .stream_hooked(&self.session, call, move |_request, asked: Cancellation| {
                std::future::ready(Ok(Source { body: Some((core.streamed(), asked)), ..source }))
            })
            .await;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(answer) => return (*answer, Vec::new()),
        };
        let mut taken = Vec::new();
        while take.is_none_or(|most| taken.len() < most) {
            let Some(chunk) = stream.next().await else { break };
            stage.world.log("chunk", &chunk.to_string());
            taken.push(chunk);
        }
        (stream.close().await, taken)
    }
}

/// The core of a stream: it yields its chunks, then runs its script.
struct Source {
    chunks: VecDeque<Value>,
    body: Option<(Streamed, Cancellation)>,
}

impl HookedChunks for Source {
    async fn next_chunk(&mut self) -> Option<Result<Value, HookError>> {
        let (body, _asked) = self.body.as_mut()?;
        body.begin();
        if let Some(chunk) = self.chunks.pop_front() {
            return Some(Ok(chunk));
        }
        let ended = body.script().await;
        self.body = None;
        hook_result(ended).err().map(Err)
    }
}

fn outcome(answer: &HookedAnswer, chunks: Option<Vec<Value>>) -> Outcome {
    match (&answer.end, chunks) {
        (HookedEnd::Returned(_), Some(chunks)) => Outcome::Returned { value: json!(chunks) },
        (HookedEnd::Returned(value), None) => Outcome::Returned { value: value.clone() },
        (HookedEnd::Raised { error, .. }, _) => raised(error),
        (HookedEnd::HookFailed { .. }, _) => library("RuntimeError"),
        (HookedEnd::Cancelled { by }, _) => cancelled(by),
        (HookedEnd::Other, _) => library("Other"),
    }
}

fn event(event: Option<&HookEvent>) -> Value {
    let Some(HookEvent { status, error, should_exit, response }) = event else { return Value::Null };
    let response = match response {
        HookResponse::None => Value::Null,
        HookResponse::Value(value) => value.clone(),
        HookResponse::Unawaited => json!({"$unawaited": true}),
    };
    json!({"status": status.as_str(), "error": error.is_some(), "should_exit": should_exit, "response": response})
}

const fn state(state: StreamState) -> &'static str {
    match state {
        StreamState::Open => "open",
        StreamState::Completed => "completed",
        StreamState::Failed => "failed",
        StreamState::TimedOut => "timed_out",
        StreamState::Closed => "closed",
        StreamState::Cancelled => "cancelled",
    }
}
