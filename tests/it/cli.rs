//! The program as its users meet it: exit codes, messages with a place and a remedy, and output that is safe to look at (10-cli).

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tipstaff::cli::{self, Exit};
use tipstaff_core::testing::{FaultAction, FaultPoint, Faults};

use crate::program::{self, Journal, run};
use crate::sessions::{self, bash, call, lines, prompt, result};

/// Everything that a case needs: a folder, and a transcript that is as it should be.
struct Bench {
    folder: tempfile::TempDir,
    good: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let records = [
            prompt("tidy up"),
            bash("a", "ls -l"),
            result("a", "src"),
            bash("b", "git push --force"),
            result("b", "forced"),
            bash("c", "cargo test"),
            result("c", "ok"),
        ];
        let good = sessions::write(folder.path(), "good.jsonl", lines(&records));
        Self { folder, good }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        sessions::write(self.folder.path(), name, text)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn policy(&self) -> PathBuf {
        self.write("policy.toml", "[[guard]]\nname = \"no-force\"\ncommand = { program = \"git\", subcommand = [\"push\"], options = [\"--force\"] }\naction = \"deny\"\nreason = \"no force\"\n")
    }
}

fn replay(arguments: &[&Path]) -> program::Ran {
    run(std::iter::once(Path::new("replay")).chain(arguments.iter().copied()))
}

// ---- the command line ----

