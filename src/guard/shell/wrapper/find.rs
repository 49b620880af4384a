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
//! part too many is told rather than one too few.

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, gap};
use super::{Child, Folder, Found};

/// How many parts within others are told.
const MAX_NESTED: usize = 8;

pub(super) fn find(call: &mut Call<'_>) -> Found {
    let fields = call.fields;
    let ends = Ends::new(fields);
    let start = start(fields);
    let mut list = Vec::new();
    // The end of the parts so far, and how many of them begin within another.
    let (mut within, mut nested) = (0, 0);
    for (at, field) in fields.iter().enumerate().skip(1) {
        let (start, folder) = match field.literal() {
            Some("-exec" | "-ok") => (start.as_str(), Folder::Same),
            Some("-execdir" | "-okdir") => ("./", Folder::Unknown),
            None if at >= within && ends.may_begin(at) => {
                call.doubt(field);
                continue;
            }
            _ => continue,
        };
        let Some(end) = ends.of(at + 1) else { continue };
        nested += usize::from(at < within);
        if nested > MAX_NESTED {
            call.doubt(field);
            break;
        }
        list.extend(part(&fields[at + 1..end], start, fields[end].text == "+").map(|child| child.within(&folder)));
        within = within.max(end);
    }
    Ok(list.into())
}

/// Where the part ends that begins at each word: `;`, or `+` after `{}`.
struct Ends<'f> {
    fields: &'f [Field],
    next: Vec<Option<usize>>,
}

impl<'f> Ends<'f> {
    fn new(fields: &'f [Field]) -> Self {
        let mut next = vec![None; fields.len() + 1];
        for at in (0..fields.len()).rev() {
            let ends = match fields[at].literal() {
                Some(";") => true,
                Some("+") => at > 0 && fields[at - 1].literal() == Some("{}"),
                _ => false,
            };
            next[at] = if ends { Some(at) } else { next[at + 1] };
        }
        Self { fields, next }
    }

    fn of(&self, from: usize) -> Option<usize> {
        let end = *self.next.get(from)?;
        // The `{}` belongs to the part.
        if end == Some(from) && self.fields[from].text == "+" { self.next[from + 1] } else { end }
    }

    /// Whether an unknown word may bring an `-exec` whose child stands after it, or all of one.
    fn may_begin(&self, at: usize) -> bool {
        let field = &self.fields[at];
        let next = self.fields.get(at + 1).is_some_and(|next| !next.text.starts_with('-'));
        field.open == Open::Many || (field.text.is_empty() && next && self.of(at + 1).is_some())
    }
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
    let mut starts = rest.skip_while(options).take_while(|field| !expression(field)).map(known);
    let first = starts.next().unwrap_or(".");
    let common = |one: &str, other: &str| {
        one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map_or(one.len().min(other.len()), |((at, _), _)| at)
    };
    starts.fold(first.to_owned(), |start, next| start[..common(&start, next)].to_owned())
}

/// The beginning of a word that is known: of a pattern what stands before its first sign.
fn known(field: &Field) -> &str {
    let end = if field.pattern { field.text.find(['*', '?', '[']) } else { None };
    &field.text[..end.unwrap_or(field.text.len())]
}

/// The command of one part.
fn part(words: &[Field], start: &str, many: bool) -> Option<Child> {
    let mut words: Vec<Field> = words.iter().map(|word| filled(word, start)).collect();
    if many {
        words.extend(words.last().cloned());
    }
    Child::command(words)
}

/// A word with a path in place of `{}`.
fn filled(word: &Field, start: &str) -> Field {
    let Some((first, last)) = word.text.find("{}").zip(word.text.rfind("{}")) else { return word.clone() };
    let mut filled = gap(word, first, last + "{}".len());
    if first == 0 {
        filled.text = start.to_owned();
        filled.exact = None;
    }
    filled
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
            if let Some((first, end)) = mark(word) {
                *word = gap(word, first, end);
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

/// From the first to the last mark for the path in a word.
fn mark(word: &Field) -> Option<(usize, usize)> {
    const MARKS: [&str; 5] = ["{}", "{/}", "{//}", "{.}", "{/.}"];
    let first = MARKS.iter().filter_map(|mark| word.text.find(mark)).min()?;
    let end = MARKS.iter().filter_map(|mark| word.text.rfind(mark).map(|at| at + mark.len())).max()?;
    Some((first, end))
}
