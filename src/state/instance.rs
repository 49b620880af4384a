//! Runtime instances: who opened a store, and whether it is positively dead (L-22, O-7 to O-9).
//!
//! Pure: reading the machine is [`Here`]'s work. First match wins:
//!
//! | # | condition                                                                   | verdict                   |
//! |---|-----------------------------------------------------------------------------|---------------------------|
//! | 1 | it closed its record itself                                                 | `Dead(Ended)`             |
//! | 2 | its host or ours is unknown, or they differ                                 | `Unknown(Foreign)`        |
//! | 3 | one of the two boots is unknown                                             | `Unknown(NoIdentity)`     |
//! | 4 | other boot, and this host id was seen under two boots at once               | `Unknown(AmbiguousHost)`  |
//! | 5 | other boot, and this boot began after it was last seen / else               | `Dead(Rebooted)` / `Unknown(AmbiguousHost)` |
//! | 6 | its PID namespace or ours is unknown, or they differ                        | `Unknown(Foreign)`        |
//! | 7 | positively no such process, or a zombie                                     | `Dead(NoProcess)`         |
//! | 8 | the process is there, one creation time is unknown                          | `Unknown(NoIdentity)`     |
//! | 9 | the process is there with the recorded creation time / another one          | `Alive` / `Dead(PidReused)` |
//! | 10| the process cannot be looked at                                             | `Unknown(Unreadable)`     |

use std::sync::Arc;

use super::Here;
use crate::clock::Timestamp;
use crate::id::RuntimeInstanceId;

/// A runtime instance as a store recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeInstance {
    /// Who it is.
    pub identity: InstanceIdentity,
    /// When it opened the store, by the store's clock.
    pub started_at: Timestamp,
    /// When it was last seen, by the store's clock.
    pub last_seen_at: Timestamp,
    /// When it closed its record. `None` for one that runs, and for one that was killed.
    pub ended_at: Option<Timestamp>,
}

/// Who opens a store.
///
/// A program makes one per runtime ([`Here::instance`]) and hands it to every writer that it opens, so that a restarted writer goes on under the
/// same record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceIdentity {
    /// A random identity: never a host name or a PID, which are used again.
    pub id: RuntimeInstanceId,
    /// Which process it is.
    pub executor: ExecutorIdentity,
    /// The program's name, for people.
    pub program: Arc<str>,
}

/// Which process something runs in, so that a later process can tell whether it is still there (O-7). What a platform does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorIdentity {
    /// The machine id, or a configured name. Never a host name.
    pub host: Option<Arc<str>>,
    /// The boot id of the machine.
    pub boot: Option<Arc<str>>,
    /// The PID namespace.
    pub pid_namespace: Option<Arc<str>>,
    /// The process.
    pub pid: u32,
    /// When the process was created, in clock ticks since the boot.
    pub started_ticks: Option<u64>,
}

/// What is known about an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceVerdict {
    /// Its process runs.
    Alive,
    /// It is positively dead.
    Dead(DeathEvidence),
    /// Nothing is known, which is never evidence of death.
    Unknown(UnknownBecause),
}

/// What shows that an instance is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeathEvidence {
    /// It closed its record.
    Ended,
    /// Its machine was started again since.
    Rebooted,
    /// Its process is gone.
    NoProcess,
    /// Another process has its PID.
    PidReused,
}

impl DeathEvidence {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Rebooted => "rebooted",
            Self::NoProcess => "no_process",
            Self::PidReused => "pid_reused",
        }
    }
}

/// Why nothing is known about an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnknownBecause {
    /// It belongs to another host or PID namespace: only a process there can judge it.
    Foreign,
    /// Its host id is used by two machines.
    AmbiguousHost,
    /// Its identity, or ours, is incomplete.
    NoIdentity,
    /// The process cannot be looked at.
    Unreadable,
}

/// What a look at a PID of this machine found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessSeen {
    /// A process that is no zombie, with its creation time in clock ticks since the boot.
    Running {
        /// The creation time.
        started_ticks: u64,
    },
    /// A process that has ended and is not yet reaped.
    Zombie,
    /// Positively none.
    Absent,
    /// It cannot be said.
    Unreadable,
}

/// Judges an instance from here. The process is looked at only where the answer depends on it.
#[must_use]
pub fn judge(instance: &RuntimeInstance, here: &Here, look: impl FnOnce(u32) -> ProcessSeen) -> InstanceVerdict {
    use InstanceVerdict::{Alive, Dead, Unknown};

    let (theirs, ours) = (&instance.identity.executor, &here.executor);
    if instance.ended_at.is_some() {
        return Dead(DeathEvidence::Ended);
    }
    match same(&theirs.host, &ours.host) {
        Some(true) => {}
        Some(false) | None => return Unknown(UnknownBecause::Foreign),
    }
    match same(&theirs.boot, &ours.boot) {
        None => return Unknown(UnknownBecause::NoIdentity),
        Some(true) => {}
        Some(false) if here.ambiguous_host => return Unknown(UnknownBecause::AmbiguousHost),
        Some(false) => {
            return match here.booted_at {
                Some(booted) if booted > instance.last_seen_at => Dead(DeathEvidence::Rebooted),
                Some(_) => Unknown(UnknownBecause::AmbiguousHost),
                None => Unknown(UnknownBecause::NoIdentity),
            };
        }
    }
    match same(&theirs.pid_namespace, &ours.pid_namespace) {
        Some(true) => {}
        Some(false) | None => return Unknown(UnknownBecause::Foreign),
    }
    match (look(theirs.pid), theirs.started_ticks) {
        (ProcessSeen::Absent | ProcessSeen::Zombie, _) => Dead(DeathEvidence::NoProcess),
        (ProcessSeen::Unreadable, _) => Unknown(UnknownBecause::Unreadable),
        (ProcessSeen::Running { .. }, None) => Unknown(UnknownBecause::NoIdentity),
        (ProcessSeen::Running { started_ticks }, Some(recorded)) if started_ticks == recorded => Alive,
        (ProcessSeen::Running { .. }, Some(_)) => Dead(DeathEvidence::PidReused),
    }
}

