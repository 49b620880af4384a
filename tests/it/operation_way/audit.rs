//! What is on record, under which promise, and what happens when the journal cannot take it: P-10, P-11, P-12, P-15, I-11, I-17.

use std::os::unix::fs::PermissionsExt;

use tipstaff::dispatch::JournalState;
use tipstaff::id::{InvocationId, SignalId};
use tipstaff::observation::LossReason;
use tipstaff::operation::{AuditMode, AuditUnavailable, RecordState, Unrecorded};
use tipstaff::signal::{EmitterRole, Payload, PayloadType, Redactions, SignalKind, SignalSeq, Subject};
use tipstaff::state::{GapReason, RecordedGap};
use tipstaff::testing::{FaultAction, FaultPoint, Faults};
use tipstaff::{EmitError, RuntimeError};

use super::super::rig::note;
use super::*;

fn memory() -> (MemoryStore, Faults) {
    let faults = Faults::new();
    (MemoryStore::with_faults(Arc::new(tipstaff::clock::SystemClock), faults.clone()), faults)
}

/// A guard that counts how often it is asked.
fn counts() -> (Guard, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let guard = guard("counts", move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Decision::proceed()
    });
    (guard, asked)
}

fn gaps(runtime: &Runtime, session: &Session) -> Vec<RecordedGap> {
    let many = std::num::NonZeroU32::new(100).unwrap();
    runtime.reader().unwrap().gaps(session.id(), SignalSeq::START, many).unwrap()
}

/// P-10: a session that requires its audit does not open where there is no store; by default there is an audit exactly where there is a store.
#[tokio::test]
async fn a_required_audit_needs_a_store() {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let refused = runtime.session(session_id("s")).audit(AuditMode::Required).open().await;
    assert!(matches!(refused, Err(RuntimeError::NoStore { .. })));
    let session = runtime.session(session_id("s")).open().await.unwrap();
    assert_eq!(session.audit_mode(), AuditMode::Off);
    let answer = session.perform(call("write"), done).await;
    assert_eq!((answer.result(), &answer.outcome.recorded), (Some(&json!("done")), &RecordState::Off));
    down(runtime).await;

    let (runtime, session) = up(MemoryStore::new(), []).await;
    assert_eq!(session.audit_mode(), AuditMode::Required);
    let off = runtime.session(session_id("off")).audit(AuditMode::Off).open().await.unwrap();
    assert!(off.perform(call("write"), done).await.result().is_some());
    session.settled(soon()).await.unwrap();
    let nothing = super::super::rig::read(&**runtime.reader().unwrap(), off.id(), &tipstaff::state::ReadFilter::all());
    assert!(nothing.is_empty() && off.losses().is_none(), "off is off: nothing recorded, nothing lost");
    down(runtime).await;
}

/// P-10, required: while the store refuses, a proposal is denied before anybody is asked; facts that have happened become a counted gap, which is
/// written when the store comes back, and proposals pass again.
#[tokio::test]
async fn a_required_journal_that_refuses_denies_before_anybody_is_asked() {
    let (store, faults) = memory();
    let (counting, asked) = counts();
    let (runtime, session) = up(store, [counting]).await;
    faults.always(FaultPoint::Append, FaultAction::Fail);
    for number in 0..3 {
        let lost = session.emit_confirmed(note(&session, number), soon()).await;
        assert!(matches!(lost, Err(EmitError::Unrecorded(Unrecorded::Refused { .. }))));
    }

    let answer = session.perform(call("write"), done).await;

    assert_eq!(answer.denial().expect("denied").cause, DenialCause::AuditUnavailable);
    assert!(matches!(answer.outcome.recorded, RecordState::Unavailable(AuditUnavailable::Refusing { .. })));
    assert_eq!(asked.load(Ordering::SeqCst), 0, "before any interceptor runs");
    assert_eq!(session.losses().of(LossReason::StoreAbsent).facts, 3);
    faults.clear(FaultPoint::Append);
    let (seq, _) = session.emit_confirmed(note(&session, 3), soon()).await.unwrap();
    assert_eq!(seq, SignalSeq(1));
    session.settled(soon()).await.unwrap();
    let [gap] = &gaps(&runtime, &session)[..] else { panic!("one gap") };
    assert_eq!((gap.gap.reason, gap.gap.known_lost.map(|lost| lost.get())), (GapReason::StoreUnavailable, Some(3)));
    assert!(gap.gap.first_at <= gap.gap.last_at);
    assert!(session.perform(call("write"), done).await.result().is_some());
    assert_eq!(session.losses().all().facts, 3, "the counter never goes down");
    down(runtime).await;
}

