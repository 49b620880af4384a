//! Handlers as data: plain and awaited bodies that follow a script, and log what they do.
//!
//! | the body                    | a cancellation arrives                       | its future is dropped        |
//! |-----------------------------|----------------------------------------------|------------------------------|
//! | plain                       | nothing can reach it                         | -                            |
//! | awaited, never polled       | -                                            | it was never awaited         |
//! | awaited, at a waiting step  | `cancelled`, then as `on_cancel` says        | `cancelled`                  |
//! | awaited, ended              | -                                            | nothing                      |

use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::time::sleep;

use super::scenario::{Handler, Kind, OnCancel, Step};
use super::world::{Change, Latch, World};

/// How a body ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    Value(Value),
    Raised(String),
    Fatal(String),
    Refused,
    Cancelled,
    Stop,
}

/// A handler of the scenario, in its world.
pub(super) struct Body {
    pub(super) handler: Handler,
    pub(super) world: Arc<World>,
    /// Latches that it has set and not opened yet: whoever waits for one goes on once this body waits or has ended, and its events stand before theirs. In
    /// the recorded runtime no thread runs beside another.
    set: Mutex<Vec<String>>,
}

/// What a call of a handler gave back, if it did not end there.
pub(super) enum Called {
    /// It ended in the call.
    Ended(End),
    /// A coroutine, to be awaited with whatever tells it that it is cancelled.
    Coroutine(Unawaited),
    /// Any other awaitable.
    Awaitable(Unawaited),
}

impl Body {
    pub(super) fn new(handler: &Handler, world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self { handler: handler.clone(), world: Arc::clone(world), set: Mutex::default() })
    }

    /// Calls the handler, as a caller does that knows nothing of its declaration.
    pub(super) fn call(self: &Arc<Self>) -> Called {
        match self.handler.kind {
            Kind::Sync => Called::Ended(self.plain()),
            Kind::Async | Kind::AsyncPartial | Kind::AsyncCallableObject => Called::Coroutine(self.awaitable()),
            Kind::SyncReturnsCoroutine => self.invoked().map_or_else(Called::Ended, Called::Coroutine),
            Kind::SyncReturnsFuture => self.invoked().map_or_else(Called::Ended, Called::Awaitable),
        }
    }

    /// What its call returns, unpolled.
    pub(super) fn awaitable(self: &Arc<Self>) -> Unawaited {
        Unawaited { body: Arc::clone(self), stage: Stage::Unpolled }
    }

    /// Its form as the source of a stream.
    pub(super) fn streamed(self: &Arc<Self>) -> Streamed {
        Streamed { body: Arc::clone(self), begun: false }
    }

    fn invoked(self: &Arc<Self>) -> Result<Unawaited, End> {
        let _running = self.world.plain();
        self.log("invoke");
        for step in &self.handler.invoke_script {
            if let Some(end) = self.plain_step(step) {
                return Err(end);
            }
        }
        Ok(self.awaitable())
    }

    /// Runs the script on this thread, to its end.
    fn plain(&self) -> End {
        let _running = self.world.plain();
        self.log("start");
        let ended = self.handler.script.iter().find_map(|step| self.plain_step(step));
        ended.unwrap_or_else(|| self.end(&Step::Return { value: Value::Null }).expect("returning is an end"))
    }

    fn plain_step(&self, step: &Step) -> Option<End> {
        self.open_before(step);
        match step {
            Step::Sleep { ms } => {
                Latch::block_for(self.world.pace.span(*ms));
                None
            }
            Step::Await { latch } if !self.world.latch(latch).blocked() => {
                self.log("stuck");
                Some(End::Raised("stuck".to_owned()))
            }
            Step::Hang {} => panic!("{}: a plain body cannot hang", self.handler.name),
            Step::Await { .. } => None,
            step => self.end(step),
        }
    }

    /// Runs the script as a task would.
    async fn awaited(&self) -> End {
        for step in &self.handler.script {
            self.open_before(step);
            match step {
                Step::Sleep { ms } => sleep(self.world.pace.span(*ms)).await,
                Step::Await { latch } => self.world.latch(latch).opened().await,
                Step::Hang {} => pending().await,
                step => {
                    if let Some(end) = self.end(step) {
                        return end;
                    }
                }
            }
        }
        self.end(&Step::Return { value: Value::Null }).expect("returning is an end")
    }

    /// What the body does once a cancellation has reached it.
    fn cancelled(&self) -> End {
        self.log("cancelled");
        let end = match &self.handler.on_cancel {
            OnCancel::Propagate {} => return End::Cancelled,
            OnCancel::Return { value } => self.end(&Step::Return { value: value.clone() }),
            OnCancel::Raise { error } => self.end(&Step::Raise { error: error.clone() }),
        };
        end.expect("both are ends")
    }

    /// The steps that wait for nothing; the end that the step is.
    fn end(&self, step: &Step) -> Option<End> {
        let (what, end) = match step {
            Step::Return { value } => ("finish".to_owned(), End::Value(value.clone())),
            Step::Raise { error } => (format!("raise:{error}"), End::Raised(error.clone())),
            Step::RaiseFatal { error } => (format!("raise_fatal:{error}"), End::Fatal(error.clone())),
            Step::RaiseRefused {} => ("raise_refused".to_owned(), End::Refused),
            Step::Cancel {} => ("cancel".to_owned(), End::Cancelled),
            Step::Stop {} => ("stop".to_owned(), End::Stop),
            step => {
                self.pass(step);
                return None;
            }
        };
        self.log(&what);
        self.open();
        Some(end)
    }

    fn open_before(&self, step: &Step) {
        if matches!(step, Step::Sleep { .. } | Step::Await { .. } | Step::Hang {}) {
            self.open();
        }
    }

    fn open(&self) {
        let set = std::mem::take(&mut *self.set.lock().expect("nobody panics with it held"));
        set.iter().for_each(|latch| self.world.latch(latch).set());
    }

    fn pass(&self, step: &Step) {
        match step {
            Step::Set { latch } => self.set.lock().expect("nobody panics with it held").push(latch.clone()),
            Step::Mark { label } => self.log(&format!("mark:{label}")),
            Step::Mutate { key, value } => self.world.mutate(key, value),
            Step::Read { key } => self.log(&format!("read:{key}={}", self.world.read(key))),
            Step::Register { handler } => self.world.change(Change::Register(handler)),
            Step::Unregister { handler } => self.world.change(Change::Unregister(handler)),
            step => unreachable!("{step:?} is an end, or waits"),
        }
    }

    fn log(&self, what: &str) {
        self.world.log(&self.handler.name, what);
    }
}

