//! The recorded transcripts under the recorded policies: what guards say about the shell calls that agents really made.
//!
//! The recorded policies name Claude Code's tool. Here their `tools` are left out, so that each guard is for every shell tool, Codex's too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tipstaff::guard::{Answer, GuardedCall, Policy, Rewrite};
use tipstaff_core::transcript::{Call, Event, Reader, ReaderOptions};

use super::{real_bash, recorded};
use crate::{data, program};

/// The largest share of the shell calls that are asked, in percent.
const ASKED_PERCENT: usize = 5;

/// The tools whose input is a shell command.
const SHELL_TOOLS: &[&str] = &["Bash", "exec_command", "shell", "local_shell", "local_shell_call", "shell_command"];

/// What a guard says about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Nothing,
    Rewrite,
    Ask,
    Deny,
}

fn transcripts() -> Option<PathBuf> {
    data::folder("TIPSTAFF_TRANSCRIPTS_DIR", "../shared/transcripts")
}

/// The recorded policies, each for every shell tool.
fn policies() -> Option<BTreeMap<String, String>> {
    let sources = recorded::sources(&recorded::folder()?);
    let without =
        |source: String| source.lines().filter(|line| !line.starts_with("tools =")).map(|line| format!("{line}\n")).collect();
    Some(sources.into_iter().map(|(name, source)| (name, without(source))).collect())
}

