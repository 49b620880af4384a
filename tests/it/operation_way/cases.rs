//! Failures that users of neighbouring projects reported, each as a test of ours. The numbers are those of the public reports' lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::join_all;
use tipstaff::declare::CallableRegistry;
use tipstaff::interception::{Declaration, Evaluator, PlanError};
use tipstaff::state::Recorded;

use super::*;

/// A guard that lets other tasks run so many times before it answers.
fn slowly(
    name: &str,
    turns: impl Fn(&ToolCall) -> u64 + Send + Sync + 'static,
    answer: fn(&ToolCall) -> Decision<ToolCall>,
    at: &str,
) -> Guard {
    Registration::decide_async(name, at, callable(name), move |call: Arc<ToolCall>, _: Turn| {
        let turns = turns(&call);
        async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            answer(&call)
        }
    })
}

fn seed(call: &ToolCall) -> u64 {
    call.arguments()["seed"].as_u64().unwrap()
}

/// P04 (openai-agents-python 991): a guard denied, and the tool ran all the same. A thousand proposals, one guard that denies after a varying while, one
/// that allows at once; a third of the callers go away in the middle. The body never runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p04_no_body_begins_before_every_guard_has_answered() {
    let no = |_: &ToolCall| Decision::deny(DenialCode::from_static("test.no"), "no");
    let slow = slowly("slow", |call| seed(call) % 50, no, stage::ACTION_POLICY);
    let (runtime, session) = up(MemoryStore::new(), [slow, allows("fast")]).await;
    let performed = Arc::new(AtomicUsize::new(0));
    let runs = (0..1000_u64).map(|number| {
        let (session, performed) = (session.clone(), Arc::clone(&performed));
        async move {
            let body = move |_: Granted<ActionExecutor>| async move {
                performed.fetch_add(1, Ordering::SeqCst);
                Body::Ok(json!(0))
            };
            let mut run = std::pin::pin!(session.perform(ToolCall::new("write", json!({"seed": number})), body));
            if number % 3 == 0 {
                // Gone at whatever step it has come to.
                for _ in 0..number % 7 {
                    if futures::poll!(&mut run).is_ready() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
                return;
            }
            assert!(run.await.denial().is_some());
        }
    });
    join_all(runs).await;
    assert_eq!(performed.load(Ordering::SeqCst), 0);
    let closings = closings(&facts(&runtime, &session).await);
    assert!(closings.values().all(|closings| closings.len() == 1), "each attempt has one end");
    down(runtime).await;
}

/// The closing kinds of each operation that was proposed.
fn closings(recorded: &[Recorded]) -> HashMap<OperationId, Vec<String>> {
    let mut closings = HashMap::<_, Vec<_>>::new();
    for recorded in recorded {
        let Some(operation) = recorded.signal.operation() else { continue };
        let ends = closings.entry(operation.clone()).or_default();
        if recorded.signal.kind().as_str() != "operation_proposed" {
            ends.push(recorded.signal.kind().as_str().to_owned());
        }
    }
    closings
}

