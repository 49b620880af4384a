//! What survives a caller, for how long, and what does not (I-4, P-14).

use std::future::pending;
use std::time::Duration;

use tipstaff::cancel::Cancellation;
use tipstaff::compat::HookedEvent;
use tipstaff::interception::DenialCause;
use tipstaff::operation::harness::ProviderHarness;
use tipstaff::operation::service::{ServiceCall, stage};
use tipstaff::operation::{ActionExecutor, Ending, Failure, FailureClass, OperationStatus, Owner, TeardownEnd, TearsDown};
use tipstaff::supervision::ReportKind;
use tipstaff::{CrashPoint, CrashPoints, OwnerHandle};

use super::super::rig::{Latch, call, done, facts, kinds, payload};
use super::service::{Noted, noted};
use super::*;

async fn services(runtime: &Runtime) -> OwnerHandle<ServiceCall> {
    runtime.start_owner(owner_plan::<ServiceCall>("test").build().unwrap()).await.unwrap()
}

fn declares_what_it_keeps<O: TearsDown>() {
    let declared = O::stages().into_iter().find(|spec| spec.name() == stage::TEARDOWN);
    assert_eq!(declared, Some(StageSpec::own_step(stage::TEARDOWN).shielded(O::TEARDOWN.bound)), "{}", O::NAME);
}

/// I-4: the table at the top of `operation::teardown`: how a teardown ends, and how long it may take. Virtual time.
#[tokio::test(start_paused = true)]
async fn a_teardown_ends_within_its_bound_and_its_grace() {
    let (bound, grace) = (ServiceCall::TEARDOWN.bound, ServiceCall::TEARDOWN.grace);
    assert_eq!((bound, grace), (Duration::from_secs(5), Duration::from_secs(1)), "the budgets of the table");
    declares_what_it_keeps::<ServiceCall>();
    declares_what_it_keeps::<ProviderHarness>();
    declares_what_it_keeps::<HookedEvent>();
    let failed = |end: &TeardownEnd, class, message: &str| match end {
        TeardownEnd::Failed(failure) => failure.class() == class && failure.message().contains(message),
        _ => false,
    };
    let (runtime, session) = up_in_memory().await;
    let services = services(&runtime).await;
    for how in ["finishes", "fails", "panics", "panics at once", "stops", "goes on"] {
        let begun = tokio::time::Instant::now();
        let teardown = move |_: Ending, stop: Cancellation| {
            assert_ne!(how, "panics at once", "told to");
            async move {
                match how {
                    "fails" => return Err(Failure::new("no socket")),
                    "panics" => panic!("told to"),
                    "stops" => stop.cancelled().await,
                    "goes on" => pending().await,
                    _ => {}
                }
                Ok(())
            }
        };
        let answer = services.invoke(&session, request(), async |_| Ok::<_, Failure>(json!(1)), teardown).await;
        assert_eq!(answer.outcome.status, OperationStatus::Completed, "{how}: the result stands");
        let end = answer.outcome.teardown.expect("it was reached");
        let (expected, took) = match how {
            "finishes" => (end == TeardownEnd::Finished, Duration::ZERO),
            "fails" => (failed(&end, FailureClass::Error, "no socket"), Duration::ZERO),
            "stops" => (end == TeardownEnd::Stopped, bound),
            "goes on" => (end == TeardownEnd::Dropped, bound + grace),
            _ => (failed(&end, FailureClass::Panic, "told to"), Duration::ZERO),
        };
        assert!(expected, "{how}: {end:?}");
        assert_eq!(begun.elapsed(), took, "{how}");
    }
    down(runtime).await;
}

