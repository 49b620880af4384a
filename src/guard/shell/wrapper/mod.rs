//! What a program runs of its words and its input: wrappers, shells, and programs that take commands among their options.
//!
//! | family      | programs                                            | what they run                                                |
//! |-------------|-----------------------------------------------------|--------------------------------------------------------------|
//! | `plain`     | `nice`, `timeout`, `stdbuf`, `chroot`, `strace` ... | the words from the first operand on, by one table             |
//! | `env`       | `env`                                               | the same, after assignments and the words of `-S`             |
//! | `user`      | `sudo`, `doas`, `su`, `runuser`, `sg`               | words, or text of a shell                                    |
//! | `shells`    | `sh`, `bash` ...                                    | text, a file, or the input                                   |
//! | `builtins`  | `command`, `exec`, `eval`, `source`, `trap` ...     | words, text, a file, in this shell or later                  |
//! | `batch`     | `xargs`, `parallel`, `entr`                         | words with others that the line does not tell                |
//! | `find`      | `find`, `fd`                                        | the words of each `-exec`                                    |
//! | `git`       | `git`                                               | aliases, `rebase -x`, settings with commands ...             |
//! | `packages`  | `npx`, `pnpm exec`, `uv run`, `mise exec` ...       | words, or text of a shell                                    |
//! | `remote`    | `ssh`, `docker`, `podman`, `kubectl`                | words or text, where the line's paths are others             |
//! | `texts`     | `watch`, `script`, `flock`, `busybox`, `at` ...     | words, or text among the options                             |
//! | `files`     | `tar`, `rsync`, `split`                             | text among the options                                       |
//! | `languages` | `make`, `vim`, `python`, `perl` ...                 | what texts of other languages name                           |
//! | `awk`       | `awk`                                               | the texts of `system(..)` and of pipes                       |
//!
//! How words are read before the child is found:
//!
//! | the word                                             | it is read as                                                    |
//! |------------------------------------------------------|------------------------------------------------------------------|
//! | an option of the table, joined, combined, abbreviated | that option; its value is no child                              |
//! | an option that is not in the table                   | the end of reading: [`Child::Unclear`]                           |
//! | unknown text where an operand may stand              | an operand, and [`Child::Unclear`] besides                       |
//! | a value or operand that may be several words         | one word, and [`Child::Unclear`] besides                         |
//! | anything else                                        | an operand: the child, or what stands before it                  |
//!
//! Nothing is run, looked up or expanded here, and a child is not followed: the caller asks again with the child's words.

mod awk;
mod batch;
mod builtins;
mod env;
mod files;
mod find;
mod git;
mod languages;
mod options;
mod packages;
mod plain;
mod remote;
mod shells;
mod split;
mod texts;
mod user;

use std::borrow::Cow;

use self::options::{Call, Stop};
use super::field::Field;
use super::syntax::Span;
use crate::guard::grammar::STANDARD_FOLDERS;

/// What a program runs, of its words (the first is the program itself) and of its input.
pub(in crate::guard) fn children(fields: &[Field]) -> Children {
    let Some(program) = fields.first() else { return Children::default() };
    let Some(path) = program.literal() else {
        return Children { list: vec![Child::Unclear(program.span.clone())], known: false };
    };
    let mut call = Call::new(fields);
    let mut children = read(&mut call, &name(path)).unwrap_or_else(Children::from);
    children.list.extend(call.doubt.map(Child::Unclear));
    let base = path.rsplit('/').next().unwrap_or(path);
    let folder = &path[..path.len() - base.len()];
    children.known &= folder.is_empty() || STANDARD_FOLDERS.contains(&folder);
    children
}

/// What a program runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::guard) struct Children {
    /// Each command and text, in the order of the words.
    pub(in crate::guard) list: Vec<Child>,
    /// Whether no other word names anything that is run. False for a program that is not known here, for one outside the
    /// standard folders, and where a word may be program text of another language.
    pub(in crate::guard) known: bool,
}

/// One thing that a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Child {
    /// A program with its words. Words that are added to them stand among them, as open fields.
    Command {
        words: Vec<Field>,
        /// `NAME=VALUE`, set for it.
        assignments: Vec<(String, Field)>,
        folder: Folder,
        /// Whether its open words hold what the wrapper reads from its input; the child then does not get that input.
        fed: bool,
    },
    /// Program text of a shell, and its `$0`, `$1` ...
    Text { text: Field, positional: Vec<Field>, scope: Scope, folder: Folder },
    /// The input is program text of a shell.
    Input { positional: Vec<Field>, scope: Scope, folder: Folder },
    /// A file is program text of a shell.
    File { path: Field, positional: Vec<Field>, scope: Scope, folder: Folder },
    /// Something that the words do not tell; where the word stands by which this is so.
    Unclear(Span),
}

/// Which shell reads a program text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guard) enum Scope {
    /// A new one: what it sets ends with it.
    Apart,
    /// The shell of the line, now.
    Here,
    /// The shell of the line, at another time: variables and folder are those of that time.
    Later,
}

/// Where a child runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::guard) enum Folder {
    /// Where the wrapper runs.
    Same,
    /// In this folder, as seen from the wrapper's.
    Known(Field),
    /// Somewhere; absolute paths mean what they mean here.
    Unknown,
    /// In another tree of files: no path means what it means here.
    Elsewhere,
}

type Found = Result<Children, Stop>;