/// P07 (goose 10885): a denied call fired no event that an audit could see. Three guards of which the second denies, panics, exceeds its bound, or loses
/// its caller; three subscribers, one of which would like to allow. One end each, under the ids of the attempt, with who decided and who was never called.
#[tokio::test]
async fn p07_a_denied_call_is_one_fact_that_says_who_and_why() {
    for (variant, kind, cause) in [
        ("denies", "operation_denied", Some("policy")),
        ("panics", "operation_denied", Some("panicked")),
        ("hangs", "operation_denied", Some("timed_out")),
        ("abandoned", "operation_cancelled", None),
    ] {
        let (begun, never) = (Latch::new(), Latch::new());
        let second = match variant {
            "denies" => denies("second"),
            "panics" => guard("second", |_| panic!("the second panics")),
            "hangs" => waits("second", &begun, &never).bound(Duration::from_millis(5)),
            _ => waits("second", &begun, &never),
        };
        let (runtime, session) = up(MemoryStore::new(), [allows("first"), second, allows("third")]).await;
        let (metrics, counted) = keeps("metrics");
        let (screen, _shown) = keeps("screen");
        let wishes =
            Subscriber::declared_sync("wishes", |_: &Arc<Signal>| Err::<(), _>(std::io::Error::other("I would allow it")));
        let _registered = [metrics, screen, wishes].map(|subscriber| session.observe(subscriber).unwrap());
        let operation = Operation::new(call("write"));
        let (id, attempt) = (operation.id().clone(), operation.attempt().clone());
        let performed = AtomicUsize::new(0);
        let run = session.perform(operation, |_| async {
            performed.fetch_add(1, Ordering::SeqCst);
            Body::Ok(json!(0))
        });
        if variant == "abandoned" {
            tokio::select! {
                biased;
                _ = run => panic!("the second never answers"),
                () = begun.passed() => {}
            }
        } else {
            let denial = run.await.denial().cloned().expect("denied");
            assert_eq!(
                (denial.registration.as_deref(), denial.never_called),
                (Some("second"), vec!["third".into()]),
                "{variant}"
            );
        }
        let recorded = facts_of(&runtime, &session, &id).await;
        assert_eq!(kinds(&recorded), ["operation_proposed", kind], "{variant}");
        assert!(recorded.iter().all(|recorded| recorded.signal.attempt() == Some(&attempt)), "{variant}");
        let end = payload(&recorded[1]);
        match cause {
            Some(cause) => {
                let denial = &end["denial"];
                assert_eq!((&denial["cause"], &denial["registration"]), (&json!(cause), &json!("second")), "{variant}");
                assert_eq!(denial["never_called"], json!(["third"]), "{variant}");
            }
            None => {
                assert_eq!(end["reason"], "the proposer went away while second was being asked");
                assert_eq!(end["never_called"], json!(["third"]));
            }
        }
        assert_eq!(performed.load(Ordering::SeqCst), 0, "{variant}");
        session.end(soon()).await;
        assert_eq!(counted.facts().len(), 2, "{variant}: metrics see the denial too");
        down(runtime).await;
    }
}

/// AH-1 (agent-hooks): the emission was dropped while its second interceptor hung, and nothing was on record. Ours says who was being asked and who
/// never was, also when the proposal still waits in the owner's queue.
#[tokio::test]
async fn ah1_a_proposer_that_goes_away_is_on_record_with_who_was_asked() {
    let (begun, never) = (Latch::new(), Latch::new());
    let plan = plan([allows("first"), waits("second", &begun, &never), allows("third"), rewrites("fourth", Clone::clone)]);
    let one = NonZeroUsize::MIN;
    let bounds = tipstaff::OwnerBounds { waiting: one, deciding: one, permits: one };
    let runtime = Runtime::builder().store(MemoryStore::new()).actions(plan).action_bounds(bounds).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    {
        let mut asked = std::pin::pin!(session.perform(call("asked"), done));
        let mut queued = std::pin::pin!(session.perform(call("queued"), done));
        assert!(futures::poll!(&mut asked).is_pending());
        tokio::select! {
            biased;
            _ = &mut asked => panic!("the second never answers"),
            () = begun.passed() => {}
        }
        assert!(futures::poll!(&mut queued).is_pending());
    }
    let recorded = facts(&runtime, &session).await;
    let ends: BTreeMap<_, _> = recorded
        .iter()
        .filter(|recorded| recorded.signal.kind().as_str() == "operation_cancelled")
        .map(|recorded| (recorded.signal.subject().unwrap().id().to_owned(), payload(recorded).clone()))
        .collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends["asked"]["reason"], "the proposer went away while second was being asked");
    assert_eq!(ends["asked"]["never_called"], json!(["third", "fourth"]));
    assert_eq!(ends["queued"]["reason"], "the proposer went away before any interceptor was asked");
    down(runtime).await;
}

