//! A policy, and its judgement of calls.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::doubt::Doubt;
use super::error::PolicyError;
use super::file;
use super::judgement::{Answer, GuardedCall, Judgement, Match, Note, Rewrite};
use super::rule::{self, Action, Guard, Rule};
use super::subject::{Finding, Subject};
use super::tools::{PATH_TOOLS, SHELL_TOOLS};
use crate::declare::{Digest, digest_of};

/// The guards of one policy file, compiled.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use tipstaff_core::guard::{Answer, GuardedCall, Policy};
///
/// let policy = Policy::parse(
///     r#"
///     [[guard]]
///     name = "no-force-push"
///     command = { program = "git", subcommand = ["push"], options = ["--force", "-f"], words = ["+*"] }
///     action = "deny"
///     reason = "force pushes are not allowed"
///     "#,
///     "policy.toml",
/// )?;
/// let input = json!({ "command": "cargo test && git push -uf origin main" });
/// let call = GuardedCall { tool: "Bash", input: &input, cwd: Some("/ws"), workspace: Some("/ws") };
/// let judgement = policy.judge(&call);
/// let winner = judgement.winner().expect("the guard matches");
/// assert_eq!((winner.answer, &*winner.reason), (Answer::Deny, "force pushes are not allowed"));
/// # Ok::<(), tipstaff_core::guard::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Policy {
    temporary: Vec<String>,
    guards: Vec<Guard>,
    digest: Digest,
}

impl Policy {
    /// Reads a policy file. `name` is what its errors call it.
    ///
    /// # Errors
    /// [`PolicyError`] with the place of the first fault: text that is no TOML, an unknown key, a value of another form, a guard that can
    /// never match. Trying again does not help.
    pub fn parse(source: &str, name: &str) -> Result<Self, PolicyError> {
        let (temporary, guards) = file::read(source, name)?;
        let meaning = rule::meaning(&temporary, &guards);
        let digest = digest_of(&meaning).expect("names, texts and lists of them have a canonical form");
        Ok(Self { digest, temporary, guards })
    }

    /// The digest of what the file means. Layout, comments and the order of keys do not change it; the order of guards does.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The names of the guards, in the order of the file.
    pub fn guards(&self) -> impl Iterator<Item = &str> {
        self.guards.iter().map(|guard| &*guard.name)
    }

    /// Judges a call by every guard that is for its tool.
    ///
    /// A guard that cannot tell answers [`Answer::Ask`]. Of a guard whose action is `record` this is a note, and one whose action is `allow`
    /// asks only where the command cannot be read at all. A guard that rewrites asks where [`Policy::rewrite`] would not be exact.
    ///
    /// Takes time linear in the command's length, and never panics. No file system is asked: paths are judged by their text.
    #[must_use]
    pub fn judge(&self, call: &GuardedCall<'_>) -> Judgement {
        let mut judgement = Judgement::default();
        let subject = Subject::new(call, &self.temporary);
        for guard in self.guards.iter().filter(|guard| guard.is_for(call.tool)) {
            let Some(finding) = subject.strongest(guard) else { continue };
            let certain = finding.doubt.is_none();
            let unread = matches!(finding.doubt, Some(Doubt::Unclear(_) | Doubt::Input(_)));
            let answer = match (&guard.action, certain) {
                (Action::Record, _) => {
                    let (reason, place) = (guard.reason(&finding), finding.site);
                    judgement.notes.push(Note { guard: guard.name.clone(), reason, place, certain });
                    continue;
                }
                (Action::Allow, false) if !unread => continue,
                (Action::Rewrite { .. }, true) => continue,
                (Action::Deny, true) => Answer::Deny,
                (Action::Allow, true) => Answer::Allow,
                (Action::Ask | Action::Deny | Action::Allow | Action::Rewrite { .. }, _) => Answer::Ask,
            };
            let reason = guard.reason(&finding);
            judgement.matches.push(Match { guard: guard.name.clone(), answer, reason, place: finding.site, certain });
        }
        judgement
    }

