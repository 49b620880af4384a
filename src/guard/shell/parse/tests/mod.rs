//! What is read of lines, written down in one notation; and what is refused.

mod notation;
mod properties;
mod recorded;

use super::{MAX_BYTES, MAX_COMMANDS, MAX_DEPTH, parse};
use crate::guard::shell::syntax::{Base, Parsed, Why};

/// The tree of a line that is read to its end.
fn tree(line: &str) -> String {
    let Parsed { list, refused } = parse(line, Base::At(0), 0);
    assert_eq!(refused, None, "refused: {line:?}");
    notation::list(&list)
}

fn why(line: &str) -> Option<Why> {
    parse(line, Base::At(0), 0).refused.map(|refused| refused.why)
}

fn assert_trees(expected: &[(&str, &str)]) {
    for (line, expected) in expected {
        assert_eq!(tree(line), *expected, "{line:?}");
    }
}

fn assert_refused(expected: Why, lines: &[&str]) {
    for line in lines {
        assert_eq!(why(line), Some(expected), "{line:?}");
    }
}

/// Quotes and escapes become text, joined lines nothing.
#[test]
fn quotes_make_text() {
    assert_trees(&[
        ("a 'b c' \"d e\" \\f g'h'\"i\"j", "a 'b c' 'd e' 'f' g'h''i'j;"),
        ("a''\"\" ''", "a'''' '';"),
        ("a $'x\\41\\102\\u43\\cA\\n\\'\\q' $\"x $y\" \"$'z'\" ", "a 'x!BC\\u{1}\\n\\'\\\\q' 'x ''${y}' '$\\'z\\'';"),
        ("a\\\nb c \"d\\\ne\" 'f\\\ng'; i\\\nf x; then y; fi", "ab c 'd''e' 'f\\\\\\ng'; if[x;][y;];"),
        ("\"\\a\\\"\\$\\`\\\\ ~\" ~/x {a,b} *.rs \\*", "'\\\\a''\\\"''$''`''\\\\ ~' ~/x {a,b} *.rs '*';"),
        ("a\\", "a'\\\\';"),
    ]);
}

/// A comment begins where a word could.
#[test]
fn comments_begin_where_words_do() {
    assert_trees(&[
        ("a # b ' (\nc", "a; c;"),
        ("a#b #c", "a#b;"),
        ("$(a # )\n)", "$(a;);"),
        ("a;#b\nc", "a; c;"),
        ("(a)#b", "(a;);"),
    ]);
}

/// Operators, `!` and `time`.
#[test]
fn lists_and_pipelines() {
    assert_trees(&[
        ("a;b&c&&d||e|f|&g", "a; b & c && d || e | f [2>&1] | g;"),
        ("a &&\nb |\n\nc", "a && b | c;"),
        ("! a; ! ! b; time a; time -p -- b | time c; ! ; time", "a; b; a; b | time c;"),
        ("a |\ntime b; $(time a)", "a | time b; $(a;);"),
        ("a &\\\n& b", "a && b;"),
        ("a\n\n  \nb", "a; b;"),
    ]);
}

/// Only whole, unquoted and at the start of a command.
#[test]
fn reserved_words_are_such_in_their_place() {
    assert_trees(&[
        ("if a; then \"if\" fi; fi", "if[a;]['if' fi;];"),
        ("a if; x=1 if; >f if a", "a if; x=1 if; if a [>f];"),
        ("'if' a; \\if b; i\\\nf c; then d; fi", "'if' a; 'i'f b; if[c;][d;];"),
        ("{ a }; }; {a; }a", "{a };}; {a; }a;"),
        ("for for in in do; do a done; done", "for for in in do[a done;];"),
    ]);
}

