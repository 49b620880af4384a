//! Commands of the shell that change what it knows.
//!
//! | command                                | what changes                                                                             |
//! |----------------------------------------|------------------------------------------------------------------------------------------|
//! | `cd`, `pushd`, `popd`                  | the folder, unless it fails                                                              |
//! | `export`, `declare`, `local` ..., `read`, `mapfile`, `getopts`, `printf -v`, `unset` | variables                                  |
//! | `set`, `shift`                         | the positional parameters, `-e`                                                          |
//! | `exit`, `return`, `break`, `continue`, `exec` | nothing after it runs on this way                                                 |
//! | `alias`, `enable`, `hash -p`, `shopt -s expand_aliases`, `declare -n` | what names mean: unclear from there on                    |

use std::rc::Rc;

use super::super::field::{Field, Open};
use super::super::parse::parse;
use super::super::syntax::{Base, Span};
use super::state::{Shell, Value};
use super::{Origins, Runner};

/// Variables whose value another program, or the shell itself, runs.
const RUN: &[&str] = &[
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "VISUAL",
];

/// Variables by which other programs come to run, whatever their value.
const CHANGES: &[&str] =
    &["BASH_ENV", "ENV", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH", "LD_PRELOAD", "SHELLOPTS", "BASHOPTS"];

impl Runner<'_> {
    /// Follows what a builtin does to the shell.
    pub(super) fn builtin(&mut self, name: &str, fields: &[Field], at: &Span, shell: &mut Shell) {
        let words = &fields[1..];
        let given = |letter: char| {
            let options = words.iter().take_while(|word| word.text.starts_with(['-', '+']) && word.text.len() > 1);
            options.clone().any(|word| !word.text.starts_with("--") && word.text.contains(letter))
        };
        match name {
            "cd" | "chdir" | "pushd" => {
                let before = shell.folder.clone();
                let target = words.iter().find(|word| !matches!(word.literal(), Some("--" | "-P" | "-L" | "-e" | "-n" | "-@")));
                match target {
                    Some(target) => self.change_folder(target, shell),
                    None => self.change_folder(&Field::unknown(Open::One, at.clone()), shell),
                }
                shell.after_failure = Some(before);
            }
            "popd" => self.change_folder(&Field::unknown(Open::One, at.clone()), shell),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                if given('n') && name != "export" && name != "readonly" {
                    self.changes(at, "a reference to a variable");
                }
                self.evaluates |= name != "export";
                let typed = name != "export" && ['i', 'l', 'u', 'c', 'a', 'A'].into_iter().any(given);
                let odd = typed || name == "readonly" || given('r');
                for word in words {
                    if let Some((variable, value)) = definition(word) {
                        self.setting(&variable, &value, &word.span, shell);
                        shell.assign(&variable, if typed { Value::unknown(value.from()) } else { value });
                        if odd {
                            shell.make_odd(&variable);
                        }
                    } else if let Some(variable) = word.literal().filter(|text| odd && is_name(text)) {
                        shell.make_odd(variable);
                    } else if word.open == Open::Many {
                        self.changes(&word.span, name);
                    }
                }
            }
            "read" => self.read_builtin(words, shell),
            "mapfile" | "readarray" => {
                let lines = |text: &str| text.lines().map(|line| Field::known(line, at.clone())).collect();
                let value = match (shell.input.text(), words.first().and_then(Field::literal)) {
                    (Some(text), Some("-t")) if words.len() <= 2 => Value::Array(lines(text)),
                    _ => Value::unknown(shell.input.from().clone()),
                };
                let variable = words.last().and_then(Field::literal).filter(|name| is_name(name)).unwrap_or("MAPFILE");
                shell.assign(variable, value);
            }
            "unset" | "getopts" => {
                self.evaluates = true;
                for variable in words.iter().filter_map(Field::literal).chain(["OPTARG"]).filter(|name| is_name(name)) {
                    shell.assign(variable, Value::unknown(Origins::default()));
                }
            }
            "printf" if words.first().and_then(Field::literal).is_some_and(|text| text.starts_with("-v")) => {
                self.evaluates = true;
                if let Some(variable) = words.get(1).and_then(Field::literal).filter(|name| is_name(name)) {
                    shell.assign(variable, Value::unknown(super::invoke::all_origins(words)));
                }
            }
            "let" => words.iter().for_each(|word| self.calculation(word, shell)),
            "test" | "[" => self.evaluates |= words.iter().any(|word| matches!(word.literal(), Some("-v" | "-R"))),
            "set" => set(words, shell),
            "shift" => {
                let by = words.first().map_or(Some(1), |word| word.literal()?.parse::<usize>().ok());
                let rest = |words: Rc<[Field]>| -> Option<Rc<[Field]>> {
                    let (zero, rest) = words.split_first()?;
                    Some(std::iter::once(zero).chain(rest.get(by?..)?).cloned().collect())
                };
                shell.positional = shell.positional.take().and_then(rest);
            }
            "exit" | "return" | "break" | "continue" => shell.leaves = true,
            "exec" => shell.leaves = words.iter().any(|word| !word.text.starts_with('-')),
            "alias" if words.iter().any(|word| word.open != Open::No || word.text.contains('=')) => self.changes(at, name),
            "enable" if !words.is_empty() => self.changes(at, name),
            "hash" if given('p') => self.changes(at, name),
            "shopt" if words.iter().any(|word| word.open != Open::No || word.text == "expand_aliases") => self.changes(at, name),
            "fc" => self.unclear(at, super::Cause::Runs(name.to_owned())),
            _ => {}
        }
    }

    /// Goes to a folder; what becomes of a failure is the caller's.
    pub(super) fn change_folder(&mut self, target: &Field, shell: &mut Shell) {
        let followed = |path: &&str| path.starts_with('/') || shell.is_from_outside("CDPATH");
        let path =
            target.literal().filter(|path| !path.is_empty() && *path != "-" && !path.starts_with(['+', '~'])).filter(followed);
        shell.folder = path.and_then(|path| crate::guard::paths::resolve(shell.folder.as_deref(), path)).map(Rc::from);
        for variable in ["PWD", "OLDPWD"] {
            if !shell.is_from_outside(variable) {
                shell.assign(variable, Value::unknown(Origins::default()));
            }
        }
    }

    /// Looks at a variable by which programs come to run.
    pub(super) fn setting(&mut self, name: &str, value: &Value, at: &Span, shell: &mut Shell) {
        let Value::Text(value) = value else { return };
        match (name, value.literal()) {
            ("PATH", _) => {
                // A part that the text gives must not be a relative folder, from which anybody's program may come.
                let relative = |part: &str| !part.is_empty() && !part.starts_with('/');
                let (head, tail) = (&value.text, &value.tail);
                let mut parts: Vec<&str> = head.split(':').chain(tail.split(':').skip(1)).collect();
                if value.open == Open::No && parts.contains(&"") {
                    parts.push(".");
                }
                if parts.into_iter().any(relative) {
                    self.changes(at, name);
                }
            }
            ("PS4", text) if text.is_none_or(|text| text.contains(['$', '`'])) => self.changes(at, name),
            (name, Some(text)) if RUN.contains(&name) => {
                let moment = shell.now();
                let parsed = parse(text, Base::Within(at.clone()), self.depth);
                self.deeper(at, |runner| runner.text(&parsed, shell));
                shell.back_to(&moment);
            }
            (name, _) if RUN.contains(&name) || CHANGES.contains(&name) || name.starts_with("GIT_CONFIG_") => {
                self.changes(at, name)
            }
            _ => {}
        }
    }

    fn read_builtin(&mut self, words: &[Field], shell: &mut Shell) {
        self.evaluates = true;
        let names: Vec<&str> = words.iter().filter_map(Field::literal).filter(|name| is_name(name)).collect();
        let one_line = shell.input.text().filter(|text| text.trim_end_matches('\n').lines().count() <= 1);
        let plain = words.iter().all(|word| matches!(word.literal(), Some("-r")) || word.literal().is_some_and(is_name));
        match (one_line, &names[..]) {
            // A line that is the only one is what every round of a loop reads.
            (Some(line), [only]) if plain => {
                let value = Field { from: shell.input.from().clone(), ..Field::known(line.trim(), 0..0) };
                shell.assign(only, Value::Text(value));
            }
            _ => {
                let from = shell.input.from().clone();
                for name in names.into_iter().chain(["REPLY"]) {
                    shell.assign(name, Value::unknown(from.clone()));
                }
            }
        }
    }
}

