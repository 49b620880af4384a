//! What a program does with its words and its input.
//!
//! | the command                                                  | it could run                                        |
//! |--------------------------------------------------------------|-----------------------------------------------------|
//! | a shell, `eval`, `xargs`, `ssh` ...                          | anything                                            |
//! | `echo`, `grep`, `git log` ..., and so do all it is piped to  | itself only                                         |
//! | any other, and what is piped to it                           | what its words name; with a shell among them, anything |
//!
//! The last row is why wrappers need no list: `timeout 5 X`, `find -exec X` and a wrapper that nobody knows all name `X`.
//!
//! ## What is out of sight
//!
//! Scripts, make targets, package scripts, aliases of a user's settings, and programs that compose a name (`'r' + 'm'` in an interpreter's
//! program text): the line does not name what they run.

use super::grammar::{self, DATA_BUT, DATA_ONLY, EVALUATES, GIT_BEYOND, GIT_DATA, OPAQUE, RUNNERS};
use super::options::{self, Holds};
use super::words::{SimpleCommand, Word};

/// What a command does with its words and its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// They are data, and only its output is written.
    Data,
    /// They may name what it runs.
    Names,
    /// They may be program text.
    Opaque,
}

/// The conduct of one command.
pub(super) fn conduct(command: &SimpleCommand<'_>) -> Conduct {
    let name = base(&command.program().text);
    let arguments = command.arguments();
    let given = |option: &str| arguments.iter().any(|word| options::names(&word.text, option));
    let grouped = |letters: &str| arguments.iter().any(|word| group(&word.text).contains(|letter| letters.contains(letter)));
    match name {
        "git" => git(arguments),
        // These only tell where a command is.
        "command" if arguments.first().is_some_and(|word| matches!(&*word.text, "-v" | "-V")) => Conduct::Data,
        // As a command of the shell it may run others of them.
        "command" => Conduct::Opaque,
        "sudo" | "doas" if given("--shell") || given("--login") || grouped("si") => Conduct::Opaque,
        "env" if given("--split-string") || grouped("S") => Conduct::Opaque,
        _ if OPAQUE.contains(&name) => Conduct::Opaque,
        _ if DATA_ONLY.contains(&name) => {
            let beyond = DATA_BUT.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
            let evaluated = |word: &Word<'_>| word.text.contains('[') && word.text.contains(['$', '`']);
            if beyond.iter().any(|option| given(option)) || (EVALUATES.contains(&name) && arguments.iter().any(evaluated)) {
                Conduct::Opaque
            } else {
                Conduct::Data
            }
        }
        _ => Conduct::Names,
    }
}

fn git(arguments: &[Word<'_>]) -> Conduct {
    let program = grammar::program("git").expect("git has an entry");
    let Some(found) = options::subcommand(Some(program), arguments) else { return Conduct::Names };
    let (globals, rest) = arguments.split_at(found.at);
    let subcommand = rest[0].text.as_ref();
    let set = globals.iter().any(|word| program.global_settings.iter().any(|option| options::names(&word.text, option)));
    let beyond = |word: &Word<'_>| {
        word.text.contains("ext::")
            || GIT_BEYOND.iter().any(|(of, option)| (of.is_empty() || *of == subcommand) && options::names(&word.text, option))
    };
    if !set && GIT_DATA.contains(&subcommand) && !rest.iter().any(beyond) { Conduct::Data } else { Conduct::Names }
}

/// The letters of a word that is a group of one-letter options.
fn group(word: &str) -> &str {
    word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or("")
}

/// The name of a program without its folder.
fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program word is the program of that name. A relative path, another case or an `.exe` may be.
pub(super) fn is_program(word: &str, name: &str) -> Holds {
    let base = base(word);
    if base == name {
        return if word.len() == base.len() || word.starts_with('/') { Holds::Yes } else { Holds::Maybe };
    }
    let stem = base.len().checked_sub(4).filter(|at| base.is_char_boundary(*at) && base[*at..].eq_ignore_ascii_case(".exe"));
    if base[..stem.unwrap_or(base.len())].eq_ignore_ascii_case(name) { Holds::Maybe } else { Holds::No }
}

/// Whether a word names a program, as a whole or within a text, quoted there or not.
pub(super) fn mentions(word: &str, name: &str) -> bool {
    holds_token(word, name, false) || holds_token(word, name, true)
}

/// Whether a word names a program that runs others by text or input.
pub(super) fn mentions_runner(word: &str) -> bool {
    if word.contains([' ', '\t', '\n']) { RUNNERS.iter().any(|name| mentions(word, name)) } else { RUNNERS.contains(&base(word)) }
}

/// Whether a text holds a name between characters that names do not have. `unquoted` reads over quotes and backslashes.
fn holds_token(text: &str, name: &str, unquoted: bool) -> bool {
    let name = name.as_bytes();
    // How much of the name the token so far is; nothing when it is another token.
    let mut matched = Some(0);
    for byte in text.bytes() {
        if unquoted && matches!(byte, b'\\' | b'\'' | b'"') {
            continue;
        }
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+') || !byte.is_ascii() {
            matched =
                matched.filter(|at| name.get(*at).is_some_and(|expected| expected.eq_ignore_ascii_case(&byte))).map(|at| at + 1);
        } else if matched == Some(name.len()) {
            return true;
        } else {
            matched = Some(0);
        }
    }
    matched == Some(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::words::{Reading, read};

    fn conduct_of(line: &str) -> Conduct {
        let Reading::Commands(commands) = read(line) else { panic!("{line:?} is not literal") };
        conduct(&commands[0])
    }

    #[test]
    fn what_runs_text_is_opaque() {
        for line in [
            "sh x.sh",
            "/bin/bash -c x",
            "eval x",
            ". ./x",
            "xargs rm",
            "ssh host x",
            "trap x EXIT",
            "command rm",
            "command rm -v",
            "sudo -i",
            "sudo -nEs x",
            "env -iSx",
            "env --split=x",
            "printf -v x y",
            "test -v x",
            "test 'a[$(x)]' -eq 0",
            "rg --pre x y",
            "sort --comp=x",
            "export A=b",
        ] {
            assert_eq!(conduct_of(line), Conduct::Opaque, "{line}");
        }
    }

    #[test]
    fn what_takes_words_as_data_is_data() {
        for line in [
            "echo rm",
            "/usr/bin/grep -n rm x",
            "test -f x",
            "command -v rm",
            "git log --grep=rm",
            "git -C a commit -m rm",
            "[ -f x ]",
            "git clone git@host:x/y.git",
            "printf '%s\\n' x",
        ] {
            assert_eq!(conduct_of(line), Conduct::Data, "{line}");
        }
    }

    #[test]
    fn what_may_name_a_program_is_neither() {
        for line in [
            "timeout 5 rm",
            "find . -exec rm",
            "python3 -c x",
            "git rebase -x rm",
            "git -c a.b=rm log",
            "git push --rec=rm",
            "git x",
            "git fetch 'ext::sh -c rm'",
            "git clone -c a=rm b",
            "git",
            "nobody-knows rm",
        ] {
            assert_eq!(conduct_of(line), Conduct::Names, "{line}");
        }
    }

    #[test]
    fn a_program_is_known_by_its_base_name() {
        for (word, expected) in [
            ("git", Holds::Yes),
            ("/usr/bin/git", Holds::Yes),
            ("//git", Holds::Yes),
            ("./git", Holds::Maybe),
            ("GIT", Holds::Maybe),
            ("git.exe", Holds::Maybe),
            ("gitx", Holds::No),
            ("é", Holds::No),
            ("", Holds::No),
        ] {
            assert_eq!(is_program(word, "git"), expected, "{word}");
        }
    }

    #[test]
    fn a_name_is_found_within_a_text() {
        for word in ["rm", "/bin/rm", "os.system('rm -rf x')", "r\\m x", "'r''m'", "X=rm", "rm@1", "a;RM"] {
            assert!(mentions(word, "rm"), "{word}");
        }
        for word in ["--rm", "farm", "rmdir", "x.rm", "", "r m"] {
            assert!(!mentions(word, "rm"), "{word}");
        }
        assert!(mentions_runner("/bin/sh") && mentions_runner("a 'sh' -c x") && !mentions_runner("a/sh.md"));
    }
}