/// Groups, subshells, arithmetic.
#[test]
fn groups_and_subshells() {
    assert_trees(&[
        ("{ a; }; (a;b) >f", "{a;}; (a; b;) [>f];"),
        ("{ { a; } }; ( (a) )", "{{a;};}; ((a;););"),
        ("((1 + $x)); ((a) ; b); ((a) && (b))", "(('1 + ''${x}')); ((a;); b;); ((a;) && (b;););"),
        ("a $((1)) $((a) ) $(( (1) )) $[2 * $(x)] $(((a)))", "a $(('1')) $((a;);) $((' (1) ')) $(('2 * ''$(x;)')) $(('(a)'));"),
        ("(( '$(a)' \"$b\" ))", "((' \\'''$(a;)''\\' ''${b}'' '));"),
    ]);
}

/// `while`, `until`, `for`, `select`.
#[test]
fn loops() {
    assert_trees(&[
        ("while a; do b; done; until a\ndo b\ndone >f", "loop[a;][b;]; loop[a;][b;] [>f];"),
        (
            "for x in a \"$b\" $(c); do d; done; for x do d; done; for x; do d; done; for x\ndo d; done; for x in a; { b; }",
            "for x in a '${b}' $(c;)[d;]; for x[d;]; for x[d;]; for x[d;]; for x in a[b;];",
        ),
        ("for ((i=0; i<$(n); i++)); do a; done; for ((;;)) { a; }", "for(('i=0; i<''$(n;)''; i++'))[a;]; for((';;'))[a;];"),
        ("select x in a b; do c; done", "select x in a b[c;];"),
        ("for x in; do a; done", "for x in [a;];"),
    ]);
}

/// `if`, `case`.
#[test]
fn choices() {
    assert_trees(&[
        ("if a; then b; elif c; then d; else e; fi >f", "if[a;][b;][c;][d;] else[e;] [>f];"),
        (
            "case $x in a|\"b c\") d ;; (e) ;; f*) g ;& h) i ;;& *) j; esac; k",
            "case ${x} a 'b c')[d;] e)[] f*)[g;] h)[i;] *)[j;]; k;",
        ),
        (
            "$(case x in x) a;; esac) $(case x in esac) $(case x in (x) a; esac)",
            "$(case x x)[a;];) $(case x;) $(case x x)[a;];);",
        ),
        ("case esac in (esac) a;; esac", "case esac esac)[a;];"),
        ("if (a) then (b) fi", "if[(a;);][(b;);];"),
    ]);
}

/// `[[ ]]`
#[test]
fn conditions() {
    assert_trees(&[
        (
            "[[ -f $x && ! ( a < b || $(c) =~ ^(a|b c)$ ) ]] >f; [[ a ]]",
            "[[-f ${x} && ! ( a < b || $(c;) =~ ^(a|b c)$ )]] [>f]; [[a]];",
        ),
        ("[[ a == @(b|c d) ]]", "[[a == @(b|c d)]];"),
        ("[[ a =~ [0-9]+|x\\ y$(z) ]]", "[[a =~ [0-9]+|x' 'y$(z;)]];"),
        ("[[\n-n a &&\n -n b\n]]", "[[-n a && -n b]];"),
        ("[[ -n a ]] && [[ a -nt b ]]", "[[-n a]] && [[a -nt b]];"),
    ]);
}

/// Functions by both spellings, `coproc` with and without a name.
#[test]
fn functions_and_coprocesses() {
    assert_trees(&[
        (
            "f() { a; } >x; function g { b; }; function h() ( c ); a-b() [[ x ]]; i()\n((1))",
            "function f {a;} [>x]; function g {b;}; function h (c;); function a-b [[x]]; function i (('1'));",
        ),
        ("function if\n{ a; }; function f ((1)); function g ( a )", "function if {a;}; function f (('1')); function g (a;);"),
        (
            "coproc a b; coproc N { a; }; coproc { a; }; coproc time a; coproc x=1 a",
            "coproc a b; coproc {a;}; coproc {a;}; coproc time a; coproc x=1 a;",
        ),
    ]);
}