    /// Rewrites a call by every rewriting guard that is for its tool. Nothing: the call stays as it is.
    ///
    /// Only the program's name is replaced, where it stands in the line as it runs, and only if the new line is read to run the same but for
    /// that program; judge the new input again. An `allow` that matches the call ends its rewriting.
    #[must_use]
    pub fn rewrite(&self, call: &GuardedCall<'_>) -> Option<Rewrite> {
        let rewriting = |guard: &&Guard| matches!(guard.action, Action::Rewrite { .. }) && guard.is_for(call.tool);
        self.guards.iter().find(rewriting)?;
        let subject = Subject::new(call, &self.temporary);
        let allowing = |guard: &Guard| guard.action == Action::Allow && guard.is_for(call.tool);
        let allowed = |guard: &Guard| subject.strongest(guard).is_some_and(|finding| finding.doubt.is_none());
        if self.guards.iter().any(|guard| allowing(guard) && allowed(guard)) {
            return None;
        }
        // By where each begins; the first guard that replaces a word wins it.
        let mut words: BTreeMap<usize, (Range<usize>, &str)> = BTreeMap::new();
        let (mut guards, mut replaced) = (Vec::new(), Vec::new());
        for guard in self.guards.iter().filter(rewriting) {
            let (Action::Rewrite { program }, Rule::Command(rule)) = (&guard.action, &guard.rule) else { continue };
            let before = words.len();
            for finding in subject.findings(guard) {
                if finding.doubt.is_some() {
                    return Some(Rewrite::CannotRebuild { guard: guard.name.clone(), reason: guard.reason(&finding) });
                }
                if let Some(span) = finding.program {
                    words.entry(span.start).or_insert((span, program));
                }
            }
            if words.len() > before {
                guards.push(guard.name.clone());
                replaced.push((rule.program.as_str(), program.as_str()));
            }
        }
        let source = subject.source().filter(|_| !guards.is_empty())?;
        let input = source.replaced(call.input, words.into_values());
        let rewritten = GuardedCall { input: &input, ..*call };
        if !subject.runs_as(&Subject::new(&rewritten, &self.temporary), &replaced) {
            return Some(Rewrite::CannotRebuild { guard: guards.swap_remove(0), reason: Doubt::Rebuild.to_string().into() });
        }
        Some(Rewrite::To { guards, input })
    }
}

impl Guard {
    fn is_for(&self, tool: &str) -> bool {
        match (&self.tools, &self.rule) {
            (Some(tools), _) => tools.iter().any(|named| named == tool),
            (None, Rule::Path(_)) => PATH_TOOLS.contains(&tool),
            (None, Rule::Command(_) | Rule::Flow { .. }) => SHELL_TOOLS.contains(&tool),
        }
    }

