//! Service calls: invoked and streamed.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use tipstaff::cancel::Cancellation;
use tipstaff::interception::DenialCode;
use tipstaff::operation::service::{ServiceCall, ServiceReply, ServiceRequest, stage};
use tipstaff::operation::{
    ChunkSource, End, Ending, Failure, FailureClass, Granted, Operation, OperationStatus, Profile, RecordState, StreamState,
    TeardownEnd,
};

use super::super::rig::{facts, kinds, payload};
use super::*;

/// Chunks that are noted as they are made. A `null` panics, a text fails with it, and at the end it waits or comes to it.
pub(super) struct Noted {
    log: Log,
    chunks: VecDeque<Value>,
    waits: bool,
}

impl Noted {
    pub(super) fn new(log: &Log, chunks: impl Into<VecDeque<Value>>, waits: bool) -> Self {
        Self { log: log.clone(), chunks: chunks.into(), waits }
    }
}

impl ChunkSource for Noted {
    async fn next_chunk(&mut self) -> Option<Result<Value, Failure>> {
        match self.chunks.pop_front() {
            Some(Value::Null) => panic!("told to"),
            Some(Value::String(error)) => Some(Err(Failure::new(error))),
            Some(chunk) => {
                self.log.note(format!("make {chunk}"));
                Some(Ok(chunk))
            }
            None if self.waits => pending().await,
            None => None,
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.log.note("source dropped");
    }
}

/// A teardown that is noted.
pub(super) fn noted(log: &Log) -> impl FnOnce(Ending, Cancellation) -> std::future::Ready<Result<(), Failure>> + Send + 'static {
    let log = log.clone();
    move |ending, _stop| {
        log.note(format!("teardown after {ending:?}"));
        std::future::ready(Ok(()))
    }
}

const BEFORE: [&str; 4] = [stage::PRE_CREATE_GUARD, stage::PRE_CREATE, stage::PRE_INVOKE_GUARD, stage::PRE_INVOKE];

/// I-18, 2-interception: every stage of a service call is called by its form, in the declared order, and the teardown comes last.
#[tokio::test]
async fn a_service_call_goes_through_its_stages_in_order() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let services = runtime.start_owner(passing::<ServiceCall>(&log)).await.unwrap();
    for (fails, after) in [(false, [stage::POST, "teardown after Returned"]), (true, [stage::ERROR, "teardown after Failed"])] {
        let invoke = async |granted: Granted<ServiceCall>| {
            log.note("invoke");
            if fails { Err(Failure::new("503")) } else { Ok(granted.context().request().clone()) }
        };
        let answer = services.invoke(&session, request(), invoke, noted(&log)).await;
        assert_eq!(answer.outcome.teardown, Some(TeardownEnd::Finished));
        assert_eq!(answer.result().and_then(ServiceReply::whole).is_some(), !fails);
        let skipped = log.take();
        assert_eq!(skipped, BEFORE.into_iter().chain(["invoke"]).chain(after).collect::<Vec<_>>());
    }
    let source = Noted::new(&log, [json!(1)], false);
    let open = async |_| Ok::<_, Failure>(source);
    let mut stream = services.stream(&session, request().streaming(), open, noted(&log)).await.unwrap();
    while stream.next().await.is_some() {}
    let answer = stream.close().await;
    assert_eq!(answer.result(), Some(&ServiceReply::Streamed { state: StreamState::Completed, chunks: 1 }));
    let after = ["make 1", "source dropped", stage::POST, "teardown after Returned"];
    assert_eq!(log.lines(), BEFORE.into_iter().chain(after).collect::<Vec<_>>());
    let recorded = facts(&runtime, &session).await;
    let closed: Vec<_> = kinds(&recorded).into_iter().filter(|kind| *kind != "operation_proposed").collect();
    assert_eq!(closed, ["operation_completed", "operation_failed", "operation_completed"]);
    assert_eq!(payload(&recorded[5])["teardown"], "finished");
    down(runtime).await;
}

/// I-5: what the last transform made is what is sent, within the time that it allows; the guards have judged it again.
#[tokio::test(start_paused = true)]
async fn the_judged_request_is_sent_within_its_own_timeout() {
    let log = Log::default();
    let (runtime, session) = up_in_memory().await;
    let hastens =
        Registration::decide("hastens", stage::PRE_INVOKE, callable("hastens"), |request: &ServiceRequest, _: &Turn| {
            Decision::replace(request.with_endpoint("nearby").timeout_after(Duration::from_secs(3)))
        });
    let guard = passes::<ServiceCall>(&StageSpec::guard(stage::PRE_INVOKE_GUARD), &log);
    let plan = owner_plan::<ServiceCall>("test").register(guard).register(hastens).build().unwrap();
    let services = runtime.start_owner(plan).await.unwrap();
    let begun = tokio::time::Instant::now();
    let invoke = async |granted: Granted<ServiceCall>| {
        log.note(granted.context().endpoint());
        pending::<Result<Value, Failure>>().await
    };
    let slow = Operation::new(request().timeout_after(Duration::from_secs(60))).performed_within(Duration::from_secs(30));
    let answer = services.invoke(&session, slow, invoke, noted(&log)).await;
    assert!(matches!(answer.end, End::TimedOut), "{answer:?}");
    assert_eq!(begun.elapsed(), Duration::from_secs(3), "virtual time");
    assert_eq!(log.lines(), [stage::PRE_INVOKE_GUARD, "pre_invoke_guard again", "nearby", "teardown after TimedOut"]);
    down(runtime).await;
}

