//! `find` and `fd`: the words of each `-exec`.
//!
//! | in the call                                        | it runs                                                                 |
//! |----------------------------------------------------|-------------------------------------------------------------------------|
//! | `-exec X ;`, `-ok X ;`                             | `X`, each `{}` a path that begins as all start paths begin              |
//! | `-execdir X ;`, `-okdir X ;`                       | the same with `./` in an unknown folder                                 |
//! | `-exec X {} +`                                     | the same, with one or more paths                                        |
//! | `-exec` without its end                            | nothing: find refuses the call                                          |
//! | a word that is not known, outside of such a part   | perhaps an `-exec` of its own                                           |
//! | `fd -x X ;`, `fd -X X`                             | `X` with a path in place of `{}` and its like, or else after it         |
//!
//! An `-exec` counts wherever it stands, also as a pattern or as a word of another: the tests and what they take need no table, and a
//! part too many is judged rather than one too few.

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, head};
use super::{Child, Folder, Found};

pub(super) fn find(call: &mut Call<'_>) -> Found {
    let fields = call.fields;
    let start = start(fields);
    let mut list = Vec::new();
    let mut within = 0;
    for (at, field) in fields.iter().enumerate().skip(1) {
        match field.literal() {
            Some("-exec" | "-ok") => {
                list.extend(part(fields, at + 1, &start));
                within = within.max(end(fields, at + 1).unwrap_or(0));
            }
            Some("-execdir" | "-okdir") => {
                list.extend(part(fields, at + 1, "./").map(|child| child.within(&Folder::Unknown)));
                within = within.max(end(fields, at + 1).unwrap_or(0));
            }
            None if at >= within && may_begin(fields, at) => call.doubt(field),
            _ => {}
        }
    }
    Ok(list.into())
}

/// Whether an unknown word may bring an `-exec` whose child stands after it, or all of one.
fn may_begin(fields: &[Field], at: usize) -> bool {
    let field = &fields[at];
    let next = fields.get(at + 1).is_some_and(|next| !next.text.starts_with('-'));
    field.open == Open::Many || (field.text.is_empty() && next && end(fields, at + 1).is_some())
}

/// What the found paths begin with.
fn start(fields: &[Field]) -> String {
    let rest = fields.iter().skip(1);
    let options = |field: &&Field| matches!(field.text.as_str(), "-H" | "-L" | "-P") || field.text.starts_with("-O");
    let expression = |field: &&Field| {
        field.text.starts_with('-') || (field.open == Open::No && matches!(field.text.as_str(), "(" | ")" | "!" | ","))
    };
    if fields.iter().any(|field| field.text.starts_with("-files0-from")) {
        return String::new();
    }
    let mut starts = rest.skip_while(options).take_while(|field| !expression(field)).map(|field| field.text.as_str());
    let first = starts.next().unwrap_or(".");
    let common = |one: &str, other: &str| {
        one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map_or(one.len().min(other.len()), |((at, _), _)| at)
    };
    starts.fold(first.to_owned(), |start, next| start[..common(&start, next)].to_owned())
}

/// Where a part ends: `;`, or `+` after `{}`.
fn end(fields: &[Field], from: usize) -> Option<usize> {
    let ends = |at: usize| match fields[at].literal() {
        Some(";") => true,
        Some("+") => at > from && fields[at - 1].literal() == Some("{}"),
        _ => false,
    };
    (from..fields.len()).find(|at| ends(*at))
}

/// The command of one part.
fn part(fields: &[Field], from: usize, start: &str) -> Option<Child> {
    let end = end(fields, from)?;
    let mut words: Vec<Field> = fields[from..end].iter().map(|word| filled(word, start)).collect();
    if fields[end].text == "+" {
        words.extend(words.last().cloned());
    }
    Child::command(words)
}

/// A word with a path in place of `{}`.
fn filled(word: &Field, start: &str) -> Field {
    match word.text.find("{}") {
        Some(0) => Field { text: start.to_owned(), exact: None, open: word.open.max(Open::One), ..word.clone() },
        Some(at) => head(word, at, word.open.max(Open::One)),
        None => word.clone(),
    }
}

const FD: Grammar = Grammar::new(
    "HIuUsigFaLp0l1qhVd:E:t:e:S:o:c:j:x:X:",
    &[
        "hidden",
        "no-hidden",
        "no-ignore",
        "ignore",
        "no-ignore-vcs",
        "ignore-vcs",
        "no-require-git",
        "require-git",
        "no-ignore-parent",
        "no-global-ignore-file",
        "unrestricted",
        "case-sensitive",
        "ignore-case",
        "glob",
        "regex",
        "fixed-strings",
        "and:",
        "absolute-path",
        "relative-path",
        "list-details",
        "follow",
        "no-follow",
        "full-path",
        "print0",
        "max-depth:",
        "min-depth:",
        "exact-depth:",
        "exclude:",
        "prune",
        "type:",
        "extension:",
        "size:",
        "changed-within:",
        "changed-before:",
        "newer:",
        "older:",
        "owner:",
        "format:",
        "exec:",
        "exec-batch:",
        "batch-size:",
        "ignore-file:",
        "color:",
        "hyperlink::",
        "threads:",
        "max-buffer-time:",
        "max-results:",
        "quiet",
        "show-errors",
        "base-directory:",
        "path-separator:",
        "search-path:",
        "strip-cwd-prefix::",
        "one-file-system",
        "mount",
        "xdev",
        "gen-completions::",
        "help",
        "version",
    ],
)
.last(EXEC);

const EXEC: &[&str] = &["x", "X", "exec", "exec-batch"];

pub(super) fn fd(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    let mut folder = Folder::Same;
    let mut at = 1;
    while at < call.fields.len() {
        let options = call.leading(&FD, at)?;
        if let Some(found) = options.value(&["base-directory"]) {
            folder = Folder::Known(found.clone());
        }
        let Some(program) = options.value(EXEC) else {
            if options.ended {
                break;
            }
            call.operand(options.rest);
            at = options.rest + 1;
            continue;
        };
        let rest = &call.fields[options.rest..];
        let end = rest.iter().position(|word| word.literal() == Some(";")).unwrap_or(rest.len());
        let mut words: Vec<Field> = std::iter::once(program).chain(&rest[..end]).cloned().collect();
        let marked = words.iter().any(|word| mark(word).is_some());
        for word in &mut words {
            if let Some(at) = mark(word) {
                *word = head(word, at, word.open.max(Open::One));
            }
        }
        if !marked || options.has(&["X", "exec-batch"]) {
            words.push(Field::unknown(Open::One, call.fields[0].span.clone()));
        }
        list.extend(Child::command(words));
        at = options.rest + end + 1;
    }
    Ok(list.into_iter().map(|child| child.within(&folder)).collect::<Vec<_>>().into())
}

/// Where a word holds a mark for the path.
fn mark(word: &Field) -> Option<usize> {
    ["{}", "{/}", "{//}", "{.}", "{/.}"].iter().filter_map(|mark| word.text.find(mark)).min()
}
