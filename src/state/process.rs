//! What this machine tells about itself and its processes. The only file of the store that reads `/proc`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::instance::{ExecutorIdentity, InstanceIdentity, InstanceVerdict, ProcessSeen, RuntimeInstance, judge};
use crate::clock::Timestamp;
use crate::id::RuntimeInstanceId;

/// Where we are: the identity of this process, and what is needed to judge others of this machine.
///
/// On Linux it is read from `/proc` and `/etc/machine-id`. On another platform only the PID is known, and every other instance is `Unknown`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// This process.
    pub executor: ExecutorIdentity,
    /// When this machine was started, by its wall clock.
    pub booted_at: Option<Timestamp>,
    /// Whether the host id was seen under two boots at once: two machines have it, so that it identifies neither (O-7).
    pub ambiguous_host: bool,
}

impl Here {
    /// Reads it. What cannot be read is `None`, and is never taken for evidence.
    #[must_use]
    pub fn read() -> Self {
        let own = read_stat(Path::new("/proc/self/stat"));
        let executor = ExecutorIdentity {
            host: line("/etc/machine-id"),
            boot: line("/proc/sys/kernel/random/boot_id"),
            pid_namespace: fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into()),
            pid: std::process::id(),
            started_ticks: match own {
                Some(Stat { pid, started_ticks, .. }) if pid == std::process::id() => Some(started_ticks),
                _ => None,
            },
        };
        Self { executor, booted_at: booted_at(), ambiguous_host: false }
    }

    /// Names the host, for containers, whose machine id may be that of their image (O-7).
    #[must_use]
    pub fn on_host(mut self, name: impl Into<Arc<str>>) -> Self {
        self.executor.host = Some(name.into());
        self
    }

    /// Looks for a cloned machine id among known instances: one of this host, under another boot, that was seen after this boot began.
    #[must_use]
    pub fn among<'i>(mut self, known: impl IntoIterator<Item = &'i RuntimeInstance>) -> Self {
        let (ours, booted) = (&self.executor, self.booted_at);
        let cloned = |other: &RuntimeInstance| {
            ours.host.is_some()
                && other.identity.executor.host == ours.host
                && other.identity.executor.boot != ours.boot
                && booted.is_some_and(|booted| other.last_seen_at >= booted)
        };
        self.ambiguous_host = known.into_iter().any(cloned);
        self
    }

    /// A fresh runtime instance of this process, for stores to record.
    #[must_use]
    pub fn instance(&self, program: impl Into<Arc<str>>) -> InstanceIdentity {
        InstanceIdentity { id: RuntimeInstanceId::generate(), executor: self.executor.clone(), program: program.into() }
    }

    /// Judges an instance, looking at its process where the answer depends on it.
    #[must_use]
    pub fn judge(&self, instance: &RuntimeInstance) -> InstanceVerdict {
        judge(instance, self, look)
    }
}

/// Looks at a process of this machine and PID namespace.
///
/// A missing entry of `/proc` is a positive answer only where `/proc` shows every process of our own namespace (O-10): it must show ourselves
/// under our own PID and be mounted without `hidepid`.
fn look(pid: u32) -> ProcessSeen {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => match parse_stat(&text) {
            Some(Stat { state: 'Z' | 'X' | 'x', .. }) => ProcessSeen::Zombie,
            Some(Stat { started_ticks, .. }) => ProcessSeen::Running { started_ticks },
            None => ProcessSeen::Unreadable,
        },
        // Reading the file of a process that ends while it is read gives ESRCH.
        Err(refused) if refused.kind() == std::io::ErrorKind::NotFound && proc_shows_all() => ProcessSeen::Absent,
        Err(_) => ProcessSeen::Unreadable,
    }
}

fn proc_shows_all() -> bool {
    let ours = read_stat(Path::new("/proc/self/stat")).is_some_and(|own| own.pid == std::process::id());
    ours && fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| !hides_processes(&mounts))
}

/// Whether `/proc` is mounted so that processes of others are hidden.
fn hides_processes(mountinfo: &str) -> bool {
    let proc = mountinfo.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"));
    // Without a mount there is nothing to trust.
    proc.is_none_or(|line| line.split([' ', ',']).any(|option| option.starts_with("hidepid=") && option != "hidepid=0"))
}

struct Stat {
    pid: u32,
    state: char,
    started_ticks: u64,
}

fn read_stat(path: &Path) -> Option<Stat> {
    parse_stat(&fs::read_to_string(path).ok()?)
}

/// Reads `pid (name) state ... starttime`. The name may hold blanks and brackets, so the fields are counted from its last bracket.
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, rest) = text.rsplit_once(')')?;
    let (pid, _) = head.split_once(' ')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // `state` is field 3 and `starttime` field 22 of proc(5).
    let started_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { pid: pid.parse().ok()?, state, started_ticks })
}

fn booted_at() -> Option<Timestamp> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let seconds: i64 = text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    seconds.checked_mul(1_000_000).map(Timestamp::from_micros)
}

fn line(path: &str) -> Option<Arc<str>> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.trim();
    (!line.is_empty()).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = parse_stat("77 (a) b (c)) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 9 9").unwrap();
        assert_eq!((stat.pid, stat.state, stat.started_ticks), (77, 'S', 4242));
        assert!(parse_stat("77 (a) S 1").is_none());
    }

    /// O-10: absence needs a positive answer.
    #[test]
    fn a_proc_that_hides_processes_proves_no_absence() {
        assert!(!hides_processes("22 27 0:21 / /proc rw,relatime - proc proc rw"));
        assert!(hides_processes("22 27 0:21 / /proc rw,relatime - proc proc rw,hidepid=2"));
        assert!(hides_processes("22 27 0:21 / /proc rw,relatime - proc proc rw,gid=4,hidepid=invisible"));
        assert!(!hides_processes("22 27 0:21 / /proc rw,relatime - proc proc rw,hidepid=0"));
        assert!(hides_processes("27 1 254:0 / / rw - ext4 /dev/vda rw"), "no /proc at all");
    }

    /// O-9 row 4: we are alive to ourselves.
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_alive() {
        let here = Here::read();
        let at = Timestamp::from_micros(1);
        let identity = here.instance("test");
        let instance = RuntimeInstance { identity, started_at: at, last_seen_at: at, ended_at: None };
        assert_eq!(here.judge(&instance), InstanceVerdict::Alive);
    }
}
