//! Order, replacement and stopping (I-2, I-4, I-5, I-14).

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::*;

/// What a body needs to know about the chain before it.
#[derive(Clone, Default)]
struct Counters {
    settled: Arc<AtomicUsize>,
    bodies: Arc<AtomicUsize>,
}

/// Answers after a delay, and counts that it has settled.
fn slowly(name: &'static str, delay: Duration, settled: &Arc<AtomicUsize>, denies: bool) -> Registration<Value> {
    let settled = Arc::clone(settled);
    Registration::decide_async(name, "admit", CALLABLE, move |_: Arc<Value>, _| {
        let settled = Arc::clone(&settled);
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            settled.fetch_add(1, Ordering::SeqCst);
            if denies { Decision::deny(NO, "tripped") } else { Decision::proceed() }
        }
    })
}

/// One proposal with its body behind the permission.
async fn perform(plan: Plan<Value>, counters: Counters) -> &'static str {
    let (outcome, _) = apply(&plan, json!({ "tool": "shell" })).await;
    if let ChainOutcome::Permitted(_) = &outcome {
        counters.bodies.fetch_add(1, Ordering::SeqCst);
        assert_eq!(counters.settled.load(Ordering::SeqCst), 2, "every registration has settled before the body starts");
    }
    ending(&outcome)
}

/// P04, S02: a denial that takes its time is still in time. In 1,000 runs on several threads no body starts, in whichever order the two stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_body_starts_before_every_interceptor_has_settled() {
    let bodies = Arc::new(AtomicUsize::new(0));
    let mut runs = JoinSet::new();
    for run in 0..1000_u64 {
        let counters = Counters { bodies: Arc::clone(&bodies), ..Counters::default() };
        let denying = slowly("deny", ms(run % 51), &counters.settled, true);
        let allowing = slowly("allow", ms(0), &counters.settled, false);
        let plan = build(if run % 2 == 0 { [denying, allowing] } else { [allowing, denying] });
        runs.spawn(perform(plan, counters));
    }
    assert!(runs.join_all().await.iter().all(|ending| *ending == "denied"));
    assert_eq!(bodies.load(Ordering::SeqCst), 0);
    // The counterpart: where both allow, the body starts, and both have settled by then.
    let counters = Counters { bodies: Arc::clone(&bodies), ..Counters::default() };
    let plan = build([slowly("one", ms(5), &counters.settled, false), slowly("two", ms(0), &counters.settled, false)]);
    assert_eq!(perform(plan, counters).await, "permitted");
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
}

/// P04, I-4: a caller who goes away in the middle of the authorization leaves nothing performed and nothing running.
#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_performs_nothing_and_cancels_the_interceptor() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (cancelled, counters) = (Arc::new(AtomicUsize::new(0)), Counters::default());
    let seen = Arc::clone(&cancelled);
    let hangs = Registration::decide_async("hangs", "admit", CALLABLE, move |_: Arc<Value>, _| {
        let guard = Dropped(Arc::clone(&seen));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Decision::proceed()
        }
    });
    let plan = build([hangs, allow("next", "admit")]);
    for after in 1..50 {
        assert!(tokio::time::timeout(ms(after), perform(plan.clone(), counters.clone())).await.is_err());
    }
    assert_eq!(cancelled.load(Ordering::SeqCst), 49);
    assert_eq!(counters.bodies.load(Ordering::SeqCst), 0);
}

/// P05, S26: two that rewrite the same field give what the declared order gives, whoever is faster.
#[tokio::test(start_paused = true)]
async fn latency_never_decides_which_rewrite_stands() {
    let mut random = Random(5);
    for run in 0..1000 {
        let (mut a, mut b) = (ms(random.below(31) as u64), ms(random.below(31) as u64));
        if run >= 500 {
            std::mem::swap(&mut a, &mut b);
        }
        let plan = build([appends("a", "transform", a), appends("b", "transform", b)]);
        let (outcome, report) = apply(&plan, json!({ "trail": "" })).await;
        assert_eq!(permitted(outcome), json!({ "trail": "ab" }), "b sees a's replacement");
        let replaced: Vec<_> = report.steps().map(|step| (step.judged().unwrap(), step.replaced_by().unwrap())).collect();
        assert_eq!(replaced[0].1, replaced[1].0, "what a wrote is what b judged");
        assert_eq!(report.digests(), [replaced[0].0, replaced[0].1, replaced[1].1]);
        assert_eq!(answers(&report), ["a replaced", "b replaced"]);
    }
}

/// S25: a rewrite survives those who say nothing, in either order.
#[tokio::test]
async fn a_rewrite_survives_those_who_say_nothing() {
    for silent_first in [true, false] {
        let (silent, rewrites) = (allow("silent", "transform"), appends("a", "transform", ms(0)));
        let plan = build(if silent_first { [silent, rewrites] } else { [rewrites, silent] });
        let (outcome, _) = apply(&plan, json!({ "trail": "" })).await;
        assert_eq!(permitted(outcome), json!({ "trail": "a" }));
    }
}

