//! What is on disk after a crash, who may open a file, and what a reopened store knows about who wrote it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use tipstaff_core::clock::Timestamp;
use tipstaff_core::id::{AttemptId, OperationId, SessionId, SignalId};
use tipstaff_core::signal::{LifecycleKind, Payload, PayloadType, Signal, SignalSeq};
use tipstaff_core::state::{
    AppendError, Appended, DeathEvidence, ExecutorIdentity, Gap, GapReason, Here, InstanceIdentity, InstanceVerdict,
    JournalWrite, JournalWriter, Migrate, PageLimit, ReadFilter, SqliteOptions, SqliteStore, Store, StoreError,
};
use tipstaff_core::testing::{FaultAction, FaultPoint, Faults};

/// Facts of one group.
const GROUP: usize = 8;
/// Groups that are confirmed before the fault.
const CONFIRMED: usize = 3;

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn instance(name: &str) -> InstanceIdentity {
    Here::read().instance(name)
}

fn numbered(n: usize) -> JournalWrite {
    let payload = Payload::from_value(PayloadType::new("test.n", 1).unwrap(), json!({ "n": n, "text": "x".repeat(n % 700) }));
    let fact = Signal::builder(session(), LifecycleKind::MessageAdded, Timestamp::from_micros(0)).payload(payload);
    JournalWrite::Append(Arc::new(fact.build()))
}

fn about(kind: LifecycleKind, operation: &str) -> JournalWrite {
    let fact = Signal::builder(session(), kind, Timestamp::from_micros(0));
    let fact = fact.operation(OperationId::new(operation).unwrap()).attempt(AttemptId::new("1").unwrap());
    JournalWrite::Append(Arc::new(fact.build()))
}

