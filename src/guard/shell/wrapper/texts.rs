//! Programs with text of a shell among their words.
//!
//! | the call                                              | it runs                                                        |
//! |-------------------------------------------------------|----------------------------------------------------------------|
//! | `busybox X`                                           | the command `X`                                                |
//! | `watch X`, `watch -x X`                               | the words joined by a space as text; the command `X`           |
//! | `script -c TEXT`, `script FILE X`, `script`           | the text, the command `X`, a shell that reads the input        |
//! | `flock FILE X`, `flock FILE -c TEXT`, `flock NUMBER`  | the command `X`, the text, nothing                             |
//! | `at`, `batch`, `at -f FILE`                           | the input, the file                                            |
//! | `crontab FILE`, `crontab`                             | unclear: lines of commands with their times                    |

use super::options::{Call, Grammar, joined};
use super::{Child, Folder, Found, Scope};

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
    // `-t` of the BSDs takes the next word.
    if options.given.iter().any(|given| given.name == "t" && given.value.is_none()) {
        call.doubt(&call.fields[0]);
    }
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