/// I-11: under the governed profile the evidence stands before the call, and the closing fact is confirmed after the teardown.
#[tokio::test]
async fn a_governed_call_is_confirmed_after_its_teardown() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let services = runtime.start_owner(owner_plan::<ServiceCall>("test").build().unwrap()).await.unwrap();
    let operation = Operation::new(request()).profile(Profile::Governed);
    let answer = services.invoke(&session, operation, async |_| Ok::<_, Failure>(json!(1)), noted(&log)).await;
    assert!(matches!(answer.outcome.recorded, RecordState::Confirmed(_)), "{answer:?}");
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "tipstaff.pre_call_evidence", "operation_completed"]);
    assert_eq!(payload(&recorded[2])["teardown"], "finished");
    down(runtime).await;
}

/// I-4: what is denied was never begun, so there is nothing to tear down.
#[tokio::test]
async fn a_denied_call_is_not_torn_down() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let no = Registration::decide("no", stage::PRE_INVOKE_GUARD, callable("no"), |_: &ServiceRequest, _: &Turn| {
        Decision::<ServiceRequest>::deny(DenialCode::from_static("test.no"), "not today")
    });
    let services = runtime.start_owner(owner_plan::<ServiceCall>("test").register(no).build().unwrap()).await.unwrap();
    let open = async |_| Ok::<_, Failure>(Noted::new(&log, [], false));
    let answer = services.stream(&session, request(), open, noted(&log)).await.unwrap_err();
    assert_eq!(answer.denial().map(|denial| denial.code.as_str()), Some("test.no"));
    assert_eq!((answer.outcome.teardown, log.lines()), (None, Vec::<String>::new()));
    down(runtime).await;
}

/// A name, the chunks, whether the source waits behind them, how many are taken, and what comes of it.
type Row<'r> = (&'r str, &'r [Value], bool, usize, StreamState, OperationStatus, Ending);

/// The table at the top of `operation::stream`, row by row: each end of a stream, its state, the attempt's status, and what the teardown is told.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_in_each_of_its_ways() {
    let whole: &[Value] = &[json!(1), json!(2)];
    let rows: [Row<'_>; 7] = [
        ("completed", whole, false, 9, StreamState::Completed, OperationStatus::Completed, Ending::Returned),
        ("fails", &[json!(1), json!("broken pipe")], false, 9, StreamState::Failed, OperationStatus::Failed, Ending::Failed),
        ("panics", &[json!(1), Value::Null], false, 9, StreamState::Failed, OperationStatus::Failed, Ending::Failed),
        ("times out", whole, true, 9, StreamState::TimedOut, OperationStatus::TimedOut, Ending::TimedOut),
        ("closed", whole, true, 1, StreamState::Closed, OperationStatus::Completed, Ending::Closed),
        ("closed unread", whole, true, 0, StreamState::Closed, OperationStatus::Completed, Ending::Closed),
        ("cancelled", whole, true, 2, StreamState::Cancelled, OperationStatus::Ambiguous, Ending::CallerGone),
    ];
    let (runtime, session) = up_in_memory().await;
    let services = runtime.start_owner(owner_plan::<ServiceCall>("test").build().unwrap()).await.unwrap();
    for (name, chunks, waits, take, state, status, ending) in rows {
        let log = Log::default();
        let source = Noted::new(&log, chunks.to_vec(), waits);
        let open = async |_| Ok::<_, Failure>(source);
        let operation = Operation::new(request()).performed_within(Duration::from_secs(10));
        let mut stream = services.stream(&session, operation, open, noted(&log)).await.unwrap();
        assert_eq!(log.lines(), Vec::<String>::new(), "{name}: nothing is made before it is wanted");
        let mut taken = 0_usize;
        while taken < take && stream.next().await.is_some() {
            taken += 1;
            assert_eq!(log.lines().len(), taken, "{name}: no chunk is made ahead of its consumer");
        }
        if name == "cancelled" {
            stream.cancel();
            assert_eq!(stream.next().await, None);
        }
        let told = stream.status();
        let answer = stream.close().await;
        assert_eq!((answer.outcome.status, told.get()), (status, status), "{name}");
        let tail = log.lines().split_off(taken);
        assert_eq!(tail, ["source dropped".to_owned(), format!("teardown after {ending:?}")], "{name}");
        let reply = ServiceReply::Streamed { state, chunks: taken as u64 };
        match status {
            OperationStatus::Completed => assert_eq!(answer.result(), Some(&reply), "{name}"),
            _ => assert!(answer.result().is_none() && answer.may_have_run(), "{name}"),
        }
        if name == "panics" {
            assert!(matches!(&answer.end, End::Failed(failure) if failure.class() == FailureClass::Panic));
        }
    }
    down(runtime).await;
}

/// A stream that cannot be opened has failed: at its first pull there is nothing, and its end says why.
#[tokio::test]
async fn a_stream_that_does_not_open_has_failed() {
    let log = Log::default();
    let (runtime, session) = up(memory()).await;
    let services = runtime.start_owner(owner_plan::<ServiceCall>("test").build().unwrap()).await.unwrap();
    let open = async |_| Err::<Noted, _>(std::io::Error::other("no route"));
    let mut stream = services.stream(&session, request(), open, noted(&log)).await.unwrap();
    assert_eq!((stream.state(), stream.next().await), (StreamState::Failed, None));
    let answer = stream.close().await;
    assert!(matches!(&answer.end, End::Failed(failure) if failure.message() == "no route"));
    assert_eq!(log.lines(), ["teardown after Failed"]);
    down(runtime).await;
}
