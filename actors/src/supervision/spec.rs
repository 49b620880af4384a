//! What is to be supervised, and how.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::backoff::Backoff;
use super::child::{Parent, Standing, Started};
use super::error::StartError;
use super::event::{ReportSink, TARGET};
use super::handle::SupervisorHandle;
use super::intensity::Intensity;
use super::kernel::{Facts, Rules};
use super::restart::Restart;
use super::shared::Shared;
use super::strategy::Strategy;
use super::supervisor;

/// Longer than any program runs: for waits that another bound ends.
const UNBOUNDED: Duration = Duration::MAX;

type StartFuture = Pin<Box<dyn Future<Output = Result<Started, StartError>> + Send>>;

/// One child of a supervisor: how it is started, when it is started again, how it is stopped, and who is told how it stands.
pub struct ChildSpec {
    name: Arc<str>,
    restart: Restart,
    start: Box<dyn Fn(Parent) -> StartFuture + Send + Sync>,
    start_timeout: Duration,
    stop_timeout: Duration,
    backoff: Option<Backoff>,
    intensity: Option<Intensity>,
    on_standing: Option<Box<dyn Fn(Standing) + Send + Sync>>,
    /// What the owner has been told last. Locked while it is told, so that it hears in order; the hook cannot come back here.
    told: Mutex<Option<Standing>>,
    subtree: Option<(Arc<SupervisorSpec>, Arc<Shared>)>,
}

impl ChildSpec {
    /// A child that `start` brings up, now and after each end that its class brings it back from. The name is for reports only;
    /// several children may share one. `start` gives back what it spawned, linked to the [`Parent`]: usually just
    /// `parent.spawn(actor, arguments)`.
    ///
    /// Defaults: a start timeout of 5 seconds, a stop timeout of 5 seconds, the supervisor's back-off and budget.
    pub fn new<F, S>(name: impl Into<Arc<str>>, restart: Restart, start: impl Fn(Parent) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<S, StartError>> + Send + 'static,
        S: Into<Started>,
    {
        let start = move |parent| -> StartFuture {
            let started = start(parent);
            Box::pin(async move { started.await.map(Into::into) })
        };
        Self {
            name: name.into(),
            restart,
            start: Box::new(start),
            start_timeout: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(5),
            backoff: None,
            intensity: None,
            on_standing: None,
            told: Mutex::new(None),
            subtree: None,
        }
    }

    /// A child that is a supervisor itself, with a handle that stays valid over its restarts.
    ///
    /// It has started once its own children have. While it is not up, its children of the specification stand as it stands; its
    /// dynamic children are gone when it ends. Its default start timeout is 30 seconds; it has no stop timeout of its own, since
    /// its children have theirs.
    #[must_use]
    pub fn supervisor(restart: Restart, spec: SupervisorSpec) -> (Self, SupervisorHandle) {
        let spec = Arc::new(spec);
        let shared = Shared::new(&spec);
        let handle = SupervisorHandle::new(Arc::clone(&shared));
        let (below, desk) = (Arc::clone(&spec), Arc::clone(&shared));
        let start = move |parent| supervisor::start_below(parent, Arc::clone(&below), Arc::clone(&desk));
        let mut child = Self::new(Arc::clone(&spec.name), restart, start).start_timeout(Duration::from_secs(30));
        child.stop_timeout = UNBOUNDED;
        child.subtree = Some((spec, shared));
        (child, handle)
    }

    /// How long a start may take. A start that takes longer is dropped and counts as a failure; the supervisor serves meanwhile.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// How long a graceful stop may take. A child that takes longer is killed.
    #[must_use]
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Waits of its own between restarts, instead of the supervisor's.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// A restart budget of its own: its restarts are not counted against the budget that its siblings share. What happens when it
    /// is spent depends on the strategy: [`Strategy::OneForOne`] leaves this child down and goes on, [`Strategy::Isolated`]
    /// reports it as degraded and goes on trying, the group strategies end.
    #[must_use]
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.intensity = Some(intensity);
        self
    }

