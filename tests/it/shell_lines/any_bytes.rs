//! Nothing that a model may write makes a guard panic or overflow a stack of 2 MiB, which is what a thread of the runtime has.
//!
//! The same function is driven by a fuzzer (`checks/fuzz`); here generated texts, the recorded lines and hard ones go through it. How long the hard
//! ones take is measured by `benches/guard.rs` and asserted nowhere.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{entry, recorded, worst};

/// The stack of the threads that the runtime starts.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The longest line that is read.
const LINE_BYTES: usize = 64 * 1024;

/// How long the hard lines are: as long as is read, or a quarter of it where nothing is optimised and the full size is not asked for.
fn hard_bytes() -> usize {
    if cfg!(debug_assertions) && !crate::data::is_set("TIPSTAFF_TEST_FULL_SIZE") { LINE_BYTES / 4 } else { LINE_BYTES }
}

/// Does something on a thread with a runtime's stack. An overflow ends the process.
fn on_a_small_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).expect("a thread starts");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Judges a line as a text, and a short one also as the last word of a list.
fn judge(policy: &tipstaff::guard::Policy, line: &str) {
    entry::judge(policy, line.as_bytes());
    if line.len() < 1_024 {
        entry::judge(policy, &[b"\x02", line.as_bytes()].concat());
    }
}

/// Deep nesting of every kind is answered, at once and without an end.
#[test]
fn no_nesting_overflows_a_small_stack() {
    on_a_small_stack(|| {
        let policy = entry::policy();
        for levels in [1, 60, 63, 64, 65, 66, 100, 1_000, 10_000] {
            for (open, inside, close) in worst::NESTINGS {
                judge(&policy, &worst::nested(open, inside, close, levels));
                judge(&policy, &open.repeat(levels));
                entry::judge(&policy, close.repeat(levels).as_bytes());
            }
            // Every kind within every other.
            let mixed = |part: fn(&(&'static str, &str, &'static str)) -> &'static str| -> String {
                worst::NESTINGS.iter().map(part).collect::<String>().repeat(levels.div_ceil(worst::NESTINGS.len()))
            };
            judge(&policy, &format!("{}ls{}", mixed(|nesting| nesting.0), mixed(|nesting| nesting.2)));
        }
    });
}

/// The longest lines that are read are answered, whatever they are made of, and so are longer ones.
#[test]
fn no_long_line_overflows_a_small_stack() {
    on_a_small_stack(|| {
        let policy = entry::policy();
        let too_long = worst::lines(LINE_BYTES + 1_024).into_iter().filter(|(_, line)| line.len() > LINE_BYTES);
        for (name, line) in worst::lines(hard_bytes()).into_iter().chain(too_long) {
            println!("{name}");
            entry::judge(&policy, line.as_bytes());
        }
    });
}

/// The recorded lines that are long or deep are answered by every recorded policy (their page).
#[test]
fn no_recorded_line_overflows_a_small_stack() {
    let Some(recording) = recorded::recording() else { return };
    on_a_small_stack(|| {
        let own = entry::policy();
        for line in &recording.lines {
            judge(&own, &line.line);
        }
        let hard = recording.lines.iter().filter(|line| line.is("long") || line.is("deep-nesting"));
        let mut count = 0;
        for line in hard {
            count += 1;
            recording.policies.values().for_each(|policy| drop(recorded::answer(policy, &line.line, &recording.workspace)));
        }
        assert!(count > 0, "some are long or deep");
    });
}

/// Words, operators and halves of them.
const FRAGMENTS: &[&str] = &[
    " ", " ", "\n", "\t", "\\\n", ";", ";;", ";&", "&", "&&", "||", "|", "|&", "!", "(", ")", "((", "))", "{", "{ ", "; }", "}",
    "<", ">", ">>", "<<", "<<-", "<<<", "<>", ">|", "2>&1", "&>", "<(", ">(", "'", "\"", "$'", "$\"", "\\", "`", "$", "$(",
    "$((", "${", "${x:-", "${!x", "${#x", "${x//", "$[", "[[", "]]", "[", "]", "=", "+=", "~", "*", "?", "#", "%", "@", "-",
    "--", ",", "..", "if ", "then ", "elif ", "else ", "fi", "do ", "done", "while ", "until ", "x) ", "esac", "select ", "f() ",
    "coproc ", "time ", "eval ", "exec ", "command ", "builtin ", "source ", ". ", "trap ", "alias ", "set -- ", "shift",
    "read x", "cd ", "export ", "local ", "unset ", "return", "EOF\n", "git ", "push ", "-f ", "rm ", "-rf ", "src", "build",
    "npm ", "npm", "ci", "curl ", "sh ", "sh -c ", "bash ", "env ", "-S ", "sudo ", "xargs ", "-I{} ", "\\;", "{}", "x", "x=",
    "x=npm ", "$x", "\"$@\"", "$*", "a{b,c}", "{1..3}", "é", "\u{a0}", "\u{202e}", "\0", "\r", "\u{1b}", "\u{ffff}", "\x7f",
];

/// Longer ones.
const PHRASES: &[&str] =
    &["for x in ", "case x in ", "function f ", "declare -A ", "cat <<EOF\n", "cat <<'EOF'\n", "find . -exec ", "timeout 5 "];

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => select(FRAGMENTS), 1 => select(PHRASES)], 0..40).prop_map(|parts| parts.concat().into_bytes())
}

/// Pieces of given lines, put together anew.
fn spliced(lines: Vec<String>) -> impl Strategy<Value = Vec<u8>> {
    let piece = (select(lines), any::<Index>(), any::<Index>()).prop_map(|(line, from, to)| {
        let bytes = line.as_bytes();
        let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
        bytes[from.min(to)..from.max(to)].to_vec()
    });
    vec(piece, 1..5).prop_map(|pieces| pieces.concat())
}

/// Any bytes, fragments of the language and pieces of lines are answered.
#[test]
fn any_bytes_are_answered() {
    let recorded = recorded::recording().map(|recording| recording.lines);
    let mut lines: Vec<String> = recorded.into_iter().flatten().map(|line| line.line).filter(|line| line.len() < 4_096).collect();
    lines.extend(worst::lines(200).into_iter().map(|(_, line)| line));
    let form = select(vec![&b""[..], b"\x01", b"\x02"]);
    let bytes = prop_oneof![2 => vec(any::<u8>(), 0..200), 5 => fragments(), 5 => spliced(lines)];
    let cases = if crate::data::is_set("TIPSTAFF_TEST_FULL_SIZE") { 20_000 } else { 2_000 };
    let policy = entry::policy();
    on_a_small_stack(|| {
        proptest!(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }, |(form in form, bytes in bytes)| {
            entry::judge(&policy, &[form, &bytes].concat());
        });
    });
}
