//! Failures: errors, panics, lateness, contract violations and what a stage declares them to mean (I-3, I-15).

use std::time::Instant;

use futures::future::BoxFuture;
use serde::Serialize;
use tipstaff::declare::{CanonicalError, Digest, digest_of};
use tipstaff::interception::{
    Answer, DenialCause, EvidenceRef, FailureKind, InterceptError, Judged, MAX_REMARKS, OnFailure, StageKind,
};

use super::*;

/// One failing interceptor by the name of its failure, with the class that a denial by it has.
fn failing(failure: &str, stage: &str) -> (Registration<Value>, DenialCause) {
    let at_once = |answer: fn() -> Result<Decision<Value>, InterceptError>| {
        Registration::decide("fails", stage, CALLABLE, move |_: &Value, _: &Turn| answer())
    };
    match failure {
        "error" => (at_once(|| Err(InterceptError::new("backend is down"))), DenialCause::InterceptorFailed),
        "error of another type" => {
            (at_once(|| Err(std::io::Error::other("no such host").into())), DenialCause::InterceptorFailed)
        }
        "cancels itself" => (at_once(|| Err(InterceptError::cancelled("my task was aborted"))), DenialCause::Cancelled),
        "panic" => (at_once(|| panic!("boom")), DenialCause::Panicked),
        "panic with no text" => (at_once(|| std::panic::panic_any(7_u8)), DenialCause::Panicked),
        // AH-3: the closure itself panics, so that there never is a future.
        "panic before the future" => {
            let panics = |_: Arc<Value>, _: Turn| -> BoxFuture<'static, Decision<Value>> { panic!("boom") };
            (Registration::decide_async("fails", stage, CALLABLE, panics), DenialCause::Panicked)
        }
        "panic after waiting" => {
            let panics = |_: Arc<Value>, _: Turn| async {
                tokio::time::sleep(ms(1)).await;
                panic!("boom");
                #[expect(unreachable_code, reason = "the type of the answer")]
                Decision::<Value>::proceed()
            };
            (Registration::decide_async("fails", stage, CALLABLE, panics), DenialCause::Panicked)
        }
        "hangs" => {
            let hangs = |_: Arc<Value>, _: Turn| std::future::pending::<Decision<Value>>();
            (Registration::decide_async("fails", stage, CALLABLE, hangs).bound(ms(20)), DenialCause::TimedOut)
        }
        "breaks its contract" => (at_once(|| Ok(Decision::proceed().stopping_owner())), DenialCause::ContractViolation),
        other => panic!("unknown failure {other}"),
    }
}

const FAILURES: [&str; 9] = [
    "error",
    "error of another type",
    "cancels itself",
    "panic",
    "panic with no text",
    "panic before the future",
    "panic after waiting",
    "hangs",
    "breaks its contract",
];

/// I-3, AH-3: each failure in each kind of stage means what the stage declares, with a class of its own.
#[tokio::test(start_paused = true)]
async fn a_failure_means_what_its_stage_declares() {
    let guard = || StageSpec::guard("s");
    let transform = || StageSpec::transform("s");
    let advisory = || StageSpec::advisory("s");
    let table = [
        (guard(), OnFailure::Deny),
        (guard().on_failure(OnFailure::Propagate), OnFailure::Propagate),
        (transform(), OnFailure::Propagate),
        (transform().on_failure(OnFailure::Deny), OnFailure::Deny),
        (advisory(), OnFailure::Isolate),
        (advisory().on_failure(OnFailure::Deny), OnFailure::Deny),
        (advisory().on_failure(OnFailure::Propagate), OnFailure::Propagate),
    ];
    for (stage, mapping) in table {
        for failure in FAILURES {
            let (registration, cause) = failing(failure, "s");
            let stages = [stage.clone(), StageSpec::guard("later")];
            let plan = PlanBuilder::new("p", &stages).register(registration).register(allow("later", "later")).build().unwrap();
            let (outcome, report) = apply(&plan, json!(1)).await;
            let what = format!("{failure} in {stage:?}: {outcome:?}");
            assert_eq!(report.steps().next().unwrap().answer().mapping(), Some(mapping), "{what}");
            match (mapping, outcome) {
                (OnFailure::Deny, ChainOutcome::Denied(denied)) => {
                    assert_eq!((denied.denial.cause, &denied.denial.code), (cause, &cause.code()), "{what}");
                    assert_eq!(denied.denial.registration.as_deref(), Some("fails"), "{what}");
                    assert_eq!(denied.denial.never_called.len(), 1, "{what}");
                }
                (OnFailure::Propagate, ChainOutcome::Failed(failure)) => {
                    assert_eq!((&*failure.stage, &*failure.registration, failure.kind.cause()), ("s", "fails", cause), "{what}");
                }
                (OnFailure::Isolate, ChainOutcome::Permitted(_)) => {
                    assert_eq!(answers(&report)[1], "later continued", "{what}");
                }
                (mapping, outcome) => panic!("{failure} in {stage:?}, declared {mapping:?}, gave {outcome:?}"),
            }
        }
    }
}

