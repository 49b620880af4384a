//! Service hooks: one handler before a call, one after it, as an interceptor plan of an owner of their own (I-13).
//!
//! | hook | its turn              | its event | the call                                                              |
//! |------|-----------------------|-----------|-----------------------------------------------------------------------|
//! | pre  | returns               | completed | goes on                                                               |
//! | pre  | fails, whatever `exit` | cancelled | is not made; its failure reaches the caller as a text only            |
//! | pre  | runs into its deadline | failed    | the same                                                              |
//! | pre  | is cancelled          | cancelled | is not made; the cancellation reaches the caller                      |
//! | post | returns               | completed | is answered as it ended                                               |
//! | post | fails, without `exit` | aborted   | is answered as it ended                                               |
//! | post | fails, with `exit`    | aborted   | the failure itself reaches the caller, and the result is lost         |
//! | post | runs into its deadline | failed    | whatever `exit`, that reaches the caller as a text, and the result is lost |
//! | post | is cancelled          | cancelled | the cancellation reaches the caller, and the result is lost           |
//! | post | anything, after a call that failed | as above | the call's own failure reaches the caller                  |
//! | post | anything but returning, of a stream | as above | one warning; the data stands                              |
//!
//! The post hook runs in the caller's time, with its own deadline. Where a stream ends early, or the caller goes away, it runs in the owner's teardown:
//! shielded, for at most 5 s and 1 s of stop grace. The end goes through the operation's status setter: who waits for it is always told (I-19).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::edge::{CancelHandle, Edge};
use super::event::{HookEvent, HookResponse, HookStatus, HookedAnswer, HookedEnd};
use super::hook::{Hook, HookCanceller, HookError, HookReturned};
use super::run::{Awaiting, By, GRACE, Limits, Ran, future, turn};
use crate::cancel::Cancellation;
use crate::clock::Deadline;
use crate::declare::{CallableRef, CanonicalError, Digest, digest_of};
use crate::interception::{
    Decision, InterceptError, Judged, OnFailure, PlanBuilder, PlanError, Registration, ResultDecision, ResultOn, StageSpec, Turn,
};
use crate::operation::{
    Answer, Audit, CompletionPlace, DEFAULT_RULING_BUDGET, End, Ending, Failure, Operation, Owner, OwnerPlan, Performance,
    Permit, ResultOf, StreamState, Streams, TeardownBudget, TearsDown,
};
use crate::telemetry;

/// How long a service hook may take where nothing else is said.
pub const DEFAULT_HOOK_DEADLINE: Duration = Duration::from_secs(30);

/// What stands for the hooks in the plan's digest.
const CALLABLE: &str = "tipstaff::compat::service_hook@1";
/// The name of the call itself, where it stands beside hooks.
const CORE: &str = "core";

/// The owner of calls with service hooks.
#[derive(Debug, Clone, Copy)]
pub struct HookedEvent;

mod stage {
    pub(super) const PRE_EVENT_CREATE: &str = "pre_event_create";
    pub(super) const PRE_INVOCATION: &str = "pre_invocation";
    pub(super) const INVOKE: &str = "invoke";
    pub(super) const STREAM: &str = "stream";
    pub(super) const POST_INVOCATION: &str = "post_invocation";
    pub(super) const TEARDOWN: &str = "teardown";
}

impl Owner for HookedEvent {
    const NAME: &'static str = "hooked_event";
    type Context = HookedRequest;
    type Output = Value;

    fn stages() -> Vec<StageSpec> {
        vec![
            StageSpec::guard(stage::PRE_EVENT_CREATE).on_failure(OnFailure::Propagate),
            StageSpec::guard(stage::PRE_INVOCATION).on_failure(OnFailure::Propagate),
            StageSpec::own_step(stage::INVOKE),
            StageSpec::own_step(stage::STREAM),
            StageSpec::result(stage::POST_INVOCATION, ResultOn::Both),
            StageSpec::own_step(stage::TEARDOWN).shielded(Self::TEARDOWN.bound),
        ]
    }
}

