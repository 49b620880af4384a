//! Attempts of operations, runtime instances and recovery.

use std::error::Error;
use std::time::Duration;

use super::suite::{Case, Outcome, Setting, about, append, at, id, instance, one, refused, rows};
use crate::clock::Clock as _;
use crate::id::{AttemptId, InvocationId, OperationId};
use crate::signal::{LifecycleKind, Signal, SignalSeq, Subject};
use crate::state::{
    AppendError, AttemptRow, Closed, DeathEvidence, InstanceVerdict, Recovered, RuntimeInstance, StoreError, UnknownBecause,
};

pub(super) const CASES: &[(&str, Case)] = &[
    ("an attempt is proposed once and ends once (P-9, I-19)", an_attempt_ends_once),
    ("a fact about an operation names it", operation_facts_are_identified),
    ("an instance is recorded, seen and ended by the store's clock (L-1, L-22)", instances_are_recorded),
    ("a recovery closes the proposals of the dead, once (P-9)", recovery_closes_the_dead_once),
    ("a recovery leaves the living and the unknown alone", recovery_leaves_the_living),
];

fn an_attempt_ends_once(setting: &Setting) -> Outcome {
    use LifecycleKind::{OperationAmbiguous, OperationCompleted, OperationDenied, OperationProposed};
    let mut writer = setting.writer()?;
    let (operation, attempt) = (OperationId::new("o")?, AttemptId::new("1")?);
    one(&mut *writer, append(about("s", OperationProposed, "o", "1")?))?;
    let open = setting.reader()?.attempt(&operation, &attempt)?;
    let expected = AttemptRow {
        operation: operation.clone(),
        attempt: attempt.clone(),
        session: id("s")?,
        instance: writer.instance().clone(),
        proposed: Some(SignalSeq(1)),
        closed: None,
    };
    assert_eq!(open.as_ref(), Some(&expected));
    assert_eq!(setting.reader()?.open_proposals(None, rows(9))?, std::slice::from_ref(&expected));
    match refused(&mut *writer, append(about("s", OperationProposed, "o", "1")?))? {
        AppendError::AlreadyProposed { seq: SignalSeq(1), .. } => {}
        unexpected => return Err(unexpected.into()),
    }
    let elsewhere = about("t", OperationCompleted, "o", "1")?;
    assert!(matches!(refused(&mut *writer, append(elsewhere))?, AppendError::OtherSession { .. }));
    one(&mut *writer, append(about("s", OperationDenied, "o", "1")?))?;
    let ended = Some(Closed { kind: OperationDenied, seq: SignalSeq(2) });
    assert_eq!(setting.reader()?.attempt(&operation, &attempt)?, Some(AttemptRow { closed: ended, ..expected }));
    assert!(setting.reader()?.open_proposals(None, rows(9))?.is_empty());
    for kind in [OperationCompleted, OperationDenied, OperationAmbiguous, OperationProposed] {
        // Also across restarts of the writer.
        writer = setting.writer()?;
        match refused(&mut *writer, append(about("s", kind, "o", "1")?))? {
            AppendError::AlreadyClosed { closed_as: OperationDenied, seq: SignalSeq(2), .. } => {}
            unexpected => return Err(unexpected.into()),
        }
    }
    one(&mut *writer, append(about("s", OperationProposed, "o", "2")?))?;
    one(&mut *writer, append(about("s", OperationCompleted, "lost", "1")?))?;
    let lost = setting.reader()?.attempt(&OperationId::new("lost")?, &attempt)?;
    assert_eq!(
        lost.map(|row| (row.proposed, row.closed.is_some())),
        Some((None, true)),
        "a closing fact whose proposal was lost"
    );
    let in_one_group = [
        about("s", OperationProposed, "q", "1")?,
        about("s", OperationCompleted, "q", "1")?,
        about("s", OperationDenied, "q", "1")?,
    ];
    let answers = writer.commit(&in_one_group.map(append))?;
    assert!(answers[0].is_ok() && answers[1].is_ok() && matches!(answers[2], Err(AppendError::AlreadyClosed { .. })));
    Ok(())
}

fn operation_facts_are_identified(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let kinds = LifecycleKind::ALL.iter().copied();
    for kind in kinds.filter(|kind| kind.closes_operation() || *kind == LifecycleKind::OperationProposed) {
        let half = Signal::builder(id("s")?, kind, at(0)).operation(OperationId::new("o")?).build();
        assert!(matches!(refused(&mut *writer, append(half))?, AppendError::Unidentified { .. }));
    }
    assert!(setting.facts("s")?.is_empty());
    Ok(())
}