/// In every place.
#[test]
fn redirections() {
    assert_trees(&[
        (
            ">f a 2>&1 <in b 3>>x >|y &>z &>>w <>v {fd}>u {a[1]}<t >&s 1>&- <&3- 2>& 1",
            "a b [>f] [2>&1] [<in] [3>x] [>y] [&>z] [&>w] [<v] [fd>u] [a[1]<t] [&>s] [1>&-] [>&3-] [2>&1];",
        ),
        (
            "2 >f; a2>f; 2>f; a 22 2>f; a 2&>f; a <<<$x\"y\"; a \"2\">f",
            "2 [>f]; a2 [>f];  [2>f]; a 22 [2>f]; a 2 [&>f]; a [<<<${x}'y']; a '2' [>f];",
        ),
        ("a >&-b >(c) <(d)e f<(g) > >(h) 2<(i)", "a b >(c;) <(d;)e f<(g;) 2<(i;) [>&-] [>>(h;)];"),
        (">f >$(a) x=1 b; { a; } 2>f <g", "x=1 b [>f] [>$(a;)]; {a;} [2>f] [<g];"),
    ]);
}

/// Only before a program, or after a builtin that declares.
#[test]
fn assignments() {
    assert_trees(&[
        (
            "a=1 b+=2 c[$(i)]=3 d= e=(x \"y z\" [k v]=w $(f)\n# c\n g) --h=i j=k",
            "a=1 b+=2 c['$(i;)']=3 d=_ e=(x 'y z' ['k v']=w $(f;) g) --h=i j=k;",
        ),
        ("a='b' >f c=d e f=g", "a='b' c=d e f=g [>f];"),
        ("a\\\n=b c", "a=b c;"),
        ("declare -a x=(a b) y+=(c) z=$(w); echo a[1]=b", "declare -a x=(a b) y+=(c) z=$(w;); echo a[1]=b;"),
        ("\"a\"=b c; a$x=b c; 1a=b", "'a'=b c; a${x}=b c; 1a=b;"),
        ("x=$(a) y=`b` z=<(c)", "x=$(a;) y=$(b;) z=<(c;);"),
        ("a[b] c", "a[b] c;"),
    ]);
}

/// Every form of an expansion.
#[test]
fn parameters() {
    assert_trees(&[
        (
            "$x ${y} $1 $10 ${10} $@ $$ $ $/ \"$\" ${#} ${#x} ${#x[@]} $#x ${#-} $-x",
            "${x} ${y} ${1} ${1}0 ${10} ${@} ${$} $ $/ '$' ${#} ${x length} ${x['@'] length} ${#}x ${- length} ${-}x;",
        ),
        (
            "${!x} ${!x*} ${!x@} ${!x[@]} ${!} ${x@P} ${x@Q} ${!1}",
            "${x evaluated} ${x changed } ${x changed } ${x['@'] evaluated} ${!} ${x evaluated} ${x changed } ${1 evaluated};",
        ),
        (
            "${x:-a b} ${x-'a}'} ${x:=$(a)} ${x+\"b\"} ${x:?c} ${x:1:$(a)} ${x##*/} ${x%%\"$y\"}",
            "${x:-a b} ${x-'a}'} ${x:=$(a;)} ${x+'b'} ${x:?c} ${x changed 1:$(a;)} ${x changed #*/} ${x changed %'${y}'};",
        ),
        (
            "${x//a/$(b)} ${x^^} ${x,} ${x[$(i)]} ${@:1} ${#:-a} ${x:-<(a)}",
            "${x changed /a/$(b;)} ${x changed ^} ${x changed _} ${x['$(i;)']} ${@ changed 1} ${#:-a} ${x:-<(a;)};",
        ),
        (
            "\"${x:-'$(a)' \"b\" \\} $(c)}\" \"${x#'a}'}\" \"${x:-'}'}\"",
            "'${x:-'\\'''$(a;)''\\' ''b'' ''} ''$(c;)'}' '${x changed 'a}'}' '${x:-'\\'''}''\\''}';",
        ),
        ("${x:-{a}}", "${x:-{a}};"),
        ("\"${x:-\"$y\"}\" \"${x:-\"$y\"/z}\" \"${x:-$y/\"z\"}\"", "'${x:-'${y}'}' '${x:-'${y}''/z'}' '${x:-'${y}''/''z'}';"),
        ("${!x:-a}", "${x evaluated};"),
    ]);
}