#[test]
fn help_tells_the_options_and_how_the_program_ends() {
    let top = run(["--help"]).done().out;
    let replay = run(["replay", "--help"]).done().out;
    for text in [&top, &replay] {
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for told in
            ["Exit codes", "0 done", "2 wrong usage or a refused file", "3 store unavailable", "--db", "--json", "--color"]
        {
            assert!(flowing.contains(told), "{told:?} is not in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    }
    for told in ["replay", "Nothing of them is"] {
        assert!(top.contains(told), "{told:?} is not in {top}");
    }
    for told in ["<FILE>...", "--policy", "--fail-on-deny", "counterfactual"] {
        assert!(replay.contains(told), "{told:?} is not in {replay}");
    }
    assert!(run(["--version"]).done().out.starts_with("tipstaff "));
}

#[test]
fn a_wrong_command_line_is_refused_with_its_usage() {
    for (words, says) in [
        (&[][..], "Usage: tipstaff"),
        (&["replay"], "<FILE>..."),
        (&["relpay", "x"], "relpay"),
        (&["replay", "x", "--frobnicate"], "--frobnicate"),
        (&["replay", "x", "--polcy", "y"], "--policy"),
        (&["replay", "x", "--color", "sometimes"], "sometimes"),
    ] {
        let ran = run(words);
        ran.refuses(Exit::Refused, &[says, "--help"]);
        assert_eq!(ran.out, "");
    }
}

// ---- transcripts ----

#[test]
fn what_is_no_transcript_is_refused_with_its_place_and_a_remedy() {
    let bench = Bench::new();
    let folder = bench.path("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes.txt"), "no transcript").unwrap();
    for (path, says) in [
        (bench.write("empty.jsonl", ""), &["empty.jsonl is empty (0 bytes"][..]),
        (bench.write("blank.jsonl", "\n \n"), &["blank.jsonl is empty (3 bytes"]),
        (
            bench.write("foreign.jsonl", "\n{\"type\":\"thread.started\"}\n"),
            &["foreign.jsonl is no known transcript: line 2 (byte 1) holds", "thread.started"],
        ),
        (
            bench.write("prose.jsonl", "Dear reader,\n"),
            &["prose.jsonl is no known transcript: line 1 (byte 0) holds no whole JSON object"],
        ),
        (bench.write("array.jsonl", "[1,2]\n"), &["array.jsonl is no known transcript: line 1"]),
        (bench.write("bytes.jsonl", [0xff, 0xfe, 0x00, 0x0a]), &["bytes.jsonl is no known transcript"]),
        (bench.path("absent.jsonl"), &["absent.jsonl cannot be read", "name a transcript", "No such file"]),
        (folder, &["folder holds no *.jsonl file"]),
    ] {
        let ran = replay(&[&path]);
        ran.refuses(Exit::Refused, says);
        assert_eq!(ran.err.lines().count(), 1, "one line: {}", ran.err);
        assert!(ran.err.starts_with("tipstaff: "));
        assert!(!ran.out.contains("decisions"), "there is nothing to tell: {}", ran.out);
    }
}

#[test]
fn a_refused_file_does_not_hold_up_the_others() {
    let bench = Bench::new();
    let empty = bench.write("empty.jsonl", "");
    let ran = replay(&[&empty, &bench.good, "--json".as_ref()]);
    ran.refuses(Exit::Refused, &["empty.jsonl is empty"]);
    let report = ran.json();
    assert_eq!(report["files"].as_array().unwrap().len(), 1);
    assert_eq!(report["decisions"].as_array().unwrap().len(), 3);
    assert_eq!(report["refused"][0]["path"], json!(empty.display().to_string()));
    assert!(report["refused"][0]["error"].as_str().unwrap().contains("is empty"));

    let ran = replay(&[&empty, "--json".as_ref()]);
    ran.refuses(Exit::Refused, &[]);
    assert_eq!(ran.json()["files"], json!([]));
    let text = replay(&[&empty, &bench.good]);
    assert!(text.out.contains("3 allow"), "{}", text.out);
}

/// Damage inside a transcript is counted, named by its place, and no failure.
#[test]
fn damage_is_counted_and_named_and_the_rest_is_replayed() {
    let bench = Bench::new();
    let whole = lines(&[prompt("go"), bash("a", "ls"), result("a", "x")]);
    let last = bash("b", "cargo doc").to_string();
    let glued = format!("{}{}\n", bash("c", "cargo build"), result("c", "built"));
    let mut invalid = lines(&[bash("d", "echo X")]).into_bytes();
    let x = invalid.iter().position(|byte| *byte == b'X').unwrap();
    invalid[x] = 0xff;
    for (name, text, member, calls, says) in [
        ("cut", [whole.as_bytes(), &last.as_bytes()[..last.len() / 2]].concat(), "broken_lines", 1, "broken after"),
        ("glued", [whole.as_bytes(), glued.as_bytes()].concat(), "glued_lines", 2, "2 records on one line"),
        (
            "prose",
            [whole.as_bytes(), b"not JSON\n", lines(&[bash("e", "ls")]).as_bytes()].concat(),
            "broken_lines",
            2,
            "broken after 0 bytes",
        ),
        ("invalid", [whole.as_bytes(), &invalid].concat(), "replaced_lines", 2, ""),
    ] {
        let path = bench.write(&format!("{name}.jsonl"), text);
        let report = replay(&[&path, "--json".as_ref()]).done().json();
        let file = &report["files"][0];
        assert_eq!(
            (&file[member], &file["calls"], &file["operations"]["proposed"]),
            (&json!(1), &json!(calls), &json!(calls)),
            "{name}: {file}"
        );
        let text = replay(&[&path]).done().out;
        assert!(text.contains(says), "{name}: {text}");
        assert!(says.is_empty() || text.contains(&format!("{name}.jsonl:4: ")), "{name}: {text}");
    }
}

// ---- policies ----

#[test]
fn a_policy_that_is_wrong_is_refused_with_file_line_and_column() {
    let bench = Bench::new();
    let guard = "[[guard]]\nname = \"g\"\ncommand = { program = \"rm\" }\n";
    for (text, says) in [
        (format!("{guard}acton = \"deny\"\n"), &["policy.toml:4:1: unknown key `acton`", "action"][..]),
        (format!("{guard}action = \"deny\"\n\n[polcy]\n"), &["policy.toml:6:2: unknown key `polcy`"]),
        (format!("{guard}action = \"deny\n"), &["policy.toml:4:", "not TOML"]),
        (format!("{guard}action = \"forbid\"\n"), &["policy.toml:4:10: `action` must be"]),
        (format!("{guard}action = \"deny\"\ntools = []\n"), &["policy.toml:5:9: `tools` must be"]),
        (guard.replace("rm", "/bin/rm"), &["policy.toml:3:", "can never match: write the bare name"]),
        (format!("{guard}action = \"deny\"\n{guard}action = \"ask\"\n"), &["policy.toml:6:", "second guard"]),
        (guard.to_owned(), &["policy.toml:1:", "`action` is missing"]),
        (String::new(), &["policy.toml:1:1: no `[[guard]]`"]),
    ] {
        let policy = bench.write("policy.toml", &text);
        let ran = replay(&[&bench.good, "--policy".as_ref(), &policy]);
        ran.refuses(Exit::Refused, says);
        assert_eq!(ran.out, "", "nothing was replayed");
    }
    let ran = replay(&[&bench.good, "--policy".as_ref(), &bench.path("none.toml")]);
    ran.refuses(Exit::Refused, &["none.toml cannot be read", "name a policy file"]);
    let ran = replay(&[&bench.good, "--policy".as_ref(), &bench.write("latin.toml", [0x23, 0xe9])]);
    ran.refuses(Exit::Refused, &["latin.toml"]);
}

#[test]
fn a_denial_ends_with_one_only_where_that_was_asked_for() {
    let bench = Bench::new();
    let policy = bench.policy();
    let with = |more: &[&str]| {
        let words = [bench.good.to_str().unwrap(), "--policy", policy.to_str().unwrap()].into_iter().chain(more.iter().copied());
        run(std::iter::once("replay").chain(words))
    };
    assert_eq!(with(&[]).exit, Exit::Done);
    let found = with(&["--fail-on-deny"]);
    assert_eq!((found.exit, found.err.as_str()), (Exit::Found, ""));
    assert!(found.out.contains("deny by no-force -> denied"), "{}", found.out);
    assert_eq!(with(&["--fail-on-deny", "--json"]).exit, Exit::Found);
    assert_eq!(replay(&[&bench.good, "--fail-on-deny".as_ref()]).exit, Exit::Done, "without guards nothing is denied");
}

// ---- stores ----

#[test]
fn a_store_that_cannot_be_used_ends_with_three_and_a_remedy() {
    let bench = Bench::new();
    let newer = bench.path("newer.db");
    program::replay(&bench.good, None, &newer).done();
    rusqlite::Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    let read_only = bench.path("read-only.db");
    program::replay(&bench.good, None, &read_only).done();
    let mut mode = fs::metadata(&read_only).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&read_only, mode).unwrap();
    let other = bench.path("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    for (db, says) in [
        (bench.path("no/such/folder.db"), &["folder.db: the folder", "does not exist: create it"][..]),
        (bench.folder.path().to_owned(), &["this is a folder, not a file"]),
        (
            bench.write("text.db", "no database, but longer than the header of one would have to be, to be sure of it"),
            &["text.db: this is not an SQLite database"],
        ),
        (newer, &["newer.db: its schema is version 999", "upgrade this program"]),
        (read_only, &["read-only.db"]),
        (other, &["other.db: this database belongs to another program"]),
    ] {
        let ran = program::replay(&bench.good, None, &db);
        ran.refuses(Exit::StoreUnavailable, says);
        assert_eq!((ran.out.as_str(), ran.err.lines().count()), ("", 1), "{}", ran.err);
    }
}

/// Decisions are read back from the journal: one that takes nothing shows nothing.
#[test]
fn a_journal_that_refuses_every_append_shows_no_decision() {
    let bench = Bench::new();
    let policy = bench.policy();
    for point in [FaultPoint::Append, FaultPoint::AppendBeforeCommit] {
        for json in [true, false] {
            let faults = Faults::new();
            faults.always(point, FaultAction::Fail);
            let words = [
                "replay".as_ref(),
                bench.good.as_path(),
                "--policy".as_ref(),
                &policy,
                if json { "--json" } else { "--color=never" }.as_ref(),
            ];
            let ran = program::run_with(&faults, words);
            assert!(faults.reached(point) > 0);
            ran.refuses(Exit::StoreUnavailable, &["the journal did not take"]);
            if json {
                let report = ran.json();
                assert_eq!((&report["decisions"], &report["journal"]["facts"]), (&json!([]), &json!(0)), "{point}");
                assert_eq!(report["files"][0]["operations"]["proposed"], json!(0));
                assert!(report["journal"]["lost"].as_u64().unwrap() > 0);
            } else {
                assert!(ran.out.contains("0 allow, 0 rewrite, 0 ask, 0 deny"), "{}", ran.out);
                assert!(!ran.out.contains("no-force"), "{}", ran.out);
            }
        }
    }
}

/// One refused append is a loss that is told; what it was about is decided by the next replay.
#[test]
fn one_refused_append_is_told_and_mended_by_the_next_replay() {
    let bench = Bench::new();
    let db = bench.path("journal.db");
    let facts = {
        let whole = bench.path("whole.db");
        program::replay(&bench.good, None, &whole).done();
        Journal::read(&whole).all().count() as u64
    };
    for skip in 0..facts {
        let _fresh = fs::remove_file(&db);
        let faults = Faults::new();
        faults.once_after(FaultPoint::Append, FaultAction::Fail, skip);
        let words = ["replay".as_ref(), bench.good.as_path(), "--json".as_ref(), "--db".as_ref(), &db];
        let ran = program::run_with(&faults, words);
        ran.refuses(Exit::StoreUnavailable, &["the journal did not take"]);
        assert!(ran.json()["journal"]["lost"].as_u64().unwrap() > 0);
        let report = program::replay(&bench.good, None, &db).done().json();
        assert_eq!(report["files"][0]["decided"]["allow"], json!(3), "after append {skip} was refused: {report}");
        assert_eq!(report["journal"]["open_proposals"], json!(0));
    }
}

// ---- what is printed ----

/// A call may hold anything; what is printed of it cannot steer the terminal of whoever looks.
#[test]
fn no_call_can_steer_the_terminal_of_its_reader() {
    let bench = Bench::new();
    let nasty = "rm -rf /srv \u{1b}[2J\u{1b}]0;owned\u{7}\r\u{9b}31m \u{202e}txt.exe\u{200b}";
    let records = [
        prompt("go"),
        bash("a", nasty),
        result("a", nasty),
        call("b", &format!("Tool{nasty}"), &json!({ "path": nasty })),
        json!({ "type": format!("kind{nasty}"), "sessionId": "s" }),
        json!({ "type": "assistant", "sessionId": "s", "cwd": nasty, "message": { "content": [{ "type": "tool_use", "id": format!("c{nasty}"), "name": "Edit", "input": { "file_path": format!("/etc/{nasty}") } }] } }),
    ];
    let path = bench.write("nasty \u{1b}[1m.jsonl", lines(&records));
    let guards = "[[guard]]\nname = \"rm\"\ncommand = { program = \"rm\" }\naction = \"deny\"\n\n[[guard]]\nname = \"paths\"\npath = { outside = [\"/home\"] }\naction = \"record\"\n\n[[guard]]\nname = \"pushes\"\ncommand = { program = \"git\" }\naction = \"deny\"\n";
    let policy = bench.write("guards.toml", guards);
    for more in [None, Some("--json")] {
        let words = ["replay".as_ref(), path.as_os_str(), "--policy".as_ref(), policy.as_os_str()];
        let ran = run(words.into_iter().chain(more.map(AsRef::as_ref)));
        assert_eq!((ran.exit, ran.err.as_str()), (Exit::Done, ""));
        let steering = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert_eq!(ran.out.chars().find(|c| steering(*c)), None, "{:?}", ran.out);
        assert!(ran.out.contains("rm -rf /srv"), "{}", ran.out);
        if more.is_some() {
            let report = ran.json();
            assert_eq!(report["files"][0]["path"], json!(path.display().to_string()), "escapes of JSON lose nothing");
            let unknown = report["files"][0]["unknown_kinds"].as_object().unwrap();
            assert!(unknown.keys().any(|kind| kind.contains('\u{1b}')), "{unknown:?}");
        }
    }
    let absent = bench.path("absent\u{1b}[31m\r.jsonl");
    let ran = replay(&[&absent]);
    ran.refuses(Exit::Refused, &["absent\\u{1b}[31m\\r.jsonl"]);
}

#[test]
fn colours_are_printed_only_where_they_were_asked_for() {
    let bench = Bench::new();
    let policy = bench.policy();
    let with = |color: &str| {
        let words = ["replay", bench.good.to_str().unwrap(), "--policy", policy.to_str().unwrap(), "--color", color];
        run(words).done().out
    };
    assert!(with("always").contains("\u{1b}[31mdeny\u{1b}[0m"));
    assert!(!with("never").contains('\u{1b}') && !with("auto").contains('\u{1b}'));
}

/// Calls of one turn overlap. What diverged first is told by the order of the calls, and not by the order in which they ended.
#[test]
fn the_first_divergence_is_the_first_call_that_diverged() {
    let bench = Bench::new();
    let records = [
        prompt("go"),
        bash("long", "cargo build"),
        bash("first", "npm install"),
        bash("second", "ls"),
        bash("third", "git push --force"),
        result("third", "forced"),
        result("second", "src"),
        result("first", "installed"),
        result("long", "built"),
    ];
    let path = bench.write("overlap.jsonl", lines(&records));
    let policy = examples().join("policies/guardrails.toml");
    let report = replay(&[&path, "--policy".as_ref(), &policy, "--json".as_ref()]).done().json();
    let told = |decision: &Value| (decision["line"].clone(), decision["decision"].clone(), decision["counterfactual"].clone());
    let told: Vec<_> = report["decisions"].as_array().unwrap().iter().map(told).collect();
    let expected = [(2, "allow", false), (3, "rewrite", false), (4, "allow", true), (5, "deny", true)];
    assert_eq!(told, expected.map(|(line, decision, counterfactual)| (json!(line), json!(decision), json!(counterfactual))));
    assert_eq!(report["first_divergence"]["line"], json!(3));
}

/// Two copies of one thread are one session of the journal: its decisions are told once.
#[test]
fn a_copy_of_a_transcript_is_no_second_session() {
    let bench = Bench::new();
    let copies = bench.path("copies");
    for folder in ["a", "b"] {
        fs::create_dir_all(copies.join(folder)).unwrap();
        fs::copy(&bench.good, copies.join(folder).join("good.jsonl")).unwrap();
    }
    let report = replay(&[&copies, "--json".as_ref()]).done().json();
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    assert_eq!((report["decisions"].as_array().unwrap().len(), &report["journal"]["sessions"]), (3, &json!(1)));
    assert!(replay(&[&copies]).done().out.contains("operations  3 proposed"));
}

/// A writer that fails after some bytes.
struct Failing(usize, ErrorKind);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(self.1)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `| head` is no failure, and hides no denial; a full disk is one.
#[test]
fn a_reader_that_goes_away_is_no_failure_and_hides_no_denial() {
    let bench = Bench::new();
    let policy = bench.policy();
    for (kind, more, exit) in [
        (ErrorKind::BrokenPipe, None, Exit::Done),
        (ErrorKind::BrokenPipe, Some("--json"), Exit::Done),
        (ErrorKind::BrokenPipe, Some("--fail-on-deny"), Exit::Found),
        (ErrorKind::StorageFull, None, Exit::Refused),
        (ErrorKind::StorageFull, Some("--fail-on-deny"), Exit::Refused),
    ] {
        let words = ["replay".as_ref(), bench.good.as_os_str(), "--policy".as_ref(), policy.as_os_str()];
        let words = program::words(words.into_iter().chain(more.map(AsRef::as_ref)));
        let mut err = Vec::new();
        assert_eq!(cli::run(words, &mut Failing(20, kind), &mut err), exit, "{kind} {more:?}");
        let err = String::from_utf8(err).unwrap();
        assert_eq!(err.contains("the output cannot be written"), kind == ErrorKind::StorageFull, "{err}");
    }
}

// ---- the samples ----

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The README's first command shows each kind of decision, both products, and where it all lies.
#[test]
fn the_readmes_command_shows_every_kind_of_decision() {
    let (sessions, policy) = (examples().join("sessions"), examples().join("policies/guardrails.toml"));
    let text = replay(&[&sessions, "--policy".as_ref(), &policy]).done().out;
    for told in [
        "decisions   16 allow, 5 rewrite, 2 ask, 7 deny, 0 failed",
        "operations  30 proposed: 1 ambiguous, 17 completed, 9 denied, 3 failed",
        "127 facts in 5 sessions",
        "temporary; keep it with --db FILE",
        "release-day.jsonl",
        "became pnpm install --save-dev cider-press",
        "deny by no-force-push -> denied (counterfactual)",
        "ask by lease-needs-approval -> denied: no approver",
        "first divergence: ",
        "2 records on one line; all were taken",
    ] {
        assert!(text.contains(told), "{told:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "no line ends with blanks:\n{text}");
}

/// Names and forms of the report for machines. Members are only ever added.
#[test]
fn the_report_for_machines_has_its_documented_members() {
    let (sessions, policy) = (examples().join("sessions"), examples().join("policies/guardrails.toml"));
    let report = replay(&[&sessions, "--policy".as_ref(), &policy, "--json".as_ref()]).done().json();
    let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((&report["schema"], &report["schema_version"]), (&json!("tipstaff.replay"), &json!(1)));
    for member in ["decisions", "files", "refused", "first_divergence", "journal"] {
        assert!(!report[member].is_null(), "{member}");
    }
    let decision = &report["decisions"][0];
    for member in
        ["file", "operation", "tool", "line", "decision", "outcome", "guard", "reason", "place", "call", "counterfactual"]
    {
        assert!(decision.get(member).is_some(), "{member} is not among {:?}", members(decision));
    }
    let journal = &report["journal"];
    for member in ["db", "sessions", "facts", "payload_bytes", "file_bytes", "gaps", "open_proposals", "lost", "by_kind"] {
        assert!(journal.get(member).is_some(), "{member} is not among {:?}", members(journal));
    }
    let divergence = &report["first_divergence"];
    for member in ["session", "operation", "line", "decision", "guard"] {
        assert!(divergence.get(member).is_some(), "{member} is not among {:?}", members(divergence));
    }
    let diverging = report["decisions"].as_array().unwrap().iter().find(|decision| decision["decision"] != "allow").unwrap();
    assert_eq!((&diverging["operation"], &diverging["counterfactual"]), (&divergence["operation"], &json!(false)));
}