/// I-3: a failed operation keeps the interceptor's own error as its source.
#[tokio::test]
async fn a_failed_operation_keeps_the_error_as_its_source() {
    let (registration, _) = failing("error of another type", "transform");
    let (outcome, _) = apply(&build([registration]), json!(1)).await;
    let ChainOutcome::Failed(failure) = outcome else { panic!("expected a failure, found {outcome:?}") };
    assert_eq!(failure.to_string(), "interceptor fails of stage transform failed: no such host");
    let source = std::error::Error::source(&*failure).expect("the interceptor's error");
    assert!(source.downcast_ref::<std::io::Error>().is_some());
}

/// Holds the thread. A bound must hold against it, and nothing but the clock can tell.
fn block(at_least: Duration) {
    let start = Instant::now();
    while start.elapsed() < at_least {
        std::hint::spin_loop();
    }
}

/// AH-2, I-3: an interceptor that blocks its thread beyond its bound and then allows has not allowed.
#[tokio::test]
async fn a_late_allow_is_a_timeout() {
    let blocks = |_: &Value, _: &Turn| {
        block(ms(30));
        Decision::proceed()
    };
    let blocks_in_its_future = |_: Arc<Value>, _: Turn| async {
        block(ms(30));
        Decision::proceed()
    };
    let blocks_after_waiting = |_: Arc<Value>, _: Turn| async {
        tokio::task::yield_now().await;
        block(ms(30));
        Decision::proceed()
    };
    for registration in [
        Registration::decide("late", "admit", CALLABLE, blocks),
        Registration::decide_async("late", "admit", CALLABLE, blocks_in_its_future),
        Registration::decide_async("late", "admit", CALLABLE, blocks_after_waiting),
    ] {
        let (outcome, report) = apply(&build([registration.bound(ms(20))]), json!(1)).await;
        assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::TimedOut));
        assert_eq!(report.steps().next().unwrap().answer(), Answer::TimedOut(OnFailure::Deny));
        assert!(report.steps().next().unwrap().elapsed() >= ms(30));
    }
}

/// P11: four advisers that hang share their stage's budget of one second; the three that were never started are told apart from the one that timed
/// out, and the operation is not affected.
#[tokio::test(start_paused = true)]
async fn a_shared_budget_is_spent_once() {
    let stages = [StageSpec::advisory("advise").deadline(ms(1000)), StageSpec::guard("last")];
    let hangs = |name: &str| {
        Registration::decide_async(name, "advise", CALLABLE, |_: Arc<Value>, _| std::future::pending::<Decision<Value>>())
    };
    let plan = ["a", "b", "c", "d"]
        .into_iter()
        .map(hangs)
        .chain([allow("guard", "last")])
        .fold(PlanBuilder::new("p", &stages), PlanBuilder::register)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    let (outcome, report) = apply(&plan, json!(1)).await;
    assert!(start.elapsed() <= ms(1100), "{:?}", start.elapsed());
    assert_eq!(ending(&outcome), "permitted");
    assert_eq!(answers(&report), ["a timed_out", "b not_started", "c not_started", "d not_started", "guard continued"]);
    assert!(report.steps().nth(1).unwrap().judged().is_none());
}

/// I-3, P11: the proposal's deadline bounds every stage. A guard that cannot be started any more denies.
#[tokio::test(start_paused = true)]
async fn the_proposals_deadline_is_one_budget_for_all_stages() {
    let plan = build([
        appends("slow", "transform", ms(400)).order(0),
        appends("slower", "transform", ms(5000)).order(1).bound(ms(4000)),
        allow("guard", "final"),
    ]);
    let start = tokio::time::Instant::now();
    let (outcome, report) = apply_within(&plan, json!({}), ms(1000)).await;
    assert!((ms(1000)..=ms(1100)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(ending(&outcome), "failed");
    assert_eq!(answers(&report), ["slow replaced", "slower timed_out", "guard not_reached"]);
    let (outcome, report) = apply_within(&build([allow("guard", "admit")]), json!({}), ms(0)).await;
    assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::TimedOut));
    assert_eq!(answers(&report), ["guard not_started"]);
}

