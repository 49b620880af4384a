//! The recorded lines with their verdicts, the recorded policies, and what a policy answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use tipstaff::guard::{Answer, GuardedCall, Policy, Rewrite};

use crate::data;

/// All that is recorded.
pub(super) struct Recording {
    /// The folder in which every line starts.
    pub(super) workspace: String,
    pub(super) lines: Vec<Line>,
    /// By the name of the guard that they are.
    pub(super) policies: BTreeMap<String, Policy>,
}

#[derive(Deserialize)]
struct File {
    workspace: String,
    lines: Vec<Line>,
}

/// One line, and what bash runs for it.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) line: String,
    tags: Vec<String>,
    pub(super) tier: Tier,
    /// Bash takes the whole text.
    pub(super) parse_ok: bool,
    /// What runs in one of the settings.
    possible: Vec<Execution>,
    verdicts: BTreeMap<String, Verdict>,
    #[serde(default)]
    forgiven: Vec<String>,
    /// The line with the smallest replacement of npm, where there is one.
    pub(super) rewritten: Option<String>,
}

/// A program that bash runs, with its words.
#[derive(Debug, Deserialize)]
pub(super) struct Execution {
    program: String,
    argv: Vec<String>,
}

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tier {
    Core,
    Deep,
}

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Violates,
    Clean,
    Undecidable,
}

/// The recording, unless its folder is absent.
pub(super) fn recording() -> Option<Recording> {
    let folder = folder()?;
    let text = fs::read_to_string(folder.join("lines.json")).expect("the lines are readable");
    let File { workspace, lines } = serde_json::from_str(&text).expect("the lines have the form that their page tells");
    let policies: BTreeMap<_, _> = sources(&folder).into_iter().map(|(name, source)| (name, policy(&source))).collect();
    assert!(!lines.is_empty() && !policies.is_empty(), "{} holds no lines or no policies", folder.display());
    Some(Recording { workspace, lines, policies })
}

/// The folder of the recording, unless it is absent.
pub(super) fn folder() -> Option<PathBuf> {
    data::folder("TIPSTAFF_SHELL_LINES_DIR", "../shared/shell-lines")
}

/// The texts of the recorded policies, by name.
pub(super) fn sources(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder.join("policies")).expect("the folder of the policies is read");
    let files = files.map(|entry| entry.expect("its entries are read").path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("a policy is read"))
        })
        .collect()
}

/// A policy that is accepted.
pub(super) fn policy(source: &str) -> Policy {
    Policy::parse(source, "policy.toml").expect("the policy is accepted")
}

impl Line {
    pub(super) fn verdict(&self, guard: &str) -> Verdict {
        self.verdicts[guard]
    }

    pub(super) fn is(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    pub(super) fn forgives(&self, guard: &str) -> bool {
        self.forgiven.iter().any(|forgiven| forgiven == guard)
    }

    /// Whether what violates the guard stands in the line as literal text.
    ///
    /// That is: the line is not tagged as one whose program or operand is computed, and of some execution that violates the guard every word
    /// stands in the line by itself once quotes, backslashes and continued lines are taken out. A line tagged `quoting` is literal as well: there
    /// nothing but quotation lies between the text and the words, even where it is a code for a character (`$'\x67it'`). So expansions of `~`, of
    /// braces and of patterns are not literal, nor is an operand that only a run finds.
    pub(super) fn is_literal(&self, guard: &str) -> bool {
        let text = self.line.replace("\\\n", "").replace(['\'', '"', '\\'], "");
        let computed = self.is("computed-program") || self.is("computed-arg");
        let mut violating = self.possible.iter().filter(|execution| execution.violates(guard)).peekable();
        let quoted = self.is("quoting") && violating.peek().is_some();
        !computed && (quoted || violating.any(|execution| execution.stands_in(&text)))
    }
}

impl Execution {
    /// Whether this is what the guard is against, as far as its words tell; folders aside, which are the same for all spellings.
    fn violates(&self, guard: &str) -> bool {
        let words = self.argv.get(1..).unwrap_or_default();
        let option = |long: &str, short: &[char]| {
            words.iter().any(|word| match word.strip_prefix("--") {
                Some(name) => name.starts_with(long),
                None => word.strip_prefix('-').is_some_and(|letters| letters.contains(short)),
            })
        };
        match guard {
            "no-force-push" => {
                let forced = option("forc", &['f']) || words.iter().any(|word| word.starts_with('+'));
                self.program == "git" && forced && words.iter().any(|word| word == "push")
            }
            "no-rm-rf-outside-build" => self.program == "rm" && option("r", &['r', 'R']) && option("f", &['f']),
            "no-curl-pipe-sh" => matches!(&*self.program, "curl" | "wget"),
            "npm-to-pnpm" => self.program == "npm",
            unknown => panic!("what violates {unknown} is not told here"),
        }
    }

    fn stands_in(&self, text: &str) -> bool {
        stands(text, &self.program, true) && self.argv.iter().skip(1).all(|word| stands(text, word, false))
    }
}

/// Whether a word stands in a text with nothing around it that could belong to it; a program may be the end of a path.
fn stands(text: &str, word: &str, path: bool) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || "_.-/".contains(c);
    word.is_empty()
        || text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back().filter(|c| !(path && *c == '/'));
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(belongs) && !after.is_some_and(belongs)
        })
}

/// What a policy does with a line, and why.
pub(super) struct Answered {
    pub(super) does: Does,
    /// The guard's reason; empty for what is let through or rewritten.
    pub(super) reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Does {
    Allow,
    Ask,
    Deny,
    Rewrite(String),
}

/// Judges a line and then rewrites it, as a host does.
pub(super) fn answer(policy: &Policy, line: &str, workspace: &str) -> Answered {
    let input = json!({ "command": line });
    let call = GuardedCall { tool: "Bash", input: &input, cwd: Some(workspace), workspace: Some(workspace) };
    let because = |does, reason: &str| Answered { does, reason: reason.to_owned() };
    let judgement = policy.judge(&call);
    match judgement.winner().map(|winner| (winner.answer, &winner.reason)) {
        Some((Answer::Deny, reason)) => return because(Does::Deny, reason),
        Some((Answer::Ask, reason)) => return because(Does::Ask, reason),
        Some((Answer::Allow, _)) | None => {}
    }
    match policy.rewrite(&call) {
        None => because(Does::Allow, ""),
        Some(Rewrite::CannotRebuild { reason, .. }) => because(Does::Ask, &reason),
        Some(Rewrite::To { input, .. }) => {
            because(Does::Rewrite(input["command"].as_str().expect("a rewritten command is text").to_owned()), "")
        }
    }
}
