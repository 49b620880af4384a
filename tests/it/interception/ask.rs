//! Asks and plans that only evaluate (I-10, I-21, I-22).

use tipstaff::interception::{Approver, Basis, DenialCause, Permitted, WouldHave};

use super::*;

fn with_approver(registrations: impl IntoIterator<Item = Registration<Value>>) -> Plan<Value> {
    registrations
        .into_iter()
        .fold(builder().approver(Approver::EndsAttempt("on-call".into())), PlanBuilder::register)
        .build()
        .expect("the plan is well formed")
}

/// I-10: an ask never means allow. Without an approver it denies, with the asker's code and reason.
#[tokio::test]
async fn an_ask_without_approver_denies_with_the_askers_code_and_reason() {
    let (outcome, report) = apply(&build([allow("a", "admit"), ask("asks", "admit"), allow("z", "final")]), json!(1)).await;
    let ChainOutcome::Denied(denied) = outcome else { panic!("expected a denial, found {outcome:?}") };
    assert_eq!((&denied.denial.code, denied.denial.reason.as_str()), (&UNSURE, "better ask"));
    assert_eq!(denied.denial.cause, DenialCause::NoApprover);
    assert_eq!((denied.denial.stage.as_deref(), denied.denial.registration.as_deref()), (Some("admit"), Some("asks")));
    assert_eq!(answers(&report), ["a continued", "asks asked", "z continued"], "the chain goes on after an ask");
}

/// I-10: with a named approver the attempt ends as escalated, with every ask that stands.
#[tokio::test]
async fn an_ask_with_a_named_approver_ends_the_attempt() {
    let plan = with_approver([ask("one", "admit"), appends("x", "transform", ms(0)), ask("two", "final")]);
    let (outcome, report) = apply(&plan, json!({})).await;
    let ChainOutcome::Escalated(escalated) = outcome else { panic!("expected an escalation, found {outcome:?}") };
    assert_eq!(&*escalated.approver, "on-call");
    let askers: Vec<_> = escalated.asks.iter().map(|ask| (&*ask.stage, &*ask.registration, ask.request.reason())).collect();
    assert_eq!(askers, [("admit", "one", "better ask"), ("final", "two", "better ask")]);
    assert_eq!(*escalated.context, json!({ "trail": "x" }), "what is to be approved is what would be performed");
    assert_eq!(Some(&escalated.digest), report.digests().last());
}

/// I-10: a later denial outranks an ask.
#[tokio::test]
async fn a_later_denial_outranks_an_ask() {
    let (outcome, _) = apply(&with_approver([ask("asks", "admit"), deny("denies", "final")]), json!(1)).await;
    let ChainOutcome::Denied(denied) = outcome else { panic!("expected a denial, found {outcome:?}") };
    assert_eq!(denied.denial.registration.as_deref(), Some("denies"));
}

/// I-5, I-10: a guard that runs again speaks anew; its earlier ask is gone. An ask of a transform stands, since it is never called again.
#[tokio::test]
async fn a_rerun_replaces_the_guards_earlier_ask() {
    let asks_when = |again: bool| {
        Registration::decide("guard", "admit", CALLABLE, move |_: &Value, turn: &Turn| {
            if turn.is_again() == again { Decision::ask(AskRequest::new(UNSURE, "hm")) } else { Decision::proceed() }
        })
    };
    let run = async |registrations: Vec<Registration<Value>>| ending(&apply(&with_approver(registrations), json!({})).await.0);
    assert_eq!(run(vec![asks_when(false), appends("x", "transform", ms(0))]).await, "permitted");
    assert_eq!(run(vec![asks_when(true), appends("x", "transform", ms(0))]).await, "escalated");
    assert_eq!(run(vec![asks_when(false), allow("idle", "transform")]).await, "escalated", "unchanged: the ask stands");
    let both =
        says("both", "transform", || Decision::ask(AskRequest::new(UNSURE, "hm")).with_replacement(json!({ "trail": "y" })));
    assert_eq!(run(vec![allow("guard", "admit"), both, appends("x", "transform", ms(0))]).await, "escalated");
}

async fn evaluated(registrations: Vec<Registration<Value>>) -> (Permitted<Value>, Report) {
    let plan = registrations
        .into_iter()
        .fold(builder(), PlanBuilder::register)
        .evaluate_only()
        .build()
        .expect("the plan is well formed");
    match apply(&plan, json!({ "trail": "" })).await {
        (ChainOutcome::Permitted(permit), report) => (permit, report),
        (other, _) => panic!("expected a permission, found {other:?}"),
    }
}

/// I-22: a plan that only evaluates asks everybody, replaces nothing, refuses nothing, and says that nothing rests on it.
#[tokio::test]
async fn a_plan_that_only_evaluates_reports_what_it_would_have_answered() {
    let panics =
        Registration::decide("panics", "security", CALLABLE, |_: &Value, _: &Turn| -> Decision<Value> { panic!("boom") });
    let (permit, report) = evaluated(vec![
        deny("denies", "admit"),
        panics,
        appends("x", "transform", ms(0)),
        says("stops", "transform", Decision::stop),
        allow("adviser", "advise"),
        ask("asks", "final"),
    ])
    .await;
    assert_eq!(permit.basis, Basis::NotEnforced);
    assert_eq!(*permit.context, json!({ "trail": "" }), "nothing is replaced");
    assert_eq!(
        answers(&report),
        ["denies denied", "panics panicked", "x replaced", "stops stopped", "adviser continued", "asks asked"],
        "everybody is asked"
    );
    assert_eq!(report.digests().len(), 1);
    assert_ne!(report.steps().nth(2).unwrap().replaced_by(), Some(permit.digest), "the replacement was checked and is on record");
    match permit.would_have.as_deref() {
        Some(WouldHave::Denied(denial)) => assert_eq!(denial.registration.as_deref(), Some("denies"), "the first end counts"),
        other => panic!("expected a denial, found {other:?}"),
    }
    assert_eq!(report.record().basis, Basis::NotEnforced);
}

/// I-22: without anything to refuse, such a plan would have permitted; an ask would have been a denial or an escalation.
#[tokio::test]
async fn a_plan_that_only_evaluates_asks_nobody_for_an_approval() {
    assert!(evaluated(vec![allow("a", "admit")]).await.0.would_have.is_none());
    let asked = evaluated(vec![ask("asks", "admit")]).await.0.would_have;
    assert!(matches!(asked.as_deref(), Some(WouldHave::Denied(denial)) if denial.cause == DenialCause::NoApprover));
    let plan = builder()
        .approver(Approver::EndsAttempt("on-call".into()))
        .register(ask("asks", "admit"))
        .evaluate_only()
        .build()
        .unwrap();
    let (outcome, _) = apply(&plan, json!(1)).await;
    let ChainOutcome::Permitted(permit) = outcome else { panic!("expected a permission, found {outcome:?}") };
    assert!(matches!(permit.would_have.as_deref(), Some(WouldHave::Escalated(asks)) if asks.len() == 1));
}

/// I-21, I-22: at a seam that cannot be enforced a permission is no evidence; the plan decides as always.
#[tokio::test]
async fn a_permission_at_an_unenforceable_seam_is_advisory() {
    let plan = |registration| builder().advisory_seam().register(registration).build().unwrap();
    let (outcome, _) = apply(&plan(allow("a", "admit")), json!(1)).await;
    assert!(matches!(outcome, ChainOutcome::Permitted(permit) if permit.basis == Basis::Advisory));
    assert_eq!(ending(&apply(&plan(deny("a", "admit")), json!(1)).await.0), "denied");
}
