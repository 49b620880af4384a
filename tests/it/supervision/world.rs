//! What the tests of the tree share: a plan that denies one tool, a way to run many proposals, and the record read back from the journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::declare::CallableRef;
use tipstaff::id::{OperationId, SessionId};
use tipstaff::interception::{Decision, DenialCause, DenialCode, Registration};
use tipstaff::observation::LossCounts;
use tipstaff::operation::{ActionExecutor, End, OwnerPlan, ToolCall, stage};
use tipstaff::signal::{LifecycleKind, SignalKind, SignalSeq};
use tipstaff::state::{JournalReader, PageLimit, ReadFilter, Recorded};
use tipstaff::supervision::{ReportKind, ReportStream, SupervisionReport};
use tipstaff::{CallAnswer, Session, action_plan};

/// The bound of every wait. No test comes near it unless it fails.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn soon() -> Deadline {
    Deadline::after(LONG)
}

/// A plan that denies `rm`, and never answers about `hang`.
pub(super) fn plan() -> OwnerPlan<ActionExecutor> {
    let hangs = |call: Arc<ToolCall>, _turn| async move {
        if call.tool() == "hang" {
            std::future::pending::<()>().await;
        }
        Decision::proceed()
    };
    action_plan("no removals")
        .register(Registration::decide(
            "no_rm",
            stage::ACTION_POLICY,
            CallableRef::new("test::no_rm@1").unwrap(),
            |call: &ToolCall, _| {
                if call.tool() == "rm" {
                    Decision::deny(DenialCode::from_static("test.no_rm"), "rm is not allowed")
                } else {
                    Decision::proceed()
                }
            },
        ))
        .register(Registration::decide_async(
            "may_hang",
            stage::ACTION_POLICY,
            CallableRef::new("test::may_hang@1").unwrap(),
            hangs,
        ))
        .build()
        .unwrap()
}

pub(super) fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// Each fifth call is one that the plan denies.
pub(super) fn tool(n: usize) -> &'static str {
    if n % 5 == 4 { "rm" } else { "ls" }
}

/// How many bodies ran, and how many of them the plan had not allowed.
#[derive(Clone, Default)]
pub(super) struct Bodies {
    ran: Arc<AtomicU64>,
    forbidden: Arc<AtomicU64>,
}

impl Bodies {
    pub(super) fn ran(&self) -> u64 {
        assert_eq!(self.forbidden.load(Ordering::SeqCst), 0, "a body ran that the plan had not allowed");
        self.ran.load(Ordering::SeqCst)
    }

    /// One call through the planes.
    pub(super) async fn call(&self, session: &Session, tool: &str) -> CallAnswer {
        let bodies = self.clone();
        let body = move |granted: tipstaff::operation::Granted<ActionExecutor>| async move {
            bodies.ran.fetch_add(1, Ordering::SeqCst);
            if granted.context().tool() == "rm" {
                bodies.forbidden.fetch_add(1, Ordering::SeqCst);
            }
            Ok::<_, std::io::Error>(json!("done"))
        };
        session.perform(ToolCall::new(tool, json!({ "path": "." })), body).await
    }

    /// `calls` calls, `at_once` at a time, in turns over the sessions. `before` is told each call's number when it begins.
    pub(super) async fn many(
        &self,
        sessions: &[Session],
        calls: usize,
        at_once: usize,
        before: impl Fn(usize),
    ) -> Vec<CallAnswer> {
        let one = |n: usize| {
            let before = &before;
            async move {
                before(n);
                self.call(&sessions[n % sessions.len()], tool(n)).await
            }
        };
        bounded(futures::stream::iter((0..calls).map(one)).buffer_unordered(at_once).collect()).await
    }
}

/// Awaits within the bound.
pub(super) async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("it does not end")
}

/// Lets others run until it is so.
pub(super) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        tokio::task::yield_now().await;
    }
}

