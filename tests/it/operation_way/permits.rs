//! P-14: a permit is a promise of the owner; what becomes of it is always told, and never refused.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tipstaff::OwnerBounds;
use tipstaff::operation::{AuditMode, AuditUnavailable, OperationOutcome, RecordState};

use super::*;

fn bounds(waiting: usize, deciding: usize, permits: usize) -> OwnerBounds {
    let size = |size| NonZeroUsize::new(size).unwrap();
    OwnerBounds { waiting: size(waiting), deciding: size(deciding), permits: size(permits) }
}

async fn permit(session: &Session, tool: &str) -> Result<tipstaff::CallPermit, OperationOutcome> {
    let proposed = session.propose(call(tool)).await.unwrap();
    session.authorize(proposed).await.map_err(|answer| answer.outcome)
}

/// P-14: as many permits as its owner allows; one more is denied as overloaded, and possible again once one has ended.
#[tokio::test]
async fn the_number_of_open_permits_is_bounded() {
    let runtime = Runtime::builder().store(MemoryStore::new()).action_bounds(bounds(8, 8, 2)).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let (first, second) = (permit(&session, "one").await.unwrap(), permit(&session, "two").await.unwrap());
    assert_eq!(runtime.open_permits().len(), 2);

    let answer = session.perform(call("three"), done).await;
    assert_eq!(answer.denial().expect("none is free").cause, DenialCause::Overloaded);

    drop(first);
    let answer = session.perform(call("four"), done).await;
    assert_eq!(answer.result(), Some(&json!("done")), "the place came back");
    drop(second);
    assert!(runtime.open_permits().is_empty());
    let closings: Vec<_> = facts(&runtime, &session).await;
    let closings = kinds(&closings).into_iter().filter(|kind| *kind != "operation_proposed").collect::<Vec<_>>();
    assert_eq!(closings, ["operation_denied", "operation_abandoned", "operation_completed", "operation_abandoned"]);
    down(runtime).await;
}

/// P-14: a completion is never refused, with every permit open, the port full and every place of the owner's bound taken.
#[tokio::test]
async fn a_completion_always_finds_its_place() {
    let (begun, gate) = (Latch::new(), Latch::new());
    let plan = plan([{
        let (begun, gate) = (begun.clone(), gate.clone());
        Registration::decide_async("slow", stage::ACTION_POLICY, callable("slow"), move |call: Arc<ToolCall>, _: Turn| {
            let (begun, gate) = (begun.clone(), gate.clone());
            async move {
                if call.tool() == "slow" {
                    begun.open();
                    gate.passed().await;
                }
                Decision::<ToolCall>::proceed()
            }
        })
    }]);
    let builder = Runtime::builder().store(MemoryStore::new()).actions(plan).action_bounds(bounds(1, 1, 2));
    let runtime = builder.spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let (first, second) = (permit(&session, "one").await.unwrap(), permit(&session, "two").await.unwrap());

    let deciding = session.perform(call("slow"), done);
    let queued = session.perform(call("slow"), done);
    let complete = async {
        begun.passed().await;
        while runtime.ports()[0].data_depth < 1 {
            tokio::task::yield_now().await;
        }
        let _first = first.perform(done).await.review().await.record().await;
        drop(second);
        assert!(runtime.open_permits().is_empty(), "both are struck off");
        while runtime.ports()[0].completion_depth > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(runtime.ports()[0].data_depth, 1, "the data lane was full all the time");
        gate.open_for_all();
    };
    let (one, two, ()) =
        tokio::time::timeout_at(soon().instant(), futures::future::join3(deciding, queued, complete)).await.unwrap();
    assert!(one.result().is_some() && two.result().is_some());
    let recorded = facts(&runtime, &session).await;
    assert_eq!(recorded.len(), 8);
    assert!(session.losses().is_none());
    down(runtime).await;
}

/// P-14: open permits are registered outside the actor: its death and restart forget none, and they are performed and completed as if nothing was.
#[tokio::test]
async fn open_permits_survive_a_restart_of_their_owner() {
    let host = Host::spawn(Runtime::builder().store(MemoryStore::new()).actions(plan([allows("yes")]))).await;
    let session = host.runtime.session(session_id("s")).open().await.unwrap();
    let open = permit(&session, "write").await.unwrap();
    let attempt = open.granted().attempt().clone();

    let old = host.executor().unwrap();
    old.kill();
    // Queued proposals wait for the next incarnation, so this answer comes from it.
    let answer = session.perform(call("other"), done).await;
    assert!(answer.result().is_some());
    assert_ne!(host.executor().unwrap().get_id(), old.get_id(), "another incarnation");
    let listed: Vec<_> = host.runtime.open_permits().into_iter().map(|open| open.attempt).collect();
    assert_eq!(listed, [attempt]);

    let answer = open.perform(done).await.review().await.record().await;
    assert_eq!(answer.result(), Some(&json!("done")));
    assert!(host.runtime.open_permits().is_empty());
    host.shutdown().await;
}

