//! What the tests of the planes share: plans of a few guards, latches, a host above the runtime, and reading the journal back.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::declare::CallableRef;
use tipstaff::id::{OperationId, SessionId};
use tipstaff::interception::{Decision, DenialCode, InterceptError, Registration, Turn};
use tipstaff::operation::{ActionExecutor, Granted, OwnerPlan, ResultOf, ToolCall, stage};
use tipstaff::signal::{Signal, SignalKind, SignalSeq};
use tipstaff::state::{Durability, JournalReader, PageLimit, ReadFilter, Recorded, SqliteOptions, SqliteStore};
use tipstaff::testing::Faults;
use tipstaff::{Runtime, RuntimeBuilder, Session, action_plan};
use tokio::sync::Semaphore;

pub(crate) type Guard = Registration<ToolCall, ResultOf<ActionExecutor>>;
pub(crate) type Body = Result<Value, std::io::Error>;

/// A bound for waits that end by themselves: it is there to fail, not to be waited for.
pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

pub(crate) fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, json!({"tool": tool}))
}

pub(crate) fn callable(name: &str) -> CallableRef {
    CallableRef::new(format!("tests::{name}@1")).unwrap()
}

/// A guard of the action policy.
pub(crate) fn guard(name: &str, decide: impl Fn(&ToolCall) -> Decision<ToolCall> + Send + Sync + 'static) -> Guard {
    Registration::decide(name, stage::ACTION_POLICY, callable(name), move |call: &ToolCall, _turn: &Turn| decide(call))
}

pub(crate) fn allows(name: &str) -> Guard {
    guard(name, |_| Decision::proceed())
}

pub(crate) fn denies(name: &str) -> Guard {
    guard(name, |_| Decision::deny(DenialCode::from_static("test.no"), "not today"))
}

/// A guard that answers with an error.
pub(crate) fn fails(name: &str, error: fn() -> InterceptError) -> Guard {
    Registration::decide(name, stage::ACTION_POLICY, callable(name), move |_: &ToolCall, _: &Turn| {
        Err::<Decision<ToolCall>, _>(error())
    })
}

/// A guard that says that it was begun, and waits for the gate.
pub(crate) fn waits(name: &str, begun: &Latch, gate: &Latch) -> Guard {
    let (begun, gate) = (begun.clone(), gate.clone());
    Registration::decide_async(name, stage::ACTION_POLICY, callable(name), move |_: Arc<ToolCall>, _: Turn| {
        let (begun, gate) = (begun.clone(), gate.clone());
        async move {
            begun.open();
            gate.passed().await;
            Decision::<ToolCall>::proceed()
        }
    })
}

/// What most calls do.
pub(crate) async fn done(_granted: Granted<ActionExecutor>) -> Body {
    Ok(json!("done"))
}

/// A transform that makes the arguments anew.
pub(crate) fn rewrites(name: &str, rewrite: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Guard {
    Registration::decide(name, stage::USER_TRANSFORM, callable(name), move |call: &ToolCall, _: &Turn| {
        Decision::replace(call.with_arguments(rewrite(call.arguments())))
    })
}

pub(crate) fn plan(guards: impl IntoIterator<Item = Guard>) -> OwnerPlan<ActionExecutor> {
    guards.into_iter().fold(action_plan("test"), |plan, guard| plan.register(guard)).build().unwrap()
}

/// A door that is opened once for each who passes.
#[derive(Clone)]
pub(crate) struct Latch(Arc<Semaphore>);

impl Latch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets one pass, now or later.
    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    /// Lets all pass.
    pub(crate) fn open_for_all(&self) {
        self.0.add_permits(1 << 20);
    }

    pub(crate) async fn passed(&self) {
        let passing = tokio::time::timeout_at(soon().instant(), self.0.acquire());
        passing.await.expect("the door opens in time").unwrap().forget();
    }
}

