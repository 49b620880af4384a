//! Result stages: after the operation, and without a say on whether it was performed (I-15, I-16).

use tipstaff::interception::{DenialCause, InterceptError, OnFailure, ResultDecision, ResultEnd, ResultOn, ResultOutcome};

use super::*;

type Judge = Registration<Value, Value>;

fn judge(name: &str, stage: &str, answer: impl Fn(&Value) -> ResultDecision<Value> + Send + Sync + 'static) -> Judge {
    Registration::on_result(name, stage, CALLABLE, move |_: &Value, result: &Value, _: &Turn| answer(result))
}

fn result_plan(stages: &[StageSpec], judges: impl IntoIterator<Item = Judge>) -> PlanBuilder<Value, Value> {
    judges.into_iter().fold(PlanBuilder::new("p", stages), PlanBuilder::register)
}

async fn run(plan: &Plan<Value, Value>, end: ResultEnd, result: Value) -> (ResultOutcome<Value>, Report) {
    let (context, deadline) = (Arc::new(json!({ "call": 1 })), Deadline::after(ms(60_000)));
    let mut report = plan.report();
    let outcome = plan.apply(Arc::clone(&context), deadline, &mut report).await;
    assert_eq!(ending(&outcome), "permitted");
    let outcome = plan.apply_result(end, &context, Arc::new(result), deadline, &mut report).await;
    (outcome, report)
}

fn post() -> [StageSpec; 4] {
    [
        StageSpec::guard("policy"),
        StageSpec::own_step("perform"),
        StageSpec::result("post", ResultOn::Returned),
        StageSpec::result("error", ResultOn::Error),
    ]
}

/// I-15: keep and replace, in plan order; each sees the replacement before it, and the report has a digest for each.
#[tokio::test]
async fn results_are_kept_or_replaced_in_order() {
    let guard = Registration::decide("guard", "policy", CALLABLE, |_: &Value, _: &Turn| Decision::proceed());
    let redacts = judge("redacts", "post", |result| ResultDecision::replace(json!({ "was": result, "redacted": true })));
    let sees = judge("sees", "post", |result| {
        assert_eq!(result["redacted"], true);
        ResultDecision::Keep
    });
    let plan = result_plan(&post(), [redacts, sees, judge("on-error", "error", |_| ResultDecision::Keep)])
        .register(guard)
        .build()
        .unwrap();
    let (outcome, report) = run(&plan, ResultEnd::Returned, json!("secret")).await;
    let ResultOutcome::Kept { result, replaced } = outcome else { panic!("expected a result, found {outcome:?}") };
    assert_eq!((&*result, replaced), (&json!({ "was": "secret", "redacted": true }), true));
    assert_eq!(answers(&report), ["guard continued", "redacts replaced", "sees kept", "on-error skipped"]);
    let steps: Vec<_> = report.steps().collect();
    assert_eq!(steps[1].replaced_by(), steps[2].judged());
    assert_ne!(steps[0].judged(), steps[1].judged(), "a judge of results judges the result");
    assert_eq!(report.record().steps[3].skipped.as_deref(), Some("other_end"));
}

/// I-15: a stage for both ends runs after both; one for errors after errors only.
#[tokio::test]
async fn a_result_stage_runs_after_the_ends_that_it_declares() {
    let stages = [
        StageSpec::own_step("perform"),
        StageSpec::result("post", ResultOn::Returned),
        StageSpec::result("error", ResultOn::Error),
        StageSpec::result("any", ResultOn::Both),
    ];
    let judges = ["post", "error", "any"].map(|stage| judge(stage, stage, |_| ResultDecision::Keep));
    let plan = result_plan(&stages, judges).build().unwrap();
    let (_, report) = run(&plan, ResultEnd::Returned, json!(1)).await;
    assert_eq!(answers(&report), ["post kept", "error skipped", "any kept"]);
    let (_, report) = run(&plan, ResultEnd::Error, json!(1)).await;
    assert_eq!(answers(&report), ["post skipped", "error kept", "any kept"]);
}

