//! A runtime: the host's whole face. Several live in one process; nothing of it is global.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ractor::ActorCell;
use tipstaff_core::clock::{Clock, Deadline, SystemClock};
use tipstaff_core::dispatch::{PolicyError, RegisterError};
use tipstaff_core::id::SessionId;
use tipstaff_core::interception::{PlanBuilder, PlanError};
use tipstaff_core::observation::{LossCounts, LossLedger};
use tipstaff_core::operation::{ActionExecutor, Granted, IntoPerformance, Operation, Owner, OwnerPlan, ToolCall};
use tipstaff_core::state::{Here, JournalReader, Store, StoreError};
use tipstaff_core::telemetry;

use crate::authorization::{OpenPermit, OpenPermits, Rulings};
use crate::crash::Doors;
use crate::journal::{GapsInHand, Health, Journal, Left, Turns, WriterArguments};
use crate::observation::OpenAttempts;
use crate::owners::OwnerHandle;
use crate::port::PortMetrics;
use crate::session::{CallAnswer, Session, SessionBuilder};
use crate::supervision::{
    ChildId, ChildSpec, ReportStream, ShutdownError, SpawnError, StartChildError, StartupError, Supervisor, SupervisorHandle,
    SupervisorStatus, reports,
};
use crate::tree::{self, OwnerBounds, Tree};

/// How long a runtime may take to come up.
const STARTUP: Duration = Duration::from_secs(30);
/// Supervision reports that wait for a reader; more are dropped and counted.
const REPORTS: usize = 1024;

/// A running tipstaff: three planes under one supervisor. Cheap to clone; dropping the last handle stops nothing, [`Runtime::shutdown`] does.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    root: SupervisorHandle,
    observation: SupervisorHandle,
    authorization: SupervisorHandle,
    journal: Option<Journal>,
    ledger: LossLedger,
    clock: Arc<dyn Clock>,
    actions: Rulings<ActionExecutor>,
    open_permits: OpenPermits,
    open_attempts: OpenAttempts,
    doors: Doors,
    sessions: DashMap<SessionId, Session>,
    default_session: SessionId,
    /// Taken once. Held for that only.
    reports: Mutex<Option<ReportStream>>,
}

/// A plan builder for tool calls, with the stages of the action executor declared.
pub fn action_plan(name: impl Into<Arc<str>>) -> PlanBuilder<ToolCall, tipstaff_core::operation::ResultOf<ActionExecutor>> {
    PlanBuilder::new(name, &ActionExecutor::stages())
}

/// Describes a runtime before it runs. Every part has a default: no store, no guards, the bounds of the table in [`tree`](crate::tree).
#[must_use = "a runtime is started by `spawn` or `spawn_under`"]
pub struct RuntimeBuilder {
    store: Option<Arc<dyn Store>>,
    plan: Option<OwnerPlan<ActionExecutor>>,
    clock: Arc<dyn Clock>,
    bounds: OwnerBounds,
    journal_capacity: NonZeroUsize,
    program: Arc<str>,
    doors: Doors,
}

impl Default for RuntimeBuilder {
    fn default() -> Self {
        Self {
            store: None,
            plan: None,
            clock: Arc::new(SystemClock),
            bounds: OwnerBounds::default(),
            journal_capacity: NonZeroUsize::new(4096).expect("the literal is not zero"),
            program: "tipstaff".into(),
            doors: Doors::default(),
        }
    }
}

impl RuntimeBuilder {
    /// The store for the journal. With one, sessions require their audit unless they say otherwise.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The plan of tool calls. Without one, every call is permitted, and recorded as the sessions' audit says.
    pub fn actions(mut self, plan: OwnerPlan<ActionExecutor>) -> Self {
        self.plan = Some(plan);
        self
    }