/// All spellings, nested.
#[test]
fn substitutions() {
    assert_trees(&[
        ("`a \\`b\\` \"c\"` \"`a \\\"b\\\" \\$x`\" `\\\\` ``", "$(a $(b;) 'c';) '$(a 'b' ${x};)' $('\\\\';) $();"),
        ("${ a; } \"${| b; }c\" ${\na\n}", "$(a;) '$(b;)''c' $(a;);"),
        ("$(a \"$(b \"$(c)\")\")", "$(a '$(b '$(c;)';)';);"),
        ("\"$(a \")\" # )\n)\" b", "'$(a ')';)' b;"),
        ("$() $( ) `a\\\nb`", "$() $() $(ab;);"),
    ]);
}

/// Several in a line, quoted, stripped, joined, nested, unterminated.
#[test]
fn here_documents() {
    assert_trees(&[
        (
            "cat <<E >f && b\n$x \"q\" 'r' \\$ \\a `a` $(b)\\\nE\nE\nc",
            "cat [<<'${x}'' \\\"q\\\" \\'r\\' ''$ \\\\a ''$(a;)'' ''$(b;)''E\\n'] [>f] && b; c;",
        ),
        ("cat <<'E' <<-\"F\"\n$x\\\nE\n\t $y\n\tF\na", "cat [<<'$x\\\\\\n'] [<<' $y\\n']; a;"),
        ("cat <<E\nx $(cat <<F\n$(a)\nF\n)\nE\nb", "cat [<<'x ''$(cat [<<'$(a;)''\\n'];)''\\n']; b;"),
        ("(cat <<E)\n(\nE\n", "(cat [<<'(\\n'];);"),
        ("while cat <<E; do\nx\nE\na; done", "loop[cat [<<'x\\n'];][a;];"),
        ("cat <<-E\n\ta\n\t  $(b\n\tc)\n\tE\nd", "cat [<<'a\\n  ''$(b; c;)''\\n']; d;"),
        ("cat <<E\na\\\nE\nE", "cat [<<'aE\\n'];"),
        ("cat <<E\nunterminated $(a)\n", "cat [<<'unterminated ''$(a;)''\\n'];"),
        ("cat <<E", "cat [<<_];"),
        ("a $(cat <<E\nb\nE)", "a $(cat [<<'b\\n'];);"),
        ("`cat <<E\nb`", "$(cat [<<'b'];);"),
        ("cat <<''\na\n\nb", "cat [<<'a\\n']; b;"),
        ("cat <<E\\\nF\na\nEF\nb", "cat [<<'a\\n']; b;"),
        ("if cat <<E; then a <<F; fi\nx\nE\ny\nF\n", "if[cat [<<'x\\n'];][a [<<'y\\n'];];"),
        ("f() { a <<E; }\nb\nE\nf", "function f {a [<<'b\\n'];}; f;"),
        ("cat <<E\n${x:-\"a\"} ${y}\nE\n", "cat [<<'${x:-'a'}'' ''${y}''\\n'];"),
        ("a <<E | b <<F\n1\nE\n2\nF\nc", "a [<<'1\\n'] | b [<<'2\\n']; c;"),
    ]);
}

/// Text of an argument.
#[test]
fn patterns_with_parentheses() {
    assert_eq!(why("[[ a == *.@(b|c d) && b != !(e)f ]]"), None);
    assert_refused(Why::Ambiguous, &["a *.@(b|c d)", "a +($x)", "a ?(\"y)\")", "case x in @(a|b)) c;; esac", "echo @(b"]);
}