/// I-4, P-14: a caller that goes away in the middle of its call is torn down by the owner; the attempt is ambiguous, its permit is open until then and
/// closed after it.
#[tokio::test]
async fn a_call_whose_caller_goes_away_is_torn_down_by_its_owner() {
    let (log, gate, begun) = (Log::default(), Latch::new(), Latch::new());
    let (runtime, session) = up(memory()).await;
    let services = services(&runtime).await;
    let teardown = {
        let (log, gate, begun) = (log.clone(), gate.clone(), begun.clone());
        move |ending: Ending, _: Cancellation| async move {
            begun.open();
            gate.passed().await;
            log.note(format!("teardown after {ending:?}"));
            Ok(())
        }
    };
    let source = Noted::new(&log, [json!(1)], true);
    let mut stream = services.stream(&session, request(), async |_| Ok::<_, Failure>(source), teardown).await.unwrap();
    assert_eq!(stream.next().await, Some(json!(1)));
    let status = stream.status();
    drop(stream);
    begun.passed().await;
    assert_eq!(status.get(), OperationStatus::Running, "not over before its teardown");
    assert_eq!(runtime.open_permits().iter().map(|permit| permit.owner).collect::<Vec<_>>(), ["service_call"]);
    gate.open();
    assert_eq!(status.ended().await, OperationStatus::Ambiguous);
    assert_eq!(log.lines(), ["make 1", "source dropped", "teardown after CallerGone"]);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_ambiguous"]);
    assert_eq!(payload(&recorded[1])["teardown"], "finished");
    services.stop(soon()).await;
    assert!(runtime.open_permits().is_empty());
    down(runtime).await;
}

/// I-4: a caller that goes away after the call was performed loses its answer, not the record of how it was performed; and a teardown that had begun
/// goes on from where it stands.
#[tokio::test]
async fn a_caller_that_goes_away_late_leaves_a_performed_attempt() {
    for in_teardown in [false, true] {
        let (log, gate, begun) = (Log::default(), Latch::new(), Latch::new());
        let (runtime, session) = up(memory()).await;
        let post = {
            let (gate, begun) = (gate.clone(), begun.clone());
            Registration::on_result_async(
                "post",
                stage::POST,
                callable("post"),
                move |_, _: Arc<ResultOf<ServiceCall>>, _: Turn| {
                    let (gate, begun) = (gate.clone(), begun.clone());
                    async move {
                        if !in_teardown {
                            begun.open();
                            gate.passed().await;
                        }
                        ResultDecision::<ResultOf<ServiceCall>>::Keep
                    }
                },
            )
        };
        let services = runtime.start_owner(owner_plan::<ServiceCall>("test").register(post).build().unwrap()).await.unwrap();
        let teardown = {
            let (log, gate, begun) = (log.clone(), gate.clone(), begun.clone());
            move |ending: Ending, _: Cancellation| async move {
                log.note(format!("teardown after {ending:?}"));
                if in_teardown {
                    begun.open();
                    gate.passed().await;
                }
                log.note("torn down");
                Ok(())
            }
        };
        {
            let invoked = services.invoke(&session, request(), async |_| Ok::<_, Failure>(json!(1)), teardown);
            let mut invoked = Box::pin(invoked);
            tokio::select! {
                answer = &mut invoked => panic!("it waits: {answer:?}"),
                () = begun.passed() => {}
            }
        }
        gate.open();
        services.stop(soon()).await;
        assert_eq!(log.lines(), ["teardown after Returned", "torn down"], "{in_teardown}");
        let recorded = facts(&runtime, &session).await;
        assert_eq!(kinds(&recorded), ["operation_proposed", "operation_completed"], "{in_teardown}");
        assert_eq!(payload(&recorded[1])["teardown"], "finished");
        down(runtime).await;
    }
}

