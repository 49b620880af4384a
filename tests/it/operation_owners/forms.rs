//! The steps of each owner, in its declared order, and what each form answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use tipstaff::cancel::Cancellation;
use tipstaff::interception::{Basis, DenialCause, DenialCode};
use tipstaff::operation::harness::{self, LaunchPlan, Provider, ProviderHarness, WorkspaceLease};
use tipstaff::operation::lifecycle::{self, Committed, SessionLifecycle, Transition};
use tipstaff::operation::prompt::{self, Prompt, PromptOrigin, PromptSubmission};
use tipstaff::operation::{End, Ending, Failure, OperationStatus, Performance, TeardownEnd};

use super::super::rig::{facts, kinds, payload};
use super::*;

/// A provider whose steps are noted; it breaks where it is told to.
struct Noted {
    log: Log,
    breaks_at: &'static str,
}

impl Noted {
    fn new(log: &Log, breaks_at: &'static str) -> Arc<Self> {
        Arc::new(Self { log: log.clone(), breaks_at })
    }

    fn step(&self, name: &str) -> Result<(), Failure> {
        self.log.note(name);
        assert_ne!(self.breaks_at, format!("panic in {name}"), "told to");
        if self.breaks_at == name { Err(Failure::new(format!("{name} breaks"))) } else { Ok(()) }
    }
}

impl Provider for Noted {
    type Launch = String;
    type Running = String;

    async fn compile(&self, plan: &LaunchPlan) -> Result<String, Failure> {
        self.step("compile")?;
        Ok(format!("{} {}", plan.provider(), plan.settings()["model"].as_str().unwrap_or_default()))
    }

    async fn spawn(&self, launch: String) -> Result<String, Failure> {
        self.step("spawn")?;
        if self.breaks_at == "waits in spawn" {
            std::future::pending::<()>().await;
        }
        Ok(format!("{launch} runs"))
    }

    async fn observe(&self, running: &String) -> Performance<Value> {
        match self.step("observe") {
            Ok(()) => Performance::Returned(json!(running)),
            Err(failure) => Performance::Failed(failure),
        }
    }

    async fn teardown(&self, running: Option<Arc<String>>, ending: Ending, _stop: Cancellation) -> Result<(), Failure> {
        self.log.note(format!("teardown of {:?} after {ending:?}", running.as_deref().map(String::as_str)));
        self.step("teardown")
    }
}

fn launch() -> LaunchPlan {
    let lease = WorkspaceLease { folder: "repo".into(), lease: "lease-1".into(), writable: true };
    LaunchPlan::new("claude", json!({ "model": "m" })).capability("edit").workspace(lease)
}

/// I-18, 2-interception: admission, compile, spawn, observe and teardown follow one another, and what was judged is what is launched.
#[tokio::test]
async fn a_launch_goes_through_the_steps_of_the_harness() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let harness = runtime.start_owner(passing::<ProviderHarness>(&log)).await.unwrap();

    let answer = harness.launch(&session, launch(), Noted::new(&log, "")).await;

    assert_eq!(answer.result(), Some(&json!("claude m runs")));
    assert_eq!(answer.outcome.teardown, Some(TeardownEnd::Finished));
    let teardown = "teardown of Some(\"claude m runs\") after Returned";
    assert_eq!(log.lines(), [harness::stage::PRE_SPAWN_ADMISSION, "compile", "spawn", "observe", teardown, "teardown"]);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_completed"]);
    assert_eq!(
        (&payload(&recorded[0])["owner"], &payload(&recorded[0])["context"]["capabilities"]),
        (&json!("provider_harness"), &json!(["edit"]))
    );
    assert_eq!(payload(&recorded[1])["teardown"], "finished");
    assert_eq!(recorded[0].signal.subject().map(|subject| subject.id()), Some("claude"));
    down(runtime).await;
}

/// I-4: whichever step breaks, what was begun is torn down exactly once, and what was never begun is not.
#[tokio::test]
async fn a_launch_that_breaks_is_torn_down_from_where_it_broke() {
    let cases: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("compile", &["compile"] as &[&str]),
        ("panic in compile", &["compile"]),
        ("spawn", &["compile", "spawn", "teardown of None after Failed", "teardown"]),
        ("panic in spawn", &["compile", "spawn", "teardown of None after Failed", "teardown"]),
        ("observe", &["compile", "spawn", "observe", "teardown of Some(\"claude m runs\") after Failed", "teardown"]),
        ("teardown", &["compile", "spawn", "observe", "teardown of Some(\"claude m runs\") after Returned", "teardown"]),
    ]);
    let (runtime, session) = up(memory()).await;
    let harness = runtime.start_owner(owner_plan::<ProviderHarness>("test").build().unwrap()).await.unwrap();
    for (breaks_at, steps) in cases {
        let log = Log::default();
        let answer = harness.launch(&session, launch(), Noted::new(&log, breaks_at)).await;
        assert_eq!(log.lines(), steps, "{breaks_at}");
        if breaks_at == "teardown" {
            assert_eq!(answer.outcome.status, OperationStatus::Completed, "a teardown changes no result");
            assert_eq!(answer.outcome.teardown, Some(TeardownEnd::Failed(Failure::new("teardown breaks"))));
        } else {
            assert_eq!(answer.outcome.status, OperationStatus::Failed, "{breaks_at}");
        }
    }
    down(runtime).await;
}