/// What has no end is refused.
#[test]
fn unterminated_text_is_refused() {
    let lines = [
        "a 'b",
        "a \"b",
        "$(a",
        "`a",
        "${x",
        "((1",
        "$((1",
        "a &&",
        "a |",
        "(a",
        "{ a;",
        "if a",
        "if a; then",
        "while a; do b",
        "for x",
        "for x in a; do",
        "case x",
        "case x in",
        "case x in a) b",
        "[[ a",
        "f()",
        "function",
        "a=(b",
        "$'a",
        "<(a",
        "a <<",
        "a >",
        "coproc",
        "\"$(a",
        "$(cat <<E\na\n)",
    ];
    assert_refused(Why::Unterminated, &lines);
}

/// What bash has no place for is refused.
#[test]
fn misplaced_text_is_refused() {
    let lines = [
        "| a",
        "a ;; b",
        "fi",
        ")",
        "a)",
        "}",
        "a; ; b",
        "a & & b",
        "&& a",
        "a (b)",
        "{ }",
        "( )",
        "if then a; fi",
        "for x in a do b; done",
        "f() a",
        "[[ a b ]]",
        "[[ ]]",
        "a > ; b",
        "case x in a b) c;; esac",
        "$(a;;)",
        "in a",
        "a | ! b",
        "env a=(b)",
        "${x y}",
        "${@@Z}",
        "{ a; } b",
        "function f a",
        "for x { a; }",
        "select ((;;)) { a; }",
        "a <<<2>b",
        "a >& ;",
    ];
    assert_refused(Why::Unexpected, &lines);
}

/// What bash reads by its settings or its version, or with two ends, is refused.
#[test]
fn ambiguous_text_is_refused() {
    let lines = [
        "!(a) b",
        "@(a) b",
        "f+() { a; }",
        "$'\\xff'",
        "$'\\x{41}'",
        "$(cat <<E)\na\nE",
        "$(cat <<E\nEx )\nE\n)",
        "a[$x] b",
        "a[1 2] b",
        "$(time -f a)",
        "${!x:-$(a)}",
        "cat <<$x\na\n$x",
        "cat <<'a\nb'\n",
        "$((case x in x) a;; esac) )",
        "$(( $(case x in x) a;; esac) ))",
        "a @($(case x in x) a;; esac))",
        "{a[$x]}>f b",
        "\"${x:-<(a)}\"",
        "\"${x:-$\"(a)\"}\"",
        "\"${x:-\"$\"(a)}\"",
        "\"${x:-$y\"z\"}\"",
        "\"${x:-\"a$\"$y}\"",
        "\"${x:-\"$y\"z}\"",
        "\"${x:-$'a'}\"",
        "cat <<E\n${x:-\"$\"(a)}\nE",
        "(( $'a' ))",
        "((a \\\n) )",
        "a=(b)c",
        "<<E b=(\nE\n)",
    ];
    assert_refused(Why::Ambiguous, &lines);
}

/// Control characters are refused outside quotes and in programs.
#[test]
fn control_text_is_refused() {
    let lines = ["a\r", "rm\u{1b}[0m", "\u{7}", "\"rm\r\" a", "a \u{7f}", "a \\\r", "a\0b", "echo \"\0\"", "\u{85}"];
    assert_refused(Why::Control, &lines);
}

/// Control characters within quotes are data.
#[test]
fn control_characters_in_quoted_arguments_are_read() {
    assert_trees(&[("a 'b\r' \"\u{1b}\"", "a 'b\\r' '\\u{1b}';"), ("cat <<E\na\r\nE", "cat [<<'a\\r\\n'];")]);
}

/// A mistake takes its line with it, and what follows; the lines before it stay, since bash has run them.
#[test]
fn the_lines_before_a_mistake_stay() {
    let kept = |line: &str| {
        let Parsed { list, refused } = parse(line, Base::At(0), 0);
        assert!(refused.is_some(), "{line:?}");
        notation::list(&list)
    };
    assert_eq!(kept("a\nb; c\nd; ) e\nf"), "a; b; c;");
    assert_eq!(kept("a <<E\nb\nE\nc\n'"), "a [<<'b\\n']; c;");
    assert_eq!(kept("{ a\nb\n)\n}"), "");
    assert_eq!(kept("a\nb\nc\0"), "a; b;");
    assert_eq!(kept("a\nb 'c\n\0'"), "a;");
}

