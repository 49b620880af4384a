//! A replay that goes on where an earlier one ended, or was killed: the same call is the same operation, and nothing is told twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tipstaff::cli::Exit;
use tipstaff_core::testing::FaultPoint;

use crate::program::{self, Journal, Order};
use crate::sessions;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

fn guardrails() -> PathBuf {
    sample("policies/guardrails.toml")
}

/// What a journal says, without what depends on when it was written: facts of the transcript by identity, and each operation's decision.
#[derive(Debug, PartialEq)]
struct Held {
    signals: BTreeSet<(String, String)>,
    decisions: BTreeMap<String, Value>,
}

/// The facts that only tell how far a file was, or where an operation's late result stands.
const OF_AN_END: [&str; 2] = ["transcript.session_ended", "transcript.result"];

fn held(report: &Value, db: &Path) -> Held {
    let journal = Journal::read(db);
    assert_eq!((journal.gaps, journal.open.len()), (0, 0));
    let user = |fact: &&tipstaff_core::state::Recorded| fact.signal.kind().as_str().starts_with("transcript.");
    let mut signals = BTreeSet::new();
    for fact in journal.all().filter(user).filter(|fact| !OF_AN_END.contains(&fact.signal.kind().as_str())) {
        let is_new = signals.insert((fact.signal.kind().to_string(), fact.signal.id().to_string()));
        assert!(is_new, "{fact:?} is there twice");
    }
    let mut decisions = BTreeMap::new();
    for decision in report["decisions"].as_array().unwrap() {
        let mut decision = decision.clone();
        decision.as_object_mut().unwrap().remove("file");
        let earlier = decisions.insert(decision["operation"].as_str().unwrap().to_owned(), decision);
        assert!(earlier.is_none(), "{earlier:?} is decided twice");
    }
    Held { signals, decisions }
}

/// The operations whose results came after an end of the file.
fn late_results(journal: &Journal) -> BTreeSet<String> {
    let results = journal.all().filter(|fact| fact.signal.kind().as_str() == "transcript.result");
    results.map(|fact| fact.signal.payload().value()["operation"].as_str().unwrap().to_owned()).collect()
}

/// Compares a replay in pieces with one whole replay. A call that was open at a cut ended as ambiguous, and its result is on record as a signal.
#[track_caller]
fn assert_same(pieces: (&Value, &Path), whole: (&Value, &Path)) {
    let (mut got, expected) = (held(pieces.0, pieces.1), held(whole.0, whole.1));
    let late = late_results(&Journal::read(pieces.1));
    for (operation, decision) in &mut got.decisions {
        let expected = &expected.decisions[operation];
        if decision["outcome"] == "ambiguous: end_of_file" && expected["outcome"] != decision["outcome"] {
            assert!(late.contains(operation), "the late result of {operation} is on record");
            decision["outcome"] = expected["outcome"].clone();
        }
    }
    assert_eq!(got, expected);
}

/// 10-cli: "re-running on a grown file continues". The file is cut behind every record, and in the middle of it.
fn grows_to_the_same(sample_name: &str) {
    let (text, folder) = (fs::read(sample(sample_name)).unwrap(), tempfile::tempdir().unwrap());
    let name = Path::new(sample_name).file_name().unwrap();
    let (transcript, policy) = (folder.path().join(name), guardrails());
    let (whole_db, pieces_db) = (folder.path().join("whole.db"), folder.path().join("pieces.db"));

    let ends: Vec<usize> = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let mut replayed = 0;
    for (n, end) in ends.iter().enumerate() {
        // Every other time half of the next record is there too.
        let half = if n % 2 == 1 { ends.get(n + 1).map_or(0, |next| (next - end) / 2) } else { 0 };
        fs::write(&transcript, &text[..end + half]).unwrap();
        let ran = program::replay(&transcript, Some(&policy), &pieces_db);
        // The first records may not tell yet who wrote them.
        assert!(ran.exit == Exit::Done || (replayed == 0 && ran.exit == Exit::Refused), "{ran:?}");
        replayed += usize::from(ran.exit == Exit::Done);
    }
    assert!(replayed * 10 > ends.len() * 8, "{replayed} of {} beginnings were replayed", ends.len());
    fs::write(&transcript, &text).unwrap();
    let pieces = program::replay(&transcript, Some(&policy), &pieces_db).done().json();
    let whole = program::replay(&transcript, Some(&policy), &whole_db).done().json();
    assert_same((&pieces, &pieces_db), (&whole, &whole_db));
}

#[test]
fn a_grown_claude_session_ends_as_if_it_had_been_whole() {
    grows_to_the_same("sessions/claude/release-day.jsonl");
}

#[test]
fn a_grown_codex_session_ends_as_if_it_had_been_whole() {
    grows_to_the_same("sessions/codex/rollout-2026-03-03T14-00-00-019cb3f0-5a10-7c44-9b21-3d5e7f901234.jsonl");
}