impl TearsDown for HookedEvent {
    const TEARDOWN: TeardownBudget = TeardownBudget { bound: Duration::from_secs(5), grace: Duration::from_secs(1) };
}

impl Streams for HookedEvent {
    fn streamed(state: StreamState, chunks: u64) -> Value {
        json!({ "stream": state, "chunks": chunks })
    }
}

/// One service hook: a handler, what its failure means after the call, and its deadline.
#[derive(Debug, Clone)]
pub struct ServiceHook {
    hook: Hook<Value>,
    exit: bool,
    deadline: Duration,
}

impl ServiceHook {
    /// A hook without `exit`, with [`DEFAULT_HOOK_DEADLINE`].
    #[must_use]
    pub const fn new(hook: Hook<Value>) -> Self {
        Self { hook, exit: false, deadline: DEFAULT_HOOK_DEADLINE }
    }

    /// Sets whether its failure after the call reaches the caller. It decides nothing else.
    #[must_use]
    pub const fn exit(mut self, exit: bool) -> Self {
        self.exit = exit;
        self
    }

    /// Sets its deadline.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(super) async fn turn(&self, arguments: &Arc<Value>, edge: &Edge, stop: Option<&Cancellation>) -> Ran {
        let limits = Limits { edge, deadline: Some(Deadline::after(self.deadline)), stop };
        turn(&self.hook, arguments, Awaiting::ByDeclaration, limits).await
    }

    pub(super) fn name(&self) -> &Arc<str> {
        self.hook.name()
    }

    pub(super) const fn exits(&self) -> bool {
        self.exit
    }
}

/// The service hooks of a composition: one handler for each key.
#[derive(Debug, Clone, Default)]
#[must_use = "hooks do nothing until a plan is made of them"]
pub struct ServiceHooks {
    pre_create: Option<ServiceHook>,
    pre: Option<ServiceHook>,
    post: Option<ServiceHook>,
    chunks: BTreeMap<Arc<str>, ServiceHook>,
}

impl ServiceHooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The handler before the call's event is made.
    pub fn pre_event_create(mut self, hook: ServiceHook) -> Self {
        self.pre_create = Some(hook);
        self
    }

    /// The handler before the call.
    pub fn pre_invocation(mut self, hook: ServiceHook) -> Self {
        self.pre = Some(hook);
        self
    }

    /// The handler after the call.
    pub fn post_invocation(mut self, hook: ServiceHook) -> Self {
        self.post = Some(hook);
        self
    }

    /// The handler of the chunks of one key: of those whose member `type` is that text. With `exit`, its failure ends the stream; without, it is one
    /// warning.
    pub fn on_chunk(mut self, key: impl Into<Arc<str>>, hook: ServiceHook) -> Self {
        self.chunks.insert(key.into(), hook);
        self
    }

    /// The plan for an owner of [`HookedEvent`]s.
    ///
    /// # Errors
    /// [`PlanError`] when two handlers have one name, or one is not usable.
    pub fn plan(&self, name: impl Into<Arc<str>>) -> Result<OwnerPlan<HookedEvent>, PlanError> {
        let mut plan = PlanBuilder::new(name, &HookedEvent::stages());
        for (hook, at, slot) in
            [(&self.pre_create, stage::PRE_EVENT_CREATE, Slot::PreCreate), (&self.pre, stage::PRE_INVOCATION, Slot::Pre)]
        {
            if let Some(hook) = hook {
                plan = plan.register(before(hook.clone(), at, slot));
            }
        }
        if let Some(hook) = &self.post {
            plan = plan.register(after(hook.clone()));
        }
        plan.build()
    }

    /// One call with these hooks. They have to be those of the owner's plan.
    #[must_use = "a call does nothing until it is made"]
    pub fn call(&self, request: Value) -> HookedCall {
        let event = |hook: &Option<ServiceHook>| hook.as_ref().map(|_| HookEvent::default());
        let events = Events { pre_create: event(&self.pre_create), pre: event(&self.pre), post: event(&self.post), raised: None };
        let run = Run {
            edge: Edge::default(),
            events: Mutex::new(events),
            streamed: AtomicBool::new(false),
            ended_early: AtomicBool::new(false),
        };
        let request = HookedRequest { request: Arc::new(request), run: Arc::new(run) };
        HookedCall { request, budget: self.budget(), post: self.post.clone(), chunks: self.chunks.clone() }
    }
}

