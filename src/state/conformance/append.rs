//! What is recorded, where it stands, and what is refused.

use std::error::Error;
use std::num::NonZeroU64;

use serde_json::{Value, json};

use super::suite::{Case, Outcome, Setting, about, append, at, fact, id, one, refused, rows};
use crate::id::{AttemptId, InvocationId, OperationId, SignalId};
use crate::signal::{
    EmitterRole, LifecycleKind, MAX_PAYLOAD_DEPTH, Payload, PayloadType, Signal, SignalKind, SignalSeq, Subject,
};
use crate::state::{AppendError, Appended, Gap, GapReason, INLINE_PAYLOAD_BYTES, JournalWrite};

pub(super) const CASES: &[(&str, Case)] = &[
    ("positions start at one and have no gaps (L-21)", positions_have_no_gaps),
    ("everything of a fact is read back equal (P-11)", facts_are_read_back_equal),
    ("payloads are whole at any size (P-11)", payloads_are_whole),
    ("a payload that could not be read back is refused (P-11)", unreadable_payloads_are_refused),
    ("the same fact again returns its first position", the_same_fact_again),
    ("a taken identity is a conflict", a_taken_identity_is_a_conflict),
    ("a refused write takes no position and touches no other", a_refused_write_touches_no_other),
    ("gaps stand in the sequence and count what is known (P-10)", gaps_stand_in_the_sequence),
];

