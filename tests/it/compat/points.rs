//! Hook points.

use std::num::NonZeroUsize;
use std::time::Duration;

use tipstaff::Runtime;
use tipstaff::clock::Deadline;
use tipstaff::compat::{HookCanceller, HookEmitted, HookEnd, HookPoint, HookPoints, HookRecord};
use tipstaff::declare::CallableRef;
use tipstaff::interception::{Answer, Decision, DenialCode, PlanBuilder, PlanError, Registration, StageSpec, Turn};
use tipstaff::signal::legacy::DormantPoint;

use super::super::rig::session_id;
use super::*;

fn points(point: HookPoint, hooks: impl IntoIterator<Item = Hook<Value>>) -> HookPoints<Value> {
    let points = HookPoints::new();
    for hook in hooks {
        assert_eq!(points.register(point, hook).unwrap().warning(), None);
    }
    points
}

async fn emit(points: &HookPoints<Value>, point: HookPoint) -> HookEmitted {
    points.emit(point, Arc::new(json!({"cmd": "ls"}))).run().await
}

fn record(point: HookPoint, denied: bool) -> Option<HookRecord> {
    Some(HookRecord { point, denied, has_exception: denied })
}

/// I-13, I-14: the two tables of the module, row by row: how each end of a handler goes on, ends the chain, and is recorded.
#[tokio::test]
async fn a_handler_ends_in_each_of_its_ways() {
    use HookPoint::{ToolPost, ToolPre};
    let raised = |error: HookError| HookEnd::Raised { by: "h2".into(), error };
    let cancelled = HookEnd::Cancelled { by: HookCanceller::Hook("h2".into()) };
    let panic = HookError::failed("panic", "told to");
    let rows = [
        (ToolPre, Way::Returns, true, HookEnd::Passed, record(ToolPre, false)),
        (ToolPost, Way::Returns, true, HookEnd::Passed, record(ToolPost, false)),
        (ToolPre, Way::Fails, false, raised(HookError::failed("E1", "told to")), record(ToolPre, true)),
        (ToolPost, Way::Fails, true, HookEnd::Passed, record(ToolPost, false)),
        (ToolPre, Way::Panics, false, raised(panic), record(ToolPre, true)),
        (ToolPost, Way::Panics, true, HookEnd::Passed, record(ToolPost, false)),
        (ToolPre, Way::Stops, false, HookEnd::Stopped { by: "h2".into() }, record(ToolPre, false)),
        (ToolPost, Way::Stops, false, HookEnd::Stopped { by: "h2".into() }, record(ToolPost, false)),
        (ToolPre, Way::Refused, false, raised(HookError::store_refused("told to")), record(ToolPre, true)),
        (ToolPost, Way::Refused, false, raised(HookError::store_refused("told to")), None),
        (ToolPre, Way::Fatal, false, raised(HookError::fatal("X1", "told to")), None),
        (ToolPost, Way::Fatal, false, raised(HookError::fatal("X1", "told to")), None),
        (ToolPre, Way::CancelsItself, false, cancelled.clone(), None),
        (ToolPost, Way::CancelsItself, false, cancelled, None),
    ];
    for (at, (point, way, goes_on, end, record)) in rows.into_iter().enumerate() {
        let (log, begun) = (Log::default(), Latch::new());
        let hooks = [("h1", Way::Returns), ("h2", way), ("h3", Way::Returns)];
        let points = points(point, hooks.map(|(name, way)| scripted(name, way, &log, &begun)));
        let emitted = emit(&points, point).await;
        assert_eq!((&emitted.end, emitted.record), (&end, record), "row {at}");
        let called: &[&str] = if goes_on { &["h1", "h2", "h3"] } else { &["h1", "h2"] };
        assert_eq!(log.lines(), called, "row {at}");
        let isolated = goes_on && emitted.isolated.len() == 1;
        assert_eq!(isolated, matches!(at, 3 | 5), "row {at}");
        let steps: Vec<_> = emitted.report.as_ref().unwrap().steps().map(|step| step.answer()).collect();
        assert_eq!(steps.len(), 3, "the report names every handler");
        assert_eq!(steps[2] == Answer::Continued, goes_on, "row {at}: {steps:?}");
    }
}

/// `blocking_emit` blocks at every point; a point without handlers is recorded all the same; `message.add` never is.
#[tokio::test]
async fn an_emission_is_recorded_by_its_point() {
    let (log, begun) = (Log::default(), Latch::new());
    let all = points(HookPoint::ToolPost, [scripted("h1", Way::Fails, &log, &begun)]);
    let blocking = all.blocking_emit(HookPoint::ToolPost, Arc::default()).run().await;
    assert_eq!(blocking.record, record(HookPoint::ToolPost, true));
    let nobody = emit(&all, HookPoint::SessionEnd).await;
    assert_eq!((nobody.end, nobody.record), (HookEnd::Passed, record(HookPoint::SessionEnd, false)));
    assert!(nobody.report.is_none());
    assert_eq!(emit(&all, HookPoint::MessageAdd).await.record, None);
}

