//! What a program does with its words and its input.
//!
//! | the command                                                  | it could run                                        |
//! |--------------------------------------------------------------|-----------------------------------------------------|
//! | a wrapper or a shell that is known (see `shell::wrapper`)    | what is listed for it, nothing else                 |
//! | a shell that is not read (`fish`, `pwsh` ...)                | anything                                            |
//! | `echo`, `grep`, `git log` ...                                | itself only                                         |
//! | any other                                                    | what its words name; with a shell among them, anything |
//!
//! The last row is for wrappers that nobody knows: `mywrapper X` names `X`.

use std::borrow::Cow;

use super::grammar::{
    self, DATA_BUT, DATA_ONLY, EVALUATES, GIT_BEYOND, GIT_DATA, INTERPRETERS, OPAQUE, RUNNERS, STANDARD_FOLDERS,
};
use super::options::{self, Holds};
use super::shell::field::{Field, Open};

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
pub(super) fn conduct(fields: &[Field]) -> Conduct {
    let (program, arguments) = (program_word(&fields[0]), &fields[1..]);
    let given = |option: &str| arguments.iter().any(|word| options::names(&word.text, option));
    match base(program) {
        name if grammar::listed(OPAQUE, &plain(name)) => Conduct::Opaque,
        // A program of a user's own, by a name that is known.
        name if name.len() < program.len() && !STANDARD_FOLDERS.contains(&&program[..program.len() - name.len()]) => {
            Conduct::Names
        }
        "git" => git(arguments),
        name if grammar::listed(DATA_ONLY, name) => {
            let beyond = DATA_BUT.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
            let evaluated = |word: &Field| word.text.contains('[') && word.text.contains(['$', '`']);
            if beyond.iter().any(|option| given(option)) || (EVALUATES.contains(&name) && arguments.iter().any(evaluated)) {
                Conduct::Opaque
            } else {
                Conduct::Data
            }
        }
        _ => Conduct::Names,
    }
}

/// The program word, as far as it is known: at least the end that holds its name.
pub(super) fn program_word(program: &Field) -> &str {
    if program.open == Open::No { &program.text } else { &program.tail }
}

fn git(arguments: &[Field]) -> Conduct {
    let program = grammar::program("git").expect("git has an entry");
    let Some(found) = options::subcommand(Some(program), arguments) else { return Conduct::Names };
    let (globals, rest) = arguments.split_at(found.at);
    let subcommand = rest[0].text.as_str();
    let set = globals.iter().any(|word| program.global_settings.iter().any(|option| options::names(&word.text, option)));
    let beyond = |word: &Field| {
        word.text.contains("ext::")
            || GIT_BEYOND.iter().any(|(of, option)| (of.is_empty() || *of == subcommand) && options::names(&word.text, option))
    };
    if !set && grammar::listed(GIT_DATA, subcommand) && !rest.iter().any(beyond) { Conduct::Data } else { Conduct::Names }
}

/// The name of a program without its folder.
fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// A name in lower case and without `.exe`: some systems take these for the same.
fn plain(name: &str) -> Cow<'_, str> {
    let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_suffix(".exe").unwrap_or(name)),
        Cow::Owned(name) => Cow::Owned(name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)),
    }
}

/// Whether a program word is the program of that name. A relative path, another case or an `.exe` may be.
pub(super) fn is_program(word: &str, name: &str) -> Holds {
    let base = base(word);
    if base == name && (word.len() == base.len() || word.starts_with('/')) {
        Holds::Yes
    } else if base == name || plain(base).eq_ignore_ascii_case(name) {
        Holds::Maybe
    } else {
        Holds::No
    }
}

/// Whether a program reads the text of another language from its input.
pub(super) fn is_interpreter(word: &str) -> bool {
    let name = base(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    grammar::listed(INTERPRETERS, name)
}

/// Whether a word names a program, as a whole or within a text, quoted there or not.
pub(super) fn mentions(word: &str, name: &str) -> bool {
    any_name(word, |token| token.eq_ignore_ascii_case(name))
}

/// Whether a word names a program that runs others by text or input: as a whole, or within a text of several words.
pub(super) fn mentions_runner(word: &str) -> bool {
    if word.contains([' ', '\t', '\n']) {
        any_name(word, |token| grammar::listed(RUNNERS, &plain(token)))
    } else {
        grammar::listed(RUNNERS, &plain(base(word)))
    }
}

/// Whether any name in a text is wanted; a second look reads over quotes and backslashes.
fn any_name(text: &str, wanted: impl Fn(&str) -> bool) -> bool {
    let separates = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.' | '+');
    let quoting = ['\\', '\'', '"'];
    text.split(separates).any(&wanted) || (text.contains(quoting) && text.replace(quoting, "").split(separates).any(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::shell::run;

    fn conduct_of(line: &str) -> Conduct {
        conduct(&run::line(line, None).invocations.pop().expect("a command").fields)
    }

    #[test]
    fn what_runs_text_is_opaque() {
        for line in [
            "fish -c x",
            "/x/PWSH.EXE x",
            "printf -v x y",
            "test -v x",
            "test 'a[$(x)]' -eq 0",
            "rg --pre x y",
            "sort --comp=x",
            "sort -uo x",
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
            "export A=rm",
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
            "./echo rm",
            "/tmp/git log rm",
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
