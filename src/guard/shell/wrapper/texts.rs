//! Programs with text of a shell, or of another language, among their words.
//!
//! | the call                                              | it runs                                                        |
//! |-------------------------------------------------------|----------------------------------------------------------------|
//! | `busybox X`                                           | the command `X`                                                |
//! | `watch X`, `watch -x X`                               | the words joined by a space as text; the command `X`           |
//! | `script -c TEXT`, `script FILE X`, `script`           | the text, the command `X`, a shell that reads the input        |
//! | `flock FILE X`, `flock FILE -c TEXT`, `flock NUMBER`  | the command `X`, the text, nothing                             |
//! | `tar --checkpoint-action=exec=TEXT`, `-I`, `-F` ...   | the text                                                       |
//! | `rsync -e WORDS`                                      | the command of these words, with a host and more               |
//! | `split --filter=TEXT`                                 | the text                                                       |
//! | `at`, `batch`, `at -f FILE`                           | the input, the file                                            |
//! | `crontab FILE`, `crontab`                             | unclear: lines of commands with their times                    |
//! | `make --eval TEXT`, `vim -c ..`, `python -c ..` ...   | what these texts name; `vim -c '!TEXT'` the text               |

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, joined, tail, word};
use super::{Child, Children, Folder, Found, Scope, split as words};

pub(super) fn busybox(call: &mut Call<'_>) -> Found {
    let runs = call.fields.get(1).is_some_and(|word| !word.text.starts_with('-'));
    Ok(Child::command(call.rest(1)).filter(|_| runs).into_iter().collect::<Vec<_>>().into())
}

const WATCH: Grammar = Grammar::new(
    "bcCd::efghn:pq:rs:tvwx",
    &[
        "beep",
        "color",
        "no-color",
        "differences::",
        "errexit",
        "exec",
        "follow",
        "chgexit",
        "equexit:",
        "interval:",
        "precise",
        "no-rerun",
        "shotsdir:",
        "no-title",
        "no-wrap",
        "no-linewrap",
        "help",
        "version",
    ],
);

pub(super) fn watch(call: &mut Call<'_>) -> Found {
    let options = call.leading(&WATCH, 1)?;
    let child = match options.has(&["x", "exec"]) {
        true => Child::command(call.rest(options.rest)),
        false => joined(call.fields.get(options.rest..).unwrap_or_default()).map(Child::text),
    };
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

/// Options of util-linux, and `-d -F -k -r -p` of the BSDs.
const SCRIPT: Grammar = Grammar::new(
    "aB:c:deE:fFhI:kmO:o:pqrT:t::V",
    &[
        "append",
        "command:",
        "echo:",
        "flush",
        "force",
        "help",
        "log-in:",
        "log-io:",
        "log-out:",
        "log-timing:",
        "logging-format:",
        "output-limit:",
        "quiet",
        "return",
        "timing::",
        "version",
    ],
);

pub(super) fn script(call: &mut Call<'_>) -> Found {
    let mut options = call.leading(&SCRIPT, 1)?;
    call.operand(options.rest);
    let more = call.leading(&SCRIPT, (options.rest + 1).min(call.fields.len()))?;
    options.given.extend(more.given);
    let mut list: Vec<Child> = options.values(&["c", "command"]).cloned().map(Child::text).collect();
    list.extend(Child::command(call.rest(more.rest)));
    if list.is_empty() && !options.has(&["h", "V", "help", "version"]) {
        list.push(Child::input());
    }
    Ok(list.into())
}

const FLOCK: Grammar = Grammar::new(
    "esxunow:E:FhV",
    &[
        "shared",
        "exclusive",
        "unlock",
        "nonblock",
        "nb",
        "timeout:",
        "wait:",
        "conflict-exit-code:",
        "close",
        "no-fork",
        "fcntl",
        "verbose",
        "help",
        "version",
    ],
);

pub(super) fn flock(call: &mut Call<'_>) -> Found {
    let options = call.leading(&FLOCK, 1)?;
    call.operand(options.rest);
    let child = match call.literal(options.rest + 1) {
        Some("-c" | "--command") => call.fields.get(options.rest + 2).cloned().map(Child::text),
        _ => Child::command(call.rest(options.rest + 1)),
    };
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

/// Letters of tar that take a value.
const TAR_VALUED: &str = "bfgCFHIKLNTVX";

/// Long options of tar whose value is run.
const TAR_RUNS: &[&str] = &[
    "--checkpoint-action",
    "--info-script",
    "--new-volume-script",
    "--rmt-command",
    "--rsh-command",
    "--to-command",
    "--use-compress-program",
];

pub(super) fn tar(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    let mut at = 1;
    while let Some(field) = call.fields.get(at) {
        // Letters without a dash take their values from the next words, in order.
        let bundled = at == 1 && !field.text.starts_with('-');
        at += 1;
        let mut run = |value: Option<Field>| list.extend(value.and_then(action));
        if field.text.starts_with("--") {
            let end = field.text.find('=').unwrap_or(field.text.len());
            let runs = end > 4
                && &field.text[..end] != "--checkpoint"
                && TAR_RUNS.iter().any(|name| name.starts_with(&field.text[..end]));
            match runs {
                true if end < field.text.len() => run(Some(tail(field, end + 1))),
                true => run(call.fields.get(at).cloned()),
                false => {}
            }
            continue;
        }
        if !bundled && !field.text.starts_with('-') {
            continue;
        }
        for (place, letter) in field.text.char_indices().filter(|(_, letter)| TAR_VALUED.contains(*letter)) {
            let end = place + 1;
            let joined = !bundled && (end < field.text.len() || field.open != Open::No);
            let value = if joined { Some(tail(field, end)) } else { call.fields.get(at).cloned() };
            at += usize::from(!joined);
            if matches!(letter, 'I' | 'F') {
                run(value);
            }
            if !bundled {
                break;
            }
        }
    }
    Ok(list.into())
}

/// The text of a checkpoint's action, or of an option that is run as it is.
fn action(value: Field) -> Option<Child> {
    const OTHERS: &[&str] = &["echo", "dot", ".", "bell", "sleep=", "totals", "ttyout=", "wait="];
    match value.text.strip_prefix("exec=") {
        Some(_) => Some(Child::text(tail(&value, "exec=".len()))),
        None if OTHERS.iter().any(|other| value.text.starts_with(other)) && value.open == Open::No => None,
        None => Some(Child::text(value)),
    }
}

pub(super) fn rsync(call: &mut Call<'_>) -> Found {
    const VALUED: &str = "fBTM@";
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let next = || call.fields.get(at + 1).cloned();
        let end = field.text.find('=').unwrap_or(field.text.len());
        let value = if field.text.starts_with("--") {
            match &field.text[..end] {
                "--rsh" if end < field.text.len() => Some(tail(field, end + 1)),
                "--rsh" => next(),
                "--rsync-path" => {
                    let text = if end < field.text.len() { Some(tail(field, end + 1)) } else { next() };
                    list.extend(text.map(|text| Child::text(text).within(&Folder::Elsewhere)));
                    None
                }
                _ => None,
            }
        } else {
            let letters = field.text.strip_prefix('-').unwrap_or_default();
            match letters.char_indices().find(|(_, letter)| *letter == 'e' || VALUED.contains(*letter)) {
                Some((place, 'e')) if place + 1 < letters.len() || field.open != Open::No => Some(tail(field, place + 2)),
                Some((_, 'e')) => next(),
                _ => None,
            }
        };
        let Some(value) = value else { continue };
        let more = ["host", "rsync", "--server"].map(|text| word(text, &value));
        let command = words::git(&value).and_then(|words| Child::command(words.into_iter().chain(more).collect()));
        list.push(command.unwrap_or_else(|| Child::Unclear(value.span.clone())));
    }
    Ok(list.into())
}

pub(super) fn split(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let end = field.text.find('=').unwrap_or(field.text.len());
        if end > 3 && "--filter".starts_with(&field.text[..end]) {
            let text = if end < field.text.len() { Some(tail(field, end + 1)) } else { call.fields.get(at + 1).cloned() };
            list.extend(text.map(Child::text));
        }
    }
    Ok(list.into())
}

