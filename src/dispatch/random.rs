//! Random policies, handlers and interruptions: what holds for every emission, whatever its policy.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::time::{sleep, timeout};

use super::policy::Phase;
use super::validate::tests::{any_phase, named_profiles, one};
use super::value::{
    Completion, Concurrency, Conduct, DeadlineDisposition, ErrorSurface, Failure, HandlerCancellation, LateRegistrations,
    PredicateFailure, Selector,
};
use super::*;
use crate::clock::Deadline;

/// How a script ends.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Returns,
    Fails,
    Cancels,
    Fatal,
    Refused,
    Panics,
    Hangs,
}

const ENDS: &[Ends] =
    &[Ends::Returns, Ends::Returns, Ends::Fails, Ends::Cancels, Ends::Fatal, Ends::Refused, Ends::Panics, Ends::Hangs];

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    Fails,
    Cancels,
    Panics,
}

const SAYS: &[Says] = &[Says::Yes, Says::Yes, Says::No, Says::Fails, Says::Cancels, Says::Panics];

#[derive(Debug, Clone, Copy)]
enum Shape {
    Sync,
    Async,
    Coroutine,
    Awaitable,
}

const SHAPES: &[Shape] = &[Shape::Sync, Shape::Async, Shape::Coroutine, Shape::Awaitable];

#[derive(Debug, Clone)]
struct Script {
    shape: Shape,
    /// With a context, that is to say a token.
    told: bool,
    waits_ms: u64,
    ends: Ends,
    when_cancelled: Ends,
    condition: Option<(Says, bool)>,
    offloaded: bool,
    ordered: bool,
    overriding: bool,
}

