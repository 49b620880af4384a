//! Lines that are made to be hard to read: deep, wide, and such that follow a name or a file to something ever larger.
//!
//! `benches/guard.rs` compiles this file as well, so that what is timed is what the tests run.

/// What stands around a nested text: its opening, a command, its end.
pub(crate) const NESTINGS: &[(&str, &str, &str)] = &[
    ("(", "ls", ")"),
    ("( ", "ls", " )"),
    ("{ ", "ls", "; }"),
    ("echo $(", "ls", ")"),
    ("$(", "ls", ")"),
    ("\"$(", "ls", ")\""),
    ("`", "ls", "`"),
    ("echo ${x:-", "ls", "}"),
    ("\"${x:-", "ls", "}\""),
    ("echo ${x[", "1", "]}"),
    ("echo $((", "1", "))"),
    ("echo $[", "1", "]"),
    ("((", "1", "))"),
    ("(( ", "(1)", " ))"),
    ("[[ ( ", "x", " ) ]]"),
    ("[[ ! ", "x", " ]]"),
    ("cat <(", "ls", ")"),
    ("x=(", "a", ")"),
    ("a[", "1", "]=x"),
    ("{a,", "b", "}"),
    ("if ", "ls", "; then ls; fi"),
    ("while ", "ls", "; do ls; done"),
    ("for x in a; do ", "ls", "; done"),
    ("case x in x) ", "ls", ";; esac"),
    ("f() { ", "ls", "; }"),
    ("function f { ", "ls", "; }"),
    ("coproc { ", "ls", "; }"),
    ("! ", "ls", ""),
    ("time ", "ls", ""),
    ("eval ", "ls", ""),
    ("env ", "ls", ""),
    ("sudo -u x ", "ls", ""),
    ("xargs ", "ls", ""),
    ("find . -exec ", "ls", " \\;"),
    ("sh -c ", "ls", ""),
    ("env -S ", "ls", ""),
    ("cat <<E\n$(", "ls", ")\nE\n"),
    ("@(", "a", ")"),
];

/// Texts that are repeated.
const REPEATED: &[(&str, &str)] = &[
    ("subshells", "();"),
    ("commands", "ls; "),
    ("lines", "ls\n"),
    ("pipes", "ls | "),
    ("lists", "ls && "),
    ("background", "ls & "),
    ("words", "a "),
    ("one word", "a"),
    ("single quotes", "'a'"),
    ("double quotes", "\"a\""),
    ("open quotes", "'\""),
    ("escapes", "\\a"),
    ("continued lines", "\\\n"),
    ("coded characters", "$'\\x41'"),
    ("variables", "$x"),
    ("braced variables", "${x}"),
    ("patterns of variables", "${x//a/b}"),
    ("indirect variables", "${!x}"),
    ("arithmetic", "$((1+1))"),
    ("substitutions", "$(ls)"),
    ("backquotes", "`ls`"),
    ("processes", "<(ls) "),
    ("braces in one word", "{a,b}"),
    ("braces in words", "{a,b} "),
    ("ranges in one word", "{1..9}"),
    ("ranges in words", "{1..999999} "),
    ("patterns", "*?[a-z]"),
    ("tildes", "~ "),
    ("comments", "#\n"),
    ("white space", " \t"),
    ("empty lines", "\n"),
    ("carriage returns", "a\r\n"),
    ("zeros", "\0"),
    ("wide characters", "\u{202e}é𝛑"),
    ("redirections", ">f "),
    ("here-strings", "cat <<<a;"),
    ("here-documents", "cat <<E\n$x\nE\n"),
    ("here-documents of one line", "<<E "),
    ("assignments", "x=a "),
    ("assigned lists", "x=(a b) "),
    ("grown values", "x=$x$x;"),
    ("appended values", "x+=$x;"),
    ("grown words", "set -- $@ $@;"),
    ("grown outputs", "x=$(echo $x$x);"),
    ("grown files", "cat f f >g;cat g g >f;"),
    ("folders", "cd a;"),
    ("functions", "f(){ ls;};"),
    ("calls", "f(){ f;f;};f;"),
    ("aliases", "alias a='a a';"),
    ("evaluations", "eval ls;"),
    ("shells", "sh -c 'rm -rf src';"),
    ("wrappers", "env nice timeout 5 ls;"),
    ("cases", "case a in a|b)ls;;esac;"),
    ("loops", "for x in a b c;do ls;done;"),
    ("traps", "trap ls EXIT;"),
    ("guarded ones", "git push -f;rm -rf src;npm ci;"),
    ("downloads", "curl x|sh;"),
    ("operands", "x/../y/../"),
    ("almost wrappers", "xargs -I {} sh -c {} <<<"),
    ("reads", "read x<<<$x$x;"),
    ("prints", "printf -v x %s%s $x $x;"),
];

/// Every line of so many bytes at most, with its name.
pub(crate) fn lines(bytes: usize) -> Vec<(String, String)> {
    let repetitions = REPEATED.iter().map(|(name, text)| ((*name).to_owned(), text.repeat(bytes / text.len())));
    let nestings = NESTINGS.iter().flat_map(|(open, inside, close)| {
        let levels = (bytes - inside.len()) / (open.len() + close.len());
        let unclosed = format!("{open:?} without end");
        [(format!("{open:?}"), nested(open, inside, close, levels)), (unclosed, open.repeat(bytes / open.len()))]
    });
    let followed = [
        ("functions that call the next twice", chained(bytes, |n| format!("f{n}(){{ f{0};f{0};}};", n + 1), "f0")),
        ("values that hold the last twice", chained(bytes, |n| format!("x{}=$x{n}$x{n};", n + 1), "$x9")),
        ("loops within loops", nested("for x in a b c d;do ", "ls", ";done", (bytes - 2) / 25)),
        ("words that are run", format!("{}ls", "f(){ \"$@\" \"$@\";};f ".repeat(bytes / 22))),
        ("one long here-document", format!("sh <<E\n{}E\n", "rm -rf build\n".repeat(bytes / 13 - 1))),
        ("one long quoted program", format!("sh -c '{}'", "ls;".repeat(bytes / 3 - 4))),
        ("doubled escapes", format!("eval \"{}\"", "\\\\".repeat(bytes / 2 - 4))),
        ("one command of many options", format!("rm {}src", "-f ".repeat(bytes / 3 - 3))),
        ("one command of many folders", format!("rm -rf {}", "build ".repeat(bytes / 6 - 2))),
        ("files that are run", chained(bytes, |n| format!("echo ls >f{n};sh f{n};"), "ls")),
    ];
    let followed = followed.into_iter().map(|(name, text)| (name.to_owned(), text));
    let all: Vec<_> = repetitions.chain(nestings).chain(followed).collect();
    assert!(all.iter().all(|(_, text)| text.len() <= bytes), "none is longer");
    all
}

/// A text within so many levels.
pub(crate) fn nested(open: &str, inside: &str, close: &str, levels: usize) -> String {
    format!("{}{inside}{}", open.repeat(levels), close.repeat(levels))
}

/// Numbered parts, as many as have room, and an end.
fn chained(bytes: usize, part: impl Fn(usize) -> String, end: &str) -> String {
    let mut text = String::new();
    for part in (0..).map(part) {
        if text.len() + part.len() + end.len() > bytes {
            break;
        }
        text.push_str(&part);
    }
    text + end
}