fn confirm(writer: &mut dyn JournalWriter, group: &[JournalWrite]) -> Vec<Appended> {
    writer.commit(group).unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

/// The numbers of the recorded facts, in order, with gapless positions.
fn numbers(store: &SqliteStore) -> Vec<u64> {
    let reader = store.reader().unwrap();
    let (mut numbers, mut after) = (Vec::new(), SignalSeq::START);
    loop {
        let page = reader.read(&session(), after, &ReadFilter::all(), PageLimit::default()).unwrap();
        for fact in page.facts {
            assert_eq!(fact.seq.0, after.0 + 1, "L-21: no gap");
            after = fact.seq;
            numbers.extend(fact.signal.payload().value()["n"].as_u64());
        }
        if !page.more {
            return numbers;
        }
    }
}

// ---- kill -9 at every fault point ----

/// What the child does before and after: told by the variable, as `point path`.
const CHILD: &str = "TIPSTAFF_TEST_CRASH_AT";

/// A child process of this very binary that runs one test, this one, in its other role.
#[expect(clippy::disallowed_methods, reason = "a test of what a killed process leaves needs a process")]
fn child(point: FaultPoint, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal_durability::a_killed_process_loses_nothing_that_was_confirmed", "--nocapture"])
        .env(CHILD, format!("{point} {}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the child is told by a variable what to do")]
fn child_order() -> Option<(FaultPoint, PathBuf)> {
    let order = std::env::var(CHILD).ok()?;
    let (point, path) = order.split_once(' ').unwrap();
    Some((FaultPoint::parse(point).unwrap(), path.into()))
}

fn run_child(point: FaultPoint, path: &Path) {
    let faults = Faults::new();
    let store = SqliteStore::open_with(path, SqliteOptions::default().faults(faults.clone())).unwrap();
    let mut writer = store.open_writer(&instance("child")).unwrap();
    confirm(&mut *writer, &[about(LifecycleKind::OperationProposed, "of the child")]);
    let mut out = std::io::stdout();
    for group in 0..CONFIRMED {
        confirm(&mut *writer, &(0..GROUP).map(|n| numbered(group * GROUP + n)).collect::<Vec<_>>());
        writeln!(out, "confirmed {}", (group + 1) * GROUP).unwrap();
    }
    // In the middle of a group where the point is passed for each write.
    let skip = if point == FaultPoint::Append { GROUP as u64 / 2 } else { 0 };
    faults.once_after(point, FaultAction::Halt, skip);
    match point {
        FaultPoint::Append | FaultPoint::AppendBeforeCommit | FaultPoint::AppendAfterCommit => {
            confirm(&mut *writer, &(0..GROUP).map(|n| numbered(CONFIRMED * GROUP + n)).collect::<Vec<_>>());
        }
        FaultPoint::RecoverBeforeCommit | FaultPoint::RecoverAfterCommit => {
            writer.recover(&mut |_| InstanceVerdict::Dead(DeathEvidence::Ended)).unwrap();
        }
        FaultPoint::InstanceBeforeCommit | FaultPoint::InstanceAfterCommit => writer.end().unwrap(),
    }
    panic!("{point} was not reached");
}

/// Reads what the child confirmed until it stands at the point.
fn confirmed_until_halted(child: &mut Child, point: FaultPoint) -> usize {
    let mut confirmed = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(count) = line.strip_prefix("confirmed ") {
            confirmed = count.parse().unwrap();
        }
        // libtest may have begun the line.
        if line.ends_with(&format!("fault point reached: {point}")) {
            return confirmed;
        }
    }
    panic!("the child ended before {point}");
}

/// Spec 9, crash matrix; L-5, L-21, P-9: at each named fault point a process is killed with SIGKILL. What it confirmed is there, no group is
/// half there, its proposal is closed as ambiguous exactly once, and only after it is dead.
#[test]
fn a_killed_process_loses_nothing_that_was_confirmed() {
    if let Some((point, path)) = child_order() {
        run_child(point, &path);
    }
    for point in FaultPoint::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = SqliteStore::open(&path).unwrap();
        // Somebody else's open proposal, for the recovery of the child.
        confirm(&mut *store.open_writer(&instance("earlier")).unwrap(), &[about(LifecycleKind::OperationProposed, "earlier")]);

        let mut child = child(point, &path);
        let confirmed = confirmed_until_halted(&mut child, point);
        assert_eq!(confirmed, CONFIRMED * GROUP);
        let reader = store.reader().unwrap();
        let owner = reader.instances(None, 9.try_into().unwrap()).unwrap();
        let owner = owner.iter().find(|instance| &*instance.identity.program == "child").unwrap();
        let ended = owner.ended_at.is_some();
        assert_eq!(ended, point == FaultPoint::InstanceAfterCommit, "{point}");
        if !ended {
            assert_eq!(Here::read().judge(owner), InstanceVerdict::Alive, "{point}: it stands there and lives");
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "{point}: it died of the kill");

        let extra = if point == FaultPoint::AppendAfterCommit { GROUP } else { 0 };
        let expected: Vec<u64> = (0..(confirmed + extra) as u64).collect();
        assert_eq!(numbers(&store), expected, "{point}: what was confirmed, and whole groups only");

        let evidence = if ended { DeathEvidence::Ended } else { DeathEvidence::NoProcess };
        let mut writer = store.open_writer(&instance("next")).unwrap();
        let mut judge = |instance: &_| Here::read().judge(instance);
        let recovered = writer.recover(&mut judge).unwrap();
        let closed: Vec<_> = recovered.closed.iter().map(|closed| closed.operation.as_str()).collect();
        assert_eq!(closed, ["of the child"], "{point}");
        let verdict = recovered.judged.iter().find(|(instance, _)| instance.identity.id == owner.identity.id).unwrap().1;
        assert_eq!(verdict, InstanceVerdict::Dead(evidence), "{point}");
        assert!(writer.recover(&mut judge).unwrap().closed.is_empty(), "{point}: exactly once");
        let taken = if point == FaultPoint::RecoverAfterCommit { 0 } else { 1 };
        assert_eq!(
            recovered.left_open, taken,
            "{point}: the proposal of this living process is left, unless the child closed it"
        );
    }
}

// ---- the log cut at any length ----