fn any_script() -> impl Strategy<Value = Script> {
    let body = (one(SHAPES), any::<bool>(), prop_oneof![Just(0), 1u64..3_000], one(ENDS), one(ENDS));
    let asks = (prop::bool::weighted(0.1), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (body, prop::option::of((one(SAYS), any::<bool>())), asks).prop_map(|(body, condition, asks)| {
        let (shape, told, waits_ms, ends, when_cancelled) = body;
        let (offloaded, ordered, overriding) = asks;
        Script { shape, told, waits_ms, ends, when_cancelled, condition, offloaded, ordered, overriding }
    })
}

/// A phase that keeps the rules more often than a random one: a named profile with a few other values.
fn near_a_profile() -> impl Strategy<Value = Phase> {
    let stage = (
        prop::option::weighted(0.3, one(Failure::ALL)),
        prop::option::weighted(0.3, one(Completion::ALL)),
        prop::option::weighted(0.3, one(ErrorSurface::ALL)),
        prop::option::weighted(0.5, one(HandlerCancellation::ALL)),
    );
    let deadline = prop::option::weighted(0.3, (1u64..4_000, one(DeadlineDisposition::ALL)));
    let values = (
        prop::option::weighted(0.2, one(Concurrency::ALL)),
        prop::option::weighted(0.5, one(PredicateFailure::ALL)),
        prop::option::weighted(0.2, one(LateRegistrations::ALL)),
    );
    let base = prop::sample::select(named_profiles().map(|(_, phase)| phase).to_vec());
    (base, stage, deadline, values).prop_map(|(mut phase, stage, deadline, values)| {
        let invocation = &mut phase.invocation;
        invocation.failure = stage.0.unwrap_or(invocation.failure);
        invocation.completion = stage.1.unwrap_or(invocation.completion);
        invocation.error_surface = stage.2.unwrap_or(invocation.error_surface);
        invocation.handler_cancellation = stage.3.unwrap_or(invocation.handler_cancellation);
        let bounds = DetachBounds { max_running: NonZeroU32::new(2).unwrap(), max_age: Duration::from_secs(5) };
        invocation.detach = (invocation.completion == Completion::DetachBounded).then_some(bounds);
        if let Some((budget, disposition)) = deadline {
            (phase.deadline, phase.deadline_disposition) = (Some(Duration::from_millis(budget)), Some(disposition));
        }
        phase.concurrency = values.0.unwrap_or(phase.concurrency);
        phase.predicate_failure = values.1.unwrap_or(phase.predicate_failure);
        phase.late_registrations = values.2.unwrap_or(phase.late_registrations);
        phase
    })
}

fn any_phases() -> impl Strategy<Value = Vec<Phase>> {
    let phase = || prop_oneof![1 => any_phase(), 6 => near_a_profile()];
    let apart = (phase(), phase(), any::<bool>()).prop_map(|(one, other, turned)| {
        let one = Phase { selector: Selector::DeclaredSync, ..one };
        let other = Phase { selector: Selector::DeclaredAsync, ..other };
        if turned { vec![other, one] } else { vec![one, other] }
    });
    let all = phase().prop_map(|phase| vec![Phase { selector: Selector::All, ..phase }]);
    prop_oneof![3 => all, 1 => apart]
}

impl Ends {
    async fn come(self) -> HandlerResult<u32> {
        if matches!(self, Self::Hangs) {
            std::future::pending::<()>().await;
        }
        self.at_once()
    }

    fn at_once(self) -> HandlerResult<u32> {
        match self {
            Self::Returns | Self::Hangs => Ok(7),
            Self::Fails => Err(HandlerError::failed("e", "")),
            Self::Cancels => Err(HandlerError::Cancelled),
            Self::Fatal => Err(HandlerError::fatal("x")),
            Self::Refused => Err(HandlerError::store_refused("s", "")),
            Self::Panics => panic!("a handler's panic"),
        }
    }
}

impl Script {
    async fn body(self, context: HandlerContext) -> HandlerResult<u32> {
        let run = async {
            if self.waits_ms > 0 {
                sleep(Duration::from_millis(self.waits_ms)).await;
            }
            self.ends.come().await
        };
        tokio::select! {
            biased;
            ended = run => ended,
            _by = context.token().cancelled() => self.when_cancelled.come().await,
        }
    }

    fn subscriber(self, name: String) -> Subscriber<u32, u32> {
        let (condition, offloaded, ordered, overriding) = (self.condition, self.offloaded, self.ordered, self.overriding);
        let script = self.clone();
        let mut subscriber = match (self.shape, self.told) {
            (Shape::Sync, _) => Subscriber::declared_sync(name, move |_: &Arc<u32>| script.ends.at_once()),
            (Shape::Async, true) => Subscriber::declared_async_with(name, move |_, context| script.clone().body(context)),
            (Shape::Async, false) => Subscriber::declared_async(name, move |_| script.clone().body(HandlerContext::default())),
            (Shape::Coroutine, _) => Subscriber::declared_sync_with(name, move |_: &Arc<u32>, context: &HandlerContext| {
                Ok(Returned::coroutine(script.clone().body(context.clone())))
            }),
            (Shape::Awaitable, _) => Subscriber::declared_sync_with(name, move |_: &Arc<u32>, context: &HandlerContext| {
                Ok(Returned::awaitable(script.clone().body(context.clone())))
            }),
        };
        if let Some((says, filters)) = condition {
            subscriber = if filters { subscriber.filtered_by(says) } else { subscriber.when(says) };
        }
        if offloaded {
            subscriber = subscriber.offloaded();
        }
        if ordered {
            let capacity = NonZeroUsize::new(2).unwrap();
            subscriber = subscriber.ordered(OrderedQueue { capacity, overflow: QueueOverflow::DropOldest });
        }
        if overriding { subscriber.overriding() } else { subscriber }
    }
}

impl Condition<u32> for Says {
    fn holds(&self, _: &u32) -> Result<bool, HandlerError> {
        match self {
            Self::Yes => Ok(true),
            Self::No => Ok(false),
            Self::Fails => Err(HandlerError::failed("p", "")),
            Self::Cancels => Err(HandlerError::Cancelled),
            Self::Panics => panic!("a condition's panic"),
        }
    }
}

/// What may be in the report, and what must be.
struct Expected {
    must: Vec<String>,
    may: Vec<String>,
}

/// By the rules alone: who is asked, what a failed condition means, and that only what was never asked may be missing.
fn expected(policy: &DispatchPolicy, scripts: &[Script]) -> Expected {
    let phase_of = |script: &Script| {
        let declared = if matches!(script.shape, Shape::Async) { Declared::Async } else { Declared::Sync };
        policy.phases().iter().find(|phase| phase.selector.takes(declared)).expect("F-1")
    };
    let means = |script: &Script, filters: bool| {
        let phase = phase_of(script);
        if filters { phase.filter_failure.unwrap_or(phase.predicate_failure) } else { phase.predicate_failure }
    };
    let says = |script: &Script| script.condition.map_or((Says::Yes, false), |condition| condition);
    // Where asking ends the emission, those that were not asked before are not known to match.
    let ends_early = scripts.iter().any(|script| {
        let (says, filters) = says(script);
        !matches!(says, Says::Yes | Says::No) && means(script, filters) == PredicateFailure::Propagate
    });
    let mut expected = Expected { must: Vec::new(), may: Vec::new() };
    for (at, script) in scripts.iter().enumerate() {
        let name = format!("h{at}");
        let (says, filters) = says(script);
        let matched = match says {
            Says::Yes | Says::Cancels => true,
            Says::No => false,
            Says::Fails | Says::Panics => means(script, filters) != PredicateFailure::NoMatch,
        };
        let asked_late = phase_of(script).late_registrations == LateRegistrations::ThisEmission;
        if matched {
            expected.may.push(name.clone());
            if script.condition.is_none() || !(ends_early || asked_late) {
                expected.must.push(name);
            }
        }
    }
    expected
}

async fn emission(policy: DispatchPolicy, scripts: Vec<Script>, cancel_after_ms: Option<u64>) {
    let expected = expected(&policy, &scripts);
    let dispatcher = Dispatcher::<u32, u32>::with_threads(policy, NonZeroUsize::new(2).unwrap());
    for (at, script) in scripts.into_iter().enumerate() {
        let _ = dispatcher.register(script.subscriber(format!("h{at}"))).unwrap();
    }
    let mut emit = dispatcher.emit(&Arc::new(1)).by(Deadline::after(Duration::from_secs(20)));
    let cancel = cancel_after_ms.map(|after| (after, emit.handle()));
    let cancelling = async {
        if let Some((after, handle)) = cancel {
            sleep(Duration::from_millis(after)).await;
            handle.cancel();
        }
        std::future::pending().await
    };
    let result = tokio::select! {
        biased;
        result = timeout(Duration::from_secs(60), emit.into_future()) => result.expect("the emission ends"),
        () = cancelling => unreachable!(),
    };
    match &result {
        Ok(report) => holds(report, &expected),
        Err(DispatchError::Raised(raised)) => holds(raised.report(), &expected),
        Err(DispatchError::Refused(refusal)) => panic!("refused: {refusal}"),
    }
    if let Ok(ready) = dispatcher.preflight_sync() {
        match dispatcher.emit_sync(&Arc::new(2), &ready) {
            Ok(report) => holds(&report, &expected),
            Err(error) => holds(error.report().expect("raised"), &expected),
        }
    }
    dispatcher.stop(Deadline::after(Duration::from_secs(1))).await;
}

/// F-10: each matched registration once, in registration order; a value where it returned, and nowhere else.
fn holds(report: &DispatchReport<u32>, expected: &Expected) {
    let names: Vec<String> = report.entries().map(|entry| entry.registration.to_owned()).collect();
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    assert!(names.iter().all(|name| expected.may.contains(name)), "{names:?} but at most {:?}", expected.may);
    assert!(expected.must.iter().all(|name| names.contains(name)), "{names:?} but at least {:?}", expected.must);
    for entry in report.entries() {
        assert_eq!(entry.value.is_some(), *entry.outcome == Outcome::Returned, "{entry:?}");
    }
    assert!(serde_json::to_value(report).is_ok());
}

/// The same cases in every run.
fn runner(cases: u32) -> TestRunner {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(Config { cases, failure_persistence: None, ..Config::default() }, random)
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// F-1 to F-12, F-15, F-20, F-21: a random policy is refused by a rule, or its emission ends, whatever its handlers do and whenever it is cancelled, and the
/// report names every matched registration exactly once, in registration order.
#[test]
fn any_policy_is_refused_or_its_emission_ends_with_a_whole_report() {
    let runtime = paused();
    let (accepted, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let inputs = (any_phases(), one(Conduct::ALL), prop::collection::vec(any_script(), 0..8), prop::option::of(0u64..4_000));
    let mut runner = runner(1024);
    let ran = runner.run(&inputs, |(phases, conduct, scripts, cancel)| {
        match DispatchPolicy::of(phases.into(), conduct) {
            Err(error) => {
                refused.set(refused.get() + 1);
                prop_assert!(Rule::ALL.contains(&error.rule()));
            }
            Ok(policy) => {
                accepted.set(accepted.get() + 1);
                runtime.block_on(emission(policy, scripts, cancel));
            }
        }
        Ok(())
    });
    ran.unwrap();
    // Both kinds of case were tried.
    assert!(accepted.get() > 100 && refused.get() > 100, "{} accepted, {} refused", accepted.get(), refused.get());
}

/// The quick way and the general way come to the same report.
#[test]
fn the_quick_way_agrees_with_the_general_way() {
    let runtime = paused();
    let mut runner = runner(256);
    let ran = runner.run(&prop::collection::vec(any_script(), 0..40), |scripts| {
        let dispatcher = Dispatcher::<u32, u32>::observation();
        for (at, script) in scripts.into_iter().enumerate() {
            let plain = Script { offloaded: false, ordered: false, overriding: false, ..script };
            let _ = dispatcher.register(plain.subscriber(format!("h{at}"))).unwrap();
        }
        let ends = |report: DispatchReport<u32>| -> Vec<(String, Outcome, Option<u32>, Duration)> {
            let of = |entry: ReportEntry<'_, u32>| {
                (entry.registration.to_owned(), entry.outcome.clone(), entry.value.copied(), entry.elapsed)
            };
            report.entries().map(of).collect()
        };
        let (quick, general) = runtime.block_on(async {
            let quick = dispatcher.emit(&Arc::new(1)).await.unwrap();
            let mut emit = dispatcher.emit(&Arc::new(1));
            let _handle = emit.handle();
            (quick, emit.await.unwrap())
        });
        prop_assert_eq!(ends(quick), ends(general));
        Ok(())
    });
    ran.unwrap();
}
