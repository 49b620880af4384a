//! Service hooks (I-13).

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

use tipstaff::compat::{
    HookCanceller, HookEvent, HookResponse, HookStatus, HookedAnswer, HookedChunks, HookedEnd, HookedEvent, ServiceHook,
    ServiceHooks,
};
use tipstaff::operation::{OperationStatus, StreamState};
use tipstaff::{OwnerHandle, Runtime, Session};

use super::super::rig::session_id;
use super::*;

/// Where the calls of a test are made.
struct World {
    runtime: Runtime,
    session: Session,
    owner: OwnerHandle<HookedEvent>,
    hooks: ServiceHooks,
}

impl World {
    async fn new(hooks: ServiceHooks) -> Self {
        let runtime = Runtime::builder().spawn().await.unwrap();
        let session = runtime.session(session_id("s")).recent(NonZeroUsize::new(64).unwrap()).open().await.unwrap();
        let owner = runtime.start_owner(hooks.plan("hooks").unwrap()).await.unwrap();
        Self { runtime, session, owner, hooks }
    }

    async fn invoke(&self, core: Way, log: &Log) -> HookedAnswer {
        let (log, begun) = (log.clone(), Latch::new());
        let core = move |_: Arc<Value>, token| body("core".to_owned(), core, log, begun, token);
        self.owner.invoke_hooked(&self.session, self.hooks.call(json!({"q": 1})), core).await
    }

    async fn down(self) {
        self.runtime.shutdown(soon()).await.unwrap();
    }
}

fn hook(name: &str, way: Way, log: &Log) -> ServiceHook {
    ServiceHook::new(scripted(name, way, log, &Latch::new())).deadline(Duration::from_secs(2))
}

fn raised(by: &str, code: &'static str) -> HookedEnd {
    HookedEnd::Raised { by: by.into(), error: HookError::failed(code, "told to") }
}

fn by_hook(name: &str) -> HookedEnd {
    HookedEnd::Cancelled { by: HookCanceller::Hook(name.into()) }
}

/// Whether a hook failed as a text only.
fn is_text(end: &HookedEnd, by: &str) -> bool {
    matches!(end, HookedEnd::HookFailed { by: found, .. } if &**found == by)
}

fn facts(event: Option<&HookEvent>) -> (HookStatus, bool, bool) {
    let event = event.expect("the hook is registered");
    (event.status, event.error.is_some(), event.should_exit)
}

/// I-13: the table of the module, the rows of the hook before the call. `exit` changes nothing but what the event says.
#[tokio::test(start_paused = true)]
async fn a_pre_hook_ends_in_each_of_its_ways() {
    for exit in [false, true] {
        for (way, status, should_exit) in [
            (Way::Returns, HookStatus::Completed, false),
            (Way::Fails, HookStatus::Cancelled, exit),
            (Way::Panics, HookStatus::Cancelled, exit),
            (Way::Hangs, HookStatus::Failed, exit),
            (Way::CancelsItself, HookStatus::Cancelled, true),
        ] {
            let log = Log::default();
            let pre = hook("pre", way.clone(), &log).exit(exit);
            let world =
                World::new(ServiceHooks::new().pre_invocation(pre).post_invocation(hook("post", Way::Returns, &log))).await;
            let answer = world.invoke(Way::Returns, &log).await;
            let made = status == HookStatus::Completed;
            assert_eq!(facts(answer.pre.as_ref()), (status, !made, should_exit));
            match way {
                Way::Returns => assert_eq!(answer.end, HookedEnd::Returned(json!("core"))),
                Way::CancelsItself => assert_eq!(answer.end, by_hook("pre")),
                _ => assert!(is_text(&answer.end, "pre"), "{:?}", answer.end),
            }
            let lines: &[&str] = if made { &["pre", "core", "post"] } else { &["pre"] };
            assert_eq!(log.lines(), lines, "the call is made, or nothing after the hook is called");
            let post = answer.post.as_ref().unwrap().status;
            assert_eq!(post, if made { HookStatus::Completed } else { HookStatus::Pending });
            assert_eq!(answer.answer.may_have_run(), made);
            world.down().await;
        }
    }
}