/// P08 (adk-python 4774): runs that died had a start and no end. A hundred of each way to end, mixed: every start has one terminal fact, under its own
/// identity, and the five classes are told apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p08_every_start_has_one_end_of_five_classes() {
    let (runtime, session) = up(MemoryStore::new(), []).await;
    let (watcher, kept) = keeps("lifecycle");
    let _registered = session.observe(watcher).unwrap();
    let runs = (0..500_u32).map(|number| {
        let session = session.clone();
        async move {
            let way = number % 5;
            let operation = Operation::new(call(["ok", "error", "panic", "cancelled", "late"][way as usize]));
            let operation = if way == 4 { operation.performed_within(Duration::from_millis(1)) } else { operation };
            let running = Latch::new();
            let begun = running.clone();
            let body = |_: Granted<ActionExecutor>| async move {
                begun.open();
                match way {
                    0 => Ok(json!(0)),
                    1 => Err(std::io::Error::other("no luck")),
                    2 => panic!("the body panics"),
                    _ => std::future::pending().await,
                }
            };
            let run = session.perform(operation, body);
            if way == 3 {
                tokio::select! { biased; _ = run => panic!("it never returns"), () = running.passed() => {} }
            } else {
                let _answer = run.await;
            }
        }
    });
    join_all(runs).await;
    let recorded = facts(&runtime, &session).await;
    assert!(closings(&recorded).values().all(|ends| ends.len() == 1), "starts == terminals, per id");
    let mut classes = BTreeMap::<_, BTreeSet<_>>::new();
    let mut counts = BTreeMap::<_, u32>::new();
    for recorded in recorded.iter().filter(|recorded| recorded.signal.kind().as_str() != "operation_proposed") {
        let (way, end) = (recorded.signal.subject().unwrap().id().to_owned(), payload(recorded));
        let class = format!("{} {} {}", recorded.signal.kind(), end["status"], end["failure"]["class"]);
        classes.entry(way.clone()).or_default().insert(class);
        *counts.entry(way).or_default() += 1;
    }
    assert!(classes.values().all(|classes| classes.len() == 1), "one class for each way: {classes:?}");
    assert_eq!(classes.values().flatten().collect::<BTreeSet<_>>().len(), 5, "five classes: {classes:?}");
    assert!(counts.values().all(|count| *count == 100), "{counts:?}");
    session.end(soon()).await;
    assert_eq!((kept.facts().len(), session.undelivered()), (1000, 0), "the watcher saw every start and every end");
    down(runtime).await;
}

/// S02 (claude-code 23284): the host started the tool beside the check that blocked it. On a virtual clock: the body begins when the last guard has
/// answered, and not a moment before.
#[tokio::test(start_paused = true)]
async fn s02_the_tool_begins_after_the_chain_has_answered() {
    let answer_after = Duration::from_secs(10);
    let slow =
        Registration::decide_async("slow", stage::ACTION_POLICY, callable("slow"), move |_: Arc<ToolCall>, _: Turn| async move {
            tokio::time::sleep(answer_after).await;
            Decision::<ToolCall>::proceed()
        });
    let runtime = Runtime::builder().actions(plan([slow])).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let began = tokio::time::Instant::now();
    let answer = session.perform(call("write"), |_| async move { Body::Ok(json!(began.elapsed() >= answer_after)) }).await;
    assert_eq!(answer.result(), Some(&json!(true)));
    down(runtime).await;
}

/// S20 (codex 23411): a tool that calls other tools skipped the chain for them. Inner calls go through the session like any other: each is judged, and
/// each is on record. That nothing can be performed without a permit is in `tests/ui`.
#[tokio::test]
async fn s20_the_inner_calls_of_a_batch_are_judged() {
    let no_rm = guard("no_rm", |call| {
        if call.tool() == "rm" { Decision::deny(DenialCode::from_static("test.no"), "no") } else { Decision::proceed() }
    });
    let (runtime, session) = up(MemoryStore::new(), [no_rm]).await;
    let inner = session.clone();
    let batch = |granted: Granted<ActionExecutor>| async move {
        let mut results = Vec::new();
        for tool in granted.context().arguments()["calls"].as_array().unwrap() {
            let answer = inner.perform(call(tool.as_str().unwrap()), done).await;
            results.push(json!(answer.result()));
        }
        Body::Ok(json!(results))
    };
    let answer = session.perform(ToolCall::new("batch", json!({"calls": ["ls", "rm", "cat"]})), batch).await;
    assert_eq!(answer.result(), Some(&json!(["done", null, "done"])));
    let recorded = facts(&runtime, &session).await;
    let ends: Vec<_> = recorded
        .iter()
        .filter(|recorded| recorded.signal.kind().as_str() != "operation_proposed")
        .map(|recorded| (recorded.signal.subject().unwrap().id(), recorded.signal.kind().as_str()))
        .collect();
    let expected = [
        ("ls", "operation_completed"),
        ("rm", "operation_denied"),
        ("cat", "operation_completed"),
        ("batch", "operation_completed"),
    ];
    assert_eq!(ends, expected);
    down(runtime).await;
}