/// P-14: a permit that is dropped unused is an abandoned operation, and one that is dropped while it is performed is an ambiguous one; the closing
/// facts say so in words.
#[tokio::test]
async fn a_dropped_permit_is_told_by_when_it_was_dropped() {
    let (runtime, session) = up(MemoryStore::new(), [allows("yes")]).await;
    drop(permit(&session, "one").await.unwrap());
    let running = Latch::new();
    let begun = running.clone();
    let performing = permit(&session, "two").await.unwrap().perform(|_| async move {
        begun.open();
        std::future::pending::<Body>().await
    });
    tokio::select! {
        biased;
        _ = performing => panic!("the body never returns"),
        () = running.passed() => {}
    }
    let recorded = facts(&runtime, &session).await;
    assert_eq!(kinds(&recorded), ["operation_proposed", "operation_abandoned", "operation_proposed", "operation_ambiguous"]);
    assert_eq!(payload(&recorded[1])["reason"], "the permit was dropped before the operation began");
    assert_eq!(payload(&recorded[3])["reason"], "the caller went away while the operation was being performed");
    assert_eq!(payload(&recorded[1])["basis"], "enforced", "it had been permitted");
    down(runtime).await;
}

/// I-5, P-14: the permit carries the judged context, and nothing else can be performed with it.
#[tokio::test]
async fn what_is_performed_is_what_was_judged() {
    let (runtime, session) = up(MemoryStore::new(), [rewrites("safer", |_| json!({"force": false}))]).await;
    let body = |granted: Granted<ActionExecutor>| async move { Body::Ok(granted.context().arguments().clone()) };
    let answer = session.perform(ToolCall::new("push", json!({"force": true})), body).await;
    assert_eq!(answer.result(), Some(&json!({"force": false})));
    assert_ne!(answer.outcome.requested, answer.outcome.effective);
    down(runtime).await;
}

mod owners_of_ones_own {
    //! Owners of one's own, with code that panics or looks at the moment of completion.

    use std::sync::Mutex;

    use tipstaff::declare::{CanonicalError, Digest};
    use tipstaff::interception::PlanBuilder;
    use tipstaff::interception::{ChainOutcome, Judged, StageSpec};
    use tipstaff::operation::{
        Authorizer, Completion, CompletionPlace, Grant, Owner, OwnerPlan, Proposal, Proposed, Ruling, Shielded, Verdict, perform,
    };

    use super::*;

    struct Fragile;

    /// Panics where it is told to.
    #[derive(Debug, serde::Serialize)]
    struct Word(&'static str);

    impl Judged for Word {
        fn digest(&self) -> Result<Digest, CanonicalError> {
            assert_ne!(self.0, "digest", "the digest panics");
            self.0.to_owned().digest()
        }
    }

    struct Loud(bool);

    impl serde::Serialize for Loud {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            assert!(!self.0, "the result panics");
            serializer.serialize_unit()
        }
    }

    impl Owner for Fragile {
        const NAME: &'static str = "fragile";
        type Context = Word;
        type Output = Loud;

        fn stages() -> Vec<StageSpec> {
            vec![StageSpec::guard("policy"), StageSpec::own_step("perform")]
        }

        fn subject(context: &Word) -> Option<tipstaff::signal::Subject> {
            assert_ne!(context.0, "subject", "the subject panics");
            None
        }
    }

    /// Where completions are told, with the closing facts that stood in the ring at that moment.
    #[derive(Clone)]
    struct Told(Arc<Mutex<Vec<(OperationStatus, usize)>>>, Session);

    impl CompletionPlace for Told {
        fn complete(self, completion: Completion) {
            let closed =
                self.1.recent().unwrap().facts.iter().filter(|fact| fact.kind().as_str() != "operation_proposed").count();
            self.0.lock().unwrap().push((completion.status, closed));
        }

        fn shield(self, rest: Shielded) {
            drop(rest);
        }
    }

    struct Desk(OwnerPlan<Fragile>, Told);

    impl Authorizer<Fragile> for Desk {
        type Place = Told;

        async fn propose(&self, proposal: Proposal<Fragile>) -> Ruling<Fragile, Told> {
            let mut report = self.0.report();
            let context = Arc::clone(proposal.context());
            let outcome = self.0.apply_identified(context, proposal.digest(), proposal.deadline(), &mut report).await;
            let ChainOutcome::Permitted(permitted) = outcome else { panic!("nobody refuses here") };
            Ruling { verdict: Verdict::Permit(Grant { permitted, plan: self.0.clone(), place: self.1.clone() }), report: None }
        }
    }

