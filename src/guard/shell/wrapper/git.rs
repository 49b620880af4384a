//! `git`: aliases of the call, settings with commands, and subcommands that run their words.
//!
//! | in the call                                              | it runs                                                        |
//! |----------------------------------------------------------|----------------------------------------------------------------|
//! | `-c alias.N=!TEXT N X`                                   | the text with the words `X`                                    |
//! | `-c alias.N=WORDS N X`                                   | `git WORDS X`                                                  |
//! | `-c core.pager=TEXT` and its like (`SETTINGS`)           | the text with unknown words                                    |
//! | `-c credential.helper=!TEXT`                             | the text; without `!` a helper                                 |
//! | `--config-env` of such a setting                         | unclear                                                        |
//! | `rebase -x TEXT`, `difftool -x TEXT`, `grep -OTEXT`      | the text                                                       |
//! | `bisect run X`                                           | the command `X`                                                |
//! | `submodule foreach TEXT X`                               | the text with the words `X`                                    |
//! | `filter-branch --tree-filter TEXT` ...                   | the text                                                       |
//! | `for-each-repo --config K X`                             | `git X`                                                        |
//! | `fetch --upload-pack TEXT`, `push --exec TEXT` ...       | the text, on the other side                                    |
//!
//! Most of these run at the top of the work tree, which the line does not tell. [`Children::known`] holds for subcommands whose words
//! are data, without options that set or run something else. A name that no git has may be an alias of a user's settings or a program
//! `git-NAME`: the caller decides.

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, Options, assignment, tail, word};
use super::{Child, Children, Folder, Found, split};
use crate::guard::grammar::{self, GIT_BEYOND, GIT_DATA};
use crate::guard::options::names;

const GLOBAL: Grammar = Grammar::new(
    "C:c:pPhv",
    &[
        "attr-source:",
        "bare",
        "config-env:",
        "exec-path::",
        "git-dir:",
        "glob-pathspecs",
        "help",
        "html-path",
        "icase-pathspecs",
        "info-path",
        "list-cmds:",
        "literal-pathspecs",
        "man-path",
        "namespace:",
        "no-advice",
        "no-lazy-fetch",
        "no-optional-locks",
        "no-pager",
        "no-replace-objects",
        "noglob-pathspecs",
        "paginate",
        "super-prefix:",
        "version",
        "work-tree:",
    ],
);

/// Settings whose value is a command: what the name begins and ends with, in lower case.
const SETTINGS: &[(&str, &str)] = &[
    ("browser.", ".cmd"),
    ("browser.", ".path"),
    ("core.alternaterefscommand", ""),
    ("core.askpass", ""),
    ("core.editor", ""),
    ("core.fsmonitor", ""),
    ("core.gitproxy", ""),
    ("core.pager", ""),
    ("core.sshcommand", ""),
    ("credential.", "helper"),
    ("diff.", ".command"),
    ("diff.", ".textconv"),
    ("diff.external", ""),
    ("difftool.", ".cmd"),
    ("difftool.", ".path"),
    ("filter.", ".clean"),
    ("filter.", ".process"),
    ("filter.", ".smudge"),
    ("gpg.", "program"),
    ("gpg.ssh.defaultkeycommand", ""),
    ("guitool.", ".cmd"),
    ("imap.tunnel", ""),
    ("interactive.difffilter", ""),
    ("man.", ".cmd"),
    ("man.", ".path"),
    ("merge.", ".driver"),
    ("mergetool.", ".cmd"),
    ("mergetool.", ".path"),
    ("pager.", ""),
    ("receive.procreceiverefs", ""),
    ("remote.", ".receivepack"),
    ("remote.", ".uploadpack"),
    ("sendemail.", "cmd"),
    ("sequence.editor", ""),
    ("submodule.", ".update"),
    ("tar.", ".command"),
    ("trailer.", ".cmd"),
    ("trailer.", ".command"),
    ("uploadpack.packobjectshook", ""),
];

