//! Hook points: a chain of handlers for each, run as an interceptor plan.
//!
//! | a handler                       | at a blocking point, or by `blocking_emit` | at an observational one                     |
//! |---------------------------------|--------------------------------------------|---------------------------------------------|
//! | returns                         | the next one runs                          | the next one runs                           |
//! | fails                           | ends: raised                               | logged as an error; the next one runs       |
//! | stops                           | ends: stopped, a success                   | ends: stopped, a success                    |
//! | is refused by the store         | ends: raised                               | ends: raised                                |
//! | fails fatally                   | ends: raised                               | ends: raised                                |
//! | is cancelled, by whomever       | ends: cancelled                            | ends: cancelled                             |
//!
//! | the emission ends as            | it is recorded                                                                   |
//! |---------------------------------|----------------------------------------------------------------------------------|
//! | passed, stopped                 | not denied                                                                       |
//! | raised a failure, blocking      | denied                                                                           |
//! | raised a store's refusal        | blocking: denied; observational: not at all                                      |
//! | raised a fatal failure, cancelled | not at all                                                                     |
//! | at `message.add`, in any way    | not at all                                                                       |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::edge::{CancelHandle, Edge};
use super::hook::{Hook, HookCanceller, HookError};
use super::policy::{HookFailure, HookPolicy, StopMeans};
use super::run::{By, Limits, Ran, turn};
use crate::clock::Deadline;
use crate::declare::{CallableRef, CanonicalError, Digest, digest_of};
use crate::dispatch::HandlerFailure;
use crate::interception::{
    Answer, ChainFailure, ChainOutcome, Decision, InterceptError, Judged, OnFailure, Plan, PlanBuilder, PlanError, Registration,
    Report, StageSpec, Turn,
};
use crate::signal::legacy::{DormantPoint, HookPoint, HookRecord};
use crate::telemetry;

/// The stage of a hook point's plan.
const STAGE: &str = "hook";
/// What stands for a handler in the plan's digest. Handlers of hook points have no durable names of their own.
const CALLABLE: &str = "tipstaff::compat::hook_point@1";

/// The handlers of all hook points of one bus. Cheap to clone; nothing of it is global.
pub struct HookPoints<A> {
    chains: Arc<Mutex<BTreeMap<HookPoint, Chain<A>>>>,
    blocking: HookPolicy,
    observational: HookPolicy,
}

/// The handlers of one point, with the plan that they compile to. What their ends mean is each emission's policy.
struct Chain<A> {
    hooks: Vec<Hook<A>>,
    plan: Plan<HookCall<A>>,
}

/// A registration that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a dormant point is warned of here and nowhere else"]
pub struct HookRegistered {
    warning: Option<DormantPoint>,
}

impl HookRegistered {
    /// That nothing emits the point (P-13).
    #[must_use]
    pub const fn warning(&self) -> Option<DormantPoint> {
        self.warning
    }
}

impl<A: Send + Sync + 'static> HookPoints<A> {
    /// No handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No handlers, and other policies than the profiles: for tests, to see that a profile's values matter.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_policies(blocking: HookPolicy, observational: HookPolicy) -> Self {
        Self { blocking, observational, ..Self::new() }
    }

    /// Adds a handler, behind those that are there. Emissions that are under way keep their handlers (F-8).
    ///
    /// # Errors
    /// [`PlanError`] when the name is taken at that point, or not usable. Nothing has changed then.
    pub fn register(&self, point: HookPoint, hook: Hook<A>) -> Result<HookRegistered, PlanError> {
        let mut points = self.lock();
        let mut hooks = points.get(&point).map(|chain| chain.hooks.clone()).unwrap_or_default();
        hooks.push(hook);
        points.insert(point, Chain::compile(point, hooks)?);
        Ok(HookRegistered { warning: DormantPoint::of(point) })
    }

    /// Removes a handler. `false`: there is none of that name.
    ///
    /// # Panics
    /// Never: what was a plan is one without a handler of it.
    pub fn unregister(&self, point: HookPoint, name: &str) -> bool {
        let mut points = self.lock();
        let Some(chain) = points.get(&point) else { return false };
        let mut hooks = chain.hooks.clone();
        hooks.retain(|hook| &**hook.name() != name);
        let found = hooks.len() < chain.hooks.len();
        if found {
            points.insert(point, Chain::compile(point, hooks).expect("a part of a plan is a plan"));
        }
        found
    }

    /// An emission at a point, by that point's own rules. Its handlers are fixed from here on.
    #[must_use = "an emission does nothing until it is run"]
    pub fn emit(&self, point: HookPoint, arguments: Arc<A>) -> HookEmission<A> {
        self.emission(point, arguments, if point.is_blocking() { self.blocking } else { self.observational })
    }

    /// An emission by the rules of a blocking point, wherever it is.
    #[must_use = "an emission does nothing until it is run"]
    pub fn blocking_emit(&self, point: HookPoint, arguments: Arc<A>) -> HookEmission<A> {
        self.emission(point, arguments, self.blocking)
    }

    fn emission(&self, point: HookPoint, arguments: Arc<A>, policy: HookPolicy) -> HookEmission<A> {
        let plan = self.lock().get(&point).map(|chain| chain.plan.clone());
        let call = HookCall { point, policy, arguments, edge: Edge::default(), trail: Mutex::default() };
        HookEmission { plan, call: Arc::new(call), by: None }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HookPoint, Chain<A>>> {
        // Held for the compilation of a plan, which calls no code of others.
        self.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: Send + Sync + 'static> Chain<A> {
    fn compile(point: HookPoint, hooks: Vec<Hook<A>>) -> Result<Self, PlanError> {
        let stage = StageSpec::guard(STAGE).on_failure(OnFailure::Propagate).stop_ends_stage();
        let builder = PlanBuilder::new(point.as_str(), &[stage]);
        let plan = hooks.iter().fold(builder, |plan, hook| plan.register(registration(hook.clone()))).build()?;
        Ok(Self { plan, hooks })
    }
}

/// One handler as an interceptor.
fn registration<A: Send + Sync + 'static>(hook: Hook<A>) -> Registration<HookCall<A>> {
    let name = Arc::clone(hook.name());
    Registration::decide_async(name, STAGE, CallableRef::from_static(CALLABLE), move |call: Arc<HookCall<A>>, _: Turn| {
        let hook = hook.clone();
        async move {
            let limits = Limits { edge: &call.edge, deadline: None, stop: None };
            let ran = turn(&hook, &call.arguments, call.policy.handler_classification.into(), limits).await;
            call.decide(hook.name(), ran)
        }
    })
}