    /// AH-3, AH-4: a panic in an owner's own code (its digest, its subject, its result) loses no record and does not reach the caller.
    #[tokio::test]
    async fn a_panic_in_an_owners_own_code_is_on_record() {
        for (word, loud, closing, denied) in [
            ("digest", false, "operation_denied", Some(DenialCause::ContextInvalid)),
            ("subject", false, "operation_completed", None),
            ("result", true, "operation_completed", None),
        ] {
            let (runtime, session) = up(MemoryStore::new(), []).await;
            let told = Told(Arc::default(), session.clone());
            let desk = Desk(PlanBuilder::new("p", &Fragile::stages()).build().unwrap(), told);
            let body = |_| async move { Ok::<_, std::io::Error>(Loud(loud)) };
            let answer = perform::<Fragile, _, _, _, _, _>(Operation::new(Word(word)), session.audit(), &desk, body).await;
            assert_eq!(answer.denial().map(|denial| denial.cause), denied, "{word}");
            let recorded = facts(&runtime, &session).await;
            assert_eq!(kinds(&recorded), ["operation_proposed", closing], "{word}");
            down(runtime).await;
        }
    }

    /// P-14: the owner is told how the attempt ended, after its closing fact was submitted, also when its caller drops it in the middle.
    #[tokio::test]
    async fn an_owner_is_told_after_the_attempt_has_ended() {
        let (runtime, session) = up(MemoryStore::new(), []).await;
        let completions = Arc::default();
        let told = Told(Arc::clone(&completions), session.clone());
        let desk = Desk(PlanBuilder::new("p", &Fragile::stages()).build().unwrap(), told);
        for step in 0..3 {
            let permit =
                Proposed::submit(Operation::new(Word("w")), session.audit()).await.unwrap().authorize(&desk).await.unwrap();
            match step {
                0 => drop(permit),
                1 => {
                    let mut performing =
                        std::pin::pin!(permit.perform(|_| std::future::pending::<Result<Loud, std::io::Error>>()));
                    assert!(futures::poll!(&mut performing).is_pending());
                }
                _ => {
                    let _answer =
                        permit.perform(|_| async { Ok::<_, std::io::Error>(Loud(false)) }).await.review().await.record().await;
                }
            }
        }
        let expected = vec![(OperationStatus::Abandoned, 1), (OperationStatus::Ambiguous, 2), (OperationStatus::Completed, 3)];
        assert_eq!(*completions.lock().unwrap(), expected);
        down(runtime).await;
    }
}

/// P-14: a permit whose proposer goes away when the ruling is on its way is dropped with the ruling: its place comes back, and no list says that it is open.
#[tokio::test]
async fn a_permit_that_nobody_hears_is_not_open() {
    let runtime = Runtime::builder().store(MemoryStore::new()).action_bounds(bounds(8, 8, 1)).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let proposed = session.propose(call("one")).await.unwrap();
    {
        let mut ruling = std::pin::pin!(session.authorize(proposed));
        assert!(futures::poll!(&mut ruling).is_pending());
        while runtime.open_permits().is_empty() {
            tokio::task::yield_now().await;
        }
        // The ruling is sent or about to be; its proposer never looks.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
    assert!(runtime.open_permits().is_empty(), "dropped unheard");
    let answer = session.perform(call("two"), done).await;
    assert_eq!(answer.result(), Some(&json!("done")), "its place came back");
    assert!(runtime.open_permits().is_empty());
    down(runtime).await;
}

/// I-12: an attempt that is open is not proposed a second time, in no session of the runtime: it is denied, nobody is asked, nothing is recorded under
/// its identity. Once it has ended it is not open any more.
#[tokio::test]
async fn an_open_attempt_is_not_proposed_a_second_time() {
    let runtime = Runtime::builder().store(MemoryStore::new()).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    let other = runtime.session(session_id("other")).audit(AuditMode::Off).open().await.unwrap();
    let (id, attempt) = (OperationId::new("pay").unwrap(), AttemptId::new("pay-1").unwrap());
    let again = || Operation::new(call("pay")).identified(id.clone(), attempt.clone());

    let proposed = session.propose(again()).await.unwrap();
    let permit = session.authorize(proposed).await.unwrap();
    for session in [&session, &other] {
        let answer = session.perform(again(), |_| async { Body::Ok(json!("paid twice")) }).await;
        assert_eq!(answer.denial().expect("it is open").cause, DenialCause::AuditUnavailable);
        assert!(!answer.may_have_run());
        let RecordState::Unavailable(AuditUnavailable::AttemptOpen { .. }) = answer.outcome.recorded else {
            panic!("{answer:?}")
        };
    }

    let answer = permit.perform(|_| async { Body::Ok(json!("paid")) }).await.review().await.record().await;

    assert_eq!(answer.result(), Some(&json!("paid")));
    assert_eq!(kinds(&facts(&runtime, &session).await), ["operation_proposed", "operation_completed"]);
    assert!(session.losses().is_none());
    assert!(other.propose(again()).await.is_ok(), "it has ended");
    down(runtime).await;
}