/// I-16: a withheld result is withheld from there on; later judges are not asked.
#[tokio::test]
async fn a_withheld_result_ends_the_chain() {
    let plan = result_plan(
        &post(),
        [
            judge("withholds", "post", |_| ResultDecision::withhold("holds a secret")),
            judge("later", "post", |_| ResultDecision::Keep),
        ],
    )
    .build()
    .unwrap();
    let (outcome, report) = run(&plan, ResultEnd::Returned, json!("secret")).await;
    let ResultOutcome::Withheld(withheld) = outcome else { panic!("expected a withheld result, found {outcome:?}") };
    assert_eq!((withheld.reason.as_str(), withheld.cause), ("holds a secret", DenialCause::Policy));
    assert_eq!((&*withheld.stage, &*withheld.registration), ("post", "withholds"));
    assert_eq!(answers(&report), ["withholds withheld", "later not_reached"]);
    assert!(report.never_called().is_empty(), "it was performed: nobody before it is missing");
}

/// I-3, I-15: a failed judge fails the answer, or withholds the result where its stage declares `Deny`.
#[tokio::test(start_paused = true)]
async fn a_failed_judge_propagates_or_withholds() {
    type Makes = fn() -> Judge;
    let failures: [(&str, Makes, DenialCause); 4] = [
        (
            "failed",
            || {
                Registration::on_result("x", "post", CALLABLE, |_: &Value, _: &Value, _: &Turn| {
                    Err::<ResultDecision<Value>, _>(InterceptError::new("no"))
                })
            },
            DenialCause::InterceptorFailed,
        ),
        ("panicked", || judge("x", "post", |_| panic!("boom")), DenialCause::Panicked),
        (
            "timed_out",
            || {
                let hangs = |_: Arc<Value>, _: Arc<Value>, _: Turn| std::future::pending::<ResultDecision<Value>>();
                Registration::on_result_async("x", "post", CALLABLE, hangs).bound(ms(10))
            },
            DenialCause::TimedOut,
        ),
        ("not_started", || judge("x", "post", |_| ResultDecision::Keep), DenialCause::TimedOut),
    ];
    for (answer, registration, cause) in failures {
        for mapping in [OnFailure::Propagate, OnFailure::Deny] {
            let stages = [StageSpec::own_step("perform"), StageSpec::result("post", ResultOn::Both).on_failure(mapping)];
            let plan = result_plan(&stages, [registration()]).build().unwrap();
            let mut report = plan.report();
            let budget = if answer == "not_started" { ms(0) } else { ms(100) };
            let context = Arc::new(json!(1));
            let outcome =
                plan.apply_result(ResultEnd::Returned, &context, Arc::new(json!(2)), Deadline::after(budget), &mut report).await;
            assert_eq!(answers(&report), [format!("x {answer}")]);
            match (mapping, outcome) {
                (OnFailure::Propagate, ResultOutcome::Failed(failure)) => assert_eq!(failure.kind.cause(), cause),
                (OnFailure::Deny, ResultOutcome::Withheld(withheld)) => assert_eq!(withheld.cause, cause),
                (mapping, outcome) => panic!("{answer}, declared {mapping:?}: {outcome:?}"),
            }
        }
    }
}

/// I-22: a plan that only evaluates keeps the result whatever its judges say.
#[tokio::test]
async fn a_plan_that_only_evaluates_keeps_the_result() {
    let judges = [
        judge("replaces", "post", |_| ResultDecision::replace(json!(0))),
        judge("withholds", "post", |_| ResultDecision::withhold("no")),
        judge("panics", "post", |_| panic!("boom")),
    ];
    let plan = result_plan(&post(), judges).evaluate_only().build().unwrap();
    let (outcome, report) = run(&plan, ResultEnd::Returned, json!(7)).await;
    assert!(matches!(outcome, ResultOutcome::Kept { result, replaced: false } if *result == json!(7)));
    assert_eq!(answers(&report), ["replaces replaced", "withholds withheld", "panics panicked"]);
}

/// A report of another plan is not continued: its lines would be read as this plan's.
#[tokio::test]
async fn a_report_of_another_plan_is_emptied() {
    let keeps = || judge("keeps", "post", |_| ResultDecision::Keep);
    let guard = Registration::decide("guard", "policy", CALLABLE, |_: &Value, _: &Turn| Decision::proceed());
    let plan = result_plan(&post(), [keeps()]).register(guard).build().unwrap();
    let (_, mut report) = apply(&build([allow("other", "admit")]), json!(1)).await;
    let _ = plan
        .apply_result(ResultEnd::Returned, &Arc::new(json!(1)), Arc::new(json!(2)), Deadline::after(ms(60_000)), &mut report)
        .await;
    assert_eq!(answers(&report), ["guard not_reached", "keeps kept"]);
}