/// I-3: the turn tells the interceptor by when it has to answer: the earliest of its bound, its stage's deadline and the proposal's.
#[tokio::test(start_paused = true)]
async fn a_turn_tells_the_deadline_that_counts() {
    for (stage_ms, bound_ms, expected_ms) in [(500, 200, 200), (300, 400, 300), (5000, 4000, 1000)] {
        let now = tokio::time::Instant::now();
        let tells = Registration::decide("tells", "g", CALLABLE, move |_: &Value, turn: &Turn| {
            assert_eq!(turn.deadline().instant(), now + ms(expected_ms));
            Decision::proceed()
        });
        let stages = [StageSpec::guard("g").deadline(ms(stage_ms))];
        let plan = PlanBuilder::new("p", &stages).register(tells.bound(ms(bound_ms))).build().unwrap();
        assert_eq!(ending(&apply_within(&plan, json!(1), ms(1000)).await.0), "permitted");
    }
}

/// I-3: a bound holds against a future that uses up its task's budget at every poll, which would keep a timer from ever firing.
#[tokio::test]
async fn a_bound_holds_against_a_busy_future() {
    let busy = |_: Arc<Value>, _: Turn| async {
        loop {
            tokio::task::consume_budget().await;
        }
        #[expect(unreachable_code, reason = "the type of the answer")]
        Decision::<Value>::proceed()
    };
    let (outcome, _) = apply(&build([Registration::decide_async("busy", "admit", CALLABLE, busy).bound(ms(20))]), json!(1)).await;
    assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::TimedOut));
}

/// I-15: every answer that a kind of stage does not allow is a contract violation, and none of it takes effect.
#[tokio::test]
async fn an_answer_that_the_stage_does_not_allow_is_a_contract_violation() {
    let crowded = || (0..=MAX_REMARKS).fold(Decision::proceed(), |decision, at| decision.with_label(format!("l{at}")));
    type Says = fn() -> Decision<Value>;
    let table: Vec<(StageKind, Says, &str)> = vec![
        (StageKind::Guard, || Decision::replace(json!(2)), "a guard replaced the context"),
        (StageKind::Guard, Decision::stop, "a guard answered stop"),
        (StageKind::Advisory, || Decision::replace(json!(2)), "an advisory interceptor replaced the context"),
        (StageKind::Advisory, Decision::stop, "an advisory interceptor answered stop"),
        (StageKind::Advisory, || Decision::stop_with(json!(2)), "an advisory interceptor answered stop"),
        (StageKind::Advisory, || Decision::deny(NO, "no"), "an advisory interceptor denied"),
        (StageKind::Advisory, || Decision::ask(AskRequest::new(UNSURE, "hm")), "an advisory interceptor asked"),
        (StageKind::Transform, || Decision::replace(json!(2)).stopping_owner(), "stops the owner without denying"),
        (StageKind::Transform, || Decision::replace(json!(2)).with_label(""), "not 1 to 256 printable bytes"),
        (StageKind::Transform, || Decision::replace(json!(2)).with_note("a\nb", ""), "not 1 to 256 printable bytes"),
    ];
    for (kind, answer, violation) in table {
        let stage = match kind {
            StageKind::Guard => StageSpec::guard("s"),
            StageKind::Transform => StageSpec::transform("s").on_failure(OnFailure::Deny),
            _ => StageSpec::advisory("s"),
        };
        let plan = PlanBuilder::new("p", &[stage]).register(says("x", "s", answer)).build().unwrap();
        let (outcome, report) = apply(&plan, json!(1)).await;
        assert_eq!(answers(&report), ["x contract_violation"], "{violation}");
        assert!(report.steps().next().unwrap().reason().unwrap().contains(violation), "{:?}", report.record());
        match outcome {
            ChainOutcome::Denied(denied) => assert_eq!(denied.denial.cause, DenialCause::ContractViolation),
            ChainOutcome::Permitted(permit) => assert_eq!((kind, &*permit.context), (StageKind::Advisory, &json!(1))),
            other => panic!("{violation}: {other:?}"),
        }
    }
    let (_, report) = apply(&build([says("x", "admit", crowded)]), json!(1)).await;
    assert_eq!(answers(&report), ["x contract_violation"]);
}

/// A context with a number that JSON may not be able to write.
#[derive(Serialize)]
struct Load {
    size: f64,
}