/// I-13, I-19: the rows of the hook after the call; `exit` decides its failures alone, and after a call that failed nothing of it is seen. The status
/// of the operation is that of the call, and whoever waits for it is told.
#[tokio::test(start_paused = true)]
async fn a_post_hook_ends_in_each_of_its_ways() {
    let returned = || HookedEnd::Returned(json!("core"));
    for (way, exit, status, should_exit, end) in [
        (Way::Returns, false, HookStatus::Completed, false, Some(returned())),
        (Way::Fails, false, HookStatus::Aborted, false, Some(returned())),
        (Way::Fails, true, HookStatus::Aborted, true, Some(raised("post", "E1"))),
        (Way::Hangs, false, HookStatus::Failed, false, None),
        (Way::Hangs, true, HookStatus::Failed, true, None),
        (Way::CancelsItself, false, HookStatus::Cancelled, true, Some(by_hook("post"))),
        (Way::CancelsItself, true, HookStatus::Cancelled, true, Some(by_hook("post"))),
    ] {
        for core in [Way::Returns, Way::Fails, Way::CancelsItself] {
            let log = Log::default();
            let world = World::new(ServiceHooks::new().post_invocation(hook("post", way.clone(), &log).exit(exit))).await;
            let answer = world.invoke(core.clone(), &log).await;
            assert_eq!(facts(answer.post.as_ref()), (status, status != HookStatus::Completed, should_exit));
            assert_eq!(log.lines(), ["core", "post"], "also after a call that failed");
            match (&core, &end) {
                (Way::Fails, _) => assert_eq!(answer.end, raised("core", "E1")),
                (Way::CancelsItself, _) => assert_eq!(answer.end, by_hook("core")),
                (_, Some(end)) => assert_eq!(answer.end, *end),
                (_, None) => assert!(is_text(&answer.end, "post"), "{:?}", answer.end),
            }
            let performed = if matches!(core, Way::Returns) { OperationStatus::Completed } else { OperationStatus::Failed };
            assert_eq!(answer.answer.outcome.status, performed, "a hook does not change that it was performed (I-16)");
            assert!(answer.pre.is_none() && answer.stream.is_none());
            world.down().await;
        }
    }
}

/// I-13: a hook's own deadline ends it, however long that is, and not the ruling's default. Virtual time.
#[tokio::test(start_paused = true)]
async fn a_hook_has_the_time_that_it_declares() {
    let log = Log::default();
    let long = |name: &str| {
        let log = log.clone();
        let own = name.to_owned();
        let waits = Hook::declared_async(name, move |_: Arc<Value>, _| {
            log.note(&*own);
            async {
                tokio::time::sleep(Duration::from_secs(100)).await;
                Ok(Value::Null)
            }
        });
        ServiceHook::new(waits).deadline(Duration::from_secs(120))
    };
    let hooks = ServiceHooks::new().pre_event_create(long("create")).pre_invocation(long("pre")).post_invocation(long("post"));
    let world = World::new(hooks).await;
    let answer = world.invoke(Way::Returns, &log).await;
    assert_eq!(answer.end, HookedEnd::Returned(json!("core")), "{:?}", answer.answer);
    assert_eq!(log.lines(), ["create", "pre", "core", "post"]);
    world.down().await;
}

/// By declaration: a declared sync hook that returned a future has returned that future; it is dropped without being awaited.
#[tokio::test]
async fn what_a_sync_service_hook_returns_is_not_awaited() {
    let log = Log::default();
    let lazy = |log: &Log| {
        let log = log.clone();
        Ok(HookReturn::coroutine(async move {
            log.note("awaited");
            Ok(json!(1))
        }))
    };
    let pre = ServiceHook::new(plain("pre", lazy, &log));
    let post = ServiceHook::new(plain("post", |_| Ok(json!("p").into()), &log));
    let world = World::new(ServiceHooks::new().pre_invocation(pre).post_invocation(post)).await;
    let answer = world.invoke(Way::Returns, &log).await;
    assert_eq!(log.lines(), ["pre", "core", "post"]);
    assert_eq!(answer.pre.unwrap().response, HookResponse::Unawaited);
    assert_eq!(answer.post.unwrap().response, HookResponse::Value(json!("p")));
    world.down().await;
}

/// I-13: a caller that cancels inside the call still has its post hook run, then sees its cancellation; what swallows it goes on.
#[tokio::test]
async fn cancelling_a_call_runs_its_post_hook_first() {
    for (then, end) in [
        (Way::CancelsItself, HookedEnd::Cancelled { by: HookCanceller::Emitter }),
        (Way::Returns, HookedEnd::Returned(json!("core"))),
        (Way::Fails, raised("core", "E1")),
    ] {
        let (log, begun) = (Log::default(), Latch::new());
        let world = World::new(ServiceHooks::new().post_invocation(hook("post", Way::Returns, &log))).await;
        let call = world.hooks.call(json!(1));
        let handle = call.handle();
        let core = {
            let (log, begun) = (log.clone(), begun.clone());
            move |_: Arc<Value>, token| body("core".to_owned(), Way::Asked(Box::new(then)), log, begun, token)
        };
        let (answer, ()) = tokio::join!(bounded(world.owner.invoke_hooked(&world.session, call, core)), async {
            begun.passed().await;
            handle.cancel();
        });
        assert_eq!(answer.end, end);
        assert_eq!(log.lines(), ["core", "core asked", "post"]);
        world.down().await;
    }
}

/// Chunks; at their end they wait, end, or fail.
struct Chunks {
    chunks: VecDeque<Value>,
    then: Way,
}

impl HookedChunks for Chunks {
    async fn next_chunk(&mut self) -> Option<Result<Value, HookError>> {
        match (self.chunks.pop_front(), &self.then) {
            (Some(chunk), _) => Some(Ok(chunk)),
            (None, Way::Returns) => None,
            (None, Way::Hangs) => std::future::pending().await,
            (None, way) => Some(end("core", way)),
        }
    }
}

