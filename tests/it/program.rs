//! The program `tipstaff`, run in this process, and its journal, read without it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tipstaff::cli::{self, Exit};
use tipstaff_core::id::SessionId;
use tipstaff_core::signal::{LifecycleKind, SignalKind, SignalSeq};
use tipstaff_core::state::{AttemptRow, JournalReader, PageLimit, ReadFilter, Recorded, SqliteOptions, SqliteStore, Store};
use tipstaff_core::testing::{FaultAction, FaultPoint, Faults};

/// What a run printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The one JSON object that was printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"));
        assert!(value.is_object(), "one object: {}", self.out);
        value
    }

    /// The exit code and every one of these texts on standard error.
    #[track_caller]
    pub(crate) fn refuses(&self, exit: Exit, says: &[&str]) {
        assert_eq!(self.exit, exit, "{self:?}");
        for text in says {
            assert!(self.err.contains(text), "{text:?} is not in {:?}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    /// It ended well, and had nothing to say about it.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!((self.exit, self.err.as_str()), (Exit::Done, ""), "{}", self.out);
        self
    }
}

/// Words of a command line.
pub(crate) fn words<T: Into<OsString>>(args: impl IntoIterator<Item = T>) -> Vec<OsString> {
    std::iter::once("tipstaff".into()).chain(args.into_iter().map(Into::into)).collect()
}

/// Runs the program.
pub(crate) fn run<T: Into<OsString>>(args: impl IntoIterator<Item = T>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = cli::run(words(args), &mut out, &mut err);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs the program on a store with fault points.
pub(crate) fn run_with<T: Into<OsString>>(faults: &Faults, args: impl IntoIterator<Item = T>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let open = |path: &Path, options: SqliteOptions| SqliteStore::open_with(path, options.faults(faults.clone()));
    let exit = cli::run_on(words(args), &mut out, &mut err, open);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs `replay` with machine output and a kept store.
pub(crate) fn replay(file: &Path, policy: Option<&Path>, db: &Path) -> Ran {
    let policy = policy.into_iter().flat_map(|policy| ["--policy".into(), policy.as_os_str().to_owned()]);
    run(["replay".into(), file.as_os_str().to_owned(), "--json".into(), "--db".into(), db.as_os_str().to_owned()]
        .into_iter()
        .chain(policy))
}

/// Everything that a journal holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Journal {
    pub(crate) facts: BTreeMap<SessionId, Vec<Recorded>>,
    pub(crate) open: Vec<AttemptRow>,
    pub(crate) gaps: usize,
}

impl Journal {
    /// Reads it all, in pages, and checks that the positions of each session have no hole (L-21).
    pub(crate) fn read(db: &Path) -> Self {
        let store = SqliteStore::open(db).unwrap();
        let reader = store.reader().unwrap();
        let most = std::num::NonZeroU32::new(1_000).unwrap();
        let mut journal = Self { open: reader.open_proposals(None, most).unwrap(), ..Self::default() };
        let mut last = None;
        loop {
            let sessions = reader.sessions(last.as_ref(), most).unwrap();
            let Some(newest) = sessions.last() else { return journal };
            last = Some(newest.session.clone());
            for row in sessions {
                journal.gaps += reader.gaps(&row.session, SignalSeq::START, most).unwrap().len();
                journal.facts.insert(row.session.clone(), facts(&*reader, &row.session));
            }
        }
    }

    /// The facts of all sessions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Recorded> {
        self.facts.values().flatten()
    }

    /// How many facts of each kind there are.
    pub(crate) fn by_kind(&self) -> BTreeMap<String, u64> {
        let mut kinds = BTreeMap::new();
        self.all().for_each(|fact| *kinds.entry(fact.signal.kind().to_string()).or_default() += 1);
        kinds
    }

    /// The proposals.
    pub(crate) fn proposals(&self) -> impl Iterator<Item = &Recorded> {
        self.all().filter(|fact| *fact.signal.kind() == SignalKind::Lifecycle(LifecycleKind::OperationProposed))
    }

    /// The closing facts.
    pub(crate) fn closings(&self) -> Vec<&Recorded> {
        let closes = |fact: &&Recorded| fact.signal.kind().lifecycle().is_some_and(|kind| kind.closes_operation());
        self.all().filter(closes).collect()
    }
}

fn facts(reader: &dyn JournalReader, session: &SessionId) -> Vec<Recorded> {
    let (mut facts, mut after) = (Vec::new(), SignalSeq::START);
    loop {
        let page = reader.read(session, after, &ReadFilter::all(), PageLimit::default()).unwrap();
        for fact in page.facts {
            assert_eq!(fact.seq.0, after.0 + 1, "a hole in {session}");
            after = fact.seq;
            facts.push(fact);
        }
        if !page.more {
            return facts;
        }
    }
}

// ---- the program in a process of its own ----

/// What the child process is told to do: a [`Order`] as JSON.
const CHILD: &str = "TIPSTAFF_TEST_PROGRAM";

/// A run in a child process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) args: Vec<PathBuf>,
    /// The fault point where it stands still, and how often it is passed before.
    pub(crate) halt: Option<(String, u64)>,
    /// Where it tells how it ended.
    pub(crate) told: PathBuf,
}

/// What a child process tells at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) exit: u8,
    pub(crate) out_bytes: usize,
    /// The first 64 KiB.
    pub(crate) out: String,
    pub(crate) err: String,
    /// The most memory that it had resident, in KiB, where the platform tells.
    pub(crate) peak_kib: Option<u64>,
}

/// Starts this very binary in its other role.
#[expect(clippy::disallowed_methods, reason = "tests of kills, of memory and of two programs at once need processes")]
pub(crate) fn spawn(order: &Order) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program::runs_as_told_in_a_child", "--nocapture"])
        .env(CHILD, serde_json::to_string(order).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Runs a child to its end.
#[track_caller]
pub(crate) fn run_child(order: &Order) -> Told {
    told(spawn(order), order)
}

/// Waits for a child.
#[track_caller]
pub(crate) fn told(child: Child, order: &Order) -> Told {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&std::fs::read(&order.told).unwrap()).unwrap()
}

/// The role of a child process; nothing where the binary runs as itself.
#[test]
fn runs_as_told_in_a_child() {
    let Some(order) = order() else { return };
    let faults = Faults::new();
    if let Some((point, skip)) = &order.halt {
        faults.once_after(FaultPoint::parse(point).unwrap(), FaultAction::Halt, *skip);
    }
    let (mut out, mut err) = (Beginning::default(), Vec::new());
    let open = |path: &Path, options: SqliteOptions| SqliteStore::open_with(path, options.faults(faults.clone()));
    let exit = cli::run_on(words(&order.args), &mut out, &mut err, open).code();
    let (out_bytes, out) = (out.bytes, String::from_utf8_lossy(&out.kept).into_owned());
    let told = Told { exit, out_bytes, out, err: String::from_utf8(err).unwrap(), peak_kib: peak_kib() };
    std::fs::write(&order.told, serde_json::to_vec(&told).unwrap()).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the child is told by a variable what to do")]
fn order() -> Option<Order> {
    std::env::var(CHILD).ok().map(|order| serde_json::from_str(&order).unwrap())
}

/// Keeps the beginning of what is written, as a reader of a pipe would not keep it all.
#[derive(Default)]
struct Beginning {
    kept: Vec<u8>,
    bytes: usize,
}

impl Write for Beginning {
    fn write(&mut self, written: &[u8]) -> std::io::Result<usize> {
        self.bytes += written.len();
        let room = (64 * 1024_usize).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&written[..room.min(written.len())]);
        Ok(written.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}