fn positions_have_no_gaps(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let group = [append(fact("a", 1)?), append(fact("b", 1)?), append(fact("a", 2)?)];
    let seqs: Vec<u64> = writer.commit(&group)?.into_iter().map(|answer| answer.map(|a| a.seq.0)).collect::<Result<_, _>>()?;
    assert_eq!(seqs, [1, 1, 2], "positions follow the order of the group, for each session");
    assert!(writer.commit(&[])?.is_empty());
    drop(writer);
    assert_eq!(one(&mut *setting.writer()?, append(fact("a", 3)?))?.seq, SignalSeq(3), "a new writer goes on");
    let facts = setting.facts("a")?;
    assert_eq!(facts.iter().map(|fact| fact.seq.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(facts.iter().map(|fact| fact.signal.payload().value()["n"].as_u64()).collect::<Vec<_>>(), [1, 2, 3].map(Some));
    assert!(setting.facts("nobody")?.is_empty());
    Ok(())
}

fn facts_are_read_back_equal(setting: &Setting) -> Outcome {
    let value = json!({ "text": "ä\u{0}\u{1F600}", "float": 0.1, "big": u64::MAX, "low": i64::MIN, "null": null, "list": [1.0, -0.0, []] });
    let full = Signal::builder(id("s")?, SignalKind::user("mine.kind")?, at(-5))
        .id(SignalId::new("chosen identity")?)
        .invocation(InvocationId::new("i")?)
        .attempt(AttemptId::new("a")?)
        .operation(OperationId::new("o")?)
        .role(EmitterRole::new("scheduler")?)
        .subject(Subject::new("node", "n-1")?)
        .payload(Payload::from_value(PayloadType::new("mine.shape", u32::MAX)?, value))
        .build();
    let bare = Signal::builder(id("s")?, LifecycleKind::RunEnded, at(i64::MAX)).build();
    let unknown = Signal::builder(id("s")?, SignalKind::Unknown("fromTomorrow".into()), at(0)).build();
    let expected = [full, bare, unknown];
    let mut writer = setting.writer()?;
    for answer in writer.commit(&expected.clone().map(append))? {
        answer?;
    }
    let (reader, facts) = (setting.reader()?, setting.facts("s")?);
    assert_eq!(facts.len(), expected.len());
    for (recorded, expected) in facts.iter().zip(&expected) {
        assert_eq!(*recorded.signal, *expected);
        assert_eq!(recorded.signal.payload().wire(), expected.payload().wire());
        assert_eq!(reader.signal(expected.id())?.as_ref(), Some(recorded));
    }
    assert_eq!(reader.signal(&SignalId::new("nobody's")?)?, None);
    Ok(())
}

fn payloads_are_whole(setting: &Setting) -> Outcome {
    // The JSON text of a string is two bytes longer than the string.
    let sizes = [INLINE_PAYLOAD_BYTES - 2, INLINE_PAYLOAD_BYTES - 1, (8 << 20) + 1];
    let mut writer = setting.writer()?;
    let shape = PayloadType::new("test.text", 1)?;
    let mut group = Vec::new();
    for size in sizes {
        let payload = Payload::from_value(shape.clone(), Value::String("x".repeat(size)));
        group.push(append(Signal::builder(id("s")?, LifecycleKind::StructuredOutput, at(0)).payload(payload).build()));
    }
    for answer in writer.commit(&group)? {
        answer?;
    }
    let lengths = setting.facts("s")?.iter().map(|fact| fact.signal.payload().value().as_str().map(str::len)).collect::<Vec<_>>();
    assert_eq!(lengths, sizes.map(Some));
    let total = sizes.iter().map(|size| *size as u64 + 2).sum::<u64>();
    assert_eq!(setting.reader()?.summary(None)?.payload_bytes, total);
    assert!(one(&mut *writer, group[2].clone())?.repeated, "a large payload is compared too");
    Ok(())
}

fn unreadable_payloads_are_refused(setting: &Setting) -> Outcome {
    let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let shape = PayloadType::new("test.nested", 1)?;
    let deep = |levels| {
        let payload = Payload::from_value(shape.clone(), nested(levels));
        Ok::<_, Box<dyn Error>>(append(
            Signal::builder(id("s")?, LifecycleKind::StructuredOutput, at(0)).payload(payload).build(),
        ))
    };
    let mut writer = setting.writer()?;
    one(&mut *writer, deep(MAX_PAYLOAD_DEPTH)?)?;
    assert!(matches!(refused(&mut *writer, deep(MAX_PAYLOAD_DEPTH + 1)?)?, AppendError::TooDeep { .. }));
    assert_eq!(setting.facts("s")?.len(), 1);
    Ok(())
}

fn the_same_fact_again(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let first = fact("s", 1)?;
    let proposed = about("s", LifecycleKind::OperationProposed, "o", "1")?;
    let closing = about("s", LifecycleKind::OperationCompleted, "o", "1")?;
    let group = [first, proposed, closing].map(append);
    writer.commit(&group)?;
    one(&mut *writer, append(fact("s", 4)?))?;
    for _ in 0..2 {
        let again = writer.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        assert_eq!(again, [1, 2, 3].map(|seq| Appended { seq: SignalSeq(seq), repeated: true }));
        drop(writer);
        writer = setting.writer()?;
    }
    let twice = append(fact("s", 5)?);
    let answers = writer.commit(&[twice.clone(), twice])?.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(answers.iter().map(|a| (a.seq.0, a.repeated)).collect::<Vec<_>>(), [(5, false), (5, true)], "in one group too");
    assert_eq!(setting.facts("s")?.len(), 5);
    Ok(())
}

fn a_taken_identity_is_a_conflict(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let first = fact("s", 1)?;
    let taken = first.id().clone();
    one(&mut *writer, append(first.clone()))?;
    let base = || Signal::builder(first.session().clone(), LifecycleKind::MessageAdded, first.occurred_at()).id(taken.clone());
    let others = [
        base().build(),
        base().payload(first.payload().clone()).subject(Subject::new("k", "i")?).build(),
        Signal::builder(id("elsewhere")?, LifecycleKind::MessageAdded, first.occurred_at())
            .id(taken.clone())
            .payload(first.payload().clone())
            .build(),
        base().payload(first.payload().clone()).operation(OperationId::new("o")?).attempt(AttemptId::new("a")?).build(),
    ];
    for other in others {
        match refused(&mut *writer, append(other))? {
            AppendError::Conflict { id: which, session, seq } => {
                assert_eq!((which, session.as_str(), seq), (taken.clone(), "s", SignalSeq(1)));
            }
            unexpected => return Err(unexpected.into()),
        }
    }
    // An identity that is taken does not touch the attempt that the refused fact is about.
    let proposal = Signal::builder(id("s")?, LifecycleKind::OperationProposed, at(1)).id(taken);
    let proposal = proposal.operation(OperationId::new("o")?).attempt(AttemptId::new("a")?).build();
    assert!(matches!(refused(&mut *writer, append(proposal))?, AppendError::Conflict { .. }));
    assert_eq!(setting.reader()?.attempt(&OperationId::new("o")?, &AttemptId::new("a")?)?, None);
    assert_eq!(*setting.facts("s")?[0].signal, first);
    assert!(setting.facts("elsewhere")?.is_empty());
    assert_eq!(setting.reader()?.sessions(None, rows(10))?.len(), 1, "a session is there from its first fact on");
    Ok(())
}

fn a_refused_write_touches_no_other(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let unidentified = Signal::builder(id("s")?, LifecycleKind::OperationDenied, at(0)).build();
    let answers = writer.commit(&[append(fact("s", 1)?), append(unidentified), append(fact("s", 2)?)])?;
    assert_eq!(answers[0].as_ref().ok().map(|a| a.seq), Some(SignalSeq(1)));
    assert!(matches!(answers[1], Err(AppendError::Unidentified { .. })));
    assert_eq!(answers[2].as_ref().ok().map(|a| a.seq), Some(SignalSeq(2)));
    assert_eq!(setting.facts("s")?.len(), 2);
    Ok(())
}

fn gaps_stand_in_the_sequence(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let gap = |reason, known_lost| {
        let (gap_id, session) = (SignalId::generate(), id("s")?);
        Ok::<_, Box<dyn Error>>(Gap { id: gap_id, session, reason, first_at: at(1), last_at: at(9), known_lost })
    };
    let unknown = gap(GapReason::WriterLost, None)?;
    let known = gap(GapReason::QueueFull, NonZeroU64::new(u64::from(u32::MAX) + 7))?;
    let group =
        [append(fact("s", 1)?), JournalWrite::Gap(unknown.clone()), append(fact("s", 2)?), JournalWrite::Gap(known.clone())];
    writer.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let again = one(&mut *writer, group[1].clone())?;
    assert_eq!(again, Appended { seq: SignalSeq(2), repeated: true });
    let reader = setting.reader()?;
    let gaps = reader.gaps(&id("s")?, SignalSeq::START, rows(9))?;
    assert_eq!(gaps.iter().map(|gap| (gap.seq.0, &gap.gap)).collect::<Vec<_>>(), [(2, &unknown), (4, &known)]);
    assert_eq!(reader.gaps(&id("s")?, SignalSeq(2), rows(9))?.len(), 1);
    assert_eq!(reader.gaps(&id("s")?, SignalSeq::START, rows(1))?.len(), 1);
    let facts = setting.facts("s")?;
    assert_eq!(*facts[1].signal, unknown.to_signal());
    assert_eq!(facts.len(), 4);
    let mut other = unknown;
    other.known_lost = NonZeroU64::new(1);
    assert!(matches!(refused(&mut *writer, JournalWrite::Gap(other))?, AppendError::Conflict { .. }));
    assert_eq!(one(&mut *writer, append(fact("s", 3)?))?.seq, SignalSeq(5), "a refused gap takes no position");
    Ok(())
}