/// The reader of a program, by its name.
fn read(call: &mut Call<'_>, name: &str) -> Found {
    if let Some(wrapper) = plain::wrapper(name) {
        return plain::run(call, wrapper);
    }
    if let Some(runner) = packages::runner(name) {
        return packages::run(call, runner);
    }
    match name {
        "env" => env::env(call),
        "sudo" => user::sudo(call),
        "doas" => user::doas(call),
        "su" => user::su(call),
        "runuser" => user::runuser(call),
        "sg" => user::sg(call),
        "ash" | "bash" | "dash" | "ksh" | "ksh93" | "mksh" | "rbash" | "sh" | "yash" | "zsh" => shells::shell(call),
        "csh" | "elvish" | "fish" | "nu" | "powershell" | "pwsh" | "tcsh" | "xonsh" | "cmd" => shells::other(call),
        "command" => builtins::command(call),
        "builtin" => builtins::builtin(call),
        "exec" => builtins::exec(call),
        "eval" => builtins::eval(call),
        "." | "source" => builtins::source(call),
        "trap" => builtins::trap(call),
        "mapfile" | "readarray" => builtins::mapfile(call),
        "compgen" | "complete" => builtins::complete(call),
        "bind" => builtins::bind(call),
        "xargs" => batch::xargs(call),
        "parallel" => batch::parallel(call),
        "entr" => batch::entr(call),
        "find" => find::find(call),
        "fd" | "fdfind" => find::fd(call),
        "git" => git::git(call),
        "ssh" => remote::ssh(call),
        "docker" | "nerdctl" | "podman" | "docker-compose" => remote::docker(call, name),
        "kubectl" | "oc" => remote::kubectl(call),
        "busybox" | "toybox" => texts::busybox(call),
        "watch" => texts::watch(call),
        "script" => texts::script(call),
        "flock" => texts::flock(call),
        "tar" | "bsdtar" => files::tar(call),
        "rsync" => files::rsync(call),
        "split" => files::split(call),
        "at" | "batch" => texts::at(call),
        "crontab" => texts::crontab(call),
        "make" | "gmake" => languages::make(call),
        "ex" | "nvim" | "vi" | "view" | "vim" | "vimdiff" => languages::vim(call),
        "awk" | "gawk" | "mawk" | "nawk" => awk::awk(call),
        _ => languages::interpreter(call, name),
    }
}

/// The name that a program goes by: without its folder, in lower case and without `.exe` (some systems take these for the same),
/// and without the `g` of the GNU programs on other systems.
fn name(path: &str) -> Cow<'_, str> {
    const GNU: &[&str] =
        &["genv", "gfind", "gnice", "gnohup", "gsplit", "gstdbuf", "gtar", "gtime", "gtimeout", "gxargs", "gchroot"];
    let base = path.rsplit('/').next().unwrap_or(path);
    let base = match base.get(base.len().saturating_sub(4)..) {
        Some(end) if end.eq_ignore_ascii_case(".exe") => &base[..base.len() - 4],
        _ => base,
    };
    let base = if GNU.contains(&base) { &base[1..] } else { base };
    if base.bytes().any(|byte| byte.is_ascii_uppercase()) { base.to_ascii_lowercase().into() } else { base.into() }
}

impl From<Vec<Child>> for Children {
    fn from(list: Vec<Child>) -> Self {
        Self { list, known: true }
    }
}

impl From<Stop> for Children {
    fn from(stop: Stop) -> Self {
        Self { list: vec![Child::Unclear(stop.span)], known: false }
    }
}

impl Child {
    /// A command as the wrapper's words tell it; none without a word.
    fn command(words: Vec<Field>) -> Option<Self> {
        (!words.is_empty()).then_some(Self::Command { words, assignments: Vec::new(), folder: Folder::Same, fed: false })
    }

    /// Program text of a new shell.
    fn text(text: Field) -> Self {
        Self::Text { text, positional: Vec::new(), scope: Scope::Apart, folder: Folder::Same }
    }

    /// Program text and its `$0`, `$1` ... One word at least.
    fn shell(mut words: Vec<Field>) -> Self {
        let text = words.remove(0);
        Self::Text { text, positional: words, scope: Scope::Apart, folder: Folder::Same }
    }

    /// Program text to which words are added: `sh -c 'TEXT "$@"' ..`.
    fn text_with(text: &Field, words: Vec<Field>) -> Self {
        if words.is_empty() || text.literal().is_none() {
            return Self::text(text.clone());
        }
        let mut positional = vec![text.clone()];
        positional.extend(words);
        let text = Field { text: format!("{} \"$@\"", text.text), exact: None, ..text.clone() };
        Self::Text { text, positional, scope: Scope::Apart, folder: Folder::Same }
    }

    /// The input, as program text of a new shell.
    fn input() -> Self {
        Self::Input { positional: Vec::new(), scope: Scope::Apart, folder: Folder::Same }
    }

    /// The same in another folder.
    fn within(mut self, place: &Folder) -> Self {
        match &mut self {
            Self::Command { folder, .. } | Self::Text { folder, .. } | Self::Input { folder, .. } | Self::File { folder, .. } => {
                folder.clone_from(place);
            }
            Self::Unclear(_) => {}
        }
        self
    }

    /// The same read by another shell.
    fn read_by(mut self, shell: Scope) -> Self {
        match &mut self {
            Self::Text { scope, .. } | Self::Input { scope, .. } | Self::File { scope, .. } => *scope = shell,
            Self::Command { .. } | Self::Unclear(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests;