/// By return value: a plain function that returns any future is awaited.
#[tokio::test]
async fn what_a_plain_handler_returns_is_awaited() {
    let log = Log::default();
    let noted = |what: &'static str, log: &Log| {
        let log = log.clone();
        async move {
            log.note(what);
            Ok(json!(1))
        }
    };
    let hooks = [
        plain("h1", |_| Ok(HookReturn::Value(json!(1))), &log),
        plain("h2", move |log| Ok(HookReturn::coroutine(noted("coroutine", log))), &log),
        plain("h3", move |log| Ok(HookReturn::awaitable(noted("awaitable", log))), &log),
    ];
    let emitted = emit(&points(HookPoint::ToolPost, hooks), HookPoint::ToolPost).await;
    assert_eq!(emitted.end, HookEnd::Passed);
    assert_eq!(log.lines(), ["h1", "h2", "coroutine", "h3", "awaitable"]);
}

/// F-19: cancelling by the handle is an edge. It reaches the handler in flight, whose own end counts, and nobody who starts after it.
#[tokio::test]
async fn cancelling_reaches_what_is_in_flight_and_no_more() {
    let by_emitter = HookEnd::Cancelled { by: HookCanceller::Emitter };
    let failed = HookEnd::Raised { by: "h1".into(), error: HookError::failed("E1", "told to") };
    for (point, then, end, goes_on) in [
        (HookPoint::ToolPre, Way::CancelsItself, by_emitter.clone(), false),
        (HookPoint::ToolPost, Way::CancelsItself, by_emitter, false),
        (HookPoint::ToolPre, Way::Returns, HookEnd::Passed, true),
        (HookPoint::ToolPost, Way::Returns, HookEnd::Passed, true),
        (HookPoint::ToolPre, Way::Fails, failed, false),
        (HookPoint::ToolPost, Way::Fails, HookEnd::Passed, true),
    ] {
        let (log, begun) = (Log::default(), Latch::new());
        let second = {
            let log = log.clone();
            Hook::declared_async("h2", move |_: Arc<Value>, token: Cancellation| {
                log.note(format!("h2 asked: {}", token.is_cancelled()));
                async { Ok(Value::Null) }
            })
        };
        let points = points(point, [scripted("h1", Way::Asked(Box::new(then)), &log, &begun), second]);
        let emission = points.emit(point, Arc::default());
        let handle = emission.handle();
        let (emitted, ()) = tokio::join!(bounded(emission.run()), async {
            begun.passed().await;
            handle.cancel();
        });
        assert_eq!(emitted.end, end);
        let lines: &[&str] = if goes_on { &["h1", "h1 asked", "h2 asked: false"] } else { &["h1", "h1 asked"] };
        assert_eq!(log.lines(), lines);
    }
}

/// F-19: a cancellation is not lost on handlers that never wait: it reaches the first that does.
#[tokio::test]
async fn cancelling_passes_over_handlers_that_never_wait() {
    let (log, begun) = (Log::default(), Latch::new());
    let hooks = [
        plain("h1", |_| Ok(HookReturn::Value(json!(1))), &log),
        scripted("h2", Way::Returns, &log, &begun),
        scripted("h3", Way::Asked(Box::new(Way::CancelsItself)), &log, &begun),
        scripted("h4", Way::Returns, &log, &begun),
    ];
    let emission = points(HookPoint::ToolPost, hooks).emit(HookPoint::ToolPost, Arc::default());
    emission.handle().cancel();
    assert_eq!(bounded(emission.run()).await.end, HookEnd::Cancelled { by: HookCanceller::Emitter });
    assert_eq!(log.lines(), ["h1", "h2", "h3", "h3 asked"]);
}

/// F-19: a handler that does not end within the grace is dropped; one that is cancelled before anything runs meets the first that waits.
#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_listen_is_dropped_after_the_grace() {
    let (log, begun) = (Log::default(), Latch::new());
    let hooks = [plain("h1", |_| Ok(HookReturn::Value(json!(1))), &log), scripted("h2", Way::Hangs, &log, &begun)];
    let emission = points(HookPoint::ToolPost, hooks).emit(HookPoint::ToolPost, Arc::default());
    let start = tokio::time::Instant::now();
    emission.handle().cancel();
    assert_eq!(emission.run().await.end, HookEnd::Cancelled { by: HookCanceller::Emitter });
    assert_eq!((log.lines().len(), start.elapsed()), (2, tipstaff::compat::GRACE));
}