fn instances_are_recorded(setting: &Setting) -> Outcome {
    let started = setting.clock.now();
    let reader = setting.reader()?;
    let recorded = || Ok::<_, StoreError>(reader.instances(None, rows(9))?.remove(0));
    let mut writer = setting.writer()?;
    let first = recorded()?;
    assert_eq!(
        (&first.identity, first.started_at, first.last_seen_at, first.ended_at),
        (&instance("first"), started, started, None)
    );
    setting.clock.advance(Duration::from_secs(5));
    writer.touch()?;
    let seen = recorded()?;
    assert_eq!((seen.started_at, seen.last_seen_at, seen.ended_at), (started, setting.clock.now(), None));
    setting.clock.advance(Duration::from_secs(5));
    writer.end()?;
    assert_eq!(recorded()?.ended_at, Some(setting.clock.now()));
    setting.clock.advance(Duration::from_secs(5));
    let mut again = setting.writer()?;
    let reopened = recorded()?;
    assert_eq!((reopened.started_at, reopened.last_seen_at, reopened.ended_at), (started, setting.clock.now(), None));
    again.checkpoint_when_idle()?;
    Ok(())
}

fn recovery_closes_the_dead_once(setting: &Setting) -> Outcome {
    let mut gone = setting.store.open_writer(&instance("gone"))?;
    let proposal = Signal::builder(id("s")?, LifecycleKind::OperationProposed, at(1))
        .operation(OperationId::new("o")?)
        .attempt(AttemptId::new("1")?)
        .invocation(InvocationId::new("i")?)
        .subject(Subject::new("tool", "bash")?);
    one(&mut *gone, append(proposal.build()))?;
    one(&mut *gone, append(about("s", LifecycleKind::OperationProposed, "ended", "1")?))?;
    one(&mut *gone, append(about("s", LifecycleKind::OperationCompleted, "ended", "1")?))?;
    drop(gone);
    // More than one transaction's worth.
    let mut other = setting.store.open_writer(&instance("also gone"))?;
    let many = (0..600).map(|n| Ok(append(about("t", LifecycleKind::OperationProposed, "many", &n.to_string())?)));
    other.commit(&many.collect::<Result<Vec<_>, Box<dyn Error>>>()?)?;
    drop(other);
    let mut writer = setting.writer()?;
    let mut judged = Vec::new();
    let recovered = writer.recover(&mut |instance| {
        judged.push(instance.identity.id.to_string());
        InstanceVerdict::Dead(DeathEvidence::NoProcess)
    })?;
    assert_eq!(judged, ["also gone", "gone"], "each is judged once");
    assert_eq!((recovered.closed.len(), recovered.left_open, recovered.judged.len()), (601, 0, 2));
    let facts = setting.facts("s")?;
    let closing = &facts[3].signal;
    assert_eq!((facts.len(), closing.kind().lifecycle()), (4, Some(LifecycleKind::OperationAmbiguous)));
    assert_eq!(closing.operation().map(|id| id.as_str()), Some("o"));
    assert_eq!((closing.invocation().map(|id| id.as_str()), closing.subject().map(Subject::id)), (Some("i"), Some("bash")));
    assert_eq!((closing.role().as_str(), closing.occurred_at()), ("recovery", setting.clock.now()));
    assert_eq!(closing.payload().value()["evidence"], "no_process");
    assert_eq!(closing.payload().value()["instance"], "gone");
    assert!(setting.reader()?.open_proposals(None, rows(9))?.is_empty());
    let again = writer.recover(&mut |_| InstanceVerdict::Dead(DeathEvidence::NoProcess))?;
    assert_eq!(again, Recovered::default(), "exactly once");
    assert_eq!((setting.facts("s")?.len(), setting.facts("t")?.len()), (4, 1_200));
    let late = append(about("s", LifecycleKind::OperationCompleted, "o", "1")?);
    match refused(&mut *setting.store.open_writer(&instance("gone"))?, late)? {
        AppendError::AlreadyClosed { closed_as: LifecycleKind::OperationAmbiguous, .. } => Ok(()),
        unexpected => Err(unexpected.into()),
    }
}

fn recovery_leaves_the_living(setting: &Setting) -> Outcome {
    for (name, operation) in [("living", "a"), ("foreign", "b"), ("dead", "c"), ("first", "d")] {
        let mut writer = setting.store.open_writer(&instance(name))?;
        one(&mut *writer, append(about("s", LifecycleKind::OperationProposed, operation, "1")?))?;
    }
    let mut writer = setting.writer()?;
    let mut judge = |instance: &RuntimeInstance| match instance.identity.id.as_str() {
        "living" => InstanceVerdict::Alive,
        "foreign" => InstanceVerdict::Unknown(UnknownBecause::Foreign),
        "dead" => InstanceVerdict::Dead(DeathEvidence::Ended),
        own => panic!("{own} is the writer's own"),
    };
    let recovered = writer.recover(&mut judge)?;
    assert_eq!(recovered.closed.iter().map(|closed| closed.operation.as_str()).collect::<Vec<_>>(), ["c"]);
    assert_eq!((recovered.left_open, recovered.judged.len()), (2, 3));
    let open = setting.reader()?.open_proposals(None, rows(9))?;
    assert_eq!(open.iter().map(|row| row.operation.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
    one(&mut *writer, append(about("s", LifecycleKind::OperationCompleted, "a", "1")?))?;
    Ok(())
}