/// P-10, required: without room for its two facts a proposal is denied within its budget; a fact that nobody can wait for becomes a counted gap.
#[tokio::test]
async fn a_full_journal_takes_no_proposal_and_counts_what_it_loses() {
    let (store, faults) = memory();
    let (counting, asked) = counts();
    let two = NonZeroUsize::new(2).unwrap();
    let runtime = Runtime::builder().store(store).actions(plan([counting])).journal_capacity(two).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    faults.always(FaultPoint::AppendBeforeCommit, FaultAction::Hold);
    session.submit(note(&session, 0)).unwrap();
    while faults.reached(FaultPoint::AppendBeforeCommit) == 0 {
        tokio::task::yield_now().await;
    }
    session.submit(note(&session, 1)).unwrap();

    let answer = session.perform(Operation::new(call("write")).ruled_within(Duration::from_millis(20)), done).await;

    assert!(matches!(answer.outcome.recorded, RecordState::Unavailable(AuditUnavailable::Full)), "one place is not two");
    assert_eq!((answer.denial().unwrap().cause, asked.load(Ordering::SeqCst)), (DenialCause::AuditUnavailable, 0));
    session.submit(note(&session, 2)).unwrap();
    session.submit(note(&session, 3)).unwrap();
    assert_eq!(session.losses().of(LossReason::NoRoom).facts, 1);
    faults.clear(FaultPoint::AppendBeforeCommit);
    session.settled(soon()).await.unwrap();
    let recorded = facts(&runtime, &session).await;
    let numbers: Vec<_> = recorded.iter().filter_map(|recorded| payload(recorded)["number"].as_u64()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(gaps(&runtime, &session)[0].gap.reason, GapReason::QueueFull);
    down(runtime).await;
}

/// P-10, best effort: nothing is denied for the journal's sake; what it cannot take is counted and becomes a gap.
#[tokio::test]
async fn a_best_effort_audit_denies_nothing_and_counts_everything() {
    let (store, faults) = memory();
    let runtime = Runtime::builder().store(store).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).audit(AuditMode::BestEffort).open().await.unwrap();
    faults.always(FaultPoint::Append, FaultAction::Fail);
    for _ in 0..4 {
        assert!(session.perform(call("write"), done).await.result().is_some());
    }
    let _settled = session.settled(soon()).await;
    assert_eq!(session.losses().all().facts, 8, "two facts each");
    faults.clear(FaultPoint::Append);
    session.emit_confirmed(note(&session, 0), soon()).await.unwrap();
    session.settled(soon()).await.unwrap();
    let lost: u64 = gaps(&runtime, &session).iter().map(|gap| gap.gap.known_lost.expect("known").get()).sum();
    assert_eq!(lost, 8, "lost = counted = written");
    let recorded = facts(&runtime, &session).await;
    assert_eq!(
        kinds(&recorded).iter().filter(|kind| kind.starts_with("operation_")).count(),
        0,
        "no end is owed where no proposal is on record"
    );
    down(runtime).await;
}

/// P-11, P-12: every member of the envelope is read back as it was given, an unknown kind by its name, and a large payload whole.
#[tokio::test]
async fn every_member_of_a_fact_is_read_back() {
    let disk = disk();
    let (runtime, session) = up(disk.store.clone(), []).await;
    let (watcher, kept) = keeps("watcher");
    let _registered = session.observe(watcher).unwrap();
    let large = json!({"text": "ä".repeat(200 * 1024)});
    let fact = session
        .signal(SignalKind::from_stored("A Kind Of Next Year"))
        .id(SignalId::new("signal-1").unwrap())
        .invocation(InvocationId::new("invocation-1").unwrap())
        .attempt(AttemptId::new("attempt-1").unwrap())
        .operation(OperationId::new("operation-1").unwrap())
        .role(EmitterRole::new("tester").unwrap())
        .subject(Subject::new("file", "/etc/hosts").unwrap())
        .payload(Payload::from_value(PayloadType::new("test.large", 7).unwrap(), large.clone()))
        .build();

    let (seq, report) = session.emit_confirmed(fact.clone(), soon()).await.unwrap();

    assert_eq!(report.journal(), JournalState::Confirmed(seq.0));
    let recorded = &facts(&runtime, &session).await[0];
    assert_eq!((recorded.seq, &*recorded.signal), (seq, &fact));
    assert_eq!(recorded.signal.payload().shape().version(), 7);
    assert_eq!(payload(recorded), &large, "nothing is cut");
    assert_eq!(kept.facts()[0].kind().as_str(), "A Kind Of Next Year", "passed on");
    assert_eq!(runtime.reader().unwrap().signal(fact.id()).unwrap().unwrap().seq, seq);

    let invocation = InvocationId::new("invocation-2").unwrap();
    let operation = Operation::new(call("write")).within(invocation.clone());
    let (id, attempt) = (operation.id().clone(), operation.attempt().clone());
    let _answer = session.perform(operation, done).await;
    for recorded in facts_of(&runtime, &session, &id).await {
        let fact = &recorded.signal;
        assert_eq!((fact.attempt(), fact.invocation(), fact.role().as_str()), (Some(&attempt), Some(&invocation), "operation"));
        assert_eq!(fact.subject(), Some(&Subject::new("tool", "write").unwrap()));
        assert_eq!(fact.payload().shape().version(), 1);
    }
    down(runtime).await;
}