impl Judged for Load {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        assert!(self.size >= 0.0, "a negative load has no digest");
        digest_of(self)
    }
}

fn load_plan(stage: StageSpec, to: f64) -> Plan<Load> {
    let doubles = Registration::decide("grows", "s", CALLABLE, move |_: &Load, _: &Turn| Decision::replace(Load { size: to }));
    PlanBuilder::new("p", &[stage]).register(doubles).build().expect("the plan is well formed")
}

/// AH-4, I-6: a context without a canonical form is denied with nobody called; one whose code panics as well. Nothing unwinds.
#[tokio::test]
async fn a_context_without_identity_is_denied_with_nobody_called() {
    let plan = load_plan(StageSpec::transform("s"), 1.0);
    for size in [f64::INFINITY, f64::NAN, -1.0] {
        let mut report = plan.report();
        let outcome = plan.apply(Arc::new(Load { size }), Deadline::after(ms(60_000)), &mut report).await;
        let ChainOutcome::Denied(denied) = outcome else { panic!("expected a denial, found {outcome:?}") };
        assert_eq!(denied.denial.cause, DenialCause::ContextInvalid);
        assert_eq!(denied.denial.never_called.len(), 1);
        assert!(report.digests().is_empty());
    }
    // Under `arbitrary_precision` a value can hold this number; otherwise it cannot be read.
    if let Ok(value) = serde_json::from_str::<Value>("1e400") {
        let (outcome, _) = apply(&build([allow("a", "admit")]), value).await;
        assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::ContextInvalid));
    }
}

/// I-3, I-6: a replacement without a canonical form is a failure of the interceptor, and is not performed.
#[tokio::test]
async fn a_replacement_without_identity_is_a_failure() {
    for (stage, expected) in
        [(StageSpec::transform("s"), "failed"), (StageSpec::transform("s").on_failure(OnFailure::Deny), "denied")]
    {
        for (to, answer) in [(f64::INFINITY, "context_invalid"), (-1.0, "panicked")] {
            let plan = load_plan(stage.clone(), to);
            let mut report = plan.report();
            let outcome = plan.apply(Arc::new(Load { size: 1.0 }), Deadline::after(ms(60_000)), &mut report).await;
            assert_eq!((ending(&outcome), report.steps().next().unwrap().answer().as_str()), (expected, answer));
            if let ChainOutcome::Failed(failure) = outcome {
                assert!(matches!(failure.kind, FailureKind::ContextInvalid(_) | FailureKind::Panicked { .. }));
            }
        }
    }
}

/// A chain whose interceptors answer at once needs no runtime. One that waits needs timers; without them it counts as panicked, and nothing unwinds.
#[test]
fn without_a_runtime_nobody_waits_and_nobody_is_allowed() {
    let ready = Registration::decide_async("ready", "admit", CALLABLE, |_: Arc<Value>, _| async { Decision::proceed() });
    let outcome = futures::executor::block_on(apply(&build([ready, allow("plain", "final")]), json!(1))).0;
    assert_eq!(ending(&outcome), "permitted");
    let waits =
        Registration::decide_async("waits", "admit", CALLABLE, |_: Arc<Value>, _| std::future::pending::<Decision<Value>>());
    let outcome = futures::executor::block_on(apply(&build([waits]), json!(1))).0;
    assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::Panicked));
}

/// A future that panics while it is dropped cannot take the chain with it.
#[tokio::test(start_paused = true)]
async fn a_panic_while_a_future_is_dropped_is_caught() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let hangs = Registration::decide_async("hangs", "admit", CALLABLE, |_: Arc<Value>, _| {
        let bomb = Bomb;
        async move {
            std::future::pending::<()>().await;
            drop(bomb);
            Decision::proceed()
        }
    });
    let (outcome, _) = apply(&build([hangs.bound(ms(5))]), json!(1)).await;
    assert!(matches!(outcome, ChainOutcome::Denied(denied) if denied.denial.cause == DenialCause::TimedOut));
}

/// Spec 2, decision: evidence stands in the report as it came.
#[tokio::test]
async fn evidence_is_recorded_and_never_followed() {
    let shows = says("shows", "admit", || {
        Decision::proceed().with_evidence(EvidenceRef::new("urn:scan:17").expect("short")).with_note("scan", "clean")
    });
    let (_, report) = apply(&build([shows]), json!(1)).await;
    let record = report.record();
    assert_eq!(record.steps[0].evidence, [json!("urn:scan:17")]);
    assert_eq!(record.steps[0].notes[0].text, "clean");
}
