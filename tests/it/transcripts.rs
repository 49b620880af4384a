//! Every recorded transcript goes through the planes, and the program's report of it equals what an independent script found.
//!
//! The folder holds the transcripts and `expected.json`. What the report tells about operations and decisions is compared with the journal, which is
//! read here without the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tipstaff_core::state::Recorded;
use tipstaff_core::transcript::{Event, Outcome, Reader, ReaderOptions};

use crate::data;
use crate::program::{self, Journal};

/// What the report must say of a file at least.
const GIVEN: &[&str] = &[
    "product",
    "physical_lines",
    "records",
    "record_kinds",
    "calls",
    "calls_by_name",
    "results",
    "error_results",
    "error_classes",
    "calls_without_result",
    "orphan_results",
    "sidechain_calls",
    "malformed_lines",
    "glued_lines",
    "broken_lines",
    "interrupts",
    "compactions",
];

struct Recordings {
    folder: PathBuf,
    expected: Map<String, Value>,
}

fn recordings() -> Option<Recordings> {
    let folder = data::folder("TIPSTAFF_TRANSCRIPTS_DIR", "../shared/transcripts")?;
    let expected: Map<String, Value> = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    assert!(!expected.is_empty(), "{} expects no file", folder.display());
    Some(Recordings { folder, expected })
}

/// The transcripts below a folder, named as the expectations name them.
fn below(folder: &Path, root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path, root));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
    found
}