/// There is no deadline, as recorded, but one can be set.
#[tokio::test(start_paused = true)]
async fn an_emission_may_have_a_deadline() {
    let (log, begun) = (Log::default(), Latch::new());
    let points = points(HookPoint::ToolPre, [scripted("h1", Way::Hangs, &log, &begun)]);
    let emission = points.emit(HookPoint::ToolPre, Arc::default()).by(Deadline::after(Duration::from_secs(7)));
    let emitted = emission.run().await;
    assert_eq!((emitted.end, emitted.record), (HookEnd::TimedOut { by: "h1".into() }, record(HookPoint::ToolPre, true)));
}

/// F-8: an emission keeps the handlers that it began with.
#[tokio::test]
async fn registering_during_an_emission_affects_the_next_one() {
    let (log, begun) = (Log::default(), Latch::new());
    let all =
        points(HookPoint::ToolPost, [scripted("h1", Way::Returns, &log, &begun), scripted("h2", Way::Returns, &log, &begun)]);
    let emission = all.emit(HookPoint::ToolPost, Arc::default());
    assert!(all.unregister(HookPoint::ToolPost, "h2") && !all.unregister(HookPoint::ToolPost, "h2"));
    let _accepted = all.register(HookPoint::ToolPost, scripted("h3", Way::Returns, &log, &begun)).unwrap();
    assert_eq!(emission.run().await.end, HookEnd::Passed);
    assert_eq!(log.lines(), ["h1", "h2"]);
    assert_eq!(emit(&all, HookPoint::ToolPost).await.end, HookEnd::Passed);
    assert_eq!(log.lines(), ["h1", "h2", "h1", "h3"]);
    let taken = all.register(HookPoint::ToolPost, scripted("h3", Way::Returns, &log, &begun));
    assert!(matches!(taken, Err(PlanError::DuplicateRegistration { .. })), "{taken:?}");
}

/// P-13: a dormant point is accepted, with a warning, and called by whoever emits it.
#[tokio::test]
async fn a_dormant_point_is_accepted_with_a_warning() {
    let (log, begun) = (Log::default(), Latch::new());
    let points = HookPoints::new();
    let registered = points.register(HookPoint::ArtifactCreated, scripted("h1", Way::Returns, &log, &begun)).unwrap();
    assert_eq!(registered.warning(), Some(DormantPoint { point: HookPoint::ArtifactCreated }));
    assert_eq!(emit(&points, HookPoint::ArtifactCreated).await.end, HookEnd::Passed);
    assert_eq!(log.lines(), ["h1"]);
}

/// P-1, P-2: the gate is asked before the record is admitted, and keeps nothing from being recorded, whatever it answers.
#[tokio::test]
async fn no_gate_keeps_the_record_of_a_hook_point_away() {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let session = runtime.session(session_id("s")).recent(NonZeroUsize::new(8).unwrap()).open().await.unwrap();
    let (log, begun) = (Log::default(), Latch::new());
    let points = points(HookPoint::ToolPre, [scripted("h1", Way::Returns, &log, &begun)]);
    for (at, how) in ["allows", "denies", "fails", "panics"].into_iter().enumerate() {
        let own = log.clone();
        let gate =
            Registration::decide("gate", "gate", CallableRef::from_static("tests::gate@1"), move |_: &HookRecord, _: &Turn| {
                own.note("gate");
                match how {
                    "allows" => Ok(Decision::proceed()),
                    "denies" => Ok(Decision::deny(DenialCode::from_static("test.no"), "not today")),
                    "fails" => Err(std::io::Error::other("no")),
                    _ => panic!("told to"),
                }
            });
        let gate = PlanBuilder::new("gate", &[StageSpec::guard("gate")]).register(gate).build().unwrap();
        let emission = points.emit(HookPoint::ToolPre, Arc::default());
        let (emitted, report) = session.emit_hook_gated(emission, &gate).await;
        assert_eq!((emitted.end, report.is_some()), (HookEnd::Passed, true));
        let kept: Vec<_> = session.recent().unwrap().facts.iter().filter_map(|fact| HookRecord::from_signal(fact)).collect();
        assert_eq!(kept.len(), at + 1, "{how}");
        assert_eq!(Some(kept[at]), record(HookPoint::ToolPre, false));
    }
    assert_eq!(log.lines(), ["h1", "gate"].repeat(4));
    runtime.shutdown(soon()).await.unwrap();
}
