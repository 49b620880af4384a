//! The way of an operation through the runtime: what is on record at each step, how each end is told apart, and that every way ends.

mod audit;
mod cases;
mod permits;
mod succession;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use tipstaff::clock::Timestamp;
use tipstaff::dispatch::Subscriber;
use tipstaff::id::{AttemptId, OperationId};
use tipstaff::interception::{
    Admission, Approver, AskRequest, Basis, Decision, DenialCause, DenialCode, Registration, ResultDecision, Turn,
};
use tipstaff::operation::{
    ActionExecutor, End, FailureClass, Granted, Operation, OperationStatus, Performance, Profile, StatusCell, ToolCall, stage,
};
use tipstaff::signal::Signal;
use tipstaff::state::{MemoryStore, Store};
use tipstaff::{Runtime, Session, action_plan};

use super::rig::{
    Body, Guard, Host, Latch, allows, call, callable, denies, disk, done, facts, facts_of, guard, kinds, payload, plan, rewrites,
    session_id, soon, waits,
};

/// A runtime with these guards, and one session of it with a ring.
async fn up(store: impl Store, guards: impl IntoIterator<Item = Guard>) -> (Runtime, Session) {
    let runtime = Runtime::builder().store(store).actions(plan(guards)).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).recent(NonZeroUsize::new(64).unwrap()).open().await.unwrap();
    (runtime, session)
}

async fn down(runtime: Runtime) {
    runtime.shutdown(soon()).await.unwrap();
}

/// What a subscriber was shown.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Arc<Signal>>>>);

impl Kept {
    fn facts(&self) -> Vec<Arc<Signal>> {
        self.0.lock().unwrap().clone()
    }
}

/// A subscriber that keeps what it is shown.
fn keeps(name: &str) -> (Subscriber<Signal>, Kept) {
    let kept = Kept::default();
    let keeping = Kept::clone(&kept);
    (Subscriber::declared_sync(name, move |fact: &Arc<Signal>| keeping.0.lock().unwrap().push(Arc::clone(fact))), kept)
}

/// P-1: a denial is a fact that watchers are shown, and no guard ever runs over it.
#[tokio::test]
async fn a_denial_is_a_fact_and_nothing_judges_it() {
    let judged = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&judged);
    let no = guard("no", move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Decision::deny(DenialCode::from_static("test.no"), "not today")
    });
    let (runtime, session) = up(MemoryStore::new(), [no]).await;
    let (watcher, kept) = keeps("watcher");
    let _registered = session.observe(watcher).unwrap();

    let answer = session.perform(call("write"), done).await;

    let denial = answer.denial().expect("denied");
    assert_eq!((denial.code.as_str(), denial.cause, &*denial.reason), ("test.no", DenialCause::Policy, "not today"));
    assert_eq!(denial.registration.as_deref(), Some("no"));
    assert!(!answer.may_have_run());
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_denied"]);
    assert_eq!(payload(&recorded[1])["denial"]["code"], "test.no");
    session.end(soon()).await;
    let shown = kept.facts().iter().map(|fact| fact.kind().as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(shown, ["operation_proposed", "operation_denied"]);
    assert_eq!(judged.load(Ordering::SeqCst), 1, "the fact of the denial is not judged");
    down(runtime).await;
}

/// P-3: subscribers, ring and journal share one immutable payload. That they cannot decide or change it is in `tests/ui`.
#[tokio::test]
async fn everybody_sees_the_same_logical_fact() {
    let (runtime, session) = up(MemoryStore::new(), []).await;
    let (one, ones) = keeps("one");
    let (two, twos) = keeps("two");
    let _registered = (session.observe(one).unwrap(), session.observe(two).unwrap());
    let _answer = session.perform(call("write"), done).await;
    let recorded = facts(&runtime, &session).await;
    let ring = session.recent().unwrap().facts;
    session.end(soon()).await;

    let (ones, twos) = (ones.facts(), twos.facts());
    assert_eq!((ones.len(), twos.len(), ring.len(), recorded.len()), (2, 2, 2, 2));
    for at in 0..2 {
        let value = ring[at].payload().value();
        assert!(std::ptr::eq(value, ones[at].payload().value()) && std::ptr::eq(value, twos[at].payload().value()), "shared");
        assert!(Arc::ptr_eq(&ring[at].payload().wire(), &ones[at].payload().wire()), "one wire form");
        assert_eq!(*recorded[at].signal, *ring[at]);
    }
    down(runtime).await;
}