/// Where the report differs from what is expected of the file.
fn differences(name: &str, reported: &Value, expected: &Value) -> Vec<String> {
    let missing =
        GIVEN.iter().filter(|member| reported.get(**member).is_none()).map(|member| format!("{name}: {member} is not told"));
    let reported = reported.as_object().unwrap();
    let differs = |(member, value): (&String, &Value)| {
        let expected = expected.get(member)?;
        (value != expected).then(|| format!("{name}: {member} is {value}, expected {expected}"))
    };
    missing.chain(reported.iter().filter_map(differs)).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// Compares the members of a report that come from the journal with the journal.
fn check_journal(name: &str, report: &Value, journal: &Journal) {
    let (proposed, closings) = (journal.proposals().count() as u64, journal.closings());
    assert_eq!(proposed, closings.len() as u64, "{name}: P-2: each proposal has one closing fact");
    assert_eq!((journal.gaps, journal.open.len()), (0, 0), "{name}");

    let told = &report["journal"];
    assert_eq!(told["by_kind"], json!(journal.by_kind()), "{name}");
    let facts = journal.all().count();
    assert_eq!(told["facts"], json!(facts), "{name}");
    assert_eq!((&told["gaps"], &told["lost"], &told["open_proposals"]), (&json!(0), &json!(0), &json!(0)), "{name}");
    assert_eq!(told["sessions"], json!(journal.facts.len()), "{name}");

    let mut statuses = BTreeMap::new();
    for closing in &closings {
        let status = closing.signal.payload().value()["status"]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: a status of {closing:?}"))
            .to_owned();
        *statuses.entry(status).or_insert(0_u64) += 1;
    }
    let file = &report["files"][0];
    assert_eq!(file["operations"], json!({ "proposed": proposed, "closed": statuses }), "{name}");

    let decisions = report["decisions"].as_array().unwrap();
    let mut by_decision = BTreeMap::from(["allow", "rewrite", "ask", "deny", "failed"].map(|decision| (decision, 0)));
    decisions.iter().for_each(|decision| *by_decision.get_mut(decision["decision"].as_str().unwrap()).unwrap() += 1);
    assert_eq!(file["decided"], json!(by_decision), "{name}");
    assert_eq!(by_decision["failed"], 0, "{name}");
    let decided: Vec<&str> = decisions.iter().map(|decision| decision["operation"].as_str().unwrap()).collect();
    let proposals: Vec<&str> = journal.proposals().map(operation).collect();
    assert_eq!(decided, proposals, "{name}: every decision is an attempt in the journal, in its order");
    let closed: BTreeSet<&str> = closings.iter().map(|fact| operation(fact)).collect();
    assert_eq!(closed.len(), proposals.len(), "{name}: each of them once");
}

/// Everything that the reader hands out is in the journal, in its order, and ended as the transcript tells.
fn check_against_reader(name: &str, path: &Path, journal: &Journal) {
    let (mut calls, mut ended, mut signals) = (Vec::new(), BTreeMap::new(), Vec::new());
    for event in Reader::open(path, ReaderOptions::default()).unwrap() {
        match event.unwrap() {
            Event::Call(call) if !call.inherited => {
                signals.push("transcript.call".to_owned());
                calls.push(call.key.as_str().to_owned());
            }
            Event::Result(result) if !result.inherited => {
                let kind = match result.outcome {
                    Outcome::Succeeded => "operation_completed",
                    Outcome::Failed { .. } | Outcome::Refused { .. } => "operation_failed",
                    Outcome::Unknown(_) => "operation_ambiguous",
                };
                ended.insert(result.key.as_str().to_owned(), kind);
            }
            Event::Unmatched(unmatched) if !unmatched.inherited => signals.push("transcript.unmatched_result".to_owned()),
            Event::Lifecycle(moment) if !moment.inherited => signals.push(format!("transcript.{}", moment.name.as_str())),
            Event::Call(_) | Event::Result(_) | Event::Unmatched(_) | Event::Lifecycle(_) => {}
            Event::End(_) => signals.push("transcript.session_ended".to_owned()),
        }
    }
    assert_eq!(journal.proposals().map(operation).collect::<Vec<_>>(), calls, "{name}");
    let closed: BTreeMap<_, _> =
        journal.closings().into_iter().map(|fact| (operation(fact).to_owned(), fact.signal.kind().as_str())).collect();
    assert_eq!(closed, ended, "{name}");
    let told: Vec<_> =
        journal.all().map(|fact| fact.signal.kind().as_str()).filter(|kind| kind.starts_with("transcript.")).collect();
    assert_eq!(told, signals, "{name}");
}

fn operation(fact: &Recorded) -> &str {
    fact.signal.operation().unwrap().as_str()
}

/// Every file of the folder replays, and each member of its report that is expected is as expected; P-2, P-12.
#[test]
fn every_recorded_transcript_replays_as_expected() {
    let Some(Recordings { folder, expected }) = recordings() else { return };
    let files = below(&folder, &folder);
    assert!(!files.is_empty(), "{} holds no transcript", folder.display());
    let mut all = Vec::new();
    for name in &files {
        let expected = expected.get(name).unwrap_or_else(|| panic!("{name} is not expected"));
        let temporary = tempfile::tempdir().unwrap();
        let db = temporary.path().join("journal.db");
        let report = program::replay(&folder.join(name), None, &db).done().json();
        let file = &report["files"][0];
        assert_eq!(report["files"].as_array().unwrap().len(), 1);
        all.extend(differences(name, file, expected));

        let journal = Journal::read(&db);
        check_journal(name, &report, &journal);
        check_against_reader(name, &folder.join(name), &journal);
        let proposed = &file["operations"]["proposed"];
        assert_eq!(file["decided"]["allow"], *proposed, "{name}: without guards every call is allowed");
        assert_eq!(report["first_divergence"], Value::Null, "{name}");
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    assert_eq!(files.len(), expected.len(), "each expected file is there");
}

/// Under every policy each call has one decision, which the journal holds. The share of asks is printed.
#[test]
fn every_call_of_the_recorded_transcripts_is_decided_under_every_policy() {
    let Some(Recordings { folder, .. }) = recordings() else { return };
    let Some(shell_lines) = data::folder("TIPSTAFF_SHELL_LINES_DIR", "../shared/shell-lines") else { return };
    let policies: Vec<PathBuf> =
        std::fs::read_dir(shell_lines.join("policies")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!policies.is_empty());
    for policy in policies {
        let mut totals = BTreeMap::new();
        for name in below(&folder, &folder) {
            let temporary = tempfile::tempdir().unwrap();
            let db = temporary.path().join("journal.db");
            let report = program::replay(&folder.join(&name), Some(&policy), &db).done().json();
            check_journal(&name, &report, &Journal::read(&db));
            for (decision, count) in report["files"][0]["decided"].as_object().unwrap() {
                *totals.entry(decision.clone()).or_insert(0) += number(count);
            }
        }
        let calls: u64 = totals.values().sum();
        assert!(calls > 0);
        let (policy, asks) = (policy.file_stem().unwrap().display(), totals["ask"]);
        println!("{policy:<24} {calls} calls: {totals:?}, {} of 1,000 asked", asks * 1_000 / calls);
    }
}
