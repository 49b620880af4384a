//! The provider harness: the owner of launches of an agent provider, from its plan to the end of what it launched.
//!
//! | the owner's step | it does                                                          | if it fails                                   |
//! |------------------|------------------------------------------------------------------|-----------------------------------------------|
//! | compile          | makes a launch of the judged plan                                | the attempt failed; nothing is torn down       |
//! | spawn            | starts it                                                        | the attempt failed; torn down without a handle |
//! | observe          | follows it to its end                                            | the attempt failed; torn down                 |
//! | teardown         | ends what is left, also when the caller has gone (I-4)           | it is on record; the attempt ends as it was   |

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::teardown::{Ending, TeardownBudget, TearsDown};
use super::{Audit, CompletionPlace, Failure, IntoPerformance, Owner, Performance, Performed, Permit};
use crate::cancel::Cancellation;
use crate::declare::{CanonicalError, Digest, digest_of};
use crate::interception::{Judged, StageSpec};
use crate::signal::Subject;

/// The owner of launches of an agent provider.
///
/// Its order: pre-spawn admission -> *compile -> spawn -> observe -> teardown*. The steps in italics are its own. The teardown survives the caller for
/// 10 s, and has 2 s more to stop (I-4).
#[derive(Debug, Clone, Copy)]
pub struct ProviderHarness;

/// The stages of the provider harness.
pub mod stage {
    /// Guard: may this be launched.
    pub const PRE_SPAWN_ADMISSION: &str = "pre_spawn_admission";
    /// Own step: makes a launch of the judged plan.
    pub const COMPILE: &str = "compile";
    /// Own step: starts it.
    pub const SPAWN: &str = "spawn";
    /// Own step: follows it to its end.
    pub const OBSERVE: &str = "observe";
    /// Own step: ends what is left.
    pub const TEARDOWN: &str = "teardown";
}

impl Owner for ProviderHarness {
    const NAME: &'static str = "provider_harness";
    type Context = LaunchPlan;
    type Output = Value;

    fn stages() -> Vec<StageSpec> {
        vec![
            StageSpec::guard(stage::PRE_SPAWN_ADMISSION),
            StageSpec::own_step(stage::COMPILE),
            StageSpec::own_step(stage::SPAWN),
            StageSpec::own_step(stage::OBSERVE),
            StageSpec::own_step(stage::TEARDOWN).shielded(Self::TEARDOWN.bound),
        ]
    }

    /// The provider.
    fn subject(plan: &LaunchPlan) -> Option<Subject> {
        Subject::new("provider", Arc::clone(&plan.provider)).ok()
    }
}

impl TearsDown for ProviderHarness {
    const TEARDOWN: TeardownBudget = TeardownBudget { bound: Duration::from_secs(10), grace: Duration::from_secs(2) };
}

/// A proposed launch: what is judged, and exactly what will be compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchPlan {
    provider: Arc<str>,
    /// The provider's own settings: program, arguments, model, permissions.
    settings: Value,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    capabilities: BTreeSet<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceLease>,
}

/// A folder that a launch may work in, and by what right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceLease {
    /// The folder.
    pub folder: PathBuf,
    /// The lease, as its giver names it.
    pub lease: Arc<str>,
    /// Whether it may be written.
    pub writable: bool,
}

impl WorkspaceLease {
    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl LaunchPlan {
    /// A launch of a provider, by name, with that provider's own settings.
    #[must_use]
    pub fn new(provider: impl Into<Arc<str>>, settings: Value) -> Self {
        Self { provider: provider.into(), settings, capabilities: BTreeSet::new(), workspace: None }
    }

    /// Adds a capability that the provider would have.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<Arc<str>>) -> Self {
        self.capabilities.insert(capability.into());
        self
    }