/// Reads reports until one is as wanted.
pub(super) async fn report(stream: &mut ReportStream, wanted: impl Fn(&SupervisionReport) -> bool) -> SupervisionReport {
    bounded(async {
        loop {
            let report = stream.next().await.expect("the tree reports while it lives");
            if wanted(&report) {
                return report;
            }
        }
    })
    .await
}

/// Reads reports until a child of that name is degraded.
pub(super) async fn degraded(stream: &mut ReportStream, child: &str) {
    report(stream, |report| &*report.child == child && matches!(report.what, ReportKind::Degraded { .. })).await;
}

/// Every fact of a session, by its journal.
pub(super) fn facts(reader: &Arc<dyn JournalReader>, session: &SessionId) -> Vec<Recorded> {
    let (mut facts, mut after) = (Vec::new(), SignalSeq::START);
    loop {
        let page = reader.read(session, after, &ReadFilter::all(), PageLimit::default()).unwrap();
        after = page.next;
        facts.extend(page.facts);
        if !page.more {
            let positions: Vec<u64> = facts.iter().map(|fact| fact.seq.0).collect();
            assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1), "L-21: positions without gaps");
            return facts;
        }
    }
}

/// What the journal says of one operation.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct OnRecord {
    pub(super) proposed: usize,
    /// Each closing fact: its kind, and the cause of a denial.
    pub(super) closed: Vec<(SignalKind, Option<Value>)>,
}

/// What the journal says of every operation of a session.
pub(super) fn operations(reader: &Arc<dyn JournalReader>, session: &SessionId) -> BTreeMap<OperationId, OnRecord> {
    let mut operations = BTreeMap::<OperationId, OnRecord>::new();
    for fact in facts(reader, session) {
        let Some(operation) = fact.signal.operation() else { continue };
        let on_record = operations.entry(operation.clone()).or_default();
        if *fact.signal.kind() == SignalKind::from(LifecycleKind::OperationProposed) {
            on_record.proposed += 1;
        } else {
            let cause = fact.signal.payload().value().get("denial").map(|denial| denial["cause"].clone());
            on_record.closed.push((fact.signal.kind().clone(), cause));
        }
    }
    operations
}

/// P-9: every answer is on record as it was given: proposed once, closed once, by the same end, and a denial by the same cause.
pub(super) fn assert_on_record(reader: &Arc<dyn JournalReader>, sessions: &[Session], answers: &[CallAnswer]) {
    let mut operations: BTreeMap<OperationId, OnRecord> = sessions.iter().flat_map(|one| operations(reader, one.id())).collect();
    for answer in answers {
        let on_record = operations.remove(&answer.outcome.operation).expect("an answered proposal is on record");
        let cause = answer.denial().map(|denial| serde_json::to_value(denial.cause).unwrap());
        let kind = answer.outcome.status.closing_kind().expect("an answer is an end");
        assert_eq!(on_record, OnRecord { proposed: 1, closed: vec![(kind.into(), cause)] });
    }
    assert!(operations.is_empty(), "nobody asked for {operations:?}");
}

/// How many ended in each way: completed, or denied by a cause.
pub(super) fn ends(answers: &[CallAnswer]) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for answer in answers {
        let end = match &answer.end {
            End::Completed(_) => "completed".to_owned(),
            End::Denied(denial) => format!("{:?}", denial.cause),
            _ => format!("{answer:?}"),
        };
        *ends.entry(end).or_default() += 1;
    }
    ends
}

pub(super) fn of(ends: &BTreeMap<String, usize>, cause: DenialCause) -> usize {
    ends.get(&format!("{cause:?}")).copied().unwrap_or(0)
}

/// Waits until what was submitted is committed or counted, over restarts of the writer.
pub(super) async fn settle(session: &Session) {
    let begun = Instant::now();
    while session.settled(soon()).await.is_err() {
        assert!(begun.elapsed() < LONG, "the journal never settles");
        tokio::task::yield_now().await;
    }
}

pub(super) fn lost(losses: LossCounts) -> u64 {
    assert_eq!(losses.all().unknown, 0, "every loss is known by number");
    losses.all().facts
}
