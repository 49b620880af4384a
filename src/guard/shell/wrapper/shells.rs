//! The shells.
//!
//! | after the options          | the program text                                         |
//! |----------------------------|----------------------------------------------------------|
//! | `-c` among them, a word    | that word; the words after it are `$0`, `$1` ...         |
//! | both                       | that word, and in some shells the input after it         |
//! | `-s` among them            | the input; the words are `$1` ...                        |
//! | a word                     | that file; the words after it are `$1` ...               |
//! | nothing                    | the input                                                |
//!
//! Options are long ones (at first), letters after `-` or `+`, and the word after each `o` and `O`. `--` and `-` end them. The text
//! is the first word after ALL of them, not the one after `-c`.

use super::options::{Call, Stop};
use super::{Child, Children, Folder, Found, Scope};

/// Long options, which may have one dash or two.
const LONG: &[&str] = &[
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "restricted",
    "verbose",
    "version",
];

/// Long options with a file that an interactive shell reads first.
const LONG_FILES: &[&str] = &["init-file", "rcfile"];

/// Letters without a value, of all these shells.
const LETTERS: &str = "abcdefghiklmnprstuvxBCDEHIPTV";

pub(super) fn shell(call: &mut Call<'_>) -> Found {
    let mut list = Vec::new();
    let from = long_options(call, &mut list)?;
    let letters = letters(call, from)?;
    let positional = call.rest(letters.rest + 1);
    if letters.command && letters.input && letters.rest < call.fields.len() {
        list.push(Child::Input { positional: positional.clone(), scope: Scope::Apart, folder: Folder::Same });
    }
    match call.fields.get(letters.rest) {
        Some(text) if letters.command => {
            list.push(Child::Text { text: text.clone(), positional, scope: Scope::Apart, folder: Folder::Same });
        }
        None if letters.command => {}
        Some(path) if !letters.input => list.push(file(call, letters.rest, path.literal(), Scope::Apart)),
        _ => {
            let positional = call.rest(letters.rest);
            list.push(Child::Input { positional, scope: Scope::Apart, folder: Folder::Same });
        }
    }
    Ok(list.into())
}

/// A file that is read as program text, or the input if the file is that.
pub(super) fn file(call: &Call<'_>, at: usize, path: Option<&str>, scope: Scope) -> Child {
    let positional = call.rest(at + 1);
    match path {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => Child::Input { positional, scope, folder: Folder::Same },
        _ => Child::File { path: call.fields[at].clone(), positional, scope, folder: Folder::Same },
    }
}

/// Reads the long options, and gives the number of the word after them.
fn long_options(call: &mut Call<'_>, list: &mut Vec<Child>) -> Result<usize, Stop> {
    let mut at = 1;
    while let Some(text) = call.literal(at) {
        let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).unwrap_or_default();
        if LONG_FILES.contains(&name) {
            call.operand(at + 1);
            if let Some(path) = call.fields.get(at + 1).cloned() {
                list.push(Child::File { path, positional: Vec::new(), scope: Scope::Apart, folder: Folder::Same });
            }
            at += 2;
        } else if LONG.contains(&name) {
            at += 1;
        } else if text.starts_with("--") && !name.is_empty() {
            return Err(call.stop(at, false));
        } else {
            break;
        }
    }
    Ok(at)
}

struct Letters {
    rest: usize,
    command: bool,
    input: bool,
}

/// Reads the letters after `-` and `+`.
fn letters(call: &mut Call<'_>, from: usize) -> Result<Letters, Stop> {
    let mut found = Letters { rest: from, command: false, input: false };
    while let Some(field) = call.fields.get(found.rest) {
        let at = found.rest;
        match field.literal() {
            Some("-" | "--") => {
                found.rest += 1;
                break;
            }
            None if field.text.is_empty() => {
                call.operand(at);
                break;
            }
            None if field.text.starts_with(['-', '+']) => return Err(call.stop(at, true)),
            Some(text) if text.starts_with(['-', '+']) => found.rest += 1,
            _ => break,
        }
        for (place, letter) in field.text.char_indices().skip(1) {
            match letter {
                // Some shells take the rest of the word for the option's name.
                'o' | 'O' if joins_names(call) && place + 1 < field.text.len() => return Err(call.stop(at, false)),
                'o' | 'O' => {
                    call.operand(found.rest);
                    found.rest = (found.rest + 1).min(call.fields.len());
                }
                _ if !LETTERS.contains(letter) => return Err(call.stop(at, false)),
                _ => {}
            }
            found.command |= letter == 'c';
            found.input |= letter == 's';
        }
    }
    Ok(found)
}

fn joins_names(call: &Call<'_>) -> bool {
    !matches!(&*super::name(&call.fields[0].text), "ash" | "bash" | "dash" | "rbash" | "sh")
}

/// Shells of other languages: their text is not read.
pub(super) fn other(call: &mut Call<'_>) -> Found {
    let list = match call.fields.get(1) {
        Some(word) if word.literal() != Some("--version") => vec![Child::Unclear(word.span.clone())],
        None => vec![Child::Unclear(call.fields[0].span.clone())],
        Some(_) => Vec::new(),
    };
    Ok(Children { list, known: false })
}
