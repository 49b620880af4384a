//! Fault points, lost answers, replaced writers and writers side by side.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::suite::{Case, Outcome, Setting, about, append, fact, instance, one, rows};
use crate::signal::{LifecycleKind, SignalSeq};
use crate::state::{AppendError, DeathEvidence, InstanceVerdict, RuntimeInstance, StoreError};
use crate::testing::{FaultAction, FaultPoint};

pub(super) const CASES: &[(&str, Case)] = &[
    ("a refused append is the answer of that write alone", faults_refuse_single_writes),
    ("a failed commit leaves nothing", a_failed_commit_leaves_nothing),
    ("a lost answer is found by trying again", a_lost_answer_is_found),
    ("a writer that panicked is replaced", a_crashed_writer_is_replaced),
    ("a failed recovery goes on at the next", a_failed_recovery_goes_on),
    ("two writers interleave (L-22)", two_writers_interleave),
];

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
    let mut dead = |_: &RuntimeInstance| InstanceVerdict::Dead(DeathEvidence::Rebooted);
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