/// I-12: the same call under the same policy is the same attempt; under another policy it is a new one, and the old one stays.
#[test]
fn a_second_replay_adds_nothing_and_a_changed_policy_adds_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let (sessions, policy, db) = (sample("sessions"), guardrails(), folder.path().join("journal.db"));
    let first = program::replay(&sessions, Some(&policy), &db).done().json();
    let after_first = Journal::read(&db);
    let again = program::replay(&sessions, Some(&policy), &db).done().json();
    assert_eq!(after_first, Journal::read(&db), "nothing was added");
    for member in ["decisions", "files", "first_divergence"] {
        assert_eq!(first[member], again[member], "and the report is the same");
    }

    let audit = sample("policies/audit.toml");
    let other = program::replay(&sessions, Some(&audit), &db).done().json();
    assert_eq!(first["decisions"].as_array().unwrap().len(), other["decisions"].as_array().unwrap().len());
    assert!(other["decisions"].as_array().unwrap().iter().all(|decision| decision["decision"] == "allow"));
    let both = Journal::read(&db);
    assert_eq!(both.proposals().count(), 2 * after_first.proposals().count());
    for (session, facts) in &after_first.facts {
        assert_eq!(facts[..], both.facts[session][..facts.len()], "what was recorded stands");
    }

    let first_again = program::replay(&sessions, Some(&policy), &db).done().json();
    assert_eq!(first_again["decisions"], first["decisions"], "a policy is shown its own decisions");
    assert_eq!(both, Journal::read(&db));
}

/// P-9, P-2: a replay that was killed at any point leaves nothing open for good, and the next one decides each call exactly once.
#[test]
fn a_killed_replay_is_taken_up_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join("session.jsonl");
    sessions::write_calls(&transcript, 2 * 1024 * 1024, 0);
    let policy = guardrails();
    let whole_db = folder.path().join("whole.db");
    let whole = program::replay(&transcript, Some(&policy), &whole_db).done().json();
    for (n, (point, skip)) in [(FaultPoint::Append, 700), (FaultPoint::AppendBeforeCommit, 2), (FaultPoint::AppendAfterCommit, 1)]
        .into_iter()
        .enumerate()
    {
        let db = folder.path().join(format!("{n}.db"));
        let args: Vec<PathBuf> =
            ["replay".into(), transcript.clone(), "--policy".into(), policy.clone(), "--db".into(), db.clone()].into();
        kill_at(&Order { args, halt: Some((point.to_string(), skip)), told: folder.path().join("never") }, point);
        let left = Journal::read(&db);
        assert!(
            left.all().next().is_some() && left.proposals().count() < whole["decisions"].as_array().unwrap().len(),
            "{point}: in the middle"
        );

        let resumed = program::replay(&transcript, Some(&policy), &db).done().json();
        let (mut got, mut expected) = (held(&resumed, &db), held(&whole, &whole_db));
        // A call that is tried again comes later in the journal, so that others may have diverged before it.
        for decision in got.decisions.values_mut().chain(expected.decisions.values_mut()) {
            decision.as_object_mut().unwrap().remove("counterfactual");
        }
        assert_eq!(got, expected, "{point}");
        let again = Journal::read(&db);
        assert_eq!(again.proposals().count(), again.closings().len(), "{point}");
        program::replay(&transcript, Some(&policy), &db).done();
        assert_eq!(again, Journal::read(&db), "{point}: the next one finds nothing to do");
    }
}

/// Starts a child that stands still at a point, and kills it there.
fn kill_at(order: &Order, point: FaultPoint) {
    let mut child = program::spawn(order);
    let reached = format!("fault point reached: {point}");
    let is_there = BufReader::new(child.stdout.take().unwrap()).lines().any(|line| line.unwrap().ends_with(&reached));
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(is_there, "{point} was not reached");
    assert_eq!(status.signal(), Some(9));
}

/// Two programs at once on one store: each has its own sessions, and neither notices the other (L-22).
#[test]
fn two_programs_replay_into_one_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("journal.db");
    // Their names tell the sessions.
    let names = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
    let orders = names.map(|name| {
        let transcript = folder.path().join(format!("{name}.jsonl"));
        sessions::write_calls(&transcript, 1024 * 1024, 0);
        let args = ["replay".into(), transcript, "--json".into(), "--db".into(), db.clone()].into();
        Order { args, halt: None, told: folder.path().join(format!("{name}.json")) }
    });
    let children = orders.each_ref().map(program::spawn);
    for (child, order) in children.into_iter().zip(&orders) {
        let told = program::told(child, order);
        assert_eq!((told.exit, told.err.as_str()), (0, ""));
    }
    let journal = Journal::read(&db);
    assert_eq!((journal.facts.len(), journal.gaps, journal.open.len()), (2, 0, 0));
    assert_eq!(journal.proposals().count(), journal.closings().len());
    let [first, second] = [0, 1].map(|n| journal.facts.values().nth(n).unwrap().len());
    assert_eq!(first, second, "each has all of its facts");
}

/// More calls may wait for their results than a replay keeps: the oldest end as ambiguous, and their results are on record when they come.
#[test]
fn a_call_that_was_open_for_too_long_ends_as_ambiguous_and_its_result_is_on_record() {
    const CALLS: usize = 600;
    let folder = tempfile::tempdir().unwrap();
    let calls = (0..CALLS).map(|n| sessions::bash(&format!("c{n}"), "cargo test"));
    let results = (0..CALLS).map(|n| sessions::result(&format!("c{n}"), "ok"));
    let records: Vec<Value> = calls.chain(results).collect();
    let transcript = sessions::write(folder.path(), "session.jsonl", sessions::lines(&records));
    let db = folder.path().join("journal.db");
    let report = program::replay(&transcript, None, &db).done().json();
    let closed = &report["files"][0]["operations"]["closed"];
    let [ambiguous, completed] = ["ambiguous", "completed"].map(|status| closed[status].as_u64().unwrap() as usize);
    assert!(ambiguous > 0 && ambiguous < CALLS / 2, "{closed}");
    assert_eq!(ambiguous + completed, CALLS, "each has one decision");
    let journal = Journal::read(&db);
    assert_eq!(late_results(&journal).len(), ambiguous);
    program::replay(&transcript, None, &db).done();
    assert_eq!(journal, Journal::read(&db), "and nothing is told twice");
}