/// P-9, P-14: what survives its caller does not survive its owner. The attempt is on record all the same, and its permit is no longer open.
#[tokio::test]
async fn an_owner_that_crashes_breaks_a_teardown_off_and_loses_no_record() {
    let points = CrashPoints::new();
    let runtime = Runtime::builder().store(memory()).crash_points(points.clone()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let services = services(&runtime).await;
    let begun = Latch::new();
    let teardown = {
        let begun = begun.clone();
        move |_: Ending, _: Cancellation| async move {
            begun.open();
            pending().await
        }
    };
    let source = Noted::new(&Log::default(), [], true);
    let stream = services.stream(&session, request(), async |_| Ok::<_, Failure>(source), teardown).await.unwrap();
    let status = stream.status();
    drop(stream);
    begun.passed().await;
    assert_eq!(points.kill("service_call"), 1);
    assert_eq!(status.ended().await, OperationStatus::Ambiguous);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_ambiguous"]);
    assert_eq!(payload(&recorded[1]).get("teardown"), None, "nothing is known of it");
    let listed = async {
        while !runtime.open_permits().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout_at(soon().instant(), listed).await.expect("the permit is closed");
    down(runtime).await;
}

/// P-8, 2-interception "As actors": an owner that has spent its restart budget denies its own proposals, and other owners go on. Its open permits end as
/// ever, and what is handed to it is dropped.
#[tokio::test]
async fn an_owner_that_is_degraded_leaves_the_others_alone() {
    let points = CrashPoints::new();
    let runtime = Runtime::builder().store(memory()).crash_points(points.clone()).spawn().await.unwrap();
    let mut reports = runtime.take_reports().unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let services = services(&runtime).await;
    let log = Log::default();
    let open = async |_| Ok::<_, Failure>(Noted::new(&log, [], true));
    let stream = services.stream(&session, request(), open, noted(&log)).await.unwrap();
    points.always(CrashPoint::AuthorizerStarting);
    points.kill("service_call");
    let degraded = async {
        loop {
            let report = reports.next().await.expect("the tree runs");
            if &*report.child == ServiceCall::NAME && matches!(report.what, ReportKind::Degraded { .. }) {
                return;
            }
        }
    };
    tokio::time::timeout_at(soon().instant(), degraded).await.expect("the budget is spent");

    let answer = services.perform(&session, request(), async |_| Err::<_, Failure>(Failure::new("never"))).await;
    assert_eq!(answer.denial().map(|denial| denial.cause), Some(DenialCause::AuthorizationDegraded));
    assert_eq!(runtime.status().degraded.iter().map(|name| &**name).collect::<Vec<_>>(), [ServiceCall::NAME]);
    assert!(session.perform(call("ls"), done).await.result().is_some(), "{} goes on", ActionExecutor::NAME);
    let status = stream.status();
    drop(stream);
    assert_eq!(status.ended().await, OperationStatus::Ambiguous);
    assert_eq!(log.lines(), ["source dropped"], "nobody is there to tear it down");
    down(runtime).await;
}

/// A host's own owner runs as the shipped ones do, and ends when it is told to.
#[tokio::test]
async fn an_owner_of_ones_own_is_started_and_stopped() {
    struct Texts;
    impl Owner for Texts {
        const NAME: &'static str = "texts";
        type Context = String;
        type Output = String;

        fn stages() -> Vec<StageSpec> {
            vec![StageSpec::guard("policy"), StageSpec::own_step("perform")]
        }
    }
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let texts = runtime.start_owner(passing::<Texts>(&log)).await.unwrap();
    let shout = async |granted: tipstaff::operation::Granted<Texts>| Ok::<_, Failure>(granted.context().to_uppercase());
    let answer = texts.perform(&session, "hello".to_owned(), shout).await;
    assert_eq!((answer.result().map(String::as_str), log.lines()), (Some("HELLO"), vec!["policy".to_owned()]));
    assert_eq!(shown(&session), ["operation_proposed", "operation_completed"]);
    assert_eq!(last(&session)["owner"], "texts");
    texts.stop(soon()).await;
    let late = texts.perform(&session, "hello".to_owned(), shout).await;
    assert_eq!(late.denial().map(|denial| denial.cause), Some(DenialCause::AuthorizationUnavailable));
    down(runtime).await;
}
