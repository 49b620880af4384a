//! Programs that run a child as another user.
//!
//! | the call                           | it runs                                                               |
//! |------------------------------------|-----------------------------------------------------------------------|
//! | `sudo [A=B] X`, `doas X`           | the command `X`                                                       |
//! | `sudo -s X`, `sudo -i X`           | `X` by a shell, every character but letters, digits, `_ - $` escaped  |
//! | `sudo -s`, `sudo -i`, `doas -s`    | a shell that reads the input                                          |
//! | `sudo -l`, `-v`, `-K`, `-e`        | nothing                                                               |
//! | `su [USER] -c TEXT X`              | the text; `X` are its `$0`, `$1`                                      |
//! | `su USER X`                        | a shell with the words `X`                                            |
//! | `runuser -u USER X`                | the command `X`; otherwise as `su`                                    |
//! | `sg GROUP [-c] TEXT`               | the text                                                              |

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, Options, assignment, head, word};
use super::{Child, Children, Folder, Found, children};

const SUDO: Grammar = Grammar::new(
    "Aa:Bbc:C:D:Eeg:Hh:iKklNnPp:R:r:ST:t:U:u:Vvs",
    &[
        "askpass",
        "auth-type:",
        "background",
        "bell",
        "chdir:",
        "chroot:",
        "close-from:",
        "command-timeout:",
        "edit",
        "group:",
        "help",
        "host:",
        "list",
        "login",
        "login-class:",
        "no-update",
        "non-interactive",
        "other-user:",
        "preserve-env::",
        "preserve-groups",
        "prompt:",
        "remove-timestamp",
        "reset-timestamp",
        "role:",
        "set-home",
        "shell",
        "stdin",
        "type:",
        "user:",
        "validate",
        "version",
    ],
);

pub(super) fn sudo(call: &mut Call<'_>) -> Found {
    let mut given = call.leading(&SUDO, 1)?;
    let mut set = Vec::new();
    // Assignments and options may stand in any order, up to `--`.
    while !given.ended
        && let Some(field) = call.fields.get(given.rest)
        && !field.text.starts_with('/')
        && let Some(assigned) = assignment(field)
    {
        call.operand(given.rest);
        set.push(assigned);
        let more = call.leading(&SUDO, given.rest + 1)?;
        given.given.extend(more.given);
        (given.rest, given.ended) = (more.rest, more.ended);
    }
    if given.has(&["e", "edit", "K", "remove-timestamp", "l", "list", "v", "validate", "V", "version"]) {
        return Ok(Vec::new().into());
    }
    let login = given.has(&["i", "login"]);
    let shell = login || given.has(&["s", "shell"]);
    let mut words = call.rest(given.rest);
    if shell {
        words.iter_mut().for_each(reread);
    }
    let child = match Child::command(words) {
        Some(mut child) => {
            if let Child::Command { assignments, .. } = &mut child {
                *assignments = set;
            }
            Some(child)
        }
        None => shell.then(Child::input),
    };
    let place = sudo_place(&given, login);
    Ok(child.map(|child| child.within(&place)).into_iter().collect::<Vec<_>>().into())
}

fn sudo_place(given: &Options, login: bool) -> Folder {
    match given.value(&["D", "chdir"]) {
        _ if given.has(&["R", "chroot", "h", "host"]) => Folder::Elsewhere,
        Some(folder) => Folder::Known(folder.clone()),
        None if login => Folder::Unknown,
        None => Folder::Same,
    }
}

/// A word that a shell reads once more after sudo escaped it: `$` expands, and an escaped line feed is none.
fn reread(word: &mut Field) {
    if let Some(at) = word.text.find(['$', '\n']) {
        *word = head(word, at, Open::Many);
    }
}

pub(super) fn doas(call: &mut Call<'_>) -> Found {
    let options = call.leading(&Grammar::new("a:C:Lnsu:", &[]), 1)?;
    let child = match Child::command(call.rest(options.rest)) {
        _ if options.has(&["C", "L"]) => None,
        None => options.has(&["s"]).then(Child::input),
        child => child,
    };
    Ok(child.into_iter().collect::<Vec<_>>().into())
}

const SU: Grammar = Grammar::new(
    "mpg:G:lc:fs:PTu:w:hV",
    &[
        "user:",
        "preserve-environment",
        "whitelist-environment:",
        "group:",
        "supp-group:",
        "login",
        "command:",
        "session-command:",
        "fast",
        "shell:",
        "pty",
        "no-pty",
        "help",
        "version",
    ],
);

pub(super) fn runuser(call: &mut Call<'_>) -> Found {
    let (options, operands) = call.permuted(&SU, 1)?;
    if !options.has(&["u", "user"]) {
        return su(call);
    }
    let words = operands.iter().map(|at| call.fields[*at].clone()).collect();
    Ok(Child::command(words).into_iter().collect::<Vec<_>>().into())
}

pub(super) fn su(call: &mut Call<'_>) -> Found {
    let (options, operands) = call.permuted(&SU, 1)?;
    let dash = operands.first().is_some_and(|at| call.literal(*at) == Some("-"));
    let login = dash || options.has(&["l", "login"]);
    let program = &call.fields[0];
    let shell = options.value(&["s", "shell"]);
    let mut words = vec![shell.cloned().unwrap_or_else(|| word("sh", program))];
    if let Some(text) = options.value(&["c", "command", "session-command"]) {
        words.extend([word("-c", program), text.clone()]);
    }
    // The first operand is the user.
    words.extend(operands.iter().skip(1 + usize::from(dash)).map(|at| call.fields[*at].clone()));
    let mut found = match shell {
        Some(_) => Children::from(Child::command(words).into_iter().collect::<Vec<_>>()),
        None => children(&words),
    };
    if login {
        found.list = found.list.into_iter().map(|child| child.within(&Folder::Unknown)).collect();
    }
    Ok(found)
}

pub(super) fn sg(call: &mut Call<'_>) -> Found {
    let group = 1 + usize::from(call.literal(1) == Some("-"));
    call.operand(group);
    let text = group + 1 + usize::from(call.literal(group + 1) == Some("-c"));
    let child = match call.fields.get(text) {
        Some(text) => Child::text(text.clone()),
        None => Child::input(),
    };
    Ok(vec![child].into())
}