/// P-9: the proposal is submitted before the first interceptor runs, by the proposer; exactly one closing fact follows under the same identities.
#[tokio::test]
async fn a_proposal_is_on_record_before_anybody_is_asked() {
    let own = Arc::new(OnceLock::<Session>::new());
    let seen = Arc::clone(&own);
    let first = Registration::admit("first", stage::CAPACITY, callable("first"), move |_: &ToolCall, _: &Turn| {
        let recent = seen.get().expect("the session is open").recent().expect("it has a ring");
        let kinds: Vec<_> = recent.facts.iter().map(|fact| fact.kind().as_str()).collect();
        assert_eq!(kinds, ["operation_proposed"]);
        Admission::Admit
    });
    let (begun, gate) = (Latch::new(), Latch::new());
    let (runtime, session) = up(MemoryStore::new(), [first, waits("slow", &begun, &gate)]).await;
    own.set(session.clone()).ok().unwrap();
    let operation = Operation::new(call("write"));
    let (id, attempt) = (operation.id().clone(), operation.attempt().clone());

    let half_way = async {
        begun.passed().await;
        let recorded = facts(&runtime, &session).await;
        assert_eq!(kinds(&recorded), ["operation_proposed"], "in the journal, while the chain runs");
        gate.open();
    };
    let (answer, ()) = tokio::join!(session.perform(operation, done), half_way);

    assert_eq!(answer.result(), Some(&json!("done")));
    let recorded = facts_of(&runtime, &session, &id).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_completed"]);
    assert!(recorded.iter().all(|recorded| recorded.signal.attempt() == Some(&attempt)));
    down(runtime).await;
}

/// P-9: a proposal that is found without its closing fact, of an instance that is dead, is closed as ambiguous, once.
#[tokio::test]
async fn recovery_closes_what_a_dead_runtime_left_open() {
    let store = MemoryStore::new();
    let (runtime, session) = up(store.clone(), []).await;
    let operation = Operation::new(call("write"));
    let id = operation.id().clone();
    let proposed = session.propose(operation).await.unwrap();
    let own = session.id().clone();
    down(runtime).await;

    for _ in 0..2 {
        let later = Runtime::builder().store(store.clone()).spawn().await.unwrap();
        let reader = Arc::clone(later.reader().unwrap());
        let recorded = super::rig::read(&*reader, &own, &tipstaff::state::ReadFilter::all());
        assert_eq!(kinds(&recorded), ["operation_proposed", "operation_ambiguous"]);
        assert_eq!(recorded[1].signal.operation(), Some(&id));
        assert_eq!(payload(&recorded[1])["cause"], "instance_dead");
        down(later).await;
    }
    drop(proposed);
}

/// I-9: no capacity is an answer of its own, decided before anybody else is asked.
#[tokio::test]
async fn no_capacity_defers_and_denies_nothing() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let full = Registration::admit("quota", stage::CAPACITY, callable("quota"), |_: &ToolCall, _: &Turn| Admission::Defer {
        retry_at: Timestamp::from_micros(77),
        reason: "the quota of the hour is spent".to_owned(),
    });
    let later = guard("later", move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Decision::proceed()
    });
    let (runtime, session) = up(MemoryStore::new(), [full, later]).await;

    let answer = session.perform(call("write"), done).await;

    assert!(matches!(&answer.end, End::Deferred { retry_at, .. } if retry_at.as_micros() == 77));
    assert_eq!((answer.outcome.status, answer.outcome.basis), (OperationStatus::Deferred, None));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_deferred"]);
    assert_eq!(
        payload(&recorded[1])["deferral"],
        json!({"retry_at": 77, "reason": "the quota of the hour is spent", "registration": "quota"})
    );
    down(runtime).await;
}

fn asks(name: &str) -> Guard {
    guard(name, |_| Decision::ask(AskRequest::new(DenialCode::from_static("test.ask"), "may it?")))
}

/// I-10: an ask never means allow. Nobody to ask: denied with the asker's own code.
#[tokio::test]
async fn an_ask_without_an_approver_denies() {
    let (runtime, session) = up(MemoryStore::new(), [asks("asker"), allows("other")]).await;
    let performed = AtomicUsize::new(0);
    let answer = session
        .perform(call("write"), |_| async {
            performed.fetch_add(1, Ordering::SeqCst);
            Body::Ok(json!(0))
        })
        .await;
    let denial = answer.denial().expect("denied");
    assert_eq!((denial.code.as_str(), denial.cause, &*denial.reason), ("test.ask", DenialCause::NoApprover, "may it?"));
    assert_eq!(performed.load(Ordering::SeqCst), 0);
    down(runtime).await;
}