    /// Sets the lease of the folder that it would work in.
    #[must_use]
    pub fn workspace(mut self, lease: WorkspaceLease) -> Self {
        self.workspace = Some(lease);
        self
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The provider's own settings.
    #[must_use]
    pub fn settings(&self) -> &Value {
        &self.settings
    }

    /// What the provider would be capable of, in the order of the names.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.capabilities.iter().map(|capability| &**capability)
    }

    /// The lease of the folder that it would work in.
    #[must_use]
    pub fn lease(&self) -> Option<&WorkspaceLease> {
        self.workspace.as_ref()
    }
}

impl Judged for LaunchPlan {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

/// One sort of provider: how a judged plan becomes something that runs, is followed, and ends.
///
/// # Contract
/// [`Self::teardown`] is called exactly once after [`Self::spawn`] was begun, whatever became of it, also when the caller has gone. It is handed the
/// running provider, or nothing where spawning failed or was broken off: then it ends what spawning may have left. Observing has been dropped by
/// then. Every future must be correct when it is dropped at any await.
pub trait Provider: Send + Sync + 'static {
    /// What compiling makes: ready to be started.
    type Launch: Send + 'static;
    /// What runs.
    type Running: Send + Sync + 'static;

    /// Makes a launch of the judged plan, and has no effect outside.
    fn compile(&self, plan: &LaunchPlan) -> impl Future<Output = Result<Self::Launch, Failure>> + Send;

    /// Starts it.
    fn spawn(&self, launch: Self::Launch) -> impl Future<Output = Result<Self::Running, Failure>> + Send;

    /// Follows it to its end.
    fn observe(&self, running: &Self::Running) -> impl Future<Output = Performance<Value>> + Send;

    /// Ends what is left. It is told how the attempt ended, and asked to stop at the owner's bound.
    fn teardown(
        &self,
        running: Option<Arc<Self::Running>>,
        ending: Ending,
        stop: Cancellation,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// How far a launch came: shared by its steps and its teardown.
struct Launched<R>(Mutex<Progress<R>>);

enum Progress<R> {
    NotBegun,
    Spawning,
    Running(Arc<R>),
}

impl<R> Launched<R> {
    fn reach(&self, progress: Progress<R>) {
        // Locked for one assignment; the value before it holds nothing of theirs.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn take(&self) -> Progress<R> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Progress::NotBegun)
    }
}

impl<A: Audit, P: CompletionPlace> Permit<ProviderHarness, A, P> {
    /// Launches the provider and follows it to its end: compile, spawn, observe. What it leaves is torn down at the attempt's record, or with the owner
    /// if the caller goes away first.
    ///
    /// A panic of a step is a failure of the operation. Past the operation's budget the step in hand is dropped, and the attempt has timed out.
    ///
    /// # Cancel safety
    /// Dropping the future drops the step in hand. The teardown runs with the owner; the attempt is recorded as ambiguous.
    pub async fn launch<H: Provider>(self, provider: Arc<H>) -> Performed<ProviderHarness, A, P> {
        let launched = Arc::new(Launched(Mutex::new(Progress::NotBegun)));
        let (ending, ended) = (Arc::clone(&provider), Arc::clone(&launched));
        let performing = self.begin(move |how, stop| async move {
            match ended.take() {
                Progress::NotBegun => Ok(()),
                Progress::Spawning => ending.teardown(None, how, stop).await,
                Progress::Running(running) => ending.teardown(Some(running), how, stop).await,
            }
        });
        performing
            .run(|granted| async move {
                let launch = match provider.compile(granted.context()).await {
                    Ok(launch) => launch,
                    Err(failure) => return Performance::Failed(failure),
                };
                launched.reach(Progress::Spawning);
                let running = match provider.spawn(launch).await {
                    Ok(running) => Arc::new(running),
                    Err(failure) => return Performance::Failed(failure),
                };
                launched.reach(Progress::Running(Arc::clone(&running)));
                provider.observe(&running).await.into_performance()
            })
            .await
    }
}