impl ServiceHooks {
    /// What a ruling, and the result stage, may take: the hooks' own deadlines end them, and not the proposal's.
    fn budget(&self) -> Duration {
        let whole = |hook: &Option<ServiceHook>| hook.as_ref().map_or(Duration::ZERO, |hook| hook.deadline.saturating_add(GRACE));
        let before = whole(&self.pre_create).saturating_add(whole(&self.pre));
        before.max(whole(&self.post)).saturating_add(GRACE).max(DEFAULT_RULING_BUDGET)
    }
}

fn callable() -> CallableRef {
    CallableRef::from_static(CALLABLE)
}

fn before(hook: ServiceHook, at: &'static str, slot: Slot) -> Registration<HookedRequest, ResultOf<HookedEvent>> {
    Registration::decide_async(Arc::clone(hook.name()), at, callable(), move |request: Arc<HookedRequest>, _: Turn| {
        let hook = hook.clone();
        async move {
            let ran = hook.turn(&request.request, &request.run.edge, None).await;
            let (event, end) = judged(&hook, ran, HookStatus::Cancelled);
            let mut events = request.run.events();
            events.set(slot, event);
            match end {
                None => Ok(Decision::proceed()),
                Some(end) => {
                    // Of what went wrong before the call, only a cancellation or a fatal failure reaches the caller as itself.
                    events.raised = Some(match end {
                        HookedEnd::Raised { by, error: error @ (HookError::Failed(_) | HookError::StoreRefused(_)) } => {
                            HookedEnd::HookFailed { by, message: error.to_string() }
                        }
                        end => end,
                    });
                    Err(InterceptError::new("a service hook did not return"))
                }
            }
        }
    })
}

fn after(hook: ServiceHook) -> Registration<HookedRequest, ResultOf<HookedEvent>> {
    let name = Arc::clone(hook.name());
    let judge = move |request: Arc<HookedRequest>, result: Arc<ResultOf<HookedEvent>>, _: Turn| {
        let hook = hook.clone();
        async move {
            let run = &request.run;
            if run.ended_early.load(Ordering::Acquire) {
                // The teardown runs it.
                return Ok(ResultDecision::Keep);
            }
            let end = run.post(&hook, &request.request, None).await;
            let stands = run.is_streamed() || !matches!(&*result, Performance::Returned(_));
            match end {
                Some(end) if !stands => {
                    run.events().raised = Some(end);
                    Err(InterceptError::new("the post hook did not return"))
                }
                _ => Ok(ResultDecision::Keep),
            }
        }
    };
    Registration::on_result_async(name, stage::POST_INVOCATION, callable(), judge)
}

/// The event of a hook's turn, and what it would have its caller see.
fn judged(hook: &ServiceHook, ran: Ran, failed: HookStatus) -> (HookEvent, Option<HookedEnd>) {
    let by = Arc::clone(hook.name());
    let event = |status, should_exit| HookEvent { status, error: None, should_exit, response: HookResponse::None };
    let with = |status, should_exit, error: &str| HookEvent { error: Some(error.to_owned()), ..event(status, should_exit) };
    match ran {
        Ran::Returned(value) => (HookEvent { response: HookResponse::Value(value), ..event(HookStatus::Completed, false) }, None),
        Ran::Unawaited => (HookEvent { response: HookResponse::Unawaited, ..event(HookStatus::Completed, false) }, None),
        Ran::Error(error) => {
            // A stop is nothing special here.
            let error = if error == HookError::Stop { HookError::failed("stop", "stopped") } else { error };
            (with(failed, hook.exit, &error.to_string()), Some(HookedEnd::Raised { by, error }))
        }
        Ran::TimedOut => {
            let message = format!("hook {by} did not return within {:?}", hook.deadline);
            (with(HookStatus::Failed, hook.exit, &message), Some(HookedEnd::HookFailed { by, message }))
        }
        Ran::Cancelled(whose) => {
            (with(HookStatus::Cancelled, true, "cancelled"), Some(HookedEnd::Cancelled { by: canceller(whose, by) }))
        }
    }
}