fn chunks(then: Way) -> impl FnOnce(Arc<Value>, Cancellation) -> std::future::Ready<Result<Chunks, HookError>> + Send {
    move |_, _| std::future::ready(Ok(Chunks { chunks: [json!(1), json!(2)].into(), then }))
}

/// I-13: a stream's post hook changes nothing, whatever becomes of it; where the stream ends early, it runs in the teardown.
#[tokio::test(start_paused = true)]
async fn a_stream_keeps_its_data_whatever_its_post_hook_does() {
    for way in [Way::Returns, Way::Fails, Way::CancelsItself, Way::Hangs] {
        for (take, state) in [(9, StreamState::Completed), (1, StreamState::Closed)] {
            let log = Log::default();
            let world = World::new(ServiceHooks::new().post_invocation(hook("post", way.clone(), &log).exit(true))).await;
            let call = world.hooks.call(json!(1));
            let open = chunks(Way::Returns);
            let mut stream = world.owner.stream_hooked(&world.session, call, open).await.unwrap();
            let mut taken = Vec::new();
            while taken.len() < take {
                let Some(chunk) = stream.next().await else { break };
                taken.push(chunk);
            }
            assert!(log.lines().is_empty(), "not before the stream is over");
            let answer = stream.close().await;
            assert_eq!((taken.len(), answer.stream), (take.min(2), Some(state)));
            assert!(matches!(answer.end, HookedEnd::Returned(_)), "{:?}", answer.end);
            assert_eq!(log.lines(), ["post"], "once");
            assert_ne!(answer.post.unwrap().status, HookStatus::Pending);
            world.down().await;
        }
    }
}

/// I-13: what the caller of a stream sees where the call fails, or is cancelled by itself or by the handle.
#[tokio::test]
async fn a_stream_that_fails_or_is_cancelled_says_so() {
    let by_emitter = HookedEnd::Cancelled { by: HookCanceller::Emitter };
    for (then, end, state) in [
        (Way::Fails, raised("core", "E1"), StreamState::Failed),
        (Way::CancelsItself, by_hook("core"), StreamState::Cancelled),
        (Way::Hangs, by_emitter, StreamState::Cancelled),
    ] {
        let log = Log::default();
        let world = World::new(ServiceHooks::new().post_invocation(hook("post", Way::Returns, &log))).await;
        let call = world.hooks.call(json!(1));
        let handle = call.handle();
        let open = chunks(then.clone());
        let mut stream = world.owner.stream_hooked(&world.session, call, open).await.unwrap();
        assert!(stream.next().await.is_some() && stream.next().await.is_some());
        if matches!(then, Way::Hangs) {
            let (last, ()) = tokio::join!(stream.next(), async { handle.cancel() });
            assert_eq!(last, None);
        } else {
            assert_eq!(stream.next().await, None);
        }
        let answer = stream.close().await;
        assert_eq!((answer.end, answer.stream), (end, Some(state)));
        assert_eq!(log.lines(), ["post"]);
        world.down().await;
    }
}

/// I-4, I-13: a stream that is dropped has its post hook run by the owner, shielded: for 5 s and 1 s of grace, in virtual time.
#[tokio::test(start_paused = true)]
async fn a_dropped_stream_has_its_post_hook_run_by_its_owner() {
    for (way, took) in [(Way::Returns, 0), (Way::Asked(Box::new(Way::Returns)), 5), (Way::Hangs, 6)] {
        let log = Log::default();
        let post = hook("post", way, &log).deadline(Duration::from_secs(60));
        let world = World::new(ServiceHooks::new().post_invocation(post)).await;
        let open = chunks(Way::Hangs);
        let call = world.hooks.call(json!(1));
        let mut stream = world.owner.stream_hooked(&world.session, call, open).await.unwrap();
        assert!(stream.next().await.is_some());
        let start = tokio::time::Instant::now();
        drop(stream);
        let open = async {
            while !world.runtime.open_permits().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        open.await;
        assert_eq!(start.elapsed().as_secs(), took, "virtual time");
        assert_eq!(log.lines()[0], "post");
        world.down().await;
    }
}

/// One handler for each key of a chunk: its failure ends the stream where it has `exit`, and is one warning where it has not.
#[tokio::test]
async fn a_chunk_has_its_own_handler() {
    for exit in [false, true] {
        let log = Log::default();
        let world = World::new(ServiceHooks::new().on_chunk("delta", hook("delta", Way::Fails, &log).exit(exit))).await;
        let source = Chunks { chunks: [json!(1), json!({"type": "other"}), json!({"type": "delta"})].into(), then: Way::Returns };
        let open = async |_, _| Ok(source);
        let mut stream = world.owner.stream_hooked(&world.session, world.hooks.call(json!(1)), open).await.unwrap();
        let mut taken = 0;
        while stream.next().await.is_some() {
            taken += 1;
        }
        let answer = stream.close().await;
        assert_eq!(log.lines(), ["delta"]);
        if exit {
            assert_eq!((taken, answer.end, answer.stream), (2, raised("delta", "E1"), Some(StreamState::Failed)));
        } else {
            assert_eq!((taken, answer.stream), (3, Some(StreamState::Completed)));
        }
        world.down().await;
    }
}