/// A refusal says where.
#[test]
fn a_refusal_has_its_place() {
    let place = |line: &str| parse(line, Base::At(100), 0).refused.map(|refused| refused.at);
    assert_eq!(place("a; )"), Some(103..104));
    assert_eq!(place("a \u{1b}"), Some(102..103));
    assert_eq!(place("a (é"), Some(103..105));
    assert_eq!(place("a 'b"), Some(102..103));
    assert_eq!(place("if a"), Some(104..104));
    assert_eq!(parse("a; )", Base::Within(7..9), 0).refused.map(|refused| refused.at), Some(7..9));
}

/// Each bound holds, and not one step earlier.
#[test]
fn the_bounds_hold() {
    assert_eq!(why(&"a".repeat(MAX_BYTES)), None);
    assert_eq!(why(&"a".repeat(MAX_BYTES + 1)), Some(Why::TooLong));
    assert_eq!(why(&"a;".repeat(MAX_COMMANDS)), None);
    assert_eq!(why(&"a;".repeat(MAX_COMMANDS + 1)), Some(Why::TooLong));
    let nested = |depth: usize, around: usize| {
        let line = format!("{}a{}", "( ".repeat(depth), " )".repeat(depth));
        parse(&line, Base::At(0), around).refused.map(|refused| refused.why)
    };
    assert_eq!(nested(MAX_DEPTH, 0), None);
    assert_eq!(nested(MAX_DEPTH + 1, 0), Some(Why::TooDeep));
    assert_eq!(nested(MAX_DEPTH - 8, 8), None);
    assert_eq!(nested(MAX_DEPTH - 7, 8), Some(Why::TooDeep));
    assert_eq!(nested(0, MAX_DEPTH + 1), Some(Why::TooDeep));
}

/// Text that is read again is paid for: what would double at each level is refused.
#[test]
fn reading_again_is_bounded() {
    let nested = |open: &str, close: &str, depth: usize| format!("a {}b{}", open.repeat(depth), close.repeat(depth));
    assert_eq!(why(&nested("$((", ") )", 3)), None);
    assert_eq!(why(&nested("$((", ") )", 30)), Some(Why::TooDeep));
    assert_eq!(why(&nested("((", ") )", 3)[2..]), None);
    assert_eq!(why(&nested("(($((", ") ) ) )", 15)[2..]), Some(Why::TooDeep));
}

/// Every construct at its full depth on the stack that a test's thread has, 2 MiB.
#[test]
fn full_depth_fits_a_small_stack() {
    let levels = [
        ("( ", " )"),
        ("{ ", "; }"),
        ("if ", "; then a; fi"),
        ("while ", "; do a; done"),
        ("case x in x) ", ";; esac"),
        ("for x in a; do ", "; done"),
        ("f() { ", "; }"),
        ("function f { ", "; }"),
        ("coproc { ", "; }"),
        ("a | { ", "; }"),
        ("a $(", ")"),
        ("a \"$(", ")\""),
        ("a <(", ")"),
        ("a ${x:-", "}"),
        ("a \"${x:-", "}\""),
        ("a=$(", ")"),
        ("a=(", ")"),
        ("[[ (", ") ]]"),
        ("[[ $(", ") ]]"),
        ("$((", "))"),
        ("a[$(", ")]=b"),
        ("a=([$(", ")]=b)"),
        ("a >$(", ")"),
        ("${ ", "; }"),
        ("a <<<$(", ")"),
        ("a ${x[$(", ")]}"),
        ("a ${x//\"$(", ")\"}"),
        ("a <<E\n$(", ")\nE"),
        ("! time (", ")"),
        ("a @($(", "))"),
    ];
    for (open, close) in levels {
        let line = format!("{}a{}", open.repeat(MAX_DEPTH + 1), close.repeat(MAX_DEPTH + 1));
        assert!(why(&line).is_some(), "{open:?}");
    }
}
