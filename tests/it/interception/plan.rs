//! Plans: order, refusals and digests (I-1, I-2, I-7, I-18).

use std::time::Duration;

use tipstaff::clock::Timestamp;
use tipstaff::declare::{CallableRegistry, Digest};
use tipstaff::interception::{
    Admission, Approver, Declaration, Evaluator, OnFailure, PlanError, ResultDecision, ResultOn, StageKind,
};

use super::*;

fn names(plan: &Plan<Value>) -> Vec<String> {
    plan.registrations().map(str::to_owned).collect()
}

/// P06, I-2: (stage, explicit order, composition order) is the only key, and arrival is none.
#[test]
fn the_same_composition_gives_the_same_sequence_and_digest() {
    let parts: [(&str, &str, i32, u32); 10] = [
        ("a1", "admit", 0, 0),
        ("a2", "admit", 0, 1),
        ("a3", "admit", -5, 2),
        ("s1", "security", 7, 3),
        ("s2", "security", 7, 4),
        ("s3", "security", i32::MIN, 5),
        ("t1", "transform", 1, 6),
        ("t2", "transform", 1, 7),
        ("f1", "final", 0, 9),
        ("f2", "final", 0, 8),
    ];
    let expected = ["a3", "a1", "a2", "s3", "s1", "s2", "t1", "t2", "f2", "f1"];
    let mut random = Random(6);
    let mut digests = Vec::new();
    for _ in 0..200 {
        let mut arrival = parts;
        random.shuffle(&mut arrival);
        let plan = build(arrival.map(|(name, stage, order, place)| allow(name, stage).order(order).composed_at(place)));
        assert_eq!(names(&plan), expected);
        digests.push(plan.digest());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

/// I-2: without a place of its own, a registration stands where it arrived.
#[test]
fn equal_orders_keep_the_order_of_arrival() {
    let plan =
        build([allow("late", "admit").order(1), allow("one", "admit"), allow("two", "admit"), allow("first", "admit").order(-1)]);
    assert_eq!(names(&plan), ["first", "one", "two", "late"]);
}

/// I-2, I-3, I-14, I-18, AH-6, P06: every refusal names the thing at fault.
#[test]
fn a_bad_plan_does_not_build_and_says_why() {
    let stage = |spec: StageSpec| PlanBuilder::<Value>::new("p", &[spec]);
    let table = [
        (PlanBuilder::new("", &stages()), "the plan \"\" must be 1 to 256 printable bytes"),
        (builder().register(allow("", "admit")), "the registration \"\" must be 1 to 256 printable bytes"),
        (builder().approver(Approver::EndsAttempt("".into())), "the approver \"\" must be 1 to 256 printable bytes"),
        (stage(StageSpec::guard("a\n")), "the stage \"a\\n\" must be 1 to 256 printable bytes"),
        (PlanBuilder::new("p", &[StageSpec::guard("g"), StageSpec::guard("g")]), "stage \"g\" is declared twice"),
        (
            builder().register(allow("twin", "admit")).register(allow("twin", "final")),
            "registration \"twin\" stands twice in plan \"test\": names are unique in a plan",
        ),
        (builder().register(allow("x", "post")), "registration \"x\" names stage \"post\", which its owner does not declare"),
        (
            builder().register(allow("x", "perform")),
            "registration \"x\" stands at \"perform\", a step of the owner that takes none",
        ),
        (
            stage(StageSpec::guard("old").unreachable("this owner has no such call")).register(allow("x", "old")),
            "registration \"x\" stands at stage \"old\", which no path executes: this owner has no such call",
        ),
        (
            builder().register(Registration::admit("x", "admit", CALLABLE, |_: &Value, _| Admission::Admit)),
            "registration \"x\" admits or defers, but stage \"admit\" is a guard stage",
        ),
        (
            stage(StageSpec::admission("quota")).register(allow("x", "quota")),
            "registration \"x\" decides, but stage \"quota\" is an admission stage",
        ),
        (
            stage(StageSpec::guard("g").on_failure(OnFailure::Isolate)),
            "stage \"g\" is a guard stage and isolates failures: only an advisory stage may",
        ),
        (
            stage(StageSpec::transform("t").on_failure(OnFailure::Isolate)),
            "stage \"t\" is a transform stage and isolates failures: only an advisory stage may",
        ),
        (
            stage(StageSpec::admission("a").on_failure(OnFailure::Isolate)),
            "stage \"a\" is an admission stage and isolates failures: only an advisory stage may",
        ),
        (
            stage(StageSpec::result("r", ResultOn::Both).on_failure(OnFailure::Isolate)),
            "stage \"r\" is a result stage and isolates failures: only an advisory stage may",
        ),
        (
            stage(StageSpec::transform("t").stop_ends_stage()),
            "stage \"t\" is a transform stage and declares that stop ends it: only a guard stage may",
        ),
        (
            PlanBuilder::new("p", &[StageSpec::guard("g"), StageSpec::own_step("s"), StageSpec::admission("a")]),
            "stage \"a\" is an admission stage and stands after \"g\": admission comes first, results come last",
        ),
        (
            PlanBuilder::new("p", &[StageSpec::result("r", ResultOn::Error), StageSpec::guard("g")]),
            "stage \"g\" is a guard stage and stands after \"r\": admission comes first, results come last",
        ),
        (stage(StageSpec::guard("g").deadline(Duration::ZERO)), "the deadline of \"g\" is zero"),
        (builder().register(allow("x", "admit").bound(Duration::ZERO)), "the bound of \"x\" is zero"),
        (
            builder().register(allow("x", "admit").composed_at(4)).register(allow("y", "admit").composed_at(4)),
            "registrations \"x\" and \"y\" have the same place in stage \"admit\": give one of them another order",
        ),
        (
            (0..5000).fold(builder(), |builder, at| builder.register(allow(&format!("r{at}"), "admit"))),
            "plan \"test\" holds 5000 registrations: at most 4096 are allowed",
        ),
    ];
    for (builder, expected) in table {
        assert_eq!(builder.build().map(|plan| names(&plan)).unwrap_err().to_string(), expected);
    }
}

/// S22, I-7: a guard that a persisted profile declares is in force, or there is no plan.
#[test]
fn an_unresolved_reference_fails_the_build_and_names_itself() {
    let present = CallableRef::from_static("test::present@1");
    let missing = CallableRef::from_static("test::failed_to_compile@2");
    let allow = Evaluator::decide(|_: &Value, _: &Turn| Decision::proceed());
    let registry = CallableRegistry::new([(present.clone(), allow)]).unwrap();
    let profile =
        [Declaration::new("in-force", "admit", present.clone()), Declaration::new("declared", "security", missing.clone())];
    let refused = builder().resolve(profile.clone(), &registry).build().map(|plan| names(&plan)).unwrap_err();
    assert_eq!(refused, PlanError::Unresolved { registration: "declared".into(), callable: missing });
    let plan = builder().resolve(profile.into_iter().take(1), &registry).build().unwrap();
    assert_eq!(names(&plan), ["in-force"]);
}

/// I-7: a persisted profile is data, and resolving it gives the plan that code would have built.
#[test]
fn a_persisted_profile_compiles_to_the_same_plan() {
    let text = r#"[{"name":"a","stage":"admit","callable":"test::interceptor@1"},
                   {"name":"b","stage":"admit","callable":"test::interceptor@1","order":-1}]"#;
    let profile: Vec<Declaration> = serde_json::from_str(text).unwrap();
    let registry = CallableRegistry::new([(CALLABLE, Evaluator::decide(|_: &Value, _: &Turn| Decision::stop()))]).unwrap();
    let persisted = builder().resolve(profile, &registry).build().unwrap();
    let built = build([allow("a", "admit"), allow("b", "admit").order(-1)]);
    assert_eq!(names(&persisted), ["b", "a"]);
    assert_eq!(persisted.digest(), built.digest());
    assert!(serde_json::from_str::<Declaration>(r#"{"name":"a","stage":"s","callable":"c@1","matcher":"x"}"#).is_err());
}

/// I-7, P06: the digest covers every declared thing, and nothing else.
#[test]
fn the_digest_differs_when_anything_declared_differs() {
    let owner = |change: &dyn Fn(&mut [StageSpec])| {
        let mut stages = stages();
        change(&mut stages);
        PlanBuilder::<Value>::new("test", &stages).register(allow("a", "admit")).register(allow("b", "final"))
    };
    let same = || owner(&|_| {});
    let with = |a: Registration<Value>| builder().register(a).register(allow("b", "final"));
    let variants = [
        ("as it is", same()),
        ("plan name", PlanBuilder::new("other", &stages()).register(allow("a", "admit")).register(allow("b", "final"))),
        ("stage name", owner(&|stages| stages[3] = StageSpec::transform("rewrite"))),
        ("stage kind", owner(&|stages| stages[3] = StageSpec::advisory("transform"))),
        ("stage order", owner(&|stages| stages.swap(2, 3))),
        ("error mapping", owner(&|stages| stages[3] = StageSpec::transform("transform").on_failure(OnFailure::Deny))),
        ("stage deadline", owner(&|stages| stages[1] = StageSpec::guard("admit").deadline(ms(5)))),
        ("stop", owner(&|stages| stages[1] = StageSpec::guard("admit").stop_ends_stage())),
        ("unreachable", owner(&|stages| stages[3] = StageSpec::transform("transform").unreachable("never"))),
        ("basis", same().evaluate_only()),
        ("seam", same().advisory_seam()),
        ("approver", same().approver(Approver::EndsAttempt("owner".into()))),
        ("registration", with(allow("other", "admit"))),
        ("its stage", with(allow("a", "security"))),
        ("its order", with(allow("a", "admit").order(1))),
        ("its bound", with(allow("a", "admit").bound(ms(1)))),
        (
            "its reference",
            with(Registration::decide("a", "admit", CallableRef::from_static("test::interceptor@2"), |_: &Value, _| {
                Decision::proceed()
            })),
        ),
        ("one more", same().register(allow("c", "final"))),
    ];
    let digests: Vec<(&str, Digest)> = variants.map(|(what, builder)| (what, builder.build().unwrap().digest())).into();
    for (at, (what, digest)) in digests.iter().enumerate() {
        for (other, earlier) in &digests[..at] {
            assert_ne!(digest, earlier, "{what} and {other}");
        }
    }
    // Other code under the same reference is the same declaration.
    assert_eq!(with(deny("a", "admit")).build().unwrap().digest(), digests[0].1);
}

/// I-7: two processes that compile one declaration get one digest. This one was computed outside this project, from the declaration written as JSON.
#[test]
fn a_plan_digest_is_the_same_in_every_process() {
    let plan = build([allow("a", "admit").bound(ms(1500)), allow("b", "final").order(-3)]);
    assert_eq!(plan.digest().to_string(), "sha256:a05ad33756a931268ac9e89c0f774a2f8db89efa25a9ea7f3b706f2b720c062e");
}

/// I-1: the kernel adds no stage, and a plan without registrations permits what its owner proposes.
#[tokio::test]
async fn a_plan_holds_what_was_declared_and_nothing_more() {
    let plan = build([]);
    assert_eq!(plan.registrations().count(), 0);
    let (outcome, report) = apply(&plan, json!({ "a": 1 })).await;
    assert_eq!(permitted(outcome), json!({ "a": 1 }));
    assert_eq!(report.steps().count(), 0);
}

/// I-9: admission decides before anything else is asked, and a deferral is no denial.
#[tokio::test]
async fn admission_comes_first_and_defers_without_a_denial() {
    let stages = [StageSpec::admission("capacity"), StageSpec::own_step("start"), StageSpec::guard("policy")];
    let retry_at = Timestamp::from_micros(5_000_000);
    let quota = Registration::admit("quota", "capacity", CALLABLE, move |context: &Value, _| {
        if context["full"] == true { Admission::Defer { retry_at, reason: "quota spent".to_owned() } } else { Admission::Admit }
    });
    let shares =
        Registration::admit_async("shares", "capacity", CALLABLE, |_: Arc<Value>, _| async { Admission::Admit }).order(-1);
    let plan =
        PlanBuilder::new("p", &stages).register(deny("policy", "policy")).register(quota).register(shares).build().unwrap();
    let (outcome, report) = apply(&plan, json!({ "full": true })).await;
    match outcome {
        ChainOutcome::Deferred { retry_at: at, reason, registration } => {
            assert_eq!((at, reason.as_str(), &*registration), (retry_at, "quota spent", "quota"));
        }
        other => panic!("expected a deferral, found {other:?}"),
    }
    assert_eq!(answers(&report), ["shares admitted", "quota deferred", "policy not_reached"]);
    let (outcome, report) = apply(&plan, json!({})).await;
    assert_eq!(ending(&outcome), "denied");
    assert_eq!(answers(&report), ["shares admitted", "quota admitted", "policy denied"]);
}

/// I-15: result judges stand at result stages only, for the end that their stage declares.
#[test]
fn a_result_judge_stands_at_a_result_stage_only() {
    let keep = || Registration::on_result("keep", "post", CALLABLE, |_: &Value, _: &Value, _| ResultDecision::Keep);
    let plan = |stage: StageSpec| {
        PlanBuilder::<Value, Value>::new("p", &[StageSpec::own_step("perform"), stage]).register(keep()).build()
    };
    assert!(plan(StageSpec::result("post", ResultOn::Returned)).is_ok());
    let refused = plan(StageSpec::transform("post")).map(|_| ()).unwrap_err();
    assert!(matches!(refused, PlanError::WrongEvaluator { kind: StageKind::Transform, .. }));
}