    fn reason(&self, finding: &Finding) -> Arc<str> {
        match (&finding.doubt, &self.reason) {
            (Some(doubt), _) => doubt.to_string().into(),
            (None, Some(reason)) => reason.clone(),
            (None, None) => "the policy gives no reason".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::guard::judgement::Site;

    const PUSH: &str = r#"
        [[guard]]
        name = "push"
        command = { program = "git", subcommand = ["push"], options = ["--force", "-f"], words = ["+*"] }
        action = "deny"
        reason = "no force"
    "#;

    const REMOVE: &str = r#"
        [[guard]]
        name = "remove"
        command = { program = "rm", options_all = ["-r|-R|--recursive", "-f|--force"], operands = { outside = ["build", "<temporary>"] } }
        action = "deny"
    "#;

    const PNPM: &str = r#"
        [[guard]]
        name = "pnpm"
        command = { program = "npm" }
        action = "rewrite"
        rewrite = { program = "pnpm" }
    "#;

    const FLOW: &str = r#"
        [[guard]]
        name = "flow"
        command = { flow = { from = ["curl"], to = ["sh"] } }
        action = "deny"
    "#;

    fn policy(source: &str) -> Policy {
        Policy::parse(source, "policy.toml").unwrap()
    }

    fn judge(source: &str, tool: &str, input: &Value) -> Judgement {
        policy(source).judge(&GuardedCall { tool, input, cwd: Some("/ws"), workspace: Some("/ws") })
    }

    fn answer(source: &str, line: &str) -> Option<Answer> {
        judge(source, "Bash", &json!({ "command": line })).winner().map(|winner| winner.answer)
    }

    fn rewrite(source: &str, tool: &str, input: &Value) -> Option<Rewrite> {
        policy(source).rewrite(&GuardedCall { tool, input, cwd: None, workspace: None })
    }

    fn assert_answers(source: &str, answers: &[(&str, Option<Answer>)]) {
        for (line, expected) in answers {
            assert_eq!(answer(source, line), *expected, "{line:?}");
        }
    }

    /// 10-cli: options match combined short options, `--opt=value` and abbreviations; words match patterns.
    #[test]
    fn options_and_words_are_matched_as_the_program_reads_them() {
        let (deny, ask) = (Some(Answer::Deny), Some(Answer::Ask));
        assert_answers(
            PUSH,
            &[
                ("git push -f", deny),
                ("git push -uf origin main", deny),
                ("git push origin main --force", deny),
                ("git push --force=true", deny),
                ("git push origin +main", deny),
                ("git push origin -- +main", deny),
                ("git -C ../x --no-pager push -f", deny),
                ("/usr/bin/git push -f", deny),
                ("\\git 'push' \"-f\"", deny),
                ("ls; git push -f | cat", deny),
                ("git push", None),
                ("git push -o f origin main", None),
                ("git push -of origin main", None),
                ("git push -o +x origin main", None),
                ("git push --force-with-lease", None),
                ("git push origin -- --force", None),
                ("git stash push -f", None),
                ("git -C push fetch -f", None),
                ("git commit -m 'git push --force'", None),
                ("git push --forc", ask),
                ("git -c remote.o.push=+x push o", ask),
                ("git publish", ask),
                ("./git push -f", ask),
                ("GIT push -f", ask),
            ],
        );
    }

    /// What an alias or a setting on the line adds to the words is not seen, hence asked about.
    #[test]
    fn an_alias_may_hide_an_option() {
        let ask = Some(Answer::Ask);
        let any = "[[guard]]\nname = \"g\"\ncommand = { program = \"git\", options = [\"--force\"] }\naction = \"deny\"";
        assert_answers(
            any,
            &[
                ("git push --force", Some(Answer::Deny)),
                ("git push", None),
                ("git -C x push", None),
                ("git pf", ask),
                ("git -c alias.x='push --force' x", Some(Answer::Deny)),
                ("git -c a.b=c push", ask),
            ],
        );
    }

    /// 10-cli: every group of `options_all` is given, and an operand resolves outside.
    #[test]
    fn operands_are_judged_by_where_they_resolve() {
        let (deny, ask) = (Some(Answer::Deny), Some(Answer::Ask));
        assert_answers(
            REMOVE,
            &[
                ("rm -rf src", deny),
                ("rm src -r --force", deny),
                ("rm --recurs --forc src", deny),
                ("rm -rf build src", deny),
                ("rm -rf build/../src", deny),
                ("rm -rf /tmp", deny),
                ("rm -rf -- -x", deny),
                ("rm -rf build /tmp/x", None),
                ("rm -r src", None),
                ("rm -rf", None),
                ("rm -r -- -f src", None),
                ("cd x && rm -rf build", deny),
                ("cd x; rm -rf build", ask),
                ("cd build && rm -rf x", None),
                ("rm -f \"$x\"", None),
                ("rm -rf \"$x\"", ask),
                ("rm -rf build/*", None),
                ("rm -rf *", deny),
                ("cd x && rm -rf /etc", deny),
                ("cd x && rm -rf /tmp/x", None),
                ("rm -rf build; cd x", None),
            ],
        );
        let call =
            |input: &Value, cwd, workspace| policy(REMOVE).judge(&GuardedCall { tool: "exec_command", input, cwd, workspace });
        let line = json!({ "cmd": "rm -rf build" });
        assert_eq!(call(&line, None, Some("/ws")).winner().unwrap().answer, Answer::Ask);
        assert_eq!(call(&line, Some("/ws"), None).winner().unwrap().answer, Answer::Ask);
        let elsewhere = json!({ "cmd": "rm -rf build", "workdir": "sub" });
        assert_eq!(call(&elsewhere, Some("/ws"), Some("/ws")).winner().unwrap().answer, Answer::Deny);
        let odd = json!({ "cmd": "rm -rf build", "workdir": 1 });
        assert_eq!(call(&odd, Some("/ws"), Some("/ws")).winner().unwrap().answer, Answer::Ask);
    }

    /// 10-cli: what cannot be read, or runs its words, is `ask` for each command guard that is for the tool.
    #[test]
    fn what_the_line_does_not_tell_is_asked_about() {
        let ask = Some(Answer::Ask);
        for line in ["$x", "ls \0", "eval \"$x\"", "sh < f", "ls | sh", "ls | xargs sh -c", "ls 'x", "alias a=b", "git $x"] {
            assert_eq!(answer(PUSH, line), ask, "{line:?}");
        }
        assert_answers(
            PUSH,
            &[
                ("ls $x; (ls) & x=1 ls > f # git push -f", None),
                ("eval ls; sh x.sh; ls | xargs ls; timeout 5 git log", None),
                ("echo git push -f | tee x", None),
                ("wrapper git push -f", ask),
                ("python3 -c 'run([\"git\", \"push\"])'", ask),
                ("python3 <<< 'run([\"git\", \"push\"])'", ask),
                ("python3 -c 'run([\"git\", \"log\"])'", None),
                ("ls $x; git push -f", Some(Answer::Deny)),
                ("git push -f; eval \"$x\"", Some(Answer::Deny)),
                ("git push $x", ask),
                ("git push origin a/$x", None),
            ],
        );
        assert_eq!(answer(PUSH, &format!("ls {}", "x".repeat(64 * 1024))), ask);
    }

    #[test]
    fn an_input_without_a_readable_command_is_asked_about() {
        for input in [
            json!({}),
            json!(null),
            json!("ls"),
            json!({ "command": 1 }),
            json!({ "command": {} }),
            json!({ "command": ["ls", 1] }),
        ] {
            let judgement = judge(PUSH, "Bash", &input);
            let winner = judgement.winner().unwrap();
            assert_eq!((winner.answer, winner.certain, &winner.place), (Answer::Ask, false, &Site::Input), "{input}");
        }
    }

    /// 10-cli: without a command guard for its tool a call is not judged.
    #[test]
    fn a_call_of_another_tool_is_not_judged() {
        assert_eq!(judge(PUSH, "Read", &json!({ "command": "git push -f" })), Judgement::default());
        let named = PUSH.replace("action", "tools = [\"my_shell\"]\naction");
        assert_eq!(judge(&named, "Bash", &json!({ "command": "git push -f" })), Judgement::default());
        assert_eq!(judge(&named, "my_shell", &json!({ "command": "git push -f" })).winner().unwrap().answer, Answer::Deny);
        assert_eq!(judge(&named, "my_shell", &json!({})).winner().unwrap().answer, Answer::Ask);
        let paths = "[[guard]]\nname = \"p\"\npath = { outside = \"workspace\" }\naction = \"deny\"";
        assert_eq!(judge(paths, "Bash", &json!({ "command": "ls $x" })), Judgement::default());
    }

    #[test]
    fn the_place_is_the_word_that_the_match_hangs_on() {
        let place = |source, input: Value| judge(source, "shell", &input).winner().unwrap().place.clone();
        assert_eq!(place(PUSH, json!({ "command": "ls; git push -f" })), Site::Line(13..15));
        assert_eq!(place(PUSH, json!({ "command": ["bash", "-lc", "git push -f"] })), Site::Line(9..11));
        assert_eq!(place(PUSH, json!({ "command": ["git", "push", "-f"] })), Site::Element(2));
        assert_eq!(place(PUSH, json!({ "command": "$x" })), Site::Line(0..2));
        assert_eq!(place(REMOVE, json!({ "command": "rm -rf build src" })), Site::Line(13..16));
    }

    /// 10-cli: all matches, severity deny > ask > allow, then file order.
    #[test]
    fn the_most_severe_answer_wins_and_every_match_is_reported() {
        let guard = |name: &str, action: &str| {
            format!("[[guard]]\nname = \"{name}\"\ncommand = {{ program = \"a\" }}\naction = \"{action}\"\nreason = \"{name}\"\n")
        };
        let source: String = ["allow", "ask", "record", "deny"].iter().map(|action| guard(action, action)).collect();
        let judgement = judge(&(source + &guard("second", "deny")), "Bash", &json!({ "command": "a" }));
        let answers: Vec<_> = judgement.matches.iter().map(|found| (&*found.guard, found.answer)).collect();
        assert_eq!(answers, [("allow", Answer::Allow), ("ask", Answer::Ask), ("deny", Answer::Deny), ("second", Answer::Deny)]);
        assert_eq!(&*judgement.winner().unwrap().guard, "deny");
        assert_eq!(judgement.notes.iter().map(|note| &*note.reason).collect::<Vec<_>>(), ["record"]);
    }

    #[test]
    fn a_guard_that_records_changes_no_decision() {
        let record = PUSH.replace("deny", "record");
        for line in ["git push -f", "$x", "eval \"$x\""] {
            let judgement = judge(&record, "Bash", &json!({ "command": line }));
            assert_eq!((judgement.winner(), judgement.notes.len()), (None, 1), "{line}");
        }
    }

    #[test]
    fn an_allow_needs_certainty() {
        let allow = PUSH.replace("deny", "allow");
        assert_answers(&allow, &[("git push -f", Some(Answer::Allow)), ("wrapper git push -f", None), ("$x", Some(Answer::Ask))]);
    }

    /// 10-cli: a flow follows pipes, substitutions, here-strings and files within the line.
    #[test]
    fn a_flow_is_followed_to_where_it_runs() {
        let (deny, ask) = (Some(Answer::Deny), Some(Answer::Ask));
        assert_answers(
            FLOW,
            &[
                ("curl x | sh", deny),
                ("sh -c \"$(curl x)\"", deny),
                ("sh <<< \"$(curl x)\"", deny),
                ("curl x > f; sh f", deny),
                ("eval \"$(curl x)\"", deny),
                ("curl x | zsh", None.or(ask)),
                ("curl x", None),
                ("sh x", None),
                ("curl x | jq .", None),
                ("wrapper 'curl x | sh'", ask),
                ("echo curl x", None),
                ("ls", None),
            ],
        );
    }

    /// 10-cli: a rewrite replaces words of the parsed command and is refused where the line cannot be rebuilt exactly.
    #[test]
    fn only_the_programs_name_is_rewritten() {
        let to = |input: Value| Some(Rewrite::To { guards: vec!["pnpm".into()], input });
        for (line, rewritten) in [
            ("npm install x", "pnpm install x"),
            ("ls && npm ci 2>&1 | npm x", "ls && pnpm ci 2>&1 | pnpm x"),
            ("  npm\t'ci'", "  pnpm\t'ci'"),
            ("'npm' ci; \\npm x; /usr/bin/npm y", "'pnpm' ci; \\pnpm x; /usr/bin/pnpm y"),
            ("(npm ci) && env A=b npm x", "(pnpm ci) && env A=b pnpm x"),
            ("sh -c 'npm ci'", "sh -c 'pnpm ci'"),
            ("echo \"$(npm ls)\" $(npm bin)", "echo \"$(pnpm ls)\" $(pnpm bin)"),
        ] {
            assert_eq!(
                rewrite(PNPM, "Bash", &json!({ "command": line, "timeout": 5 })),
                to(json!({ "command": rewritten, "timeout": 5 }))
            );
            assert_eq!(answer(PNPM, line), None, "{line}");
            assert_eq!(answer(PNPM, rewritten), None, "{rewritten}");
        }
        // The new line is judged again: a word that may be run stays a question.
        let rewritten = rewrite(PNPM, "Bash", &json!({ "command": "npm install npm" }));
        assert_eq!(rewritten, to(json!({ "command": "pnpm install npm" })));
        assert_eq!(answer(PNPM, "pnpm install npm"), Some(Answer::Ask));
        for line in ["npm ci; n\\pm ci", "n=npm; $n ci", "./npm ci", "eval \"np\"m", "npm ci; $x"] {
            let cannot = rewrite(PNPM, "Bash", &json!({ "command": line }));
            assert!(matches!(cannot, Some(Rewrite::CannotRebuild { .. })), "{line}: {cannot:?}");
            assert_eq!(answer(PNPM, line), Some(Answer::Ask), "{line}");
        }
        for line in ["ls", "echo npm", "npm-check"] {
            assert_eq!(rewrite(PNPM, "Bash", &json!({ "command": line })), None, "{line}");
        }
    }

    #[test]
    fn a_rewrite_keeps_the_form_of_the_input() {
        let rewritten = |input: &Value| match rewrite(PNPM, "shell", input) {
            Some(Rewrite::To { input, .. }) => input,
            other => panic!("{input}: {other:?}"),
        };
        assert_eq!(
            rewritten(&json!({ "command": ["npm", "ci"], "workdir": "x" })),
            json!({ "command": ["pnpm", "ci"], "workdir": "x" })
        );
        assert_eq!(rewritten(&json!({ "command": ["bash", "-lc", "npm ci"] })), json!({ "command": ["bash", "-lc", "pnpm ci"] }));
        assert_eq!(rewritten(&json!({ "action": { "command": ["npm"] } })), json!({ "action": { "command": ["pnpm"] } }));
    }

    #[test]
    fn several_guards_rewrite_one_line_and_an_allow_ends_it() {
        let guard = |name: &str, from: &str, to: &str| {
            format!(
                "[[guard]]\nname = \"{name}\"\ncommand = {{ program = \"{from}\" }}\naction = \"rewrite\"\nrewrite = {{ program = \"{to}\" }}\n"
            )
        };
        let two = guard("b", "pip", "uv") + &guard("a", "npm", "pnpm") + &guard("late", "npm", "yarn");
        let input = json!({ "command": "npm ci; pip x; npm ci" });
        let expected = json!({ "command": "pnpm ci; uv x; pnpm ci" });
        assert_eq!(rewrite(&two, "Bash", &input), Some(Rewrite::To { guards: vec!["b".into(), "a".into()], input: expected }));
        let allowed =
            two + "[[guard]]\nname = \"ok\"\ncommand = { program = \"npm\", subcommand = [\"i\"] }\naction = \"allow\"\n";
        assert_eq!(rewrite(&allowed, "Bash", &json!({ "command": "npm install" })), None);
        assert!(rewrite(&allowed, "Bash", &input).is_some());
    }

    #[test]
    fn paths_are_judged_against_the_workspace() {
        let source = "[[guard]]\nname = \"p\"\npath = { outside = \"workspace\" }\naction = \"deny\"";
        let answer =
            |tool, input: Value| judge(source, tool, &input).winner().map(|winner| (winner.answer, winner.place.clone()));
        let path = |answer, path: &str| Some((answer, Site::Path(path.to_owned())));
        assert_eq!(answer("Edit", json!({ "file_path": "/ws/src/a" })), None);
        assert_eq!(answer("Write", json!({ "file_path": "../x" })), path(Answer::Deny, "../x"));
        assert_eq!(answer("NotebookEdit", json!({ "notebook_path": "/etc/x" })), path(Answer::Deny, "/etc/x"));
        assert_eq!(answer("Edit", json!({ "file_path": "~/x" })), path(Answer::Ask, "~/x"));
        assert_eq!(answer("Edit", json!({ "file_path": null })), Some((Answer::Ask, Site::Input)));
        let patch = "*** Begin Patch\n*** Update File: src/a\n*** Move to: /etc/b\n*** End Patch";
        assert_eq!(answer("apply_patch", json!(patch)), path(Answer::Deny, "/etc/b"));
        assert_eq!(answer("apply_patch", json!({ "input": "*** Begin Patch\n*** End Patch" })), Some((Answer::Ask, Site::Input)));
    }

    /// The digest is over the meaning of the file: a changed policy is a new attempt, a changed comment is not.
    #[test]
    fn the_digest_follows_the_meaning() {
        let digest = |source: &str| policy(source).digest();
        let reordered = "# x\n[[guard]]\nreason = 'no force'\naction = 'deny'\n[guard.command]\nwords = ['+*']\nprogram = 'git'\noptions = ['--force', '-f']\nsubcommand = ['push']\n[[guard.x]]"
            .replace("[[guard.x]]", "")
            .replace("[[guard]]", "[[guard]]\nname = 'push'");
        assert_eq!(digest(PUSH), digest(&reordered));
        assert_eq!(digest(PUSH), digest(&format!("{PUSH}[policy]\ntemporary_folders = [\"/tmp\"]")));
        for (from, to) in [("push", "pull"), ("deny", "ask"), ("no force", "no"), ("\"-f\"", "\"-x\""), ("+*", "*")] {
            assert_ne!(digest(PUSH), digest(&PUSH.replace(from, to)), "{from}");
        }
        assert_ne!(digest(PUSH), digest(&format!("{PUSH}[policy]\ntemporary_folders = [\"/var/tmp\"]")));
    }

    /// Nothing that a model may write makes a guard panic, and a rewrite changes nothing but the program.
    #[test]
    fn any_line_is_answered_and_a_rewrite_keeps_every_other_word() {
        use proptest::prelude::*;

        let fragments = prop::sample::select(vec![
            "npm",
            "npm ",
            "git push -f",
            " ",
            "\n",
            ";",
            "&&",
            "||",
            "|",
            "'",
            "\"",
            "\\",
            "$",
            "`",
            "(",
            ")",
            "{",
            "}",
            "<",
            ">",
            "2>&1",
            ">/dev/null",
            "#",
            "~",
            "=",
            "-",
            "--",
            "é",
            "\u{a0}",
            "\0",
            "rm -rf x",
            "env ",
            "a",
        ]);
        let policy = policy(&format!("{PUSH}{REMOVE}{PNPM}{FLOW}"));
        proptest!(|(fragments in prop::collection::vec(fragments, 0..12))| {
            let line = fragments.concat();
            let input = json!({ "command": line });
            let call = GuardedCall { tool: "Bash", input: &input, cwd: Some("/ws"), workspace: Some("/ws") };
            prop_assert!(policy.judge(&call).matches.len() <= policy.guards().count());
            if let Some(Rewrite::To { input, .. }) = policy.rewrite(&call) {
                // What runs; of a wrapper, what it runs.
                let words = |line: &str| -> Vec<Vec<String>> {
                    let trace = crate::guard::shell::run::line(line, Some("/ws"));
                    let run = trace.invocations.into_iter().filter(|invocation| !invocation.wrapper);
                    run.map(|invocation| invocation.fields.into_iter().map(|field| field.text).collect()).collect()
                };
                let mut expected = words(&line);
                expected.iter_mut().filter(|words| words[0] == "npm").for_each(|words| words[0] = "pnpm".to_owned());
                prop_assert_eq!(words(input["command"].as_str().unwrap()), expected);
            }
        });
    }

    /// The policies that are shipped as examples are read.
    #[test]
    fn the_example_policies_are_policies() {
        for (source, guards) in [
            (include_str!("../../examples/policies/guardrails.toml"), 6),
            (include_str!("../../examples/policies/audit.toml"), 3),
            (include_str!("../../examples/policies/workspace.toml"), 2),
        ] {
            assert_eq!(policy(source).guards().count(), guards);
        }
    }
}
