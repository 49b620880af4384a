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