/// The body of a stream: its source yields the chunks, then runs the script. A consumer that goes away ends it without a word, as recorded.
pub(super) struct Streamed {
    body: Arc<Body>,
    begun: bool,
}

impl Streamed {
    /// The consumer asks for a chunk.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            self.body.log("start");
        }
    }

    /// What comes after the chunks.
    pub(super) async fn script(&self) -> End {
        self.body.awaited().await
    }
}

/// An awaitable that nobody has polled yet. Await it with [`Unawaited::until`].
pub(super) struct Unawaited {
    body: Arc<Body>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unpolled,
    Running,
    Ended,
}

impl Unawaited {
    /// Awaits the body; a cancellation reaches it when the given future ends.
    pub(super) fn until(
        self,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = End> + Send + 'static {
        let body = Arc::clone(&self.body);
        let script = Box::pin(async move { body.awaited().await });
        Awaited { cancelled: Some(Box::pin(cancelled)), script: Some(script), unawaited: self }
    }
}

impl Drop for Unawaited {
    fn drop(&mut self) {
        match self.stage {
            Stage::Unpolled => self.body.world.dropped_unawaited(&self.body.handler.name),
            Stage::Running => self.body.log("cancelled"),
            Stage::Ended => {}
        }
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A body under way. Its first steps come before anything; after them a cancellation comes before the next step, as in the recorded runtime.
struct Awaited {
    cancelled: Option<Boxed<()>>,
    script: Option<Boxed<End>>,
    unawaited: Unawaited,
}

impl Future for Awaited {
    type Output = End;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        if self.unawaited.stage == Stage::Unpolled {
            self.unawaited.stage = Stage::Running;
            self.unawaited.body.log("start");
        } else if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            return self.cancel();
        }
        let script = self.script.as_mut().expect("it is polled until it ends");
        if let Poll::Ready(end) = script.as_mut().poll(cx) {
            self.unawaited.stage = Stage::Ended;
            return Poll::Ready(end);
        }
        match self.cancelled.as_mut().map(|cancelled| cancelled.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => self.cancel(),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}

impl Awaited {
    fn cancel(&mut self) -> Poll<End> {
        self.unawaited.stage = Stage::Ended;
        self.script = None;
        self.cancelled = None;
        Poll::Ready(self.unawaited.body.cancelled())
    }
}