    /// Calls `hook` with each change of the child's [`Standing`]: before it is started again, when it is up, when it is gone for
    /// good.
    ///
    /// Each change is told once, in order, and [`Standing::Gone`] is the last: a child that is gone does not come back with a
    /// restart of its supervisor either. The hook runs inside the supervisor, between its decisions: it must not block. A hook
    /// that panics is reported and has no other effect.
    #[must_use]
    pub fn on_standing(mut self, hook: impl Fn(Standing) + Send + Sync + 'static) -> Self {
        self.on_standing = Some(Box::new(hook));
        self
    }

    /// The name, for reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn start(&self, parent: Parent) -> StartFuture {
        (self.start)(parent)
    }

    pub(crate) fn timeouts(&self) -> (Duration, Duration) {
        (self.start_timeout, self.stop_timeout)
    }

    pub(crate) fn facts(&self, default: Backoff, dynamic: bool) -> Facts {
        let backoff = self.backoff.unwrap_or(default);
        Facts { restart: self.restart, backoff, intensity: self.intensity, dynamic }
    }

    /// Whether the owner has been told that there will be no other incarnation.
    pub(crate) fn is_gone(&self) -> bool {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) == Some(Standing::Gone)
    }

    /// Tells the owner, and for a subtree the owners of its children, whose supervisor cannot tell them while it is down. Each
    /// change is told once, and nothing after `Gone`.
    pub(crate) fn tell(&self, standing: Standing) {
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if *told == Some(standing) || *told == Some(Standing::Gone) {
                return;
            }
            *told = Some(standing);
            if let Some(hook) = &self.on_standing
                && catch_unwind(AssertUnwindSafe(|| hook(standing))).is_err()
            {
                tracing::error!(target: TARGET, child = &*self.name, ?standing, "a standing hook panicked");
            }
        }
        let Some((spec, shared)) = &self.subtree else { return };
        if standing == Standing::Up {
            return;
        }
        for child in &spec.children {
            child.tell(standing);
        }
        if standing == Standing::Gone {
            shared.close();
        }
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.name)
            .field("restart", &self.restart)
            .field("start_timeout", &self.start_timeout)
            .field("stop_timeout", &self.stop_timeout)
            .finish_non_exhaustive()
    }
}

/// A supervisor: its children in start order, and what happens when one of them ends.
#[derive(Debug)]
pub struct SupervisorSpec {
    pub(crate) name: Arc<str>,
    strategy: Strategy,
    intensity: Intensity,
    backoff: Backoff,
    pub(crate) max_dynamic: usize,
    pub(crate) children: Vec<Arc<ChildSpec>>,
    pub(crate) reports: Option<ReportSink>,
}

impl SupervisorSpec {
    /// A supervisor without children. The name is for reports only: it is registered nowhere, and several supervisors may share
    /// one.
    ///
    /// Defaults: [`Intensity::default`], [`Backoff::default`], no dynamic children.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, strategy: Strategy) -> Self {
        Self {
            name: name.into(),
            strategy,
            intensity: Intensity::default(),
            backoff: Backoff::default(),
            max_dynamic: 0,
            children: Vec::new(),
            reports: None,
        }
    }

    /// The restart budget that the children without one of their own share. An isolating supervisor has none.
    #[must_use]
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.intensity = intensity;
        self
    }

    /// The waits between restarts of children without their own.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How many dynamic children there may be at once. More are refused.
    #[must_use]
    pub fn max_dynamic(mut self, children: usize) -> Self {
        self.max_dynamic = children;
        self
    }

    /// Adds a child. Children are started in the order in which they are added, and stopped in reverse.
    #[must_use]
    pub fn child(mut self, child: ChildSpec) -> Self {
        self.children.push(Arc::new(child));
        self
    }

    /// Where reports go, of this supervisor and of those below it that have no sink of their own.
    #[must_use]
    pub fn reports(mut self, sink: ReportSink) -> Self {
        self.reports = Some(sink);
        self
    }

    /// The name, for reports.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn rules(&self, nested: bool) -> Rules {
        Rules { strategy: self.strategy, intensity: self.intensity, nested }
    }

    pub(crate) fn default_backoff(&self) -> Backoff {
        self.backoff
    }
}