/// What the plan of a hook point judges. Its digest covers the point alone: the arguments are free-form, nothing decides by them, and handlers may
/// change them.
struct HookCall<A> {
    point: HookPoint,
    policy: HookPolicy,
    arguments: Arc<A>,
    edge: Edge,
    trail: Mutex<Trail>,
}

/// What the handlers of one emission came to.
#[derive(Default)]
struct Trail {
    raised: Option<HookEnd>,
    isolated: Vec<Isolated>,
}

impl<A: Send + Sync + 'static> Judged for HookCall<A> {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(&self.point)
    }
}

impl<A> HookCall<A> {
    fn trail(&self) -> MutexGuard<'_, Trail> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, name: &Arc<str>, ran: Ran) -> Result<Decision<Self>, InterceptError> {
        let ran = match (ran, self.policy.stop) {
            (Ran::Error(HookError::Stop), StopMeans::EndsChain) => return Ok(Decision::stop()),
            (Ran::Error(HookError::Stop), StopMeans::Failure) => Ran::Error(HookError::failed("stop", "stopped")),
            (ran, _) => ran,
        };
        match ran {
            Ran::Returned(_) | Ran::Unawaited => Ok(Decision::proceed()),
            Ran::Error(HookError::Failed(failure)) if self.policy.failure == HookFailure::Isolate => {
                tracing::error!(target: telemetry::COMPAT, point = %self.point, hook = %name, code = failure.code(), "a handler of a hook point failed");
                let decision = Decision::proceed().with_note("hook.isolated", failure.to_string());
                self.trail().isolated.push(Isolated { by: Arc::clone(name), failure });
                Ok(decision)
            }
            Ran::Error(error) => {
                let raised = HookEnd::Raised { by: Arc::clone(name), error: error.clone() };
                self.trail().raised = Some(raised);
                Err(error.into())
            }
            // There is no deadline but the emission's own, which the plan keeps.
            Ran::TimedOut => Err(InterceptError::new("it ran out of time")),
            Ran::Cancelled(by) => {
                let by = match by {
                    By::Itself => HookCanceller::Hook(Arc::clone(name)),
                    By::Emitter => HookCanceller::Emitter,
                };
                self.trail().raised = Some(HookEnd::Cancelled { by });
                Err(InterceptError::cancelled("its work was cancelled"))
            }
        }
    }
}

/// One emission at a hook point, with its handlers.
pub struct HookEmission<A> {
    /// `None`: the point has never had a handler.
    plan: Option<Plan<HookCall<A>>>,
    call: Arc<HookCall<A>>,
    by: Option<Deadline>,
}

/// How an emission ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEnd {
    /// Every handler had its turn.
    Passed,
    /// A handler ended the chain, which is a success.
    Stopped {
        /// Which.
        by: Arc<str>,
    },
    /// A failure reached the emitter.
    Raised {
        /// Whose.
        by: Arc<str>,
        /// The failure: never a cancellation, never a stop.
        error: HookError,
    },
    /// A cancellation reached the emitter.
    Cancelled {
        /// Whose.
        by: HookCanceller,
    },
    /// The emission's own deadline came first.
    TimedOut {
        /// Whose turn it was.
        by: Arc<str>,
    },
}