/// Denies when the trail holds a text.
fn forbids(name: &str, stage: &str, text: &'static str) -> Registration<Value> {
    Registration::decide(name, stage, CALLABLE, move |context: &Value, _: &Turn| {
        if context["trail"].as_str().is_some_and(|trail| trail.contains(text)) {
            Decision::deny(NO, format!("the trail holds {text}"))
        } else {
            Decision::proceed()
        }
    })
}

/// I-5: a change by a transform is judged by every guard that judged something else, once, in plan order, after the last transform.
#[tokio::test]
async fn guards_run_again_after_a_change() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = |name: &str, stage: &str| {
        let calls = Arc::clone(&calls);
        Registration::decide(name, stage, CALLABLE, move |_: &Value, turn: &Turn| {
            calls.fetch_add(if turn.is_again() { 100 } else { 1 }, Ordering::SeqCst);
            Decision::proceed()
        })
    };
    let plan = build([
        counted("one", "admit"),
        counted("two", "security"),
        appends("x", "transform", ms(0)),
        appends("y", "transform", ms(0)),
        counted("three", "final"),
    ]);
    let (outcome, report) = apply(&plan, json!({ "trail": "" })).await;
    assert_eq!(permitted(outcome), json!({ "trail": "xy" }));
    assert_eq!(calls.load(Ordering::SeqCst), 203);
    assert_eq!(again(&report), ["one continued", "two continued"]);
    let last = *report.digests().last().unwrap();
    assert!(report.again().all(|step| step.judged() == Some(last)));
    assert_eq!(report.steps().last().unwrap().judged(), Some(last), "a later guard judges the change at its first turn");
}

/// I-5: what a transform smuggles in is refused by the guard that allowed the original, and no later stage is asked.
#[tokio::test]
async fn a_guard_denies_what_a_transform_made_of_an_allowed_call() {
    let plan = build([
        forbids("guard", "security", "x"),
        appends("x", "transform", ms(0)),
        allow("adviser", "advise"),
        allow("last", "final"),
    ]);
    let (outcome, report) = apply(&plan, json!({ "trail": "" })).await;
    let ChainOutcome::Denied(denied) = outcome else { panic!("expected a denial, found {outcome:?}") };
    assert_eq!((denied.denial.registration.as_deref(), denied.denial.reason.as_str()), (Some("guard"), "the trail holds x"));
    assert_eq!(denied.denial.never_called.iter().map(|name| &**name).collect::<Vec<_>>(), ["adviser", "last"]);
    assert_eq!(answers(&report), ["guard continued", "x replaced", "adviser not_reached", "last not_reached"]);
    assert_eq!(again(&report), ["guard denied"]);
}

/// I-5, I-6: a replacement by an equal value is no change. The guards that are not run again are recorded as skipped.
#[tokio::test]
async fn guards_that_judged_the_same_digest_are_recorded_as_skipped() {
    let same =
        Registration::decide("same", "transform", CALLABLE, |context: &Value, _: &Turn| Decision::replace(context.clone()));
    let there = says("there", "transform", || Decision::replace(json!({ "trail": "elsewhere" })));
    let back = says("back", "transform", || Decision::replace(json!({ "trail": "" })));
    for transforms in [vec![same], vec![there, back], vec![allow("idle", "transform")]] {
        let plan = build([allow("one", "admit"), allow("two", "security")].into_iter().chain(transforms));
        let (outcome, report) = apply(&plan, json!({ "trail": "" })).await;
        assert_eq!(permitted(outcome), json!({ "trail": "" }));
        assert_eq!(again(&report), ["one skipped", "two skipped"]);
        assert!(report.record().again.iter().all(|step| step.skipped.as_deref() == Some("unchanged")));
    }
}

/// I-14: stop skips the rest of its stage and later transform and advisory stages; no later guard, and no re-run.
#[tokio::test]
async fn stop_skips_no_guard_and_no_rerun() {
    let stages = [
        StageSpec::guard("first"),
        StageSpec::transform("one"),
        StageSpec::guard("between"),
        StageSpec::transform("two"),
        StageSpec::advisory("advise"),
        StageSpec::guard("last"),
    ];
    let plan = [
        allow("first", "first"),
        says("stops", "one", || Decision::stop_with(json!({ "trail": "stopped" }))),
        deny("rest", "one"),
        allow("between", "between"),
        deny("two", "two"),
        allow("adviser", "advise"),
        allow("last", "last"),
    ]
    .into_iter()
    .fold(PlanBuilder::new("p", &stages), PlanBuilder::register)
    .build()
    .unwrap();
    let (outcome, report) = apply(&plan, json!({ "trail": "" })).await;
    assert_eq!(permitted(outcome), json!({ "trail": "stopped" }));
    assert_eq!(
        answers(&report),
        [
            "first continued",
            "stops stopped",
            "rest skipped",
            "between continued",
            "two skipped",
            "adviser skipped",
            "last continued"
        ]
    );
    assert_eq!(again(&report), ["first continued", "between skipped"]);
    let skipped: Vec<_> =
        report.steps().filter_map(|step| Some((step.registration().to_owned(), step.stopped_by()?.to_owned()))).collect();
    assert_eq!(skipped, ["rest", "two", "adviser"].map(|name| (name.to_owned(), "stops".to_owned())));
}

