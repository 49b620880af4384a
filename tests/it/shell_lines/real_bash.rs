//! A rewritten line executes what the original executes, with pnpm for npm: both are run by a real bash, and what they start is compared.
//!
//! Nothing real is started but the shells and a few programs that only run their words: every other word of a line that could name a program names
//! a stub, which records its words and its folder. Lines run in a temporary folder, with nothing but the stubs' folder on the path, and only those
//! run that cannot leave it (see [`is_contained`]).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::runtime::Runtime;

use super::recorded::{Does, answer, policy, recording};

/// Programs that do nothing but run their words or input, or pass on text. They are the real ones.
const REAL: &[&str] = &["bash", "sh", "env", "timeout", "nohup", "xargs", "cat"];

/// The longest that one line may run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records the program's name, its folder and its words, in one write; then succeeds or fails as the run is told.
const STUB: &str = r#"printf '%s\0' "${0##*/}" "$PWD" "$#" "$@" >> "${0%/bin/*}/record"
exit "$(<"${0%/bin/*}/status")"
"#;

const POLICY: &str = r#"
[[guard]]
name = "npm-to-pnpm"
command = { program = "npm" }
action = "rewrite"
rewrite = { program = "pnpm" }
"#;

/// Lines in which the word npm stands as a program and as something else, in every kind of command.
const LINES: &[&str] = &[
    "npm",
    "npm ci npm",
    "npm npm npm",
    "  npm\tci # npm ci",
    "npm ci;npm test|cat&&npm run x||npm run y",
    "! npm ci",
    "time -p npm ci",
    "npm ci & npm test & wait",
    "(npm ci); { npm test; }",
    "cd web && npm ci && cd .. && npm test",
    "(cd web && npm ci) && npm test",
    "for npm in npm yarn; do npm run \"$npm\"; done",
    "while npm run check; do npm ci; break; done",
    "until npm run check; do npm ci; break; done",
    "case npm in npm) npm ci;; *) npm test;; esac",
    "if npm ci; then npm run a; elif npm run b; then npm run c; else npm run d; fi",
    "build() { npm run \"$@\"; }\nbuild npm; build",
    "x=npm npm run x",
    "x=$(npm bin); echo npm \"$x\"",
    "echo `npm bin` \"$(npm root)\" npm",
    "npm ci 2>&1 >/dev/null <<< npm",
    "npm run a \\\n  npm \\\n  --flag=npm",
    "cat <<EOF | npm run input\nnpm ci\nEOF",
    "sh <<'EOF'\nnpm ci\necho npm\nEOF",
    "sh -c 'npm ci' npm",
    "bash -c 'npm ci; cd npm && npm test'",
    "bash -c \"sh -c 'npm ci'\"",
    "env npm=npm npm ci npm",
    "timeout 20 env A=npm npm ci",
    "nohup npm ci npm 2>/dev/null",
    "echo npm | xargs npm install",
    "echo npm | xargs -n 1 timeout 20 npm install npm",
    "command npm ci; \\npm ci; 'npm' ci; \"npm\" ci",
    "eval npm ci; eval 'npm test'",
    "p=npm; $p ci; \"$p\" test; npm run $p",
    "npm() { echo shadowed; }; npm ci",
    "alias npm=ls; npm ci",
    "set -- npm ci; \"$@\"",
    "[[ npm == npm ]] && npm ci",
    "(( 1 )) && npm ci",
    "npm ci > npm-out; cat < npm-out",
    "a=(npm ci); \"${a[@]}\"; npm run \"${a[0]}\"",
];

/// Whether a line can reach nothing outside its folder: no absolute path but `/dev/null`, no way up or home, no other path for programs, no emptied
/// environment, no shell that reads the machine's own profile (which sets the path anew), no codes for characters that could hide one of these, no
/// signals.
fn is_contained(line: &str) -> bool {
    let line = line.replace("/dev/null", "");
    let relative = line.match_indices('/').all(|(at, _)| {
        line[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || matches!(before, '.' | '_' | '-'))
    });
    let words: BTreeSet<&str> = line.split(|c: char| c.is_whitespace() || "();|&\"'`".contains(c)).collect();
    let leaves = ["-", "-i", "-p", "exec", "kill", "enable", "ulimit", "sudo"];
    let login = |word: &&str| {
        word.starts_with("--login") || (!word.starts_with("--") && word.starts_with('-') && word.contains(['l', 'i']))
    };
    let without_folders = line.replace("cd ..", "");
    let time = line.trim_start().starts_with("time -p ");
    let coded = line.contains("$'") && line.contains('\\');
    let up_or_home = without_folders.contains("..") || ["~", "PATH", "HOME", "OLDPWD"].iter().any(|part| line.contains(part));
    let left = leaves.iter().any(|leave| words.contains(leave) && (*leave != "-p" || !time)) || words.iter().any(login);
    relative && ![up_or_home, coded, left].contains(&true)
}

/// One started program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    program: String,
    folder: String,
    words: Vec<String>,
}

/// A temporary folder with stubs, and a bash.
struct Jail {
    root: tempfile::TempDir,
    bash: PathBuf,
    tokio: Runtime,
}

impl Jail {
    /// Nothing where there is no bash.
    fn new() -> Option<Self> {
        let bash = installed("bash")?;
        let root = tempfile::tempdir().expect("a temporary folder");
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
        let jail = Self { root, bash, tokio };
        fs::create_dir(jail.at("bin")).expect("the folder is empty");
        for name in REAL {
            if let Some(program) = installed(name) {
                symlink(program, jail.at("bin").join(name)).expect("the name is free");
            }
        }
        // Written by another process: a file that a thread of this one writes while another thread forks cannot be executed for a moment.
        let text = format!("#!{}\n{STUB}", jail.bash.display());
        jail.bash(&["-c", "printf %s \"$1\" > stub", "bash", &text], jail.root.path());
        fs::set_permissions(jail.at("stub"), fs::Permissions::from_mode(0o755)).expect("the stub is ours");
        Some(jail)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Everything that a line starts, sorted: what runs at once has no order.
    fn started(&self, line: &str, status: u8) -> Vec<Started> {
        for name in line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).chain(["npm", "pnpm"]) {
            let place = self.at("bin").join(name);
            if name.starts_with(char::is_alphabetic) && place.symlink_metadata().is_err() {
                symlink(self.at("stub"), place).expect("the name is free");
            }
        }
        fs::write(self.at("status"), format!("{status}\n")).expect("it is written");
        fs::write(self.at("record"), "").expect("it is written");
        let folder = self.at("ws");
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("it is ours");
        }
        for name in ["web", "npm", "packages/api", "packages/web"] {
            fs::create_dir_all(folder.join(name)).expect("it is new");
        }
        fs::write(folder.join("deps.txt"), "one two\n").expect("it is new");
        // What runs in the background is waited for.
        self.bash(&["--norc", "--noprofile", "-c", &format!("{line}\nwait\n")], &folder);
        self.recorded()
    }

    /// Runs bash to its end. What it prints does not matter, nor whether it succeeds.
    fn bash(&self, args: &[&str], folder: &Path) {
        let mut command = Command::new(&self.bash);
        command.args(args).current_dir(folder).env_clear().env("PATH", self.at("bin")).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let ended = self.tokio.block_on(async { tokio::time::timeout(PATIENCE, command.output()).await });
        ended.unwrap_or_else(|_| panic!("{args:?} runs for ever")).expect("bash starts");
    }

    fn recorded(&self) -> Vec<Started> {
        let text = fs::read_to_string(self.at("record")).expect("the stubs write text");
        let root = self.root.path().canonicalize().expect("it exists").display().to_string();
        let mut fields = text.split_terminator('\0');
        let mut all = Vec::new();
        while let Some(program) = fields.next() {
            let mut field = || fields.next().expect("a record is whole").to_owned();
            let (folder, count) = (field(), field().parse::<usize>().expect("a number of words"));
            let folder = folder.replacen(&root, "", 1);
            let words = (0..count).map(|_| field()).collect();
            all.push(Started { program: program.to_owned(), folder, words });
        }
        all.sort();
        all
    }

    /// What both lines start, whether all programs succeed or all fail: the original with pnpm for npm, and the rewritten one.
    fn both(&self, line: &str, rewritten: &str) -> (Vec<Started>, Vec<Started>) {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for status in [0, 1] {
            expected.extend(self.started(line, status));
            found.extend(self.started(rewritten, status));
        }
        expected
            .iter_mut()
            .filter(|started| started.program == "npm")
            .for_each(|started| "pnpm".clone_into(&mut started.program));
        expected.sort();
        found.sort();
        (expected, found)
    }
}

/// Whether bash takes a text as a program, without running it. Nothing where there is no bash.
pub(super) fn takes(line: &str) -> Option<bool> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let mut command = Command::new(installed("bash")?);
    command.args(["--norc", "--noprofile", "-n", "-c", line]).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio.block_on(async { tokio::time::timeout(PATIENCE, command.output()).await });
    Some(ended.expect("a text is read in time").expect("bash starts").status.success())
}

/// Where a program is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_absolute() && file.is_file())
}

fn skipped(why: &str) {
    use std::io::Write as _;
    // Past the capture of the test's output: a skipped test has to be seen.
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("standard error is open");
}

/// 10-cli: a rewrite replaces words of the parsed command, and is refused where the line cannot be rebuilt exactly. So what a rewritten line starts
/// is what the original starts, npm aside, in every order of success and failure.
#[test]
fn a_rewritten_line_starts_what_the_original_starts() {
    let Some(jail) = Jail::new() else { return skipped("there is no bash to run rewritten lines") };
    let recorded = recording().map_or(Vec::new(), |recording| recording.lines);
    let recorded = recorded.iter().filter(|line| line.rewritten.is_some()).map(|line| &*line.line);
    let policy = policy(POLICY);
    let (mut ran, mut asked, mut failures) = (0, Vec::new(), Vec::new());
    for line in recorded.chain(LINES.iter().copied()) {
        let rewritten = match answer(&policy, line, "/ws") {
            super::Answered { does: Does::Rewrite(rewritten), .. } => rewritten,
            super::Answered { does, reason } => {
                asked.push(format!("{does:?}: {line:?}: {reason}"));
                continue;
            }
        };
        let absent = REAL.iter().find(|name| line.contains(**name) && !jail.at("bin").join(name).exists());
        if !is_contained(line) || !is_contained(&rewritten) || absent.is_some() {
            println!("not run: {line:?}");
            continue;
        }
        let (expected, found) = jail.both(line, &rewritten);
        ran += 1;
        if expected != found {
            failures.push(format!("{line:?} became {rewritten:?}\n  expected {expected:?}\n  found    {found:?}"));
        }
        if !found.iter().any(|started| started.program == "pnpm") {
            failures.push(format!("{rewritten:?} starts no pnpm: {found:?}"));
        }
    }
    println!("{ran} rewritten lines run; not rewritten: {}", asked.len());
    asked.iter().for_each(|line| println!("  {line}"));
    assert!(failures.is_empty(), "{} of {ran} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(ran >= LINES.len() / 2, "of {} lines only {ran} were rewritten and run", LINES.len());
}

/// The comparison would see a word that is no program, a changed folder, and a program that is started once more.
#[test]
fn the_comparison_sees_what_differs() {
    let Some(jail) = Jail::new() else { return skipped("there is no bash to run rewritten lines") };
    for (line, rewritten, same) in [
        ("npm ci npm", "pnpm ci npm", true),
        ("npm ci npm", "pnpm ci pnpm", false),
        ("cd npm && npm ci", "cd npm && pnpm ci", true),
        ("cd npm && npm ci", "cd web && pnpm ci", false),
        ("npm ci || npm test", "pnpm ci || pnpm test", true),
        ("npm ci || npm test", "pnpm ci; pnpm test", false),
        ("sh -c 'npm ci' & npm x", "sh -c 'pnpm ci' & pnpm x", true),
        ("npm 'a b'", "pnpm a b", false),
    ] {
        let (expected, found) = jail.both(line, rewritten);
        assert_eq!(expected == found, same, "{line:?} and {rewritten:?}: {expected:?} and {found:?}");
        assert!(!expected.is_empty(), "{line:?} starts something");
    }
}

/// No line runs that could reach something outside its folder.
#[test]
fn a_line_that_could_leave_its_folder_is_not_run() {
    for line in ["npm ci >/dev/null", "cd web && ./npm", "npm run a/b", "time -p npm"] {
        assert!(is_contained(line), "{line}");
    }
    for line in [
        "/bin/rm -rf src; npm ci",
        "npm ci >/tmp/x",
        "'/bin/rm' x",
        "x=/bin/rm",
        "$(npm bin)/tsc",
        "npm >../x",
        "rm ~",
        "PATH=x npm",
        "env -i npm",
        "env - npm",
        "command -p rm",
        "$'\\x2fbin\\x2frm' x",
        "kill -9 -1",
        "exec -c npm",
        "bash -lc 'npm ci'",
        "sh --login -c 'npm ci'",
    ] {
        assert!(!is_contained(line), "{line}");
    }
}
