//! tipstaff inside a small agent system on ractor: under the host's own supervisor, with a guard, a subscriber, a crash and a restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use serde_json::json;
use tipstaff::clock::Deadline;
use tipstaff::declare::CallableRef;
use tipstaff::dispatch::Subscriber;
use tipstaff::id::SessionId;
use tipstaff::interception::{Decision, DenialCode, Registration};
use tipstaff::operation::{ToolCall, stage};
use tipstaff::signal::Signal;
use tipstaff::state::SqliteStore;
use tipstaff::{Runtime, Session, action_plan};

/// The host's root: it owns the agents, and tipstaff is one of its children.
struct Host;

/// What the host is asked.
enum Ask {
    /// The session in which agents work now.
    Session(RpcReplyPort<Session>),
    /// How often the host has started tipstaff again.
    Restarts(RpcReplyPort<usize>),
}

/// What the host starts with.
struct Settings {
    journal: PathBuf,
    seen: Arc<AtomicUsize>,
}

struct HostState {
    settings: Settings,
    runtime: Runtime,
    session: Session,
    restarts: usize,
}

impl Settings {
    /// Starts tipstaff below the host. On the same file the journal goes on, and what a crash left open is closed as ambiguous.
    async fn start(&self, host: &ActorRef<Ask>) -> Result<(Runtime, Session), ActorProcessingErr> {
        let plan = action_plan("agents").register(guard()).build()?;
        let store = SqliteStore::open(&self.journal)?;
        let runtime = Runtime::builder().store(store).actions(plan).spawn_under(host.get_cell()).await?;
        let seen = Arc::clone(&self.seen);
        let counter = Subscriber::<Signal>::declared_sync("counter", move |_fact| {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let session = runtime.session(SessionId::new("agents")?).observe(counter).open().await?;
        Ok((runtime, session))
    }
}

#[ractor::actor(message = Ask, state = HostState, arguments = Settings)]
impl Host {
    async fn pre_start(&self, myself: ActorRef<Ask>, settings: Settings) -> Result<HostState, ActorProcessingErr> {
        let (runtime, session) = settings.start(&myself).await?;
        Ok(HostState { settings, runtime, session, restarts: 0 })
    }

    async fn handle(&self, _myself: ActorRef<Ask>, ask: Ask, state: &mut HostState) -> Result<(), ActorProcessingErr> {
        match ask {
            Ask::Session(reply) => reply.send(state.session.clone())?,
            Ask::Restarts(reply) => reply.send(state.restarts)?,
        }
        Ok(())
    }

    /// The host hears of tipstaff's root only when that itself has ended: restarts inside stay inside. Here it starts another.
    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Ask>,
        event: SupervisionEvent,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        if matches!(event, SupervisionEvent::ActorFailed(..) | SupervisionEvent::ActorTerminated(..)) {
            (state.runtime, state.session) = state.settings.start(&myself).await?;
            state.restarts += 1;
        }
        Ok(())
    }

    /// An orderly end: what is queued is written before the tree stops.
    async fn post_stop(&self, _myself: ActorRef<Ask>, state: &mut HostState) -> Result<(), ActorProcessingErr> {
        state.runtime.shutdown(Deadline::after(Duration::from_secs(5))).await?;
        Ok(())
    }
}

fn guard() -> Registration<ToolCall, tipstaff::operation::ResultOf<tipstaff::operation::ActionExecutor>> {
    const OUTSIDE: DenialCode = DenialCode::from_static("agents.outside");
    let callable = CallableRef::from_static("agents::stay_inside@1");
    Registration::decide("stay-inside", stage::ACTION_POLICY, callable, |call: &ToolCall, _turn| {
        match call.arguments()["path"].as_str() {
            Some(path) if path.starts_with("/srv/agents/") => Decision::proceed(),
            _ => Decision::deny(OUTSIDE, "agents stay in /srv/agents"),
        }
    })
}

/// One agent: writes a file if it may, and says whether it did.
async fn agent(session: &Session, path: &str) -> bool {
    let call = ToolCall::new("write", json!({ "path": path }));
    session
        .perform(call, |granted| async move { Ok::<_, std::convert::Infallible>(granted.context().arguments().clone()) })
        .await
        .result()
        .is_some()
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what happened")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let seen = Arc::new(AtomicUsize::new(0));
    let settings = Settings { journal: folder.path().join("agents.db"), seen: Arc::clone(&seen) };
    let (host, ended) = Actor::spawn(None, Host, settings).await?;
    let session = ractor::call_t!(host, Ask::Session, 5_000)?;

    assert!(agent(&session, "/srv/agents/notes.md").await);
    assert!(!agent(&session, "/etc/passwd").await);

    // The crash: tipstaff's whole tree is killed. Its handles fail closed, and the host starts another tree on the same journal.
    session.runtime().supervisor().kill();
    let deadline = Deadline::after(Duration::from_secs(10));
    while ractor::call_t!(host, Ask::Restarts, 10_000)? == 0 {
        assert!(!agent(&session, "/srv/agents/meanwhile.md").await || !deadline.has_passed(), "a dead tree permits nothing");
        assert!(!deadline.has_passed(), "the host starts tipstaff again");
    }
    assert!(!agent(&session, "/srv/agents/old-handle.md").await, "the handle of the dead tree stays closed");
    let session = ractor::call_t!(host, Ask::Session, 5_000)?;
    assert!(agent(&session, "/srv/agents/after.md").await);
    session.settled(Deadline::after(Duration::from_secs(5))).await?;

    let summary = session.runtime().reader().ok_or("the runtime has a store")?.summary(Some(session.id()))?;
    println!("{} facts in one journal over one crash; {} reached the subscriber", summary.facts, seen.load(Ordering::SeqCst));
    // A call that the dying tree still put on record may lack its end: recovery closes it once the process of that tree is gone.
    assert!(summary.facts >= 6 && summary.open_proposals <= 1);
    host.stop(None);
    ended.await?;
    Ok(())
}