/// S22 (claude-code 82143): a guard that was declared was not in force, and nobody was told. A profile with a guard that cannot be resolved, or that
/// stands where no stage is, builds no plan; without a plan that builds there is no runtime to run a tool.
#[tokio::test]
async fn s22_a_declared_guard_is_in_force_or_nothing_runs() {
    let registry = CallableRegistry::<Evaluator<_, _>>::new([]).unwrap();
    let declared = Declaration::new("no_force", stage::ACTION_POLICY, callable("gone"));
    let refused = action_plan("test").resolve([declared], &registry).register(allows("yes")).build();
    assert!(matches!(refused.unwrap_err(), PlanError::Unresolved { registration, .. } if &*registration == "no_force"));

    let misplaced = Registration::decide("no_force", "security", callable("no_force"), |_: &ToolCall, _: &Turn| {
        Decision::<ToolCall>::proceed()
    });
    let refused = action_plan("test").register(misplaced).build();
    assert!(matches!(refused.unwrap_err(), PlanError::UnknownStage { stage, .. } if &*stage == "security"));

    let registry = CallableRegistry::new([(
        callable("there"),
        Evaluator::decide(|_: &ToolCall, _: &Turn| Decision::<ToolCall>::deny(DenialCode::from_static("test.no"), "in force")),
    )]);
    let declared = Declaration::new("no_force", stage::ACTION_POLICY, callable("there"));
    let plan = action_plan("test").resolve([declared], &registry.unwrap()).build().unwrap();
    let runtime = Runtime::builder().actions(plan).spawn().await.unwrap();
    assert_eq!(runtime.perform(call("push"), done).await.unwrap().denial().unwrap().reason, "in force");
    down(runtime).await;
}

/// What the tool was run with.
async fn run_with(session: &Session, arguments: serde_json::Value) -> serde_json::Value {
    let body = |granted: Granted<ActionExecutor>| async move { Body::Ok(granted.context().arguments().clone()) };
    session.perform(ToolCall::new("write", arguments), body).await.result().cloned().expect("it runs")
}

/// S25 (claude-code 15897): a hook that said nothing undid the rewrite of another. In both orders the tool runs with the rewritten input.
#[tokio::test]
async fn s25_a_rewrite_survives_who_says_nothing() {
    for first in ["rewrites", "silent"] {
        let order = |name: &str| if name == first { 0 } else { 1 };
        let rewriting = rewrites("rewrites", |_| json!({"by": "a"})).order(order("rewrites"));
        let silent = Registration::decide("silent", stage::USER_TRANSFORM, callable("silent"), |_: &ToolCall, _: &Turn| {
            Decision::<ToolCall>::proceed()
        });
        let (runtime, session) = up(MemoryStore::new(), [rewriting, silent.order(order("silent"))]).await;
        assert_eq!(run_with(&session, json!({"by": "nobody"})).await, json!({"by": "a"}), "{first} first");
        down(runtime).await;
    }
}

/// S26 (claude-code 83353), P05: of two rewrites the one that took longest won. Here the declared order decides, whatever the latency: the second sees
/// what the first made, in two hundred runs at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s26_conflicting_rewrites_resolve_by_declared_order() {
    fn rewrite(call: &ToolCall, by: &str) -> Decision<ToolCall> {
        let mut arguments = call.arguments().clone();
        arguments["saw"] = arguments["by"].clone();
        arguments["by"] = json!(by);
        Decision::replace(call.with_arguments(arguments))
    }
    let a = slowly("a", |call| seed(call) % 40, |call| rewrite(call, "a"), stage::USER_TRANSFORM);
    let b = slowly("b", |call| 3 * seed(call) % 7, |call| rewrite(call, "b"), stage::USER_TRANSFORM);
    let (runtime, session) = up(MemoryStore::new(), [a, b]).await;
    let results = join_all((0..200).map(|seed| run_with(&session, json!({"seed": seed, "by": "nobody"})))).await;
    for result in results {
        assert_eq!((&result["by"], &result["saw"]), (&json!("b"), &json!("a")));
    }
    down(runtime).await;
}

/// S28 (claude-code 77851): observers saw one input and the tool another. The facts of one attempt carry both: what was requested, and what was run.
#[tokio::test]
async fn s28_observers_see_the_requested_and_the_effective_input() {
    let (runtime, session) = up(MemoryStore::new(), [rewrites("safer", |_| json!({"force": false}))]).await;
    let (watcher, kept) = keeps("watcher");
    let _registered = session.observe(watcher).unwrap();
    assert_eq!(run_with(&session, json!({"force": true})).await, json!({"force": false}));
    session.end(soon()).await;
    let kept = kept.facts();
    let [proposed, completed] = &kept[..] else { panic!("two facts") };
    let (proposed, completed) = (proposed.payload().value(), completed.payload().value());
    assert_eq!(proposed["context"]["arguments"], json!({"force": true}));
    assert_eq!(completed["context"]["arguments"], json!({"force": false}));
    assert_eq!(completed["requested"], proposed["digest"], "the two are one attempt's");
    assert_ne!(completed["requested"], completed["effective"]);
    assert_eq!(completed["report"]["steps"][0]["answer"], "replaced", "and who replaced it");
    down(runtime).await;
}