    /// The clock for records. Deadlines are monotonic and have nothing to do with it.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The bounds of the action executor.
    pub fn action_bounds(mut self, bounds: OwnerBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Facts that may wait for the store's writer. Default 4096.
    pub fn journal_capacity(mut self, facts: NonZeroUsize) -> Self {
        self.journal_capacity = facts;
        self
    }

    /// The name of the host's program, for the record of this instance in the store.
    pub fn program(mut self, name: impl Into<Arc<str>>) -> Self {
        self.program = name.into();
        self
    }

    /// The places where a test crashes this runtime's actors.
    #[cfg(feature = "testing")]
    pub fn crash_points(mut self, points: crate::crash::CrashPoints) -> Self {
        self.doors = points.into();
        self
    }

    /// Starts the runtime on the current tokio runtime, and waits until it is up.
    ///
    /// # Errors
    /// [`RuntimeError`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave a runtime that nobody owns starting; it holds no name and no port.
    pub async fn spawn(self) -> Result<Runtime, RuntimeError> {
        self.start(None).await
    }

    /// Starts the runtime under an actor of a host, and waits until it is up.
    ///
    /// The host's actor sees the root's end only when the root itself cannot go on: restarts inside stay inside. A host that ends kills what is below
    /// it; call [`Runtime::shutdown`] from its `post_stop` for an orderly end. By ractor's default an actor stops when a child ends.
    ///
    /// # Errors
    /// [`RuntimeError`].
    ///
    /// # Cancel safety
    /// As [`Self::spawn`].
    pub async fn spawn_under(self, parent: ActorCell) -> Result<Runtime, RuntimeError> {
        self.start(Some(parent)).await
    }

    async fn start(self, parent: Option<ActorCell>) -> Result<Runtime, RuntimeError> {
        let Self { store, plan, clock, bounds, journal_capacity, program, doors } = self;
        let plan = match plan {
            Some(plan) => plan,
            None => action_plan("actions").build()?,
        };
        let ledger = LossLedger::new();
        let (journal, writer) = match store {
            Some(store) => {
                let (journal, writer) = open_journal(store, journal_capacity, ledger.clone(), program, doors.clone())?;
                (Some(journal), Some(writer))
            }
            None => (None, None),
        };
        let open_permits = OpenPermits::default();
        let (executor, port) = tree::owner::<ActionExecutor>(plan, bounds, open_permits.clone(), doors.clone());
        let Tree { spec, observation, authorization } = tree::tree(writer, vec![executor]);
        let (sink, stream) = reports(REPORTS);
        let spec = spec.reports(sink);
        let root = match parent {
            Some(parent) => Supervisor::spawn_under(parent, spec).await?,
            None => Supervisor::spawn(spec).await?,
        };
        let runtime = Runtime(Arc::new(Inner {
            root,
            observation,
            authorization,
            journal,
            ledger,
            clock,
            actions: Rulings(port),
            open_permits,
            open_attempts: OpenAttempts::default(),
            doors,
            sessions: DashMap::new(),
            default_session: SessionId::generate(),
            reports: Mutex::new(Some(stream)),
        }));
        match runtime.0.root.started(Deadline::after(STARTUP)).await {
            Ok(()) => Ok(runtime),
            Err(error) => {
                // What came up must not stay behind without an owner.
                let _left = runtime.0.root.shutdown(Deadline::after(STARTUP)).await;
                Err(error.into())
            }
        }
    }
}

fn open_journal(
    store: Arc<dyn Store>,
    capacity: NonZeroUsize,
    ledger: LossLedger,
    program: Arc<str>,
    doors: Doors,
) -> Result<(Journal, ChildSpec), RuntimeError> {
    let reader = store.reader()?;
    let health = Health::default();
    let (port, mailbox) = tree::journal_port(capacity);
    let here = Here::read();
    let instance = here.instance(program);
    let arguments = WriterArguments {
        store: Arc::clone(&store),
        here,
        instance,
        mailbox: Arc::new(mailbox),
        health: health.clone(),
        ledger: ledger.clone(),
        left: Left::default(),
        gaps: GapsInHand::default(),
        turns: Turns::default(),
        doors,
    };
    Ok((Journal::new(port, health, ledger, store, reader), tree::state_writer(arguments)))
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder").field("plan", &self.plan).field("store", &self.store.is_some()).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Describes a runtime.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Describes a session.
    pub fn session(&self, id: SessionId) -> SessionBuilder {
        SessionBuilder::new(self.clone(), id)
    }

    /// The open session of this identity.
    #[must_use]
    pub fn find_session(&self, id: &SessionId) -> Option<Session> {
        self.0.sessions.get(id).map(|session| session.clone())
    }

    /// Runs one tool call through the planes, in this runtime's own session, which is opened when it is first needed.
    ///
    /// # Cancel safety
    /// As [`Session::perform`].
    ///
    /// # Errors
    /// [`RuntimeError`] when the session cannot be opened; nothing was proposed. A denial is an answer, not an error.
    pub async fn perform<F, Fut, R>(&self, call: impl Into<Operation<ToolCall>>, body: F) -> Result<CallAnswer, RuntimeError>
    where
        F: FnOnce(Granted<ActionExecutor>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<serde_json::Value>,
    {
        Ok(self.own_session().await?.perform(call, body).await)
    }

    /// The runtime's own session.
    ///
    /// # Cancel safety
    /// Cancel safe: the session is open or it is not.
    ///
    /// # Errors
    /// As [`SessionBuilder::open`].
    pub async fn own_session(&self) -> Result<Session, RuntimeError> {
        let id = &self.0.default_session;
        if let Some(session) = self.find_session(id) {
            return Ok(session);
        }
        match self.session(id.clone()).open().await {
            Ok(session) => Ok(session),
            // Somebody else opened it meanwhile.
            Err(error) => self.find_session(id).ok_or(error),
        }
    }

    /// Starts an owner of operations beside the action executor, with its plan and the default bounds.
    ///
    /// It is an actor of the authorization tree with a restart budget of its own: whatever happens to it, other owners go on.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an owner that nobody asks, idle until the runtime stops.
    ///
    /// # Errors
    /// [`RuntimeError::Owner`] when the runtime is stopping, or runs as many owners as it may.
    pub async fn start_owner<O: Owner>(&self, plan: OwnerPlan<O>) -> Result<OwnerHandle<O>, RuntimeError> {
        self.start_owner_within(plan, OwnerBounds::default()).await
    }

    /// As [`Self::start_owner`], with bounds of its own.
    ///
    /// # Cancel safety
    /// As [`Self::start_owner`].
    ///
    /// # Errors
    /// As [`Self::start_owner`].
    pub async fn start_owner_within<O: Owner>(
        &self,
        plan: OwnerPlan<O>,
        bounds: OwnerBounds,
    ) -> Result<OwnerHandle<O>, RuntimeError> {
        let (owner, port) = tree::owner::<O>(plan, bounds, self.0.open_permits.clone(), self.0.doors.clone());
        let started = self.0.authorization.start_child(owner.stop_timeout(tree::OWNER_STOP), Deadline::after(STARTUP)).await;
        let child = started.map_err(|source| RuntimeError::Owner { owner: O::NAME, source })?;
        Ok(OwnerHandle::new(Rulings(port), self.clone(), child))
    }

    /// Reads the journal. Calls on it block for short reads: make them where a thread may block.
    #[must_use]
    pub fn reader(&self) -> Option<&Arc<dyn JournalReader>> {
        self.0.journal.as_ref().map(Journal::reader)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.0.journal.as_ref().map(Journal::store)
    }

    /// Permits that are issued and not completed.
    #[must_use]
    pub fn open_permits(&self) -> Vec<OpenPermit> {
        self.0.open_permits.list()
    }

    /// What all sessions have lost in all. It never goes down.
    #[must_use]
    pub fn losses(&self) -> LossCounts {
        self.0.ledger.totals()
    }

    /// How the runtime's supervisor stands, with its degraded subtrees and the degraded owners of operations.
    #[must_use]
    pub fn status(&self) -> SupervisorStatus {
        let mut status = self.0.root.status();
        status.degraded.extend(self.0.authorization.status().degraded);
        status
    }

    /// What the ports hold and have counted: the action executor's, then the journal's where there is one.
    #[must_use]
    pub fn ports(&self) -> Vec<PortMetrics> {
        let journal = self.0.journal.as_ref().map(|journal| journal.port().metrics());
        std::iter::once(self.0.actions.0.metrics()).chain(journal).collect()
    }

    /// The stream of supervision reports. It has one reader: `None` when it was taken before.
    #[must_use]
    pub fn take_reports(&self) -> Option<ReportStream> {
        self.0.reports.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The root of the tree, for an operator's own use.
    #[must_use]
    pub fn supervisor(&self) -> &SupervisorHandle {
        &self.0.root
    }

    /// Stops everything in reverse order: authorization first, then observation, the store's writer last, after it has written what is queued.
    ///
    /// May be called any number of times. What was confirmed does not depend on it: a crash instead loses no confirmed fact.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back: the shutdown goes on.
    ///
    /// # Errors
    /// [`ShutdownError`] when a task did not end although it was killed.
    pub async fn shutdown(&self, deadline: Deadline) -> Result<(), ShutdownError> {
        let ended = self.0.root.shutdown(deadline).await;
        self.0.sessions.clear();
        ended
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.0.journal.as_ref()
    }

    pub(crate) fn open_attempts(&self) -> &OpenAttempts {
        &self.0.open_attempts
    }

    pub(crate) fn ledger(&self) -> &LossLedger {
        &self.0.ledger
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    pub(crate) fn actions(&self) -> &Rulings<ActionExecutor> {
        &self.0.actions
    }

    pub(crate) fn doors(&self) -> &Doors {
        &self.0.doors
    }

    pub(crate) async fn start_observer(&self, observer: ChildSpec) -> Result<ChildId, RuntimeError> {
        Ok(self.0.observation.start_child(observer, Deadline::after(STARTUP)).await?)
    }

    pub(crate) async fn stop_observer(&self, observer: ChildId, deadline: Deadline) {
        if let Err(error) = self.0.observation.stop_child(observer, deadline).await {
            tracing::debug!(target: telemetry::OBSERVATION, %error, "a session's observer was not stopped in time");
        }
    }

    pub(crate) async fn stop_owner(&self, owner: ChildId, deadline: Deadline) {
        if let Err(error) = self.0.authorization.stop_child(owner, deadline).await {
            tracing::debug!(target: telemetry::AUTHORIZATION, %error, "an owner was not stopped in time");
        }
    }

    pub(crate) fn register_session(&self, id: SessionId, session: &Session) -> Result<(), RuntimeError> {
        match self.0.sessions.entry(id) {
            Entry::Occupied(taken) => Err(RuntimeError::SessionOpen { session: taken.key().clone() }),
            Entry::Vacant(free) => {
                free.insert(session.clone());
                Ok(())
            }
        }
    }

    /// Frees the identity of a session, unless another one has it by now.
    pub(crate) fn forget_session(&self, session: &Session) {
        self.0.sessions.remove_if(session.id(), |_, open| open.is(session));
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("sessions", &self.0.sessions.len())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Why a runtime could not start, or a session could not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan does not build.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The tree could not be spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The tree did not come up.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// A session's observer could not be started.
    #[error("the session's observer did not start: {0}")]
    Supervision(#[from] StartChildError),
    /// An owner of operations could not be started.
    #[error("the owner {owner} did not start: {source}")]
    Owner {
        /// Its name.
        owner: &'static str,
        /// Why.
        source: StartChildError,
    },
    /// A session of this identity is open already.
    #[error("session {session} is open already: find it, or end it first")]
    SessionOpen {
        /// The session.
        session: SessionId,
    },
    /// A session requires an audit, and there is no store to keep it.
    #[error(
        "session {session} requires an audit, but the runtime has no store: give it one, or open the session with another audit mode"
    )]
    NoStore {
        /// The session.
        session: SessionId,
    },
    /// A dispatch policy breaks a rule.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A subscriber cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
}