/// I-10: with an approver the attempt ends as escalated; the approved one is another attempt.
#[tokio::test]
async fn an_ask_with_an_approver_ends_the_attempt() {
    let plan = action_plan("test").register(asks("asker")).approver(Approver::EndsAttempt("lead".into())).build().unwrap();
    let runtime = Runtime::builder().store(MemoryStore::new()).actions(plan).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();

    let answer = session.perform(call("write"), done).await;

    let End::Escalated(escalated) = &answer.end else { panic!("escalated, not {answer:?}") };
    assert_eq!((&*escalated.approver, escalated.asks.len(), escalated.context.tool()), ("lead", 1, "write"));
    assert!(!answer.may_have_run());
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_escalated"]);
    let asks = json!([{"registration": "asker", "code": "test.ask", "reason": "may it?"}]);
    assert_eq!(payload(&recorded[1])["escalation"], json!({"approver": "lead", "asks": asks}));
    down(runtime).await;
}

/// I-12: a retry is another attempt of the same operation; each is performed once and closed on its own.
#[tokio::test]
async fn a_retry_is_another_attempt() {
    let (runtime, session) = up(MemoryStore::new(), []).await;
    let (id, performed) = (OperationId::generate(), AtomicUsize::new(0));
    for attempt in ["first", "second"] {
        let operation = Operation::new(call("write")).identified(id.clone(), AttemptId::new(attempt).unwrap());
        let body = |granted: Granted<ActionExecutor>| {
            performed.fetch_add(1, Ordering::SeqCst);
            async move {
                assert_eq!(granted.attempt().as_str(), attempt, "the key for what the body does outside");
                Err::<serde_json::Value, _>(std::io::Error::other("no luck"))
            }
        };
        let answer = session.perform(operation, body).await;
        assert!(matches!(&answer.end, End::Failed(failure) if failure.message() == "no luck"));
    }
    assert_eq!(performed.load(Ordering::SeqCst), 2);
    let _settled = facts(&runtime, &session).await;
    let rows = runtime.reader().unwrap().attempts(&id, None, std::num::NonZeroU32::new(9).unwrap()).unwrap();
    assert_eq!(rows.iter().map(|row| row.attempt.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    assert!(rows.iter().all(|row| row.closed.is_some()));
    down(runtime).await;
}

/// I-16: a result stage may keep the result back from the caller; that the operation was performed stays on record.
#[tokio::test]
async fn a_withheld_result_was_performed_all_the_same() {
    let keeper = Registration::on_result("keeper", stage::POST, callable("keeper"), |_: &ToolCall, _: &_, _: &Turn| {
        ResultDecision::withhold("it holds a secret")
    });
    let (runtime, session) = up(MemoryStore::new(), [keeper]).await;
    let answer = session.perform(call("read"), done).await;
    assert!(
        matches!(&answer.end, End::Withheld(withheld) if &*withheld.reason == "it holds a secret" && &*withheld.registration == "keeper")
    );
    assert!(answer.result().is_none() && answer.may_have_run());
    assert_eq!(answer.outcome.status, OperationStatus::Completed);
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_completed"]);
    assert_eq!(payload(&recorded[1])["result"]["withheld"], "it holds a secret");
    down(runtime).await;
}

/// I-22: a plan that only evaluates permits everything, and says on the permit, in the answer and on record that this is no evidence of a permission.
#[tokio::test]
async fn a_permission_says_on_what_it_rests() {
    for (evaluates, basis, word) in [(false, Basis::Enforced, "enforced"), (true, Basis::NotEnforced, "not_enforced")] {
        let builder = action_plan("test").register(if evaluates { denies("no") } else { allows("yes") });
        let plan = if evaluates { builder.evaluate_only() } else { builder }.build().unwrap();
        let runtime = Runtime::builder().store(MemoryStore::new()).actions(plan).spawn().await.unwrap();
        let session = runtime.session(session_id("s")).open().await.unwrap();
        let body = |granted: Granted<ActionExecutor>| async move { Body::Ok(json!(granted.basis() == basis)) };
        let answer = session.perform(call("write"), body).await;
        assert_eq!(answer.result(), Some(&json!(true)), "on the permit");
        assert_eq!(answer.outcome.basis, Some(basis), "in the answer");
        let recorded = facts(&runtime, &session).await;
        assert_eq!(payload(&recorded[1])["basis"], word, "on record");
        if evaluates {
            assert_eq!(payload(&recorded[1])["report"]["steps"][0]["answer"], "denied", "what it would have been");
        }
        down(runtime).await;
    }
}

/// One way to an end: what is done with a proposed call, and the status that its cell must come to.
type Way = (&'static str, OperationStatus);

/// I-19: every way ends, and everybody who waits for the end learns it: also by a panic, a restart of the owner and a drop at any step.
#[tokio::test]
async fn every_way_ends_and_wakes_who_waits() {
    const WAYS: [Way; 10] = [
        ("returns", OperationStatus::Completed),
        ("fails", OperationStatus::Failed),
        ("panics", OperationStatus::Failed),
        ("times_out", OperationStatus::TimedOut),
        ("unknown", OperationStatus::Ambiguous),
        ("denied", OperationStatus::Denied),
        ("owner_killed", OperationStatus::Denied),
        ("dropped_proposed", OperationStatus::Cancelled),
        ("dropped_permit", OperationStatus::Abandoned),
        ("dropped_performing", OperationStatus::Ambiguous),
    ];
    for (way, expected) in WAYS {
        let (begun, never) = (Latch::new(), Latch::new());
        let guards = match way {
            "denied" => vec![denies("no")],
            "owner_killed" => vec![waits("slow", &begun, &never)],
            _ => vec![],
        };
        let host = Host::spawn(Runtime::builder().store(MemoryStore::new()).actions(plan(guards))).await;
        let session = host.runtime.session(session_id(way)).open().await.unwrap();
        let operation = Operation::new(call("write")).performed_within(if way == "times_out" {
            Duration::from_millis(5)
        } else {
            Duration::from_secs(60)
        });
        let proposed = session.propose(operation).await.unwrap();
        let cell: StatusCell = proposed.status();
        let waiter = tokio::time::timeout_at(soon().instant(), cell.ended());
        let (ended, ()) = tokio::join!(waiter, walk(way, &host, &session, proposed, &begun));
        assert_eq!((ended.expect("the waiter is woken"), cell.get()), (expected, expected), "{way}");
        let recorded = facts(&host.runtime, &session).await;
        let closing = expected.closing_kind().unwrap();
        assert_eq!(kinds(&recorded), ["operation_proposed", closing.as_str()], "{way}");
        assert_eq!(payload(&recorded[1])["status"], expected.as_str(), "{way}");
        assert!(host.runtime.open_permits().is_empty(), "{way}: no permit stays open");
        host.shutdown().await;
    }
}

async fn walk(way: &str, host: &Host, session: &Session, proposed: tipstaff::ProposedCall, begun: &Latch) {
    if way == "dropped_proposed" {
        return drop(proposed);
    }
    if way == "owner_killed" {
        let killed = async {
            begun.passed().await;
            host.executor().unwrap().kill();
        };
        let (answer, ()) = tokio::join!(session.authorize(proposed), killed);
        assert_eq!(answer.err().unwrap().denial().unwrap().cause, DenialCause::AuthorizationRestarted);
        return;
    }
    let Ok(permit) = session.authorize(proposed).await else { return assert_eq!(way, "denied") };
    if way == "dropped_permit" {
        return drop(permit);
    }
    let started = Latch::new();
    let running = started.clone();
    let body = |_: Granted<ActionExecutor>| async move {
        running.open();
        match way {
            "returns" => Performance::Returned(json!(1)),
            "fails" => Performance::Failed(tipstaff::operation::Failure::new("no luck")),
            "panics" => panic!("the body panics"),
            "unknown" => Performance::Unknown { reason: "the line broke".to_owned() },
            _ => std::future::pending().await,
        }
    };
    let whole = async { permit.perform(body).await.review().await.record().await };
    if way == "dropped_performing" {
        tokio::select! {
            biased;
            _ = whole => panic!("the body never returns"),
            () = started.passed() => {}
        }
    } else {
        let answer = whole.await;
        if way == "panics" {
            assert!(
                matches!(&answer.end, End::Failed(failure) if failure.class() == FailureClass::Panic && failure.message() == "the body panics")
            );
        }
    }
}