/// A store on disk that survives a crash of the process, with its folder and its fault points.
pub(crate) struct Disk {
    pub(crate) store: SqliteStore,
    pub(crate) faults: Faults,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn disk() -> Disk {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let options = SqliteOptions::default().durability(Durability::ProcessCrash).faults(faults.clone());
    let store = SqliteStore::open_with(folder.path().join("journal.db"), options).unwrap();
    Disk { store, faults, folder }
}

/// A host's own actor above a runtime: from it, any actor of the tree can be reached and killed.
pub(crate) struct Host {
    pub(crate) cell: ActorCell,
    pub(crate) runtime: Runtime,
}

impl Host {
    pub(crate) async fn spawn(builder: RuntimeBuilder) -> Self {
        let (host, _join) = Actor::spawn(None, Parent, ()).await.unwrap();
        let runtime = builder.spawn_under(host.get_cell()).await.unwrap();
        Self { cell: host.get_cell(), runtime }
    }

    /// The subtrees under the root, in start order.
    fn subtrees(&self) -> Vec<ActorCell> {
        let root = self.cell.get_children().into_iter().next().expect("the root runs");
        let mut subtrees = root.get_children();
        subtrees.sort_by_key(|cell| cell.get_id().pid());
        subtrees
    }

    /// The action executor's actor: the one child of the subtree that started last.
    pub(crate) fn executor(&self) -> Option<ActorCell> {
        self.subtrees().last()?.get_children().into_iter().next()
    }

    /// The observers of the sessions, oldest first. `subtree`: the place of the observation tree, which has the store before it or not.
    pub(crate) fn observers(&self, subtree: usize) -> Vec<ActorCell> {
        let mut observers = self.subtrees()[subtree].get_children();
        observers.sort_by_key(|cell| cell.get_id().pid());
        observers
    }

    /// Stops a subtree for good.
    pub(crate) async fn stop_subtree(&self, name: &str) {
        let root = self.runtime.supervisor();
        let children = root.children(soon()).await.unwrap();
        let child = children.iter().find(|child| &*child.name == name).expect("the subtree is there");
        root.stop_child(child.id, soon()).await.unwrap();
    }

    pub(crate) async fn shutdown(self) {
        self.runtime.shutdown(soon()).await.unwrap();
        self.cell.stop(None);
    }
}

struct Parent;

#[ractor::actor(message = (), state = (), arguments = ())]
impl Parent {
    async fn pre_start(&self, _myself: ActorRef<()>, _arguments: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        _event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// All facts of a session, after everything submitted is settled.
pub(crate) async fn facts(runtime: &Runtime, session: &Session) -> Vec<Recorded> {
    session.settled(soon()).await.unwrap();
    read(&**runtime.reader().unwrap(), session.id(), &ReadFilter::all())
}

/// The facts of one operation, after everything submitted is settled.
pub(crate) async fn facts_of(runtime: &Runtime, session: &Session, operation: &OperationId) -> Vec<Recorded> {
    let all = facts(runtime, session).await;
    all.into_iter().filter(|recorded| recorded.signal.operation() == Some(operation)).collect()
}

pub(crate) fn read(reader: &dyn JournalReader, session: &SessionId, filter: &ReadFilter) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut after = SignalSeq::START;
    loop {
        let page = reader.read(session, after, filter, PageLimit::default()).unwrap();
        all.extend(page.facts);
        after = page.next;
        if !page.more {
            return all;
        }
    }
}

pub(crate) fn kinds(facts: &[Recorded]) -> Vec<&str> {
    facts.iter().map(|recorded| recorded.signal.kind().as_str()).collect()
}

pub(crate) fn payload(recorded: &Recorded) -> &Value {
    recorded.signal.payload().value()
}

/// A fact of the host's own kind.
pub(crate) fn note(session: &Session, number: u64) -> Signal {
    let shape = tipstaff::signal::PayloadType::new("test.note", 1).unwrap();
    let payload = tipstaff::signal::Payload::from_value(shape, json!({"number": number}));
    session.signal(SignalKind::user("test.note").unwrap()).payload(payload).build()
}

/// Straight to standard error, so that a passing test shows it too.
pub(crate) fn show(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap();
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Takes the lines out.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}