/// I-14: in a guard stage, stop is a contract violation, unless the stage declares that stop ends it.
#[tokio::test]
async fn stop_in_a_guard_stage_needs_a_declaration() {
    let run = async |stage: StageSpec| {
        let plan = [says("stops", "g", Decision::stop), deny("rest", "g")]
            .into_iter()
            .fold(PlanBuilder::new("p", &[stage]), PlanBuilder::register)
            .build()
            .unwrap();
        apply(&plan, json!(1)).await
    };
    let (outcome, report) = run(StageSpec::guard("g")).await;
    assert_eq!(
        (ending(&outcome), answers(&report)),
        ("denied", vec!["stops contract_violation".into(), "rest not_reached".into()])
    );
    let (outcome, report) = run(StageSpec::guard("g").stop_ends_stage()).await;
    assert_eq!((ending(&outcome), answers(&report)), ("permitted", vec!["stops stopped".into(), "rest skipped".into()]));
}

/// I-5, I-14: a stop during a re-run skips no other re-run, and no later guard.
#[tokio::test]
async fn a_stop_in_a_rerun_skips_no_other_rerun() {
    let stages =
        [StageSpec::guard("g").stop_ends_stage(), StageSpec::transform("t"), StageSpec::advisory("a"), StageSpec::guard("last")];
    let stops_again =
        Registration::decide(
            "stops-again",
            "g",
            CALLABLE,
            |_: &Value, turn: &Turn| {
                if turn.is_again() { Decision::stop() } else { Decision::proceed() }
            },
        );
    let plan = [
        stops_again,
        allow("beside", "g"),
        appends("x", "t", ms(0)),
        allow("adviser", "a"),
        allow("one", "last"),
        allow("two", "last"),
    ]
    .into_iter()
    .fold(PlanBuilder::new("p", &stages), PlanBuilder::register)
    .build()
    .unwrap();
    let (outcome, report) = apply(&plan, json!({})).await;
    assert_eq!(ending(&outcome), "permitted");
    assert_eq!(again(&report), ["stops-again stopped", "beside continued"]);
    assert_eq!(answers(&report)[3..], ["adviser skipped", "one continued", "two continued"]);
}

/// Decision, spec 2: a denial may carry a replacement and an owner stop. Both are handed over, and nothing of it is performed.
#[tokio::test]
async fn a_denial_hands_over_what_it_carries() {
    let refuses = says("refuses", "admit", || {
        Decision::deny(NO, "not so")
            .with_replacement(json!({ "rather": "so" }))
            .stopping_owner()
            .with_note("hint", "try the other")
    });
    let plan =
        build([says("notes", "admit", || Decision::proceed().with_note("seen", "first")), refuses, allow("rest", "final")]);
    let (outcome, report) = apply(&plan, json!(1)).await;
    let ChainOutcome::Denied(denied) = outcome else { panic!("expected a denial, found {outcome:?}") };
    assert_eq!(denied.denial.code, NO);
    assert_eq!(denied.denial.cause, tipstaff::interception::DenialCause::Policy);
    assert_eq!(denied.denial.stage.as_deref(), Some("admit"));
    assert!(denied.owner_stop);
    assert_eq!(denied.observed.as_deref(), Some(&json!({ "rather": "so" })));
    assert_eq!(denied.notes.iter().map(|note| &*note.code).collect::<Vec<_>>(), ["seen", "hint"]);
    assert_eq!(report.digests().len(), 1, "a replacement beside a denial is no change");
}

/// Decision, spec 2: labels of permits and notes of all are united over the chain, in plan order; a guard's re-run speaks for it.
#[tokio::test]
async fn labels_and_notes_are_united_over_the_chain() {
    let changes_its_mind = Registration::decide("guard", "admit", CALLABLE, |_: &Value, turn: &Turn| {
        Decision::proceed().with_label(if turn.is_again() { "second" } else { "first" }).with_note("judged", "once more")
    });
    let plan = build([
        changes_its_mind,
        appends("x", "transform", ms(0)),
        says("adviser", "advise", || Decision::proceed().with_label("advised").with_label("second")),
    ]);
    let (outcome, _) = apply(&plan, json!({})).await;
    let ChainOutcome::Permitted(permit) = outcome else { panic!("expected a permission, found {outcome:?}") };
    assert_eq!(permit.labels.iter().map(|label| &**label).collect::<Vec<_>>(), ["second", "advised"]);
    assert_eq!(permit.notes.len(), 2, "both judgements left their note");
}