/// A failure that went no further than the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolated {
    /// Whose.
    pub by: Arc<str>,
    /// The failure.
    pub failure: HandlerFailure,
}

impl Judged for HookRecord {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}

/// An emission that has ended.
#[must_use = "a failure may have to keep the emitter from going on"]
pub struct HookEmitted {
    /// How.
    pub end: HookEnd,
    /// What is to be recorded of it, if anything.
    pub record: Option<HookRecord>,
    /// Failures that went no further, in the order of their handlers.
    pub isolated: Vec<Isolated>,
    /// What each handler answered (I-8); `None` when the point has never had one.
    pub report: Option<Report>,
}

impl<A: Send + Sync + 'static> HookEmission<A> {
    /// What cancels it.
    #[must_use]
    pub fn handle(&self) -> CancelHandle {
        CancelHandle(self.call.edge.clone())
    }

    /// Sets a deadline for the whole chain. Without one there is none, as recorded: a handler that hangs hangs its emitter.
    #[must_use]
    pub fn by(mut self, deadline: Deadline) -> Self {
        self.by = Some(deadline);
        self
    }

    /// Runs the handlers, one after the other.
    ///
    /// # Cancel safety
    /// Dropping the future drops the handler in flight (F-12); nothing is recorded.
    pub async fn run(self) -> HookEmitted {
        let Self { plan, call, by } = self;
        let Some(plan) = plan else {
            return HookEmitted {
                end: HookEnd::Passed,
                record: record(&call, &HookEnd::Passed),
                isolated: Vec::new(),
                report: None,
            };
        };
        let mut report = plan.report();
        let deadline = by.unwrap_or_else(|| Deadline::after(std::time::Duration::MAX));
        let outcome = plan.apply(Arc::clone(&call), deadline, &mut report).await;
        let Trail { raised, isolated } = std::mem::take(&mut *call.trail());
        let end = end(outcome, raised, &report);
        HookEmitted { record: record(&call, &end), end, isolated, report: Some(report) }
    }
}

fn end<A>(outcome: ChainOutcome<HookCall<A>>, raised: Option<HookEnd>, report: &Report) -> HookEnd {
    match (outcome, raised) {
        (ChainOutcome::Failed(_), Some(raised)) => raised,
        (ChainOutcome::Failed(failure), None) => late(&failure),
        (ChainOutcome::Permitted(_), _) => {
            let stopped = report.steps().find(|step| step.answer() == Answer::Stopped);
            stopped.map_or(HookEnd::Passed, |step| HookEnd::Stopped { by: step.registration().into() })
        }
        // No handler denies, defers or asks; a point has a canonical form.
        (ChainOutcome::Denied(_) | ChainOutcome::Deferred { .. } | ChainOutcome::Escalated(_), raised) => {
            raised.unwrap_or(HookEnd::Passed)
        }
    }
}

/// No handler raised: the deadline did, before or while one ran.
fn late(failure: &ChainFailure) -> HookEnd {
    HookEnd::TimedOut { by: Arc::clone(&failure.registration) }
}

fn record<A>(call: &HookCall<A>, end: &HookEnd) -> Option<HookRecord> {
    let (point, blocking) = (call.point, call.policy.failure == HookFailure::Propagate);
    let raised = match end {
        HookEnd::Passed | HookEnd::Stopped { .. } => false,
        HookEnd::Raised { error: HookError::Failed(_) | HookError::StoreRefused(_), .. } if blocking => true,
        HookEnd::TimedOut { .. } if blocking => true,
        HookEnd::Raised { .. } | HookEnd::TimedOut { .. } | HookEnd::Cancelled { .. } => return None,
    };
    (point != HookPoint::MessageAdd).then_some(HookRecord { point, denied: raised, has_exception: raised })
}

impl<A> Default for HookPoints<A> {
    fn default() -> Self {
        Self { chains: Arc::default(), blocking: HookPolicy::blocking(), observational: HookPolicy::observational() }
    }
}

impl<A> Clone for HookPoints<A> {
    fn clone(&self) -> Self {
        Self { chains: Arc::clone(&self.chains), ..*self }
    }
}

impl<A> fmt::Debug for HookPoints<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_map().entries(points.iter().map(|(point, chain)| (point.as_str(), &chain.hooks))).finish()
    }
}

impl<A> fmt::Debug for HookEmission<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookEmission").field("point", &self.call.point).field("policy", &self.call.policy).finish_non_exhaustive()
    }
}

impl fmt::Debug for HookEmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { end, record, isolated, report: _ } = self;
        f.debug_struct("HookEmitted")
            .field("end", end)
            .field("record", record)
            .field("isolated", isolated)
            .finish_non_exhaustive()
    }
}