pub(super) fn git(call: &mut Call<'_>) -> Found {
    let options = call.leading(&GLOBAL, 1)?;
    let mut found = Children { list: settings(&options), known: !options.has(&["c", "config-env", "exec-path"]) };
    let at = options.rest;
    let Some(subcommand) = call.fields.get(at) else { return Ok(found) };
    let Some(name) = subcommand.literal() else { return Ok(Children { known: false, ..found }) };
    found.list.extend(alias(call, &options, name));
    found.list.extend(runs(call, at, name));
    let words = &call.fields[at..];
    let beyond = |word: &Field| GIT_BEYOND.iter().any(|(of, option)| (of.is_empty() || *of == name) && names(&word.text, option));
    let data = RUNS.contains(&name) || (grammar::listed(GIT_DATA, name) && !words.iter().any(beyond));
    found.known &= data && !words.iter().any(|word| word.text.contains("ext::"));
    Ok(found)
}

/// Subcommands whose words are all read here.
const RUNS: &[&str] = &["bisect", "filter-branch", "for-each-repo", "rebase", "submodule"];

/// What the settings of a call run, whatever the subcommand.
fn settings(options: &Options) -> Vec<Child> {
    let mut list = Vec::new();
    for setting in options.values(&["c"]) {
        list.extend(self::setting(setting));
    }
    for setting in options.values(&["config-env"]) {
        let name = setting.text.split('=').next().unwrap_or_default().to_ascii_lowercase();
        if setting.open != Open::No && !setting.text.contains('=') || runs_value(&name) || name.starts_with("alias.") {
            list.push(Child::Unclear(setting.span.clone()));
        }
    }
    list
}

fn runs_value(name: &str) -> bool {
    SETTINGS.iter().any(|(begin, end)| name.starts_with(begin) && name.ends_with(end))
}

/// What one setting runs.
fn setting(setting: &Field) -> Option<Child> {
    let Some(at) = setting.text.find('=') else {
        return (setting.open != Open::No).then(|| Child::Unclear(setting.span.clone()));
    };
    let name = setting.text[..at].to_ascii_lowercase();
    if !runs_value(&name) || matches!(&setting.text[at + 1..], "" | "true" | "false") && setting.open == Open::No {
        return None;
    }
    let value = tail(setting, at + 1);
    let shell = value.text.starts_with('!');
    // A helper without a path is a program of git's own.
    if name.starts_with("credential.") && !shell && value.open == Open::No && !value.text.starts_with('/') {
        return None;
    }
    let text = if shell { tail(&value, 1) } else { value };
    let unknown = Field::unknown(Open::Many, setting.span.clone());
    Some(Child::text_with(&text, vec![unknown]).within(&Folder::Unknown))
}

/// What an alias that the call defines runs; the last definition counts.
fn alias(call: &Call<'_>, options: &Options, name: &str) -> Option<Child> {
    let defines = |setting: &Field| {
        let (key, value) = assignment(setting)?;
        let (section, alias) = key.split_once('.')?;
        (section.eq_ignore_ascii_case("alias") && alias.eq_ignore_ascii_case(name)).then_some(value)
    };
    let value = options.values(&["c"]).filter_map(defines).last()?;
    let rest = call.rest(options.rest + 1);
    if value.text.starts_with('!') {
        return Some(Child::text_with(&tail(&value, 1), rest).within(&Folder::Unknown));
    }
    let Some(words) = split::git(&value) else { return Some(Child::Unclear(value.span)) };
    let mut all = call.fields[..options.rest].to_vec();
    all.extend(words);
    all.extend(rest);
    Child::command(all)
}

/// What a subcommand runs of its words.
fn runs(call: &Call<'_>, at: usize, name: &str) -> Vec<Child> {
    let words = &call.fields[at + 1..];
    let program = &call.fields[0];
    let unknown = |count: usize| vec![Field::unknown(Open::One, program.span.clone()); count];
    let plain = |texts: Vec<Field>| texts.into_iter().map(Child::text).collect::<Vec<_>>();
    let list: Vec<Child> = match name {
        "rebase" => plain(values(words, Some('x'), &["--exec"], "sXC")),
        "difftool" => {
            values(words, Some('x'), &["--extcmd"], "t").iter().map(|text| Child::text_with(text, unknown(2))).collect()
        }
        "grep" => pagers(words).iter().map(|text| Child::text_with(text, unknown(1))).collect(),
        "filter-branch" => plain(filters(words)),
        "bisect" if words.first().is_some_and(|word| word.literal() == Some("run")) => {
            Child::command(words[1..].to_vec()).into_iter().collect()
        }
        "submodule" => foreach(words).into_iter().collect(),
        "for-each-repo" => repositories(program, words).into_iter().collect(),
        "archive" | "clone" | "fetch" | "fetch-pack" | "ls-remote" | "pull" | "push" | "send-pack" => {
            let short = (name == "clone").then_some('u');
            let texts = values(words, short, &["--upload-pack", "--receive-pack", "--exec"], "bcjo");
            let texts = texts.iter().map(|text| Child::text_with(text, unknown(1)).within(&Folder::Elsewhere));
            let settings = if name == "clone" { values(words, Some('c'), &["--config"], "bjou") } else { Vec::new() };
            return texts.chain(settings.iter().filter_map(setting)).collect();
        }
        _ => Vec::new(),
    };
    list.into_iter().map(|child| child.within(&Folder::Unknown)).collect()
}

