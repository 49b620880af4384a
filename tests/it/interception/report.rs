//! Reports (I-8).

use tipstaff::interception::{Answer, ReportRecord};

use super::*;

/// AH-1, I-4, I-8: a proposal that is dropped leaves a report: who had answered, who was running, who was never called.
#[tokio::test(start_paused = true)]
async fn a_dropped_proposal_leaves_its_report() {
    let hangs =
        Registration::decide_async("hangs", "admit", CALLABLE, |_: Arc<Value>, _| std::future::pending::<Decision<Value>>());
    let plan = build([allow("answered", "admit"), hangs, allow("waiting", "security"), allow("last", "final")]);
    let mut report = plan.report();
    let applied = plan.apply(Arc::new(json!(1)), Deadline::after(ms(60_000)), &mut report);
    assert!(tokio::time::timeout(ms(250), applied).await.is_err());
    assert_eq!(answers(&report), ["answered continued", "hangs cancelled", "waiting not_reached", "last not_reached"]);
    assert_eq!(report.never_called().iter().map(|name| &**name).collect::<Vec<_>>(), ["waiting", "last"]);
    let hung = report.steps().nth(1).unwrap();
    assert_eq!(hung.answer(), Answer::Cancelled(None));
    assert!((ms(250)..ms(260)).contains(&hung.elapsed()), "{:?}", hung.elapsed());
    assert_eq!(hung.judged(), report.steps().next().unwrap().judged());
}

/// AH-1: also while a guard runs again, and while a result is judged.
#[tokio::test(start_paused = true)]
async fn a_dropped_rerun_is_in_the_report() {
    let guard = Registration::decide_async("guard", "admit", CALLABLE, |_: Arc<Value>, turn: Turn| async move {
        if turn.is_again() {
            std::future::pending::<()>().await;
        }
        Decision::proceed()
    });
    let plan = build([guard, appends("x", "transform", ms(0)), allow("last", "final")]);
    let mut report = plan.report();
    let applied = plan.apply(Arc::new(json!({})), Deadline::after(ms(60_000)), &mut report);
    assert!(tokio::time::timeout(ms(10), applied).await.is_err());
    assert_eq!(answers(&report), ["guard continued", "x replaced", "last not_reached"]);
    assert_eq!(again(&report), ["guard cancelled"]);
}

/// I-8: a report can be used for one proposal after the other; what it held is gone.
#[tokio::test]
async fn a_report_is_emptied_by_the_next_proposal() {
    let plan = build([allow("a", "admit"), appends("x", "transform", ms(0))]);
    let mut report = plan.report();
    for _ in 0..3 {
        let _ = plan.apply(Arc::new(json!({})), Deadline::after(ms(60_000)), &mut report).await;
        assert_eq!(answers(&report), ["a continued", "x replaced"]);
        assert_eq!((again(&report).len(), report.digests().len()), (1, 2));
    }
}

/// I-8: the record holds what the report says, and is read back as it was written.
#[tokio::test]
async fn a_report_is_stored_as_data_and_read_back() {
    let plan = build([
        says("notes", "admit", || Decision::proceed().with_note("n", "t").with_label("l")),
        appends("x", "transform", ms(0)),
        says("broken", "advise", Decision::stop),
        deny("denies", "final"),
        allow("last", "final"),
    ]);
    let (_, report) = apply(&plan, json!({})).await;
    let text = serde_json::to_string(&report.record()).unwrap();
    let back: ReportRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(back, report.record());
    assert_eq!(back.plan_digest, plan.digest());
    let mut value = serde_json::to_value(&back.steps).unwrap();
    for step in value.as_array_mut().unwrap() {
        let step = step.as_object_mut().unwrap();
        let called = step["answer"] != "not_reached";
        assert_eq!((step.remove("elapsed_ns").is_some(), step.remove("judged").is_some()), (called, called));
        assert_eq!(step.remove("callable"), Some(json!("test::interceptor@1")));
        step.remove("replaced_by");
    }
    assert_eq!(
        value,
        json!([
            { "stage": "admit", "registration": "notes", "answer": "continued", "notes": [{ "code": "n", "text": "t" }], "labels": ["l"] },
            { "stage": "transform", "registration": "x", "answer": "replaced" },
            { "stage": "advise", "registration": "broken", "answer": "contract_violation", "mapped": "isolate",
              "reason": "broke its contract: an advisory interceptor answered stop: it has no vote" },
            { "stage": "final", "registration": "denies", "answer": "denied", "code": "test.no", "reason": "not on my watch" },
            { "stage": "final", "registration": "last", "answer": "not_reached" },
        ])
    );
}

/// What is public of a chain can be sent to another task.
#[test]
fn futures_and_values_of_a_chain_are_send() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let plan: Plan<Value, Value> = PlanBuilder::new("p", &stages()).build().unwrap();
    let (context, deadline) = (Arc::new(json!(1)), Deadline::after(ms(1)));
    let (mut one, mut other) = (sendable(plan.report()), plan.report());
    drop(sendable(plan.apply(Arc::clone(&context), deadline, &mut one)));
    let end = tipstaff::interception::ResultEnd::Returned;
    drop(sendable(plan.apply_result(end, &context, Arc::clone(&context), deadline, &mut other)));
}