/// Spec 9, crash matrix: a power loss leaves a beginning of the log. Whole transactions are there, in order, and only a tail is missing.
#[test]
fn a_log_cut_anywhere_leaves_a_prefix_of_whole_groups() {
    const GROUPS: usize = 24;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = store.open_writer(&instance("writer")).unwrap();
    let mut whole = vec![0];
    for group in 0..GROUPS {
        let size = 1 + group % 5;
        let first = whole[group];
        confirm(&mut *writer, &(first..first + size).map(numbered).collect::<Vec<_>>());
        whole.push(first + size);
    }
    let (database, log) = (fs::read(&path).unwrap(), fs::read(with_suffix(&path, "-wal")).unwrap());
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut lengths: Vec<usize> = (0..60)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 16) as usize % log.len()
        })
        .collect();
    lengths.extend([0, 31, 32, log.len()]);
    lengths.sort_unstable();
    let mut seen = 0;
    for length in lengths {
        let copy = folder.path().join("copy.db");
        fs::write(&copy, &database).unwrap();
        fs::write(with_suffix(&copy, "-wal"), &log[..length]).unwrap();
        let _ = fs::remove_file(with_suffix(&copy, "-shm"));
        let found = numbers(&SqliteStore::open(&copy).unwrap());
        assert!(whole.contains(&found.len()), "cut at {length}: {} facts are no whole groups", found.len());
        assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "cut at {length}");
        assert!(found.len() >= seen, "a longer log never knows less");
        seen = found.len();
    }
    assert_eq!(seen, whole[GROUPS], "the whole log has everything");
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

// ---- files ----

/// P-15: store files are their owner's alone.
#[test]
fn store_files_have_mode_0600() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = store.open_writer(&instance("writer")).unwrap();
    confirm(&mut *writer, &[numbered(0)]);
    for suffix in ["", "-wal", "-shm"] {
        let mode = fs::metadata(with_suffix(&path, suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
    assert!(store.size().unwrap().wal_bytes > 0);
    writer.checkpoint_when_idle().unwrap();
    assert_eq!(store.size().unwrap().wal_bytes, 0, "a quiet moment folds the log in");
    assert_eq!(numbers(&store), [0]);
}

fn refusal(path: &Path) -> StoreError {
    SqliteStore::open(path).err().expect("the file is refused")
}

/// L-22, spec 4: a file that is not to be used is refused with its name and a remedy, and is not changed.
#[test]
fn a_file_that_is_no_store_of_ours_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);

    let missing = refusal(&at("none/s.db"));
    assert!(matches!(&missing, StoreError::MissingFolder { .. }), "{missing}");
    assert!(missing.to_string().contains("create it"), "{missing}");
    assert!(matches!(refusal(folder.path()), StoreError::NotAFile { what: "a folder", .. }));

    let text = at("text.db");
    fs::write(&text, "this is a text of more than sixteen bytes").unwrap();
    assert!(matches!(refusal(&text), StoreError::NotADatabase { .. }));
    assert_eq!(fs::read_to_string(&text).unwrap(), "this is a text of more than sixteen bytes");

    let other = at("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("PRAGMA application_id = 7; CREATE TABLE t (x)").unwrap();
    let before = fs::read(&other).unwrap();
    assert!(matches!(refusal(&other), StoreError::OtherProgram { application_id: 7, .. }));
    assert_eq!(fs::read(&other).unwrap(), before);
    let unmarked = at("unmarked.db");
    rusqlite::Connection::open(&unmarked).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(matches!(refusal(&unmarked), StoreError::OtherProgram { application_id: 0, .. }));

    let sealed = at("sealed.db");
    drop(SqliteStore::open(&sealed).unwrap());
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o400)).unwrap();
    let refused = refusal(&sealed);
    assert!(matches!(&refused, StoreError::ReadOnly { .. }) && refused.to_string().contains("sealed.db"), "{refused}");

    let empty = at("empty.db");
    fs::write(&empty, "").unwrap();
    assert!(SqliteStore::open(&empty).is_ok(), "an empty file becomes a store");
}