fn canceller(whose: By, name: Arc<str>) -> HookCanceller {
    match whose {
        By::Itself => HookCanceller::Hook(name),
        By::Emitter => HookCanceller::Emitter,
    }
}

/// Where the event of a turn goes.
#[derive(Clone, Copy)]
enum Slot {
    PreCreate,
    Pre,
    Post,
}

/// What is judged: the request alone. How its hooks fare travels with it, outside its identity (I-6).
pub struct HookedRequest {
    request: Arc<Value>,
    run: Arc<Run>,
}

impl HookedRequest {
    /// The request.
    #[must_use]
    pub fn request(&self) -> &Arc<Value> {
        &self.request
    }
}

impl Serialize for HookedRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.request.serialize(serializer)
    }
}

impl Judged for HookedRequest {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(&*self.request)
    }
}

/// How one call fares.
pub(super) struct Run {
    pub(super) edge: Edge,
    events: Mutex<Events>,
    streamed: AtomicBool,
    /// A stream ended before its end: the post hook is the teardown's.
    ended_early: AtomicBool,
}

#[derive(Default)]
struct Events {
    pre_create: Option<HookEvent>,
    pre: Option<HookEvent>,
    post: Option<HookEvent>,
    raised: Option<HookedEnd>,
}

impl Events {
    fn set(&mut self, slot: Slot, event: HookEvent) {
        let place = match slot {
            Slot::PreCreate => &mut self.pre_create,
            Slot::Pre => &mut self.pre,
            Slot::Post => &mut self.post,
        };
        *place = Some(event);
    }
}

impl Run {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_streamed(&self) -> bool {
        self.streamed.load(Ordering::Acquire)
    }

    /// The first end that stands in the way of a plain answer.
    pub(super) fn raise(&self, end: HookedEnd) {
        self.events().raised.get_or_insert(end);
    }

    pub(super) fn end_early(&self) {
        self.ended_early.store(true, Ordering::Release);
    }

    /// Runs the post hook; the end that it would have its caller see. In a stream nobody sees it but the log.
    async fn post(&self, hook: &ServiceHook, request: &Arc<Value>, stop: Option<&Cancellation>) -> Option<HookedEnd> {
        let ran = hook.turn(request, &self.edge, stop).await;
        let (event, end) = judged(hook, ran, HookStatus::Aborted);
        let error = event.error.clone();
        self.events().set(Slot::Post, event);
        if let (Some(error), true) = (error, self.is_streamed()) {
            tracing::warn!(target: telemetry::COMPAT, hook = %hook.name(), error, "the post hook of a stream did not return; its data stands");
        }
        match end {
            Some(HookedEnd::Raised { error: HookError::Failed(_) | HookError::StoreRefused(_), .. }) if !hook.exit => None,
            end => end,
        }
    }
}

/// One call with its hooks.
pub struct HookedCall {
    request: HookedRequest,
    budget: Duration,
    post: Option<ServiceHook>,
    pub(super) chunks: BTreeMap<Arc<str>, ServiceHook>,
}

impl HookedCall {
    /// What cancels it.
    #[must_use]
    pub fn handle(&self) -> CancelHandle {
        CancelHandle(self.request.run.edge.clone())
    }

    /// The operation to propose for it.
    #[must_use]
    pub fn operation(&self) -> Operation<HookedRequest> {
        let HookedRequest { request, run } = &self.request;
        Operation::new(HookedRequest { request: Arc::clone(request), run: Arc::clone(run) }).ruled_within(self.budget)
    }

    /// The answer where the call must not be made.
    pub fn not_made(self, answer: Answer<HookedEvent>) -> HookedAnswer {
        self.answered(answer, None)
    }

