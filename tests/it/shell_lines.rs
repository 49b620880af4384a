//! Recorded shell lines: what a real bash runs for each, and what a guard may answer.
//!
//! The folder holds the lines with a verdict per guard, and each guard as a policy file. A bypass is a violation that is let through; a
//! false denial is a clean line that is denied or rewritten. The bar for tier `core` is none of either; tier `deep` and the share of
//! ordinary clean lines that are asked about are printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tipstaff::guard::{Answer, GuardedCall, Policy, Rewrite};

use crate::data;

#[derive(Deserialize)]
struct Recorded {
    workspace: String,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    line: String,
    tags: Vec<String>,
    tier: String,
    verdicts: BTreeMap<String, Verdict>,
    #[serde(default)]
    forgiven: Vec<String>,
    rewritten: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Violates,
    Clean,
    Undecidable,
}

/// What a policy does with a line.
enum Answered {
    Allow,
    Ask,
    Deny,
    Rewrite(String),
}

/// What the answer is worth.
#[derive(PartialEq, Eq)]
enum Worth {
    Accepted,
    Bypass,
    FalseDenial,
}

/// No recorded line passes a guard that it violates, and no clean one is denied (10-cli, "Guards in a policy file").
#[test]
fn no_recorded_line_passes_a_guard_that_it_violates() {
    let Some(folder) = data::folder("TIPSTAFF_SHELL_LINES_DIR", "../shared/shell-lines") else { return };
    let recorded: Recorded = serde_json::from_str(&fs::read_to_string(folder.join("lines.json")).unwrap()).unwrap();
    let policies = policies(&folder.join("policies"));
    assert!(!recorded.lines.is_empty() && !policies.is_empty(), "{} holds no lines or no policies", folder.display());

    let mut failures = Vec::new();
    for (name, policy) in &policies {
        let mut tiers: BTreeMap<&str, Counts> = BTreeMap::new();
        for line in &recorded.lines {
            let verdict = line.verdicts[name];
            let answered = answer(policy, &line.line, &recorded.workspace);
            let worth = worth(verdict, &answered, line, name);
            tiers.entry(&line.tier).or_default().add(verdict, &answered, &worth, line);
            if worth != Worth::Accepted && line.tier == "core" {
                failures.push(format!("{name}: {} is a {worth}: {:.200?}", line.id, line.line));
            }
        }
        for (tier, counts) in tiers {
            println!("{name:<24} {tier:<5} {counts}");
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn policies(folder: &Path) -> BTreeMap<String, Policy> {
    let files = fs::read_dir(folder)
        .expect("the folder of the policies is read")
        .map(|entry| entry.expect("its entries are read").path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let source = fs::read_to_string(&path).expect("a policy is read");
            let policy = Policy::parse(&source, &path.display().to_string()).expect("a recorded policy is accepted");
            (path.file_stem().expect("a file has a name").to_string_lossy().into_owned(), policy)
        })
        .collect()
}

fn answer(policy: &Policy, line: &str, workspace: &str) -> Answered {
    let input = json!({ "command": line });
    let call = GuardedCall { tool: "Bash", input: &input, cwd: Some(workspace), workspace: Some(workspace) };
    match policy.judge(&call).winner().map(|winner| winner.answer) {
        Some(Answer::Deny) => return Answered::Deny,
        Some(Answer::Ask) => return Answered::Ask,
        Some(Answer::Allow) | None => {}
    }
    match policy.rewrite(&call) {
        None => Answered::Allow,
        Some(Rewrite::CannotRebuild { .. }) => Answered::Ask,
        Some(Rewrite::To { input, .. }) => {
            Answered::Rewrite(input["command"].as_str().expect("a rewritten command is text").to_owned())
        }
    }
}

/// The table of accepted answers.
fn worth(verdict: Verdict, answered: &Answered, line: &Line, guard: &str) -> Worth {
    match (verdict, answered) {
        (Verdict::Violates | Verdict::Undecidable, Answered::Ask | Answered::Deny) => Worth::Accepted,
        (Verdict::Violates, Answered::Rewrite(rewritten)) if line.rewritten.as_ref() == Some(rewritten) => Worth::Accepted,
        (Verdict::Violates | Verdict::Undecidable, Answered::Allow | Answered::Rewrite(_)) => Worth::Bypass,
        (Verdict::Clean, Answered::Allow | Answered::Ask) => Worth::Accepted,
        (Verdict::Clean, Answered::Deny | Answered::Rewrite(_)) if line.forgiven.iter().any(|forgiven| forgiven == guard) => {
            Worth::Accepted
        }
        (Verdict::Clean, Answered::Deny | Answered::Rewrite(_)) => Worth::FalseDenial,
    }
}

#[derive(Default)]
struct Counts {
    lines: usize,
    allowed: usize,
    asked: usize,
    denied: usize,
    rewritten: usize,
    bypasses: usize,
    false_denials: usize,
    ordinary_clean: usize,
    ordinary_clean_asked: usize,
}

impl Counts {
    fn add(&mut self, verdict: Verdict, answered: &Answered, worth: &Worth, line: &Line) {
        self.lines += 1;
        match answered {
            Answered::Allow => self.allowed += 1,
            Answered::Ask => self.asked += 1,
            Answered::Deny => self.denied += 1,
            Answered::Rewrite(_) => self.rewritten += 1,
        }
        self.bypasses += usize::from(*worth == Worth::Bypass);
        self.false_denials += usize::from(*worth == Worth::FalseDenial);
        if verdict == Verdict::Clean && line.tags.iter().any(|tag| tag == "ordinary") {
            self.ordinary_clean += 1;
            self.ordinary_clean_asked += usize::from(matches!(answered, Answered::Ask));
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lines, allowed, asked, denied, rewritten, bypasses, false_denials, ordinary_clean, ordinary_clean_asked } =
            self;
        write!(f, "{lines:>4} lines: {allowed:>3} allowed, {asked:>3} asked, {denied:>3} denied, {rewritten:>2} rewritten; ")?;
        write!(
            f,
            "{bypasses} bypasses, {false_denials} false denials; {ordinary_clean_asked} of {ordinary_clean} ordinary clean lines asked"
        )
    }
}

impl std::fmt::Display for Worth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accepted => "accepted answer",
            Self::Bypass => "bypass",
            Self::FalseDenial => "false denial",
        })
    }
}