/// P-15: what a session declares as secret is on no disk and before no watcher, and the record says what is gone, with the digest of the original.
#[tokio::test]
async fn a_redacted_payload_is_neither_stored_nor_shown() {
    let disk = disk();
    let runtime = Runtime::builder().store(disk.store.clone()).actions(plan([denies("no")])).spawn().await.unwrap();
    let (watcher, kept) = keeps("watcher");
    let redactions = Redactions::new(["$..token"], ["sk-[0-9]+"]).unwrap();
    let session = runtime.session(session_id("s")).redact(redactions).observe(watcher).open().await.unwrap();

    let secret = ToolCall::new("login", json!({"token": "hunter2", "line": "login --key sk-12345 now"}));
    let _answer = session.perform(secret, done).await;

    let recorded = facts(&runtime, &session).await;
    let arguments = &payload(&recorded[0])["context"]["arguments"];
    assert_eq!(arguments, &json!({"token": "[redacted]", "line": "login --key [redacted] now"}));
    let gone = payload(&recorded[0])["$redacted"].as_array().unwrap();
    assert_eq!(gone.len(), 2);
    assert!(gone.iter().any(|field| field["path"] == "$.context.arguments.token"
        && field["digest"] == serde_json::to_value(tipstaff::declare::Digest::of(b"\"hunter2\"")).unwrap()));
    session.end(soon()).await;
    let shown: String = kept.facts().iter().map(|fact| fact.payload().wire().to_string()).collect();
    assert!(!shown.contains("hunter2") && !shown.contains("sk-12345") && shown.contains("[redacted]"));
    down(runtime).await;
    for entry in std::fs::read_dir(disk.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(b"hunter2") && !holds(b"sk-12345"), "not in any file of the store");
    }
}

/// P-15: the files of a store are for their owner alone, while it is open too.
#[tokio::test]
async fn the_files_of_a_store_are_private() {
    let disk = disk();
    let (runtime, session) = up(disk.store.clone(), []).await;
    let _recorded = facts(&runtime, &session).await;
    let mut seen = 0;
    for entry in std::fs::read_dir(disk.folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
        seen += 1;
    }
    assert!(seen >= 2, "the file and its log");
    down(runtime).await;
}

fn governed(tool: &str) -> Operation<ToolCall> {
    Operation::new(call(tool)).profile(Profile::Governed)
}

/// I-11: a governed operation has its evidence committed before it is performed, and its end confirmed; a minimal one writes no row of its own.
#[tokio::test]
async fn a_governed_operation_has_its_evidence_before_it_runs() {
    let store = MemoryStore::new();
    let (runtime, session) = up(store, [allows("yes")]).await;
    let reader = Arc::clone(runtime.reader().unwrap());
    let own = session.id().clone();
    let body = move |_: Granted<ActionExecutor>| async move {
        let recorded = super::super::rig::read(&*reader, &own, &tipstaff::state::ReadFilter::all());
        Body::Ok(json!(kinds(&recorded)))
    };
    let answer = session.perform(governed("write"), body).await;
    assert_eq!(
        answer.result(),
        Some(&json!(["operation_proposed", "tipstaff.pre_call_evidence"])),
        "committed when the body runs"
    );
    assert_eq!(
        (answer.outcome.profile, answer.outcome.recorded.clone()),
        (Profile::Governed, RecordState::Confirmed(SignalSeq(3)))
    );
    let answer = session.perform(call("write"), done).await;
    assert_eq!((answer.outcome.profile, answer.outcome.recorded), (Profile::Minimal, RecordState::Submitted));
    let recorded = facts(&runtime, &session).await;
    assert_eq!(
        kinds(&recorded),
        ["operation_proposed", "tipstaff.pre_call_evidence", "operation_completed", "operation_proposed", "operation_completed"]
    );
    assert_eq!(payload(&recorded[1])["context"]["tool"], "write");
    down(runtime).await;
}

