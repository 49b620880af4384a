//! Commands of the shell that run their words or a text.
//!
//! | the call                                    | it runs                                                      |
//! |---------------------------------------------|--------------------------------------------------------------|
//! | `command X`, `exec X`                       | the command `X`                                              |
//! | `command -v X`, `command -V X`              | nothing                                                      |
//! | `builtin X`                                 | the command `X`, if it is one of the shell                   |
//! | `eval X ..`                                 | the words joined by a space, as text of this shell           |
//! | `. FILE X`, `source FILE X`                 | the file, in this shell                                      |
//! | `trap TEXT SIGNAL`                          | the text, later                                              |
//! | `mapfile -C TEXT`                           | the text with two more words                                 |
//! | `compgen -C TEXT`, `complete -C TEXT`       | the text with three more words, `complete` later             |
//! | `bind -x KEYS:TEXT`                         | the text, later                                              |

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, joined, several, tail};
use super::{Child, Children, Folder, Found, Scope, shells};

pub(super) fn command(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("pvV", &[]), 1)?;
    let child = Child::command(call.rest(options.rest)).filter(|_| !options.has(&["v", "V"]));
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

pub(super) fn exec(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("a:cl", &[]), 1)?;
    Ok(Child::command(call.rest(options.rest)).into_iter().collect::<Vec<_>>().into())
}

pub(super) fn builtin(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("", &[]), 1)?;
    let runs = call.fields.get(options.rest).is_some_and(|name| name.literal().is_none_or(|name| BUILTINS.contains(&name)));
    let child = Child::command(call.rest(options.rest)).filter(|_| runs);
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

/// The commands of bash, and those of others that run something.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "alias",
    "autoload",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "emulate",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "print",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
    "zmodload",
];

pub(super) fn eval(call: &mut Call<'_>) -> Found {
    let from = 1 + usize::from(call.literal(1) == Some("--"));
    let text = joined(call.fields.get(from..).unwrap_or_default());
    Ok(text.map(|text| Child::text(text).read_by(Scope::Here)).into_iter().collect::<Vec<_>>().into())
}

pub(super) fn source(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("p:", &[]), 1)?;
    call.operand(options.rest);
    let path = call.fields.get(options.rest).map(Field::literal);
    let child = path.map(|path| shells::file(call, options.rest, path, Scope::Here));
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

pub(super) fn trap(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("lpP", &[]), 1)?;
    let resets = |text: &str| matches!(text, "-" | "") || text.bytes().all(|byte| byte.is_ascii_digit());
    let signals = call.fields.len().saturating_sub(options.rest + 1);
    let computed = call.fields.get(options.rest).is_some_and(several);
    let text = call
        .fields
        .get(options.rest)
        .filter(|text| (signals > 0 || computed) && options.given.is_empty() && !text.literal().is_some_and(resets));
    let child = text.map(|text| Child::text(text.clone()).read_by(Scope::Later).within(&Folder::Unknown));
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

pub(super) fn mapfile(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("d:n:O:s:tu:C:c:", &[]), 1)?;
    Ok(texts(call, options.values(&["C"]), 2, Scope::Here).into())
}

/// `compgen` and `complete`; the words of `-W` are expanded.
pub(super) fn complete(call: &mut Call<'_>) -> Found {
    const OPTIONS: Grammar = Grammar::new("abcdefgjksuvprDEIo:A:G:W:F:C:X:P:S:V:", &[]);
    let (options, _) = call.permuted(&OPTIONS, 1)?;
    let later = call.fields[0].text.ends_with("complete");
    let mut list = texts(call, options.values(&["C"]), 3, if later { Scope::Later } else { Scope::Here });
    let expanded = |word: &&Field| word.literal().is_none_or(|text| text.contains(['$', '`']));
    list.extend(options.values(&["W"]).filter(expanded).map(|word| Child::Unclear(word.span.clone())));
    Ok(list.into())
}

/// Texts to which the shell adds words.
fn texts<'o>(call: &Call<'_>, texts: impl Iterator<Item = &'o Field>, added: usize, scope: Scope) -> Vec<Child> {
    let folder = if scope == Scope::Later { Folder::Unknown } else { Folder::Same };
    let words = vec![Field::unknown(Open::One, call.fields[0].span.clone()); added];
    texts.map(|text| Child::text_with(text, words.clone()).read_by(scope).within(&folder)).collect()
}

pub(super) fn bind(call: &mut Call<'_>) -> Found {
    let (options, operands) = call.permuted(&Grammar::new("m:lpsvPSVXq:u:r:f:x:", &[]), 1)?;
    let mut list = Vec::new();
    for value in options.values(&["x"]) {
        // The keys are quoted, and may hold a colon.
        let quoted = value.text.trim_start().strip_prefix('"').and_then(|rest| rest.find("\":")).is_some();
        let at = if quoted { value.text.find("\":").map(|at| at + 2) } else { value.text.find(':').map(|at| at + 1) };
        list.push(match at {
            Some(at) => Child::text(tail(value, at)).read_by(Scope::Later).within(&Folder::Unknown),
            None => Child::Unclear(value.span.clone()),
        });
    }
    // A macro types text, and a file may hold macros.
    let keys = operands.iter().map(|at| &call.fields[*at]).chain(options.values(&["f"]));
    list.extend(keys.map(|field| Child::Unclear(field.span.clone())));
    Ok(Children { list, known: true })
}
