//! What readers get, and how much at a time.

use std::error::Error;
use std::num::NonZeroU64;

use super::suite::{Case, Outcome, Setting, about, append, at, fact, id, instance, one, rows};
use crate::id::{AttemptId, InvocationId, OperationId, SignalId};
use crate::signal::{EmitterRole, LifecycleKind, Signal, SignalKind, SignalSeq};
use crate::state::{AttemptRow, Gap, GapReason, JournalWrite, MAX_SCAN, PageLimit, ReadFilter, Summary};

pub(super) const CASES: &[(&str, Case)] = &[
    ("pages forward meet every fact once", pages_meet_every_fact_once),
    ("a page is bounded by rows, bytes and range", pages_are_bounded),
    ("filters let through what they say", filters_agree),
    ("lists come in pages", lists_come_in_pages),
    ("a summary counts what is there", a_summary_counts),
];

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
    assert_eq!(setting.reader()?.summary(None)?, Summary::default());
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
    assert_eq!(reader.summary(Some(&id("nobody")?))?, Summary::default());
    let bytes: usize = setting.facts("t")?.iter().map(|fact| fact.signal.payload().wire().len()).sum();
    assert_eq!(one.payload_bytes, bytes as u64);
    Ok(())
}