/// The transcripts below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("its entries are readable").path();
        if path.is_dir() {
            found.extend(below(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The shell calls of a transcript, each with the folder of the work: the first that the transcript names.
fn shell_calls(path: &Path) -> Vec<(Call, Option<Arc<str>>)> {
    let (mut calls, mut workspace) = (Vec::new(), None);
    for event in Reader::open(path, ReaderOptions::default()).expect("the transcript opens") {
        let Event::Call(call) = event.expect("the transcript is readable") else { continue };
        workspace = workspace.or_else(|| call.cwd.clone());
        if !call.inherited && SHELL_TOOLS.contains(&&*call.name) {
            calls.push((call, workspace.clone()));
        }
    }
    calls
}

fn judged(policy: &Policy, call: &Call, workspace: Option<&str>) -> (Said, String) {
    let call = GuardedCall { tool: &call.name, input: &call.input, cwd: call.cwd.as_deref(), workspace };
    let judgement = policy.judge(&call);
    match judgement.winner().map(|winner| (winner.answer, &winner.reason)) {
        Some((Answer::Deny, reason)) => return (Said::Deny, reason.to_string()),
        Some((Answer::Ask, reason)) => return (Said::Ask, reason.to_string()),
        Some((Answer::Allow, _)) | None => {}
    }
    match policy.rewrite(&call) {
        Some(Rewrite::To { .. }) => (Said::Rewrite, String::new()),
        Some(Rewrite::CannotRebuild { reason, .. }) => (Said::Ask, reason.to_string()),
        None => (Said::Nothing, String::new()),
    }
}

/// The command of a call, or the last of its words. Nothing where the owner of the transcript took the command out.
fn line(call: &Call) -> Option<&str> {
    let command = call.input.get("command").or_else(|| call.input.get("cmd"))?;
    command.as_str().or_else(|| command.as_array()?.last()?.as_str())
}

/// Of the shell calls of real sessions at most one in twenty is asked about (10-cli). Calls whose command was taken out of the record are counted
/// apart: there a guard can but ask. A policy that asks for what it sees (a lease) is meant to, and counts nevertheless.
#[test]
fn a_real_shell_call_is_seldom_asked() {
    let (Some(folder), Some(policies)) = (transcripts(), policies()) else { return };
    let calls: Vec<_> = below(&folder)
        .into_iter()
        .flat_map(|path| shell_calls(&path).into_iter().map(move |call| (path.clone(), call)))
        .collect();
    let mut failures = Vec::new();
    for (name, source) in &policies {
        let policy = recorded::policy(source);
        let (mut said, mut redacted, mut asked) = (BTreeMap::new(), 0, Vec::new());
        for (path, (call, workspace)) in &calls {
            if line(call).is_none() {
                redacted += 1;
                assert_eq!(
                    judged(&policy, call, workspace.as_deref()).0,
                    Said::Ask,
                    "{name}: what cannot be seen is asked about"
                );
                continue;
            }
            let (answer, reason) = judged(&policy, call, workspace.as_deref());
            *said.entry(answer).or_insert(0_usize) += 1;
            if answer == Said::Ask {
                let file = path.file_stem().expect("it has a name").display();
                let broken = line(call).is_some_and(|line| real_bash::takes(line) == Some(false));
                let broken = if broken { " (bash refuses the line)" } else { "" };
                asked.push(format!("{file}:{} {reason}{broken}: {:.200?}", call.place.line, line(call).unwrap_or_default()));
            }
        }
        let seen: usize = said.values().sum();
        println!(
            "{name:<24} {seen} calls: {said:?}, {} of 1,000 asked; {redacted} more without their command",
            asked.len() * 1_000 / seen
        );
        asked.iter().for_each(|call| println!("  {call}"));
        if asked.len() * 100 > ASKED_PERCENT * seen {
            failures.push(format!("{name}: {} of {seen} calls are asked about:\n{}", asked.len(), asked.join("\n")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One transcript, replayed by the program: what was decided about each call that is not simply allowed, and about how many.
fn replayed(folder: &Path, file: &str, policy: &str) -> (BTreeMap<String, u64>, Vec<Value>) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let (db, written) = (temporary.path().join("journal.db"), temporary.path().join("policy.toml"));
    fs::write(&written, policy).expect("it is written");
    let report = program::replay(&folder.join(file), Some(&written), &db).done().json();
    let decided = serde_json::from_value(report["files"][0]["decided"].clone()).expect("numbers by decision");
    let decisions = report["decisions"].as_array().expect("a list").iter().filter(|decision| decision["decision"] != "allow");
    (decided, decisions.cloned().collect())
}

/// The cases that the page of the transcripts names (its section 6): two policies that users want have something to say about them.
#[test]
fn the_named_cases_come_out_of_a_replay() {
    let (Some(folder), Some(policies)) = (transcripts(), policies()) else { return };
    // Two pushes with a lease: somebody is asked, for they rewrite history; none is taken for a forced push.
    let (decided, decisions) = replayed(&folder, "claude/force-push-2.1.12.jsonl", &policies["no-force-push"]);
    assert_eq!((decided["ask"], decided["deny"]), (2, 0), "{decisions:?}");
    assert!(decisions.iter().all(|decision| decision["guard"] == "lease-needs-approval"), "{decisions:?}");
    // Removals in the temporary folder, after a change to it and by its path.
    let (decided, decisions) = replayed(&folder, "claude/denied-and-rm-2.1.4.jsonl", &policies["no-rm-rf-outside-build"]);
    assert_eq!((decided["ask"], decided["deny"]), (0, 0), "{decisions:?}");
    // A removal inside the tree, in no folder that the policy opens. The transcript does not say where it runs: the folder is unknown, hence asked about.
    let (decided, decisions) = replayed(&folder, "codex/headless-export-2026-02.jsonl", &policies["no-rm-rf-outside-build"]);
    assert_eq!((decided["ask"], decided["deny"]), (1, 0), "{decisions:?}");
    assert!(decisions[0]["call"].to_string().contains("rm -rf"), "{decisions:?}");
    // Removals within long commands, one by its path and two by a variable of the line.
    let (decided, decisions) = replayed(&folder, "claude/rm-and-attachments-2.1.231.jsonl", &policies["no-rm-rf-outside-build"]);
    assert_eq!(decided["deny"], 3, "{decisions:?}");
    // Five calls of npm, as lists of words for `bash -lc`.
    let (decided, decisions) = replayed(&folder, "codex/bare-2025-09-shell.jsonl", &policies["npm-to-pnpm"]);
    assert_eq!((decided["ask"], decided["deny"], decided["rewrite"]), (0, 0, 5), "{decisions:?}");
    assert!(decisions.iter().all(|decision| decision["guard"] == "npm-to-pnpm"), "{decisions:?}");
}
