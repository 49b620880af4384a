//! The entry of the fuzz target: any bytes, judged and rewritten.
//!
//! `checks/fuzz` compiles this file as well, so that what a fuzzer drives and what the tests drive is one function.

use serde_json::{Value, json};
use tipstaff_core::guard::{Answer, GuardedCall, Policy, Rewrite, Site};

/// One guard of each kind, for every shell tool.
const POLICY: &str = r#"
[[guard]]
name = "push"
command = { program = "git", subcommand = ["push"], options = ["--force", "-f"], words = ["+*"] }
action = "deny"

[[guard]]
name = "remove"
command = { program = "rm", options_all = ["-r|-R|--recursive", "-f|--force"], operands = { outside = ["build", "<temporary>"] } }
action = "deny"

[[guard]]
name = "download"
command = { flow = { from = ["curl", "wget"], to = ["sh", "bash", "zsh", "dash", "ksh"] } }
action = "deny"

[[guard]]
name = "pnpm"
command = { program = "npm" }
action = "rewrite"
rewrite = { program = "pnpm" }
"#;

/// The policy that bytes are judged by.
pub(super) fn policy() -> Policy {
    Policy::parse(POLICY, "policy.toml").expect("it is a policy")
}

/// Judges any bytes: a line; after a byte 1 a list of words with zeros between them; after a byte 2 the line of `bash -lc`.
///
/// # Panics
/// When an answer is no possible one: a place outside the line, a denial that is not certain, two answers to one call, a rewriting that is not done
/// at once.
pub(super) fn judge(policy: &Policy, bytes: &[u8]) {
    let (form, rest) = match bytes {
        [form @ (1 | 2), rest @ ..] => (*form, rest),
        line => (0, line),
    };
    let text = String::from_utf8_lossy(rest);
    let input = match form {
        1 => json!({ "command": text.split('\0').collect::<Vec<_>>() }),
        2 => json!({ "command": ["bash", "-lc", text] }),
        _ => json!({ "command": text }),
    };
    let rewritten = check(policy, &input, if form == 1 { None } else { Some(&text) });
    if let Some(rewritten) = rewritten {
        assert_ne!(rewritten, input, "a rewriting changes something");
        let line = rewritten["command"].as_str().or_else(|| rewritten["command"][2].as_str());
        let again = check(policy, &rewritten, if form == 1 { None } else { line });
        assert!(again.is_none(), "{rewritten} is rewritten once more: {again:?}");
    }
}

fn check(policy: &Policy, input: &Value, line: Option<&str>) -> Option<Value> {
    let call = GuardedCall { tool: "shell", input, cwd: Some("/ws"), workspace: Some("/ws") };
    let judgement = policy.judge(&call);
    assert!(judgement.matches.len() <= policy.guards().count(), "each guard answers once");
    for found in &judgement.matches {
        assert!(found.certain || found.answer == Answer::Ask, "a doubt is asked about: {found:?}");
        if let (Site::Line(span), Some(line)) = (&found.place, line) {
            assert!(line.get(span.clone()).is_some(), "{span:?} is no place of {line:?}");
        }
    }
    assert_eq!(policy.judge(&call), judgement, "one call has one answer");
    match policy.rewrite(&call) {
        Some(Rewrite::To { input, .. }) => Some(input),
        Some(Rewrite::CannotRebuild { .. }) | None => None,
    }
}