/// `NAME=value` among the words of `export` and its like.
fn definition(word: &Field) -> Option<(String, Value)> {
    let (name, text) = word.text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let element = name.split('[').next().unwrap_or_default();
    if !is_name(element) {
        return None;
    }
    let whole = element == name && word.text.as_bytes()[name.len()] == b'=';
    let value = match (whole, word.open) {
        (true, Open::No | Open::One) => Value::Text(Field { text: text.to_owned(), exact: None, pattern: false, ..word.clone() }),
        _ => Value::unknown(word.from.clone()),
    };
    Some((element.to_owned(), value))
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn set(words: &[Field], shell: &mut Shell) {
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.literal() else { break };
        match text {
            "--" => {
                rest = after;
                return set_positional(rest, shell);
            }
            _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                if text.contains('e') {
                    shell.stops_on_failure = text.starts_with('-');
                }
                rest = after;
                if text.ends_with('o') {
                    let option = rest.first().and_then(Field::literal);
                    if option == Some("errexit") {
                        shell.stops_on_failure = text.starts_with('-');
                    }
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
            _ => break,
        }
    }
    if !rest.is_empty() {
        set_positional(rest, shell);
    }
}

fn set_positional(words: &[Field], shell: &mut Shell) {
    let all_single = words.iter().all(|word| word.open != Open::Many && !word.pattern);
    let zero =
        shell.positional.as_ref().and_then(|words| words.first().cloned()).unwrap_or_else(|| Field::unknown(Open::One, 0..0));
    shell.positional = all_single.then(|| std::iter::once(zero).chain(words.iter().cloned()).collect());
}