/// The values of an option, wherever it stands. `valued`: letters that take the rest of their word as a value.
fn values(words: &[Field], letter: Option<char>, long: &[&str], valued: &str) -> Vec<Field> {
    let mut values = Vec::new();
    let mut at = 0;
    while let Some(field) = words.get(at) {
        at += 1;
        if field.literal() == Some("--") {
            break;
        }
        let joined = if field.text.starts_with("--") {
            let end = field.text.find('=').unwrap_or(field.text.len());
            let written = &field.text[..end];
            let given = written.len() > 3 && long.iter().any(|name| name.starts_with(written));
            given.then_some((end + 1).min(field.text.len()))
        } else {
            let letters = field.text.strip_prefix('-').unwrap_or_default();
            let found = letters.char_indices().find(|(_, c)| Some(*c) == letter || valued.contains(*c));
            found.filter(|(_, c)| Some(*c) == letter).map(|(place, c)| 1 + place + c.len_utf8())
        };
        match joined {
            Some(from) if from < field.text.len() || field.open != Open::No => values.push(tail(field, from)),
            Some(_) if field.text.ends_with('=') => {}
            Some(_) => {
                values.extend(words.get(at).cloned());
                at += 1;
            }
            None => {}
        }
    }
    values
}

/// The pagers of `grep -O`, which are only joined.
fn pagers(words: &[Field]) -> Vec<Field> {
    let value = |word: &Field| match word.text.find('=') {
        Some(end) if word.text.starts_with("--") => {
            (end > 3 && "--open-files-in-pager".starts_with(&word.text[..end])).then(|| tail(word, end + 1))
        }
        _ if word.text.starts_with("--") => None,
        _ => {
            let letters = word.text.strip_prefix('-')?;
            let (place, letter) = letters.char_indices().find(|(_, letter)| "ABCOefm".contains(*letter))?;
            let pager = tail(word, 2 + place);
            (letter == 'O' && (!pager.text.is_empty() || pager.open != Open::No)).then_some(pager)
        }
    };
    words.iter().filter_map(value).collect()
}

/// The filters of `filter-branch`; all but those that name a folder or a branch are texts.
fn filters(words: &[Field]) -> Vec<Field> {
    let mut texts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let (name, joined) = word.text.split_once('=').map_or((word.text.as_str(), false), |(name, _)| (name, true));
        let filter =
            name.starts_with("--") && (name.ends_with("-filter") || name == "--setup") && name != "--subdirectory-filter";
        match filter {
            true if joined => texts.push(tail(word, name.len() + 1)),
            true => texts.extend(words.get(at + 1).cloned()),
            false => {}
        }
    }
    texts
}

fn foreach(words: &[Field]) -> Option<Child> {
    let option = |word: &&Field| word.text.starts_with('-');
    let mut words = words.iter().skip_while(option);
    match words.next()?.literal() {
        Some("foreach") => {}
        Some(_) => return None,
        None => return words.next().map(|word| Child::Unclear(word.span.clone())),
    }
    let mut words = words.skip_while(option);
    let text = words.next()?;
    Some(Child::text_with(text, words.cloned().collect()))
}

fn repositories(program: &Field, words: &[Field]) -> Option<Child> {
    let mut at = 0;
    while let Some(field) = words.get(at).filter(|field| field.text.starts_with('-')) {
        at += 1 + usize::from(field.literal() == Some("--config"));
        if field.literal() == Some("--") {
            break;
        }
    }
    let mut all = vec![word("git", program)];
    all.extend(words.get(at..)?.iter().cloned());
    (all.len() > 1).then(|| Child::command(all)).flatten()
}