/// Whether two identities agree; `None` when one of them is unknown.
fn same(theirs: &Option<Arc<str>>, ours: &Option<Arc<str>>) -> Option<bool> {
    Some(theirs.as_ref()? == ours.as_ref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use InstanceVerdict::{Alive, Dead, Unknown};

    const BOOTED: i64 = 1_000;

    fn executor(host: &str, boot: &str, namespace: &str) -> ExecutorIdentity {
        let text = |text: &str| (!text.is_empty()).then(|| text.into());
        ExecutorIdentity { host: text(host), boot: text(boot), pid_namespace: text(namespace), pid: 7, started_ticks: Some(42) }
    }

    fn here() -> Here {
        let booted_at = Some(Timestamp::from_micros(BOOTED));
        Here { executor: executor("host", "boot", "ns"), booted_at, ambiguous_host: false }
    }

    fn recorded(executor: ExecutorIdentity, last_seen: i64) -> RuntimeInstance {
        let identity = InstanceIdentity { id: RuntimeInstanceId::generate(), executor, program: "test".into() };
        let last_seen_at = Timestamp::from_micros(last_seen);
        RuntimeInstance { identity, started_at: last_seen_at, last_seen_at, ended_at: None }
    }

    fn verdict(instance: &RuntimeInstance, here: &Here, seen: Option<ProcessSeen>) -> InstanceVerdict {
        judge(instance, here, |pid| {
            assert_eq!(pid, 7);
            seen.expect("the answer does not depend on the process")
        })
    }

    /// O-2, O-7, O-9, L-22: the table at the top of the file, row by row.
    #[test]
    fn unknown_is_never_dead_and_dead_is_positive() {
        let ours = || recorded(executor("host", "boot", "ns"), 2_000);
        let running = |started_ticks| Some(ProcessSeen::Running { started_ticks });
        let closed = RuntimeInstance { ended_at: Some(Timestamp::from_micros(1)), ..recorded(executor("other", "", ""), 1) };
        assert_eq!(verdict(&closed, &here(), None), Dead(DeathEvidence::Ended), "1");
        for foreign in ["other", ""] {
            assert_eq!(
                verdict(&recorded(executor(foreign, "boot", "ns"), 1), &here(), None),
                Unknown(UnknownBecause::Foreign),
                "2"
            );
        }
        let nowhere = Here { executor: executor("", "boot", "ns"), ..here() };
        assert_eq!(
            verdict(&recorded(executor("", "boot", "ns"), 1), &nowhere, None),
            Unknown(UnknownBecause::Foreign),
            "2: two unknowns"
        );
        assert_eq!(verdict(&recorded(executor("host", "", "ns"), 1), &here(), None), Unknown(UnknownBecause::NoIdentity), "3");
        let cloned = Here { ambiguous_host: true, ..here() };
        let before = recorded(executor("host", "earlier", "ns"), BOOTED - 1);
        assert_eq!(verdict(&before, &cloned, None), Unknown(UnknownBecause::AmbiguousHost), "4");
        assert_eq!(verdict(&before, &here(), None), Dead(DeathEvidence::Rebooted), "5");
        let since = recorded(executor("host", "earlier", "ns"), BOOTED);
        assert_eq!(verdict(&since, &here(), None), Unknown(UnknownBecause::AmbiguousHost), "5: seen after this boot began");
        let timeless = Here { booted_at: None, ..here() };
        assert_eq!(verdict(&before, &timeless, None), Unknown(UnknownBecause::NoIdentity), "5: no boot time");
        for foreign in ["other", ""] {
            assert_eq!(
                verdict(&recorded(executor("host", "boot", foreign), 1), &here(), None),
                Unknown(UnknownBecause::Foreign),
                "6"
            );
        }
        assert_eq!(verdict(&ours(), &here(), Some(ProcessSeen::Absent)), Dead(DeathEvidence::NoProcess), "7");
        assert_eq!(verdict(&ours(), &here(), Some(ProcessSeen::Zombie)), Dead(DeathEvidence::NoProcess), "7");
        let mut untimed = ours();
        untimed.identity.executor.started_ticks = None;
        assert_eq!(verdict(&untimed, &here(), running(42)), Unknown(UnknownBecause::NoIdentity), "8");
        assert_eq!(verdict(&ours(), &here(), running(42)), Alive, "9");
        assert_eq!(verdict(&ours(), &here(), running(43)), Dead(DeathEvidence::PidReused), "9");
        assert_eq!(verdict(&ours(), &here(), Some(ProcessSeen::Unreadable)), Unknown(UnknownBecause::Unreadable), "10");
    }

    /// O-7: a machine id that was cloned identifies nobody.
    #[test]
    fn a_host_seen_under_two_boots_at_once_is_ambiguous() {
        let earlier = recorded(executor("host", "earlier", "ns"), BOOTED - 1);
        let twin = recorded(executor("host", "twin", "ns"), BOOTED + 5);
        let other = recorded(executor("other", "twin", "ns"), BOOTED + 5);
        assert!(!here().among([&earlier, &other]).ambiguous_host);
        assert!(here().among([&earlier, &twin]).ambiguous_host);
    }
}
