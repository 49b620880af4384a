//! The suite that every backend passes: the same cases, through the public traits only.
//!
//! A backend's tests call [`run`] once. A case never knows which backend it is given.

use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    AppendError, Appended, AttemptRow, Closed, DeathEvidence, ExecutorIdentity, Gap, GapReason, INLINE_PAYLOAD_BYTES,
    InstanceIdentity, InstanceVerdict, JournalReader, JournalWrite, JournalWriter, MAX_PAYLOAD_DEPTH, MAX_SCAN, PageLimit,
    ReadFilter, Recorded, Store, StoreError, UnknownBecause,
};
use crate::clock::{Clock, Timestamp};
use crate::id::{AttemptId, InvocationId, OperationId, RuntimeInstanceId, SessionId, SignalId};
use crate::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal, SignalKind, SignalSeq, Subject};
use crate::testing::{FaultAction, FaultPoint, Faults, ManualClock};

/// Makes empty stores of one backend.
pub trait Backend {
    /// An empty store under a clock and fault points. What it stands on lives as long as `self`.
    fn empty_store(&self, clock: Arc<dyn Clock>, faults: Faults) -> Arc<dyn Store>;
}

/// Runs every case, each on an empty store, and then names those that failed.
///
/// # Panics
/// When a case failed, or when the cases together left out a fault point (a store transition without one cannot be crashed).
pub fn run(backend: &dyn Backend) {
    let mut failed = Vec::new();
    let mut reached = [0; FaultPoint::ALL.len()];
    for (name, case) in CASES {
        let setting = Setting::new(backend);
        match catch_unwind(AssertUnwindSafe(|| case(&setting))) {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => failed.push(format!("{name}: {cause:?}")),
            Err(_) => failed.push(format!("{name}: see the panic above")),
        }
        for (count, point) in reached.iter_mut().zip(FaultPoint::ALL) {
            *count += setting.faults.reached(*point);
        }
    }
    for (count, point) in reached.iter().zip(FaultPoint::ALL) {
        if *count == 0 {
            failed.push(format!("the fault point {point} is never reached"));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

type Outcome = Result<(), Box<dyn Error>>;
type Case = fn(&Setting) -> Outcome;

const CASES: &[(&str, Case)] = &[
    ("positions start at one and have no gaps (L-21)", positions_have_no_gaps),
    ("everything of a fact is read back equal (P-11)", facts_are_read_back_equal),
    ("payloads are whole at any size (P-11)", payloads_are_whole),
    ("a payload that could not be read back is refused (P-11)", unreadable_payloads_are_refused),
    ("the same fact again returns its first position", the_same_fact_again),
    ("a taken identity is a conflict", a_taken_identity_is_a_conflict),
    ("a refused write takes no position and touches no other", a_refused_write_touches_no_other),
    ("an attempt is proposed once and ends once (P-9, I-19)", an_attempt_ends_once),
    ("a fact about an operation names it", operation_facts_are_identified),
    ("gaps stand in the sequence and count what is known (P-10)", gaps_stand_in_the_sequence),
    ("pages forward meet every fact once", pages_meet_every_fact_once),
    ("a page is bounded by rows, bytes and range", pages_are_bounded),
    ("filters let through what they say", filters_agree),
    ("lists come in pages", lists_come_in_pages),
    ("a summary counts what is there", a_summary_counts),
    ("an instance is recorded, seen and ended by the store's clock (L-1, L-22)", instances_are_recorded),
    ("a recovery closes the proposals of the dead, once (P-9)", recovery_closes_the_dead_once),
    ("a recovery leaves the living and the unknown alone", recovery_leaves_the_living),
    ("a refused append is the answer of that write alone", faults_refuse_single_writes),
    ("a failed commit leaves nothing", a_failed_commit_leaves_nothing),
    ("a lost answer is found by trying again", a_lost_answer_is_found),
    ("a writer that panicked is replaced", a_crashed_writer_is_replaced),
    ("a failed recovery goes on at the next", a_failed_recovery_goes_on),
    ("two writers interleave (L-22)", two_writers_interleave),
];

struct Setting {
    store: Arc<dyn Store>,
    clock: ManualClock,
    faults: Faults,
}

impl Setting {
    fn new(backend: &dyn Backend) -> Self {
        let (clock, faults) = (ManualClock::default(), Faults::new());
        Self { store: backend.empty_store(Arc::new(clock.clone()), faults.clone()), clock, faults }
    }

    fn writer(&self) -> Result<Box<dyn JournalWriter>, StoreError> {
        self.store.open_writer(&instance("first"))
    }

    fn reader(&self) -> Result<Arc<dyn JournalReader>, StoreError> {
        self.store.reader()
    }

    fn facts(&self, session: &str) -> Result<Vec<Recorded>, Box<dyn Error>> {
        let (reader, session) = (self.reader()?, id(session)?);
        let mut facts = Vec::new();
        let mut after = SignalSeq::START;
        loop {
            let page = reader.read(&session, after, &ReadFilter::all(), PageLimit::default())?;
            facts.extend(page.facts);
            after = page.next;
            if !page.more {
                return Ok(facts);
            }
        }
    }
}

fn instance(name: &str) -> InstanceIdentity {
    InstanceIdentity {
        id: RuntimeInstanceId::new(name).expect("a short name is an identity"),
        executor: ExecutorIdentity {
            host: Some("host".into()),
            boot: None,
            pid_namespace: Some("pid:[1]".into()),
            pid: 7,
            started_ticks: Some(u64::from(u32::MAX) + 1),
        },
        program: "conformance".into(),
    }
}

fn id(session: &str) -> Result<SessionId, Box<dyn Error>> {
    Ok(SessionId::new(session)?)
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn fact(session: &str, n: u64) -> Result<Signal, Box<dyn Error>> {
    let payload = Payload::from_value(PayloadType::new("test.n", 1)?, json!({ "n": n }));
    Ok(Signal::builder(id(session)?, LifecycleKind::MessageAdded, at(n as i64)).payload(payload).build())
}

fn about(session: &str, kind: LifecycleKind, operation: &str, attempt: &str) -> Result<Signal, Box<dyn Error>> {
    let fact = Signal::builder(id(session)?, kind, at(1));
    Ok(fact.operation(OperationId::new(operation)?).attempt(AttemptId::new(attempt)?).build())
}

fn append(signal: Signal) -> JournalWrite {
    JournalWrite::Append(Arc::new(signal))
}

fn one(writer: &mut dyn JournalWriter, write: JournalWrite) -> Result<Appended, Box<dyn Error>> {
    let mut answers = writer.commit(&[write])?;
    assert_eq!(answers.len(), 1, "one answer for one write");
    Ok(answers.remove(0)?)
}

fn refused(writer: &mut dyn JournalWriter, write: JournalWrite) -> Result<AppendError, Box<dyn Error>> {
    match writer.commit(&[write])?.remove(0) {
        Err(refused) => Ok(refused),
        Ok(appended) => Err(format!("it was recorded: {appended:?}").into()),
    }
}

fn rows(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("the cases ask for at least one row")
}

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
    let reader = setting.reader()?;
    for (recorded, expected) in setting.facts("s")?.iter().zip(&expected) {
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

fn gaps_stand_in_the_sequence(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let gap = |reason, known_lost| {
        let id = SignalId::generate();
        Ok::<_, Box<dyn Error>>(Gap { id, session: self::id("s")?, reason, first_at: at(1), last_at: at(9), known_lost })
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

fn pages_meet_every_fact_once(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let group =
        (0..97).map(|n| Ok(append(fact(if n % 3 == 0 { "t" } else { "s" }, n)?))).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    writer.commit(&group)?;
    let (reader, session) = (setting.reader()?, id("s")?);
    for size in [1, 7, 64, 65] {
        let (mut seen, mut after) = (Vec::new(), SignalSeq::START);
        loop {
            let page = reader.read(&session, after, &ReadFilter::all(), PageLimit::rows(rows(size)))?;
            assert!(page.facts.len() <= size as usize && page.facts.iter().all(|fact| fact.seq > after && fact.seq <= page.next));
            seen.extend(page.facts.iter().map(|fact| fact.seq.0));
            after = page.next;
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, (1..=64).collect::<Vec<_>>(), "in pages of {size}");
    }
    let behind = reader.read(&session, SignalSeq(u64::MAX), &ReadFilter::all(), PageLimit::default())?;
    assert!(behind.facts.is_empty() && !behind.more && behind.next == SignalSeq(u64::MAX));
    Ok(())
}

fn pages_are_bounded(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let rare = Signal::builder(id("s")?, LifecycleKind::RunEnded, at(0)).build();
    let common = (0..u64::from(MAX_SCAN) + 10).map(|n| Ok(append(fact("s", n)?))).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    writer.commit(&common)?;
    one(&mut *writer, append(rare.clone()))?;
    let (reader, session) = (setting.reader()?, id("s")?);
    let filter = ReadFilter::kinds([LifecycleKind::RunEnded]);
    let first = reader.read(&session, SignalSeq::START, &filter, PageLimit::default())?;
    assert_eq!((first.facts.len(), first.next, first.more), (0, SignalSeq(u64::from(MAX_SCAN)), true), "a range, and no further");
    let second = reader.read(&session, first.next, &filter, PageLimit::default())?;
    assert_eq!(second.facts.iter().map(|fact| &*fact.signal).collect::<Vec<_>>(), [&rare]);
    assert!(!second.more);
    let narrow = PageLimit { rows: rows(100), payload_bytes: NonZeroU64::new(20).expect("twenty is not zero") };
    let page = reader.read(&session, SignalSeq::START, &ReadFilter::all(), narrow)?;
    assert_eq!((page.facts.len(), page.next, page.more), (3, SignalSeq(3), true), "three payloads of seven bytes reach twenty");
    Ok(())
}

fn filters_agree(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let mut group = Vec::new();
    for n in 0..48_u32 {
        let kind = if n % 2 == 0 { SignalKind::user("mine.kind")? } else { LifecycleKind::MessageAdded.into() };
        let mut fact = Signal::builder(id("s")?, kind, at(0)).role(EmitterRole::new(format!("role{}", n % 3))?);
        if n % 4 != 0 {
            fact = fact.operation(OperationId::new(format!("o{}", n % 5))?).attempt(AttemptId::new(format!("a{}", n % 2))?);
        }
        if n % 5 != 0 {
            fact = fact.invocation(InvocationId::new(format!("i{}", n % 2))?);
        }
        group.push(append(fact.build()));
    }
    writer.commit(&group)?;
    let all = setting.facts("s")?;
    let mine = ReadFilter::kinds([SignalKind::user("mine.kind")?]);
    let filters = [
        ReadFilter::all(),
        mine.clone(),
        ReadFilter::kinds([SignalKind::user("mine.kind")?, LifecycleKind::MessageAdded.into()]),
        ReadFilter::kinds([LifecycleKind::RunEnded]),
        ReadFilter { role: Some(EmitterRole::new("role1")?), ..ReadFilter::all() },
        ReadFilter { operation: Some(OperationId::new("o3")?), ..ReadFilter::all() },
        ReadFilter { attempt: Some(AttemptId::new("a1")?), ..ReadFilter::all() },
        ReadFilter { invocation: Some(InvocationId::new("i0")?), operation: Some(OperationId::new("o2")?), ..mine },
    ];
    for filter in filters {
        let expected: Vec<_> = all.iter().filter(|fact| filter.matches(&fact.signal)).cloned().collect();
        let page = setting.reader()?.read(&id("s")?, SignalSeq::START, &filter, PageLimit::default())?;
        assert_eq!(page.facts, expected, "{filter:?}");
        assert!(!page.more && page.next == SignalSeq(48));
    }
    Ok(())
}

fn lists_come_in_pages(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let mut group = Vec::new();
    for name in ["b", "ä", "a", "c"] {
        group.push(append(fact(name, 1)?));
        group.push(append(about(name, LifecycleKind::OperationProposed, "o", name)?));
        group.push(append(about(name, LifecycleKind::OperationProposed, name, "o")?));
    }
    writer.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    setting.store.open_writer(&instance("a second"))?;
    let reader = setting.reader()?;
    let sessions = reader.sessions(None, rows(2))?;
    assert_eq!(sessions.iter().map(|row| (row.session.as_str(), row.last_seq.0)).collect::<Vec<_>>(), [("a", 3), ("b", 3)]);
    let rest = reader.sessions(Some(&sessions[1].session), rows(9))?;
    assert_eq!(rest.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["c", "ä"]);
    let operation = OperationId::new("o")?;
    let attempts = reader.attempts(&operation, None, rows(3))?;
    assert_eq!(attempts.iter().map(|row| row.attempt.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(reader.attempts(&operation, Some(&attempts[2].attempt), rows(9))?.len(), 1);
    let open = reader.open_proposals(None, rows(5))?;
    let names = |rows: &[AttemptRow]| rows.iter().map(|row| format!("{}/{}", row.operation, row.attempt)).collect::<Vec<_>>();
    assert_eq!(names(&open), ["a/o", "b/o", "c/o", "o/a", "o/b"]);
    let rest = reader.open_proposals(Some((&open[4].operation, &open[4].attempt)), rows(9))?;
    assert_eq!(names(&rest), ["o/c", "o/ä", "ä/o"]);
    let instances = reader.instances(None, rows(1))?;
    assert_eq!(instances[0].identity, instance("a second"));
    let rest = reader.instances(Some(&instances[0].identity.id), rows(9))?;
    assert_eq!(rest.len(), 1);
    Ok(())
}

fn a_summary_counts(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    assert_eq!(setting.reader()?.summary(None)?, super::Summary::default());
    let gap = Gap {
        id: SignalId::generate(),
        session: id("t")?,
        reason: GapReason::Refused,
        first_at: at(1),
        last_at: at(1),
        known_lost: None,
    };
    let group = [
        append(fact("s", 1)?),
        append(fact("s", 2)?),
        append(about("s", LifecycleKind::OperationProposed, "o", "1")?),
        append(about("t", LifecycleKind::OperationProposed, "p", "1")?),
        append(about("t", LifecycleKind::OperationDenied, "p", "1")?),
        JournalWrite::Gap(gap),
    ];
    writer.commit(&group)?;
    let reader = setting.reader()?;
    let all = reader.summary(None)?;
    assert_eq!((all.sessions, all.facts, all.gaps, all.open_proposals), (2, 6, 1, 1));
    assert_eq!(all.by_kind[&LifecycleKind::MessageAdded.into()], 2);
    assert_eq!(all.by_kind.values().sum::<u64>(), all.facts);
    let one = reader.summary(Some(&id("t")?))?;
    assert_eq!((one.sessions, one.facts, one.gaps, one.open_proposals), (1, 3, 1, 0));
    assert_eq!(reader.summary(Some(&id("nobody")?))?, super::Summary::default());
    let bytes: usize = setting.facts("t")?.iter().map(|fact| fact.signal.payload().wire().len()).sum();
    assert_eq!(one.payload_bytes, bytes as u64);
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
    assert_eq!(again, super::Recovered::default(), "exactly once");
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
    let mut judge = |instance: &super::RuntimeInstance| match instance.identity.id.as_str() {
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

fn faults_refuse_single_writes(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    setting.faults.once_after(FaultPoint::Append, FaultAction::Fail, 1);
    let answers = writer.commit(&[append(fact("s", 1)?), append(fact("s", 2)?), append(fact("s", 3)?)])?;
    assert_eq!(answers[2].as_ref().ok().map(|a| a.seq), Some(SignalSeq(2)));
    match &answers[1] {
        Err(AppendError::Unavailable(cause)) => assert!(matches!(**cause, StoreError::Injected { point: FaultPoint::Append })),
        unexpected => return Err(format!("{unexpected:?}").into()),
    }
    assert_eq!(setting.facts("s")?.len(), 2);
    Ok(())
}

fn a_failed_commit_leaves_nothing(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let group = [append(fact("s", 1)?), append(about("s", LifecycleKind::OperationProposed, "o", "1")?)];
    setting.faults.once(FaultPoint::AppendBeforeCommit, FaultAction::Fail);
    assert!(matches!(writer.commit(&group), Err(StoreError::Injected { .. })));
    assert!(setting.facts("s")?.is_empty() && setting.reader()?.open_proposals(None, rows(9))?.is_empty());
    let answers = writer.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(answers.iter().map(|a| (a.seq.0, a.repeated)).collect::<Vec<_>>(), [(1, false), (2, false)]);
    Ok(())
}

fn a_lost_answer_is_found(setting: &Setting) -> Outcome {
    let mut writer = setting.writer()?;
    let group = [append(fact("s", 1)?), append(about("s", LifecycleKind::OperationProposed, "o", "1")?)];
    setting.faults.once(FaultPoint::AppendAfterCommit, FaultAction::Fail);
    assert!(matches!(writer.commit(&group), Err(StoreError::Injected { .. })));
    let answers = writer.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(answers.iter().map(|a| (a.seq.0, a.repeated)).collect::<Vec<_>>(), [(1, true), (2, true)]);
    assert_eq!(setting.facts("s")?.len(), 2);
    Ok(())
}

fn a_crashed_writer_is_replaced(setting: &Setting) -> Outcome {
    let points = [FaultPoint::Append, FaultPoint::AppendBeforeCommit, FaultPoint::AppendAfterCommit];
    for (n, point) in (0..).zip(points) {
        let mut writer = setting.writer()?;
        let group = [append(fact("s", 2 * n)?), append(fact("s", 2 * n + 1)?)];
        setting.faults.once(point, FaultAction::Panic);
        assert!(catch_unwind(AssertUnwindSafe(|| writer.commit(&group))).is_err());
        drop(writer);
        let answers = setting.writer()?.commit(&group)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let committed = point == FaultPoint::AppendAfterCommit;
        assert_eq!(answers.iter().map(|a| a.repeated).collect::<Vec<_>>(), [committed; 2], "{point}");
    }
    assert_eq!(setting.facts("s")?.len(), 6);
    Ok(())
}

fn a_failed_recovery_goes_on(setting: &Setting) -> Outcome {
    let mut gone = setting.store.open_writer(&instance("gone"))?;
    one(&mut *gone, append(about("s", LifecycleKind::OperationProposed, "o", "1")?))?;
    drop(gone);
    let mut writer = setting.writer()?;
    let mut dead = |_: &super::RuntimeInstance| InstanceVerdict::Dead(DeathEvidence::Rebooted);
    setting.faults.once(FaultPoint::RecoverBeforeCommit, FaultAction::Fail);
    assert!(writer.recover(&mut dead).is_err());
    assert_eq!(setting.facts("s")?.len(), 1, "nothing was written");
    setting.faults.once(FaultPoint::RecoverAfterCommit, FaultAction::Fail);
    assert!(writer.recover(&mut dead).is_err());
    assert_eq!(setting.facts("s")?.len(), 2, "it was written, and only the report is lost");
    assert!(writer.recover(&mut dead)?.closed.is_empty());
    setting.faults.once(FaultPoint::InstanceBeforeCommit, FaultAction::Fail);
    assert!(writer.touch().is_err());
    Ok(writer.touch()?)
}

fn two_writers_interleave(setting: &Setting) -> Outcome {
    const EACH: u64 = 60;
    let write = |name: &str, first: u64| -> Result<Vec<u64>, String> {
        let text = |cause: &dyn Error| cause.to_string();
        let mut writer = setting.store.open_writer(&instance(name)).map_err(|cause| text(&cause))?;
        let mut seqs = Vec::new();
        for n in 0..EACH {
            let write = fact("s", first + n).map(append).map_err(|cause| text(&*cause))?;
            seqs.push(one(&mut *writer, write).map_err(|cause| text(&*cause))?.seq.0);
        }
        Ok(seqs)
    };
    let (left, right) = std::thread::scope(|scope| {
        let other = scope.spawn(|| write("left", 0));
        let right = write("right", EACH);
        (other.join().unwrap_or_else(|_| Err("the other writer panicked".to_owned())), right)
    });
    let (left, right) = (left?, right?);
    assert!(left.is_sorted() && right.is_sorted());
    let mut all = [left, right].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=2 * EACH).collect::<Vec<_>>(), "no position twice, none left out");
    assert_eq!(setting.facts("s")?.len() as u64, 2 * EACH);
    Ok(())
}
