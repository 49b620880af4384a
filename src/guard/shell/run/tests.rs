//! Lines, and what they may run.

use super::*;
use crate::guard::shell::field::Open;

/// Each invocation as words joined by blanks: `?` for what is not known of a word, `..` for any number of words.
fn shown(trace: &Trace) -> Vec<String> {
    let word = |field: &Field| match field.open {
        Open::No => field.text.clone(),
        Open::One => format!("{}?{}", field.text, field.tail),
        Open::Many => format!("{}..", field.text),
    };
    trace.invocations.iter().map(|invocation| invocation.fields.iter().map(word).collect::<Vec<_>>().join(" ")).collect()
}

fn assert_runs(lines: &[(&str, &[&str])]) {
    for (text, expected) in lines {
        let trace = line(text, Some("/ws"));
        assert_eq!(shown(&trace), *expected, "{text:?}");
        assert_eq!(trace.unclear, [], "{text:?}");
    }
}

#[test]
fn every_branch_of_a_line_runs() {
    assert_runs(&[
        ("", &[]),
        ("# a", &[]),
        ("a b; c && d || e & f | g", &["a b", "c", "d", "e", "f", "g"]),
        ("(a); { b; }; ! c", &["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("case x in a) b;; *) c;; esac", &["b", "c"]),
        ("for x in 1 2; do a $x; done", &["a 1", "a 2"]),
        ("time -p a", &["a"]),
        ("a $(b) \"`c`\" <(d) > >(e)", &["e", "b", "c", "d", "a .. ? /dev/fd/65"]),
        ("cat <<E\n$(a)\nE", &["a", "cat"]),
        ("cat <<'E'\n$(a)\nE", &["cat"]),
        ("f() { a \"$@\"; }; f b c", &["a b c", "f b c"]),
        ("f() { a; }", &["a"]),
    ]);
}

#[test]
fn what_the_line_says_is_resolved() {
    assert_runs(&[
        ("a 'b c' \"d\"e\\ f", &["a b c de f"]),
        ("x=rm; y='-r -f'; $x $y \"$y\"", &["rm -r -f -r -f"]),
        ("a {b,c}d ~/x", &["a bd cd ?/x"]),
        ("c=(a 'b c'); \"${c[@]}\" \"${c[1]}\"", &["a b c b c"]),
        ("$(echo a) b", &["echo a", "a b"]),
        ("set -- a b; \"$1\" $2", &["set -- a b", "a b"]),
        ("a $? ${#x} $((1 + 2))", &["a 0 0 0"]),
        ("x=1; true && x=2; a $x", &["true", "a .."]),
        ("(x=1); a \"$x\"", &["a ?"]),
        ("x=1; x+=2; a $x", &["a 12"]),
        ("x=~/bin/b; $x c", &["?/bin/b c"]),
        ("[ -d a ] && b [x", &["[ -d a ]", "b [x"]),
        ("a \"$HOME/b\" $HOME/c", &["a ?/b ?/c"]),
        ("a ${x:-b} \"$@\" \"${y%z}\"", &["a .. .. ?"]),
        ("read c <<< b; a $c", &["read c", "a b"]),
    ]);
}

#[test]
fn the_folder_is_followed() {
    for (text, folders) in [
        ("a; cd b && c; d", &[Some("/ws"), Some("/ws"), Some("/ws/b"), None][..]),
        ("cd /b; a", &[Some("/ws"), None]),
        ("set -e; cd /b; a", &[Some("/ws"), Some("/ws"), Some("/b")]),
        ("cd b || exit; a", &[Some("/ws"), Some("/ws"), Some("/ws/b")]),
        ("(cd b && a); c", &[Some("/ws"), Some("/ws/b"), Some("/ws")]),
        ("cd \"$x\" && a", &[Some("/ws"), None]),
        ("cd b && cd .. && a", &[Some("/ws"), Some("/ws/b"), Some("/ws")]),
    ] {
        let trace = line(text, Some("/ws"));
        let found: Vec<_> = trace.invocations.iter().map(|invocation| invocation.folder.as_deref()).collect();
        assert_eq!(found, folders, "{text:?}");
    }
}

#[test]
fn what_is_not_told_is_unclear() {
    for text in [
        "$x a",
        "\"$@\"",
        "${!x} a",
        "eval \"$x\"",
        "sh -c \"$x\"",
        "cat f | sh",
        "sh < f",
        "alias a=b",
        "shopt -s expand_aliases",
        "PATH=./a:$PATH b",
        "a 'b",
        "f() { f; }; f",
        "a() { a | a; }; a",
        ". \"$x\"",
        "GIT_EDITOR=\"$x\" git commit",
        "x='a[$(b)]'; echo $((x))",
        "/bin/[a]b c",
        "/bin/[a\\\n]b c",
        "/bin/[\"a\"]b c",
        "sh",
        "cat | sh",
    ] {
        assert_ne!(line(text, Some("/ws")).unclear, [], "{text:?}");
    }
}

#[test]
fn text_that_runs_is_followed_to_where_it_comes_from() {
    for (text, from, to) in [
        ("a | sh", "a", "sh"),
        ("a | cat | tee f | bash -s", "a", "bash"),
        ("sh -c \"$(a)\"", "a", "sh"),
        ("eval \"$(a)\"", "a", "eval"),
        ("x=$(a); eval \"$x\"", "a", "eval"),
        (". <(a)", "a", "."),
        ("sh <<< \"$(a)\"", "a", "sh"),
        ("a > f; sh f", "a", "sh"),
        ("a | while read -r l; do eval \"$l\"; done", "a", "eval"),
    ] {
        let flows = line(text, Some("/ws")).flows;
        assert!(flows.iter().any(|flow| flow.to == to && flow.from.names().any(|name| name == from)), "{text:?}: {flows:?}");
    }
    for text in ["a | grep sh", "a | sh -c 'wc -c'", "echo a | sh; b", "a > f; cat f"] {
        let flows = line(text, Some("/ws")).flows;
        assert!(!flows.iter().any(|flow| flow.from.names().any(|name| name == "a" || name == "b")), "{text:?}: {flows:?}");
    }
}

#[test]
fn every_text_ends_within_its_steps() {
    let doubled = format!("x=aaaaaaaaaaaaaaaa; {}echo $x", "x=$x$x; ".repeat(60));
    for text in [
        doubled.as_str(),
        ":(){ :|:& };:",
        "for a in {1..16}; do for b in {1..16}; do for c in {1..16}; do for d in {1..16}; do e; done; done; done; done",
        &"eval ".repeat(3_000),
        &"{a,b}".repeat(500),
        &"a && ".repeat(10_000),
    ] {
        let trace = line(text, Some("/ws"));
        assert!(trace.invocations.len() < 100_000, "{text:.40?}");
    }
}