/// I-11: the evidence is control flow: where it cannot be stored, the operation is not performed. Without any journal neither.
#[tokio::test]
async fn without_evidence_a_governed_operation_is_not_performed() {
    let (store, faults) = memory();
    let (runtime, session) = up(store, [allows("yes")]).await;
    let proposed = session.propose(governed("write")).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    session.settled(soon()).await.unwrap();
    faults.once(FaultPoint::Append, FaultAction::Fail);

    let Err(answer) = permit.record_evidence().await else { panic!("the evidence is not stored") };

    assert_eq!(answer.denial().unwrap().cause, DenialCause::EvidenceUnavailable);
    assert!(!answer.may_have_run() && runtime.open_permits().is_empty());
    let recorded = facts(&runtime, &session).await;
    let operations: Vec<_> = kinds(&recorded).into_iter().filter(|kind| *kind != "capture_gap").collect();
    assert_eq!(operations, ["operation_proposed", "operation_denied"]);
    assert_eq!(session.losses().all().facts, 1, "the evidence itself");
    let off = runtime.session(session_id("off")).audit(AuditMode::Off).open().await.unwrap();
    assert_eq!(off.perform(governed("write"), done).await.denial().unwrap().cause, DenialCause::EvidenceUnavailable);
    down(runtime).await;
}

/// I-17: it ran, and its end could not be stored: neither a failure nor a success, never to be retried; the loss is counted, and once the store answers
/// the attempt is recorded as ambiguous.
#[tokio::test]
async fn performed_and_unrecorded_is_an_answer_of_its_own() {
    let (store, faults) = memory();
    let (runtime, session) = up(store, []).await;
    let operation = governed("write");
    let id = operation.id().clone();
    let arm = faults.clone();
    let body = move |_: Granted<ActionExecutor>| async move {
        arm.always(FaultPoint::Append, FaultAction::Fail);
        Body::Ok(json!("sent"))
    };

    let answer = session.perform(operation, body).await;

    let End::PerformedUnrecorded { performance, cause: Unrecorded::Refused { .. } } = &answer.end else { panic!("{answer:?}") };
    assert!(matches!(performance, Performance::Returned(result) if **result == json!("sent")));
    assert!(answer.may_have_run() && answer.result().is_none());
    assert!(matches!(answer.outcome.recorded, RecordState::Unrecorded(_)));
    assert_eq!(kinds(&facts_of(&runtime, &session, &id).await), ["operation_proposed", "tipstaff.pre_call_evidence"]);
    faults.clear(FaultPoint::Append);
    session.emit_confirmed(note(&session, 0), soon()).await.unwrap();
    let recorded = facts_of(&runtime, &session, &id).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "tipstaff.pre_call_evidence", "operation_ambiguous"]);
    assert_eq!(payload(&recorded[2])["lost"], "operation_completed");
    assert_eq!(session.losses().all().facts, 1);
    let many = std::num::NonZeroU32::new(9).unwrap();
    assert!(runtime.reader().unwrap().open_proposals(None, many).unwrap().is_empty());
    down(runtime).await;
}

/// AH-5: the record's sink panics, and again when the next writer takes the group up. Under a required audit no governed operation goes on without its
/// record: not performed when the evidence hits the panics, performed and unrecorded when its end does. The writer comes back, and the loss is counted.
#[tokio::test]
async fn a_sink_that_panics_lets_nothing_through_unrecorded() {
    let disk = disk();
    let (runtime, session) = up(disk.store.clone(), [allows("yes")]).await;
    let proposed = session.propose(governed("write")).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    session.settled(soon()).await.unwrap();
    disk.faults.times(FaultPoint::Append, FaultAction::Panic, 2);
    let Err(answer) = permit.record_evidence().await else { panic!("the evidence is not stored") };
    assert_eq!(answer.denial().unwrap().cause, DenialCause::EvidenceUnavailable);
    assert_eq!(kinds(&facts(&runtime, &session).await), ["operation_proposed", "operation_denied", "capture_gap"]);

    let operation = governed("write");
    let id = operation.id().clone();
    let arm = disk.faults.clone();
    let body = move |_: Granted<ActionExecutor>| async move {
        arm.times(FaultPoint::Append, FaultAction::Panic, 2);
        Body::Ok(json!("sent"))
    };
    let answer = session.perform(operation, body).await;
    assert!(matches!(answer.end, End::PerformedUnrecorded { .. }), "{answer:?}");

    session.emit_confirmed(note(&session, 0), soon()).await.unwrap();
    assert_eq!(kinds(&facts_of(&runtime, &session, &id).await)[2], "operation_ambiguous");
    assert_eq!(session.losses().all().facts, 2);
    let lost: u64 = gaps(&runtime, &session).iter().map(|gap| gap.gap.known_lost.expect("known").get()).sum();
    assert_eq!(lost, 2, "written as gaps");
    down(runtime).await;
}