/// Spec 4, State: a newer schema is refused with both versions, an older one is migrated only if asked, a changed migration is refused.
#[test]
fn schemas_that_this_program_does_not_know_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).unwrap();
    confirm(&mut *store.open_writer(&instance("writer")).unwrap(), &[numbered(0)]);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let known: u32 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();

    raw.pragma_update(None, "user_version", known + 5).unwrap();
    let refused = refusal(&path);
    assert!(matches!(refused, StoreError::NewerSchema { found, known: ours, .. } if found == known + 5 && ours == known));
    let text = refused.to_string();
    assert!(text.contains(&(known + 5).to_string()) && text.contains(&known.to_string()) && text.contains("upgrade"), "{text}");
    // Also for a store that was open when another program migrated the file.
    assert!(matches!(store.open_writer(&instance("late")).err(), Some(StoreError::NewerSchema { .. })));

    raw.pragma_update(None, "user_version", known - 1).unwrap();
    let refusing = || SqliteOptions::default().migrate(Migrate::Refused);
    let refused = SqliteStore::open_with(&path, refusing()).err();
    assert!(matches!(refused, Some(StoreError::OlderSchema { found, .. }) if found == known - 1));
    assert!(SqliteStore::open_with(folder.path().join("new.db"), refusing()).is_ok(), "a new file is no older one");

    raw.pragma_update(None, "user_version", known).unwrap();
    assert_eq!(numbers(&SqliteStore::open(&path).unwrap()), [0]);
    raw.execute("UPDATE tipstaff_schema SET checksum = 'sha256:0' WHERE version = ?1", [known]).unwrap();
    assert!(matches!(refusal(&path), StoreError::OtherMigration { version, .. } if version == known));
}

/// L-22: several stores, and several processes, may open, create and write one file at the same time; nobody is told that it is busy.
#[test]
fn stores_on_one_file_take_turns() {
    const STORES: usize = 6;
    const EACH: usize = 15;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    std::thread::scope(|scope| {
        for number in 0..STORES {
            let path = &path;
            scope.spawn(move || {
                let store = SqliteStore::open(path).unwrap();
                let mut writer = store.open_writer(&instance("one of several")).unwrap();
                for n in 0..EACH {
                    confirm(&mut *writer, &[numbered(number * EACH + n)]);
                }
            });
        }
    });
    let mut found = numbers(&SqliteStore::open(&path).unwrap());
    found.sort_unstable();
    assert_eq!(found, (0..(STORES * EACH) as u64).collect::<Vec<_>>());
}

/// Spec 4, State: each write stands alone. What the database refuses in the middle of a write undoes that write and no other; what ends the
/// transaction is the failure of the whole group.
#[test]
fn a_write_that_the_database_refuses_halfway_is_undone_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = store.open_writer(&instance("writer")).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    let large = Payload::from_value(PayloadType::new("test.text", 1).unwrap(), json!("x".repeat(300 << 10)));
    let large = Signal::builder(session(), LifecycleKind::MessageAdded, Timestamp::from_micros(0)).payload(large).build();
    let gap = Gap {
        id: SignalId::generate(),
        session: session(),
        reason: GapReason::QueueFull,
        first_at: Timestamp::from_micros(0),
        last_at: Timestamp::from_micros(0),
        known_lost: None,
    };
    let second_statements = [
        ("attempts", about(LifecycleKind::OperationProposed, "o")),
        ("large_payloads", JournalWrite::Append(Arc::new(large))),
        ("capture_gaps", JournalWrite::Gap(gap)),
    ];
    for (round, (table, refused)) in second_statements.into_iter().enumerate() {
        raw.execute_batch(&format!("CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END")).unwrap();
        let answers = writer.commit(&[numbered(2 * round), refused.clone(), numbered(2 * round + 1)]).unwrap();
        assert!(answers[0].is_ok() && answers[2].is_ok(), "{table}");
        assert!(matches!(answers[1], Err(AppendError::Unavailable(_))), "{table}");
        assert_eq!(numbers(&store).len(), 2 * round + 2, "{table}: nothing of it is there, and it took no position");

        raw.execute_batch(&format!(
            "DROP TRIGGER no; CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT RAISE(ROLLBACK, 'no'); END"
        ))
        .unwrap();
        assert!(writer.commit(&[numbered(90), refused, numbered(91)]).is_err(), "{table}: the transaction is gone");
        assert_eq!(numbers(&store).len(), 2 * round + 2, "{table}");
        raw.execute_batch("DROP TRIGGER no").unwrap();
    }
    assert!(store.reader().unwrap().open_proposals(None, 9.try_into().unwrap()).unwrap().is_empty());
}