/// P-14, I-4: a caller that goes away while something is being spawned leaves nobody who knows the handle; the teardown runs without one.
#[tokio::test]
async fn a_spawn_that_is_broken_off_is_torn_down_without_a_handle() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let harness = runtime.start_owner(owner_plan::<ProviderHarness>("test").build().unwrap()).await.unwrap();
    {
        let mut launching = Box::pin(harness.launch(&session, launch(), Noted::new(&log, "waits in spawn")));
        while log.lines().last().map(String::as_str) != Some("spawn") {
            assert!(futures::poll!(&mut launching).is_pending());
            tokio::task::yield_now().await;
        }
    }
    harness.stop(soon()).await;
    assert_eq!(log.lines(), ["compile", "spawn", "teardown of None after CallerGone", "teardown"]);
    assert_eq!(kinds(&facts(&runtime, &session).await), ["operation_proposed", "operation_ambiguous"]);
    down(runtime).await;
}

fn prompt() -> Prompt {
    Prompt::new("say hello", "model", PromptOrigin::Agent("planner".into()))
}

fn loud() -> Registered<PromptSubmission> {
    Registration::decide("loud", prompt::stage::TRANSFORM, callable("loud"), |prompt: &Prompt, _: &Turn| {
        Decision::replace(prompt.with_text(prompt.text().to_uppercase()))
    })
}

/// I-5, 2-interception: policy, transform, recheck, submit; what is submitted is what the policy has judged last.
#[tokio::test]
async fn a_prompt_is_judged_again_after_its_transform() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let policy = passes::<PromptSubmission>(&StageSpec::guard(prompt::stage::POLICY), &log);
    let plan = owner_plan::<PromptSubmission>("test").register(policy).register(loud()).build().unwrap();
    let prompts = runtime.start_owner(plan).await.unwrap();
    let submit = async |granted: tipstaff::operation::Granted<PromptSubmission>| {
        log.note(format!("submit {}", granted.context().text()));
        Ok::<_, Failure>(json!("done"))
    };
    let answer = prompts.submit(&session, prompt(), submit).await;
    assert_eq!((answer.result(), answer.outcome.basis), (Some(&json!("done")), Some(Basis::Enforced)));
    assert_eq!(log.lines(), ["policy", "policy again", "submit SAY HELLO"]);
    assert_ne!(answer.outcome.requested, answer.outcome.effective);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(
        payload(&recorded[0])["context"],
        json!({ "text": "say hello", "model": "model", "origin": { "agent": "planner" } })
    );
    down(runtime).await;
}

/// I-5: a prompt that a transform made is denied by the policy like any other, and never submitted.
#[tokio::test]
async fn a_prompt_that_a_transform_made_can_be_denied() {
    let (runtime, session) = up(memory()).await;
    let quiet = Registration::decide("quiet", prompt::stage::POLICY, callable("quiet"), |prompt: &Prompt, _: &Turn| {
        if prompt.text().contains("HELLO") {
            Decision::deny(DenialCode::from_static("test.loud"), "not so loud")
        } else {
            Decision::proceed()
        }
    });
    let plan = owner_plan::<PromptSubmission>("test").register(quiet).register(loud()).build().unwrap();
    let prompts = runtime.start_owner(plan).await.unwrap();
    let submitted = AtomicUsize::new(0);
    let submit = async |_| {
        submitted.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Failure>(json!(0))
    };
    let answer = prompts.submit(&session, prompt(), submit).await;
    assert_eq!(answer.denial().map(|denial| denial.code.as_str()), Some("test.loud"));
    assert_eq!(submitted.load(Ordering::SeqCst), 0);
    down(runtime).await;
}

/// 2-interception: validate, commit, observe. A conflict is an answer; a denied transition is never committed; each has one closing fact.
#[tokio::test]
async fn a_transition_is_validated_before_it_is_committed() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let edges = {
        let log = log.clone();
        Registration::decide("edges", lifecycle::stage::VALIDATE, callable("edges"), move |transition: &Transition, _: &Turn| {
            log.note(format!("validate {}", transition.status()));
            match transition.status() {
                "reopened" => Decision::deny(DenialCode::from_static("lifecycle.edge"), "no such edge"),
                _ => Decision::proceed(),
            }
        })
    };
    let plan = owner_plan::<SessionLifecycle>("test").register(edges).build().unwrap();
    let lifecycle = runtime.start_owner(plan).await.unwrap();
    let status = Mutex::new("running".to_owned());
    let ask = async |to: &str| {
        let transition = Transition::to(session.id().clone(), to).expecting("running").because("run.completed.ok");
        let commit = async |granted: tipstaff::operation::Granted<SessionLifecycle>| {
            log.note(format!("commit {to}"));
            let mut found = status.lock().unwrap();
            if granted.context().expected() != Some(&**found) {
                return Ok::<_, Failure>(Committed::Conflict { found: Some(found.as_str().into()) });
            }
            *found = granted.context().status().to_owned();
            Ok(Committed::Applied)
        };
        lifecycle.transition(&session, transition, commit).await
    };
    assert_eq!(ask("completed").await.result(), Some(&Committed::Applied));
    assert_eq!(ask("failed").await.result(), Some(&Committed::Conflict { found: Some("completed".into()) }));
    let denied = ask("reopened").await;
    assert!(matches!(&denied.end, End::Denied(denial) if denial.cause == DenialCause::Policy));
    let lines = ["validate completed", "commit completed", "validate failed", "commit failed", "validate reopened"];
    assert_eq!(log.lines(), lines);
    let recorded = facts(&runtime, &session).await;
    let closed = ["operation_completed", "operation_completed", "operation_denied"];
    assert_eq!(kinds(&recorded).into_iter().filter(|kind| *kind != "operation_proposed").collect::<Vec<_>>(), closed);
    down(runtime).await;
}