/// AH-5, P-10: a writer that cannot come back is a journal that cannot accept: from then on every proposal is denied before anybody is asked.
#[tokio::test]
async fn a_sink_that_cannot_come_back_denies_every_proposal() {
    let (store, faults) = memory();
    let (counting, asked) = counts();
    let (runtime, session) = up(store, [counting]).await;
    faults.always(FaultPoint::Append, FaultAction::Panic);
    let refused = tokio::time::timeout_at(soon().instant(), async {
        loop {
            let before = asked.load(Ordering::SeqCst);
            let answer = session.perform(call("write"), done).await;
            if let Some(denial) = answer.denial() {
                assert_eq!((denial.cause, asked.load(Ordering::SeqCst)), (DenialCause::AuditUnavailable, before));
                return;
            }
            // Each round meets one incarnation of the writer: its facts are counted as lost before the next round begins.
            let _settled = session.settled(soon()).await;
        }
    });
    refused.await.expect("the budget of the writer is spent");
    assert!(session.losses().all().facts >= 2, "counted, not silent");
    down(runtime).await;
}

/// P-9, F-16: an end that is lost while its proposal still waits in the queue is owed until that proposal is on record; and the emitter of a fact that the
/// full journal did not take is told so.
#[tokio::test]
async fn an_end_that_overtook_its_proposal_is_owed_to_it() {
    let (store, faults) = memory();
    let two = std::num::NonZeroUsize::new(2).unwrap();
    let runtime = Runtime::builder().store(store).journal_capacity(two).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).audit(AuditMode::BestEffort).open().await.unwrap();
    faults.always(FaultPoint::AppendBeforeCommit, FaultAction::Hold);
    session.submit(note(&session, 0)).unwrap();
    while faults.reached(FaultPoint::AppendBeforeCommit) == 0 {
        tokio::task::yield_now().await;
    }
    // The writer holds the first; of two places one is free for the proposal, none for its end.
    assert_eq!(session.submit(note(&session, 1)).unwrap(), JournalState::Pending);
    assert!(session.perform(call("write"), done).await.result().is_some());
    assert_eq!(session.submit(note(&session, 2)).unwrap(), JournalState::Unconfirmed("no_room"));
    assert_eq!(session.losses().of(LossReason::NoRoom).facts, 2);
    faults.clear(FaultPoint::AppendBeforeCommit);

    let bound = soon();
    while runtime.reader().unwrap().summary(None).unwrap().open_proposals > 0
        || !kinds(&facts(&runtime, &session).await).contains(&"operation_ambiguous")
    {
        assert!(!bound.has_passed(), "its end is paid");
        tokio::task::yield_now().await;
    }
    let recorded = facts(&runtime, &session).await;
    let ends: Vec<_> = kinds(&recorded).into_iter().filter(|kind| kind.starts_with("operation_")).collect();
    assert_eq!(ends, ["operation_proposed", "operation_ambiguous"]);
    down(runtime).await;
}

/// P-2, P-9: arguments that are nested as deep as a model likes are either denied or on record whole; no depth slips past the audit, and none leaves an
/// attempt without its end.
#[tokio::test]
async fn no_nesting_slips_past_the_audit() {
    let disk = disk();
    let (runtime, session) = up(disk.store.clone(), []).await;
    let mut denied = 0;
    for depth in 110..=132 {
        let arguments = (0..depth).fold(json!("deep"), |inner, _| json!([inner]));
        let operation = Operation::new(ToolCall::new("write", arguments.clone()));
        let id = operation.id().clone();
        let answer = session.perform(operation, done).await;
        let recorded = facts_of(&runtime, &session, &id).await;
        let found = kinds(&recorded);
        if let Some(denial) = answer.denial() {
            denied += 1;
            assert_eq!(denial.cause, DenialCause::ContextInvalid, "{depth}");
            assert_eq!(found, ["operation_proposed", "operation_denied"], "{depth}");
        } else {
            assert_eq!(found, ["operation_proposed", "operation_completed"], "{depth}");
            assert_eq!(payload(&recorded[0])["context"]["arguments"], arguments, "{depth}");
        }
    }
    assert!((1..23).contains(&denied), "both sides of the bound: {denied}");
    assert!(session.losses().is_none());
    down(runtime).await;
}