/// P-11: a payload that was changed on disk is not handed out as the fact's.
#[test]
fn a_damaged_row_is_named_and_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).unwrap();
    let large = Payload::from_value(PayloadType::new("test.text", 1).unwrap(), json!("x".repeat(300 << 10)));
    let large = Signal::builder(session(), LifecycleKind::MessageAdded, Timestamp::from_micros(0)).payload(large).build();
    let mut writer = store.open_writer(&instance("writer")).unwrap();
    confirm(&mut *writer, &[numbered(0), JournalWrite::Append(Arc::new(large)), numbered(1)]);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let changes = [
        "UPDATE large_payloads SET body = '\"y' || substr(body, 3)",
        "UPDATE large_payloads SET body = substr(body, 1, 100)",
        "DELETE FROM large_payloads",
        "UPDATE signals SET payload = '{' WHERE seq = 2",
        "UPDATE signals SET role = '' WHERE seq = 2",
    ];
    for change in changes {
        assert_eq!(raw.execute(change, []).unwrap(), 1, "{change}");
        let reader = store.reader().unwrap();
        let read = |after| reader.read(&session(), SignalSeq(after), &ReadFilter::all(), PageLimit::default());
        let refused = read(0).unwrap_err().to_string();
        assert!(refused.contains("position 2 of session s"), "{change}: {refused}");
        assert_eq!(read(2).unwrap().facts.len(), 1, "a reader can go on behind it");
    }
}

/// O-9, L-22: the identity of a process that is gone is positive evidence; a foreign one is none.
#[test]
fn a_gone_process_is_dead_and_a_foreign_one_is_unknown() {
    let here = Here::read();
    let recorded = |executor: ExecutorIdentity| {
        let store = tipstaff_core::state::MemoryStore::new();
        store.open_writer(&InstanceIdentity { executor, ..instance("somebody") }).unwrap();
        store.reader().unwrap().instances(None, 1.try_into().unwrap()).unwrap().remove(0)
    };
    let ours = here.executor.clone();
    let gone = recorded(ExecutorIdentity { pid: u32::MAX >> 1, ..ours.clone() });
    assert_eq!(here.judge(&gone), InstanceVerdict::Dead(DeathEvidence::NoProcess));
    let reused = recorded(ExecutorIdentity { started_ticks: ours.started_ticks.map(|ticks| ticks + 1), ..ours.clone() });
    assert_eq!(here.judge(&reused), InstanceVerdict::Dead(DeathEvidence::PidReused));
    let foreign = recorded(ExecutorIdentity { host: Some("another".into()), ..ours });
    assert!(matches!(here.judge(&foreign), InstanceVerdict::Unknown(_)));
}

/// L-22: stores that are opened at once on one new file, as two programs do that start together, all open; none is told that the file is busy.
#[test]
fn stores_that_are_opened_at_once_on_a_new_file_all_open() {
    for round in 0..10 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("new.db");
        let together = std::sync::Barrier::new(8);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                together.wait();
                SqliteStore::open(&path).map(drop)
            };
            let openers: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            openers.into_iter().map(|opener| opener.join().expect("opening does not panic")).collect()
        });
        assert!(opened.iter().all(Result::is_ok), "round {round}: {opened:?}");
    }
}