pub(super) fn at(call: &mut Call<'_>) -> Found {
    let (options, _) = call.permuted(&Grammar::new("bcdf:lmMq:rt:vVu:", &[]), 1)?;
    let file = options.value(&["f"]).cloned();
    let child = match file {
        _ if options.has(&["l", "d", "r", "c", "V"]) => None,
        Some(path) => Some(Child::File { path, positional: Vec::new(), scope: Scope::Apart, folder: Folder::Same }),
        None => Some(Child::input()),
    };
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

pub(super) fn crontab(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("u:lreisnT:V", &[]), 1)?;
    let quiet = options.has(&["l", "r", "e", "n", "T", "V"]);
    let unclear = (!quiet).then(|| Child::Unclear(call.fields[0].span.clone()));
    Ok(unclear.into_iter().collect::<Vec<_>>().into())
}

/// What makefiles run is out of sight; `--eval` is one.
pub(super) fn make(call: &mut Call<'_>) -> Found {
    let list =
        computed(call, |text| "--eval".starts_with(text.split('=').next().unwrap_or(text)) && text.len() > 3 || text == "-E");
    Ok(Children { list, known: false })
}

pub(super) fn vim(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1) {
        let command = match field.text.as_str() {
            "-c" | "--cmd" | "-S" => call.fields.get(at + 1).cloned(),
            text if text.starts_with('+') => Some(tail(field, 1)),
            text if text.starts_with("-c") => Some(tail(field, 2)),
            _ => None,
        };
        let Some(command) = command else { continue };
        let start = command.text.len() - command.text.trim_start_matches([':', ' ']).len();
        match &command.text[start..] {
            text if text.starts_with('!') => list.push(Child::text(tail(&command, start + 1))),
            _ if command.open != Open::No => list.push(Child::Unclear(command.span.clone())),
            _ => {}
        }
    }
    Ok(Children { list, known: false })
}

/// Interpreters, and the options with which the next word is their program.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("lua", &["-e"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("osascript", &["-e"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-lne", "-nle", "-i -pe"]),
    ("php", &["-r"]),
    ("python", &["-c"]),
    ("ruby", &["-e", "-ne", "-pe"]),
];

/// Programs of other languages: a literal text runs what it names, a computed one anything.
pub(super) fn interpreter(call: &mut Call<'_>, name: &str) -> Found {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, options)) = INTERPRETERS.iter().find(|(program, _)| *program == name) else { return Ok(Children::default()) };
    Ok(Children { list: computed(call, |text| options.contains(&text)), known: false })
}

/// The computed values of some options.
fn computed(call: &Call<'_>, option: impl Fn(&str) -> bool) -> Vec<Child> {
    let mut list = Vec::new();
    for (at, field) in call.fields.iter().enumerate().skip(1).filter(|(_, field)| option(&field.text)) {
        let value = if field.open == Open::No { call.fields.get(at + 1) } else { Some(field) };
        list.extend(value.filter(|value| value.open != Open::No).map(|value| Child::Unclear(value.span.clone())));
    }
    list
}