    /// Makes the call.
    ///
    /// # Cancel safety
    /// Dropping the future drops the call. The post hook runs with the owner, shielded, and the attempt is recorded as ambiguous.
    pub async fn invoke<A, P, F, Fut>(self, permit: Permit<HookedEvent, A, P>, core: F) -> HookedAnswer
    where
        A: Audit,
        P: CompletionPlace,
        F: FnOnce(Arc<Value>, Cancellation) -> Fut + Send,
        Fut: Future<Output = HookReturned> + Send + 'static,
    {
        let body = async |_granted| self.core(|token| core(Arc::clone(&self.request.request), token)).await;
        let performed = permit.begin(self.teardown()).run(body).await;
        let answer = performed.review().await.record().await;
        self.answered(answer, None)
    }

    /// Runs the call itself; what kept it from returning is noted.
    async fn core<Fut>(&self, core: impl FnOnce(Cancellation) -> Fut + Send) -> Performance<Value>
    where
        Fut: Future<Output = HookReturned> + Send + 'static,
    {
        let limits = Limits { edge: &self.request.run.edge, deadline: None, stop: None };
        let boxed = |token| -> BoxFuture<'static, HookReturned> { Box::pin(core(token)) };
        match future(boxed, limits).await {
            Ran::Returned(value) => Performance::Returned(value),
            // The call is awaited, and has no deadline of its own here.
            Ran::Unawaited | Ran::TimedOut => Performance::TimedOut,
            ran => Performance::Failed(self.request.run.core_failed(ran)),
        }
    }

    /// Runs the post hook where nothing else has.
    pub(super) fn teardown(
        &self,
    ) -> impl FnOnce(Ending, Cancellation) -> BoxFuture<'static, Result<(), Failure>> + Send + 'static {
        let (post, run, request) = (self.post.clone(), Arc::clone(&self.request.run), Arc::clone(&self.request.request));
        move |_ending, stop| {
            Box::pin(async move {
                let due = run.events().post.as_ref().is_some_and(|event| event.status == HookStatus::Pending);
                if let (Some(post), true) = (post, due) {
                    // What it would have its caller see, nobody sees: the call ended before it.
                    let _unseen = run.post(&post, &request, Some(&stop)).await;
                }
                Ok(())
            })
        }
    }

    pub(super) fn run(&self) -> &Arc<Run> {
        &self.request.run
    }

    pub(super) fn request(&self) -> &Arc<Value> {
        &self.request.request
    }

    pub(super) fn stream_begins(&self) {
        self.request.run.streamed.store(true, Ordering::Release);
    }

    pub(super) fn answered(self, answer: Answer<HookedEvent>, stream: Option<StreamState>) -> HookedAnswer {
        let Events { pre_create, pre, post, raised } = std::mem::take(&mut *self.request.run.events());
        let end = raised.unwrap_or_else(|| match &answer.end {
            End::Completed(value) => HookedEnd::Returned(Value::clone(value)),
            _ => HookedEnd::Other,
        });
        let stream = stream.map(|state| if matches!(end, HookedEnd::Cancelled { .. }) { StreamState::Cancelled } else { state });
        HookedAnswer { end, pre_create, pre, post, stream, answer }
    }
}

impl Run {
    /// Notes that the call itself did not return.
    pub(super) fn core_failed(&self, ran: Ran) -> Failure {
        let (end, failure) = match ran {
            Ran::Error(error) => {
                let failure = Failure::new(&error);
                (HookedEnd::Raised { by: CORE.into(), error }, failure)
            }
            Ran::Cancelled(whose) => {
                (HookedEnd::Cancelled { by: canceller(whose, CORE.into()) }, Failure::new("the call was cancelled"))
            }
            Ran::Returned(_) | Ran::Unawaited | Ran::TimedOut => (HookedEnd::Other, Failure::new("the call did not end")),
        };
        self.raise(end);
        failure
    }
}

impl fmt::Debug for HookedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedCall").field("post", &self.post.is_some()).finish_non_exhaustive()
    }
}
