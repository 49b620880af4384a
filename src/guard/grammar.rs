//! What we know of programs: their options, and what they do with their words. Data only.
//!
//! A program without an entry is guarded all the same; where its options could be read in two ways, the answer is `ask`. The lists of names
//! are sorted, so that [`listed`] finds a name quickly.

/// The options and subcommands of one program.
pub(super) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// Options before the subcommand that take the next word as their value.
    pub(super) global_valued: &'static [&'static str],
    /// Whether all other options before the subcommand take no separate value.
    pub(super) global_complete: bool,
    /// Options before the subcommand that can change what a subcommand does.
    pub(super) global_settings: &'static [&'static str],
    /// Other names of subcommands.
    pub(super) aliases: &'static [(&'static str, &'static str)],
    /// Whether a subcommand that is not listed here may stand for another one that a user's settings define.
    pub(super) user_aliases: bool,
    /// Options of the program (with an empty name) and of its subcommands.
    pub(super) options: &'static [(&'static str, Options)],
}

/// The options of a program or of one of its subcommands.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// One-letter options that take a value, in the same word or as the next one.
    pub(super) short_valued: &'static str,
    /// Every long option, by which abbreviations are resolved. Those that take the next word as their value end in `=`.
    pub(super) long: &'static [&'static str],
}

/// Whether a sorted list holds a name.
pub(super) fn listed(names: &[&str], name: &str) -> bool {
    names.binary_search(&name).is_ok()
}

/// The entry of a program.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

impl Program {
    /// The options of a subcommand (empty name: of the program itself), if they are known.
    pub(super) fn options_of(&self, subcommand: &str) -> Option<&'static Options> {
        self.options.iter().find(|(name, _)| *name == subcommand).map(|(_, options)| options)
    }

    /// The first name of a subcommand.
    pub(super) fn unaliased<'a>(&self, subcommand: &'a str) -> &'a str {
        self.aliases.iter().find(|(alias, _)| *alias == subcommand).map_or(subcommand, |(_, name)| name)
    }
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "git",
        global_valued: &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        ],
        global_complete: true,
        global_settings: &["-c", "--config-env", "--exec-path"],
        aliases: &[],
        user_aliases: true,
        options: &[
            (
                "push",
                Options {
                    short_valued: "o",
                    long: &[
                        "--all",
                        "--atomic",
                        "--branches",
                        "--delete",
                        "--dry-run",
                        "--exec=",
                        "--follow-tags",
                        "--force",
                        "--force-if-includes",
                        "--force-with-lease",
                        "--ipv4",
                        "--ipv6",
                        "--mirror",
                        "--no-atomic",
                        "--no-follow-tags",
                        "--no-force",
                        "--no-force-if-includes",
                        "--no-force-with-lease",
                        "--no-progress",
                        "--no-prune",
                        "--no-push-option",
                        "--no-recurse-submodules",
                        "--no-signed",
                        "--no-tags",
                        "--no-thin",
                        "--no-verify",
                        "--porcelain",
                        "--progress",
                        "--prune",
                        "--push-option=",
                        "--quiet",
                        "--receive-pack=",
                        "--recurse-submodules=",
                        "--repo=",
                        "--set-upstream",
                        "--signed",
                        "--tags",
                        "--thin",
                        "--verbose",
                        "--verify",
                    ],
                },
            ),
            (
                "clean",
                Options {
                    short_valued: "e",
                    long: &[
                        "--dry-run",
                        "--exclude=",
                        "--force",
                        "--interactive",
                        "--no-dry-run",
                        "--no-exclude",
                        "--no-force",
                        "--no-interactive",
                        "--no-quiet",
                        "--quiet",
                    ],
                },
            ),
            (
                "commit",
                Options {
                    short_valued: "CFcmt",
                    long: &[
                        "--ahead-behind",
                        "--all",
                        "--allow-empty",
                        "--allow-empty-message",
                        "--amend",
                        "--author=",
                        "--branch",
                        "--cleanup=",
                        "--date=",
                        "--dry-run",
                        "--edit",
                        "--file=",
                        "--fixup=",
                        "--gpg-sign",
                        "--include",
                        "--interactive",
                        "--long",
                        "--message=",
                        "--no-edit",
                        "--no-gpg-sign",
                        "--no-post-rewrite",
                        "--no-signoff",
                        "--no-status",
                        "--no-verify",
                        "--null",
                        "--only",
                        "--patch",
                        "--pathspec-file-nul",
                        "--pathspec-from-file=",
                        "--porcelain",
                        "--post-rewrite",
                        "--quiet",
                        "--reedit-message=",
                        "--reset-author",
                        "--reuse-message=",
                        "--short",
                        "--signoff",
                        "--squash=",
                        "--status",
                        "--template=",
                        "--trailer=",
                        "--untracked-files",
                        "--verbose",
                        "--verify",
                    ],
                },
            ),
            (
                "reset",
                Options {
                    short_valued: "",
                    long: &[
                        "--hard",
                        "--intent-to-add",
                        "--keep",
                        "--merge",
                        "--mixed",
                        "--no-quiet",
                        "--no-recurse-submodules",
                        "--no-refresh",
                        "--patch",
                        "--pathspec-file-nul",
                        "--pathspec-from-file=",
                        "--quiet",
                        "--recurse-submodules",
                        "--refresh",
                        "--soft",
                    ],
                },
            ),
        ],
    },
    Program {
        name: "rm",
        global_valued: &[],
        global_complete: true,
        global_settings: &[],
        aliases: &[],
        user_aliases: false,
        options: &[(
            "",
            Options {
                short_valued: "",
                long: &[
                    "--dir",
                    "--force",
                    "--help",
                    "--interactive",
                    "--no-preserve-root",
                    "--one-file-system",
                    "--preserve-root",
                    "--recursive",
                    "--verbose",
                    "--version",
                ],
            },
        )],
    },
    Program {
        name: "npm",
        global_valued: &["-C", "-w", "--cache", "--loglevel", "--prefix", "--registry", "--userconfig", "--workspace"],
        global_complete: false,
        global_settings: &[],
        aliases: &[
            ("add", "install"),
            ("clean-install", "ci"),
            ("i", "install"),
            ("ic", "ci"),
            ("in", "install"),
            ("ins", "install"),
            ("inst", "install"),
            ("insta", "install"),
            ("instal", "install"),
            ("install-clean", "ci"),
            ("isnt", "install"),
            ("isnta", "install"),
            ("isntal", "install"),
            ("isntall", "install"),
            ("isntall-clean", "ci"),
            ("rum", "run"),
            ("run-script", "run"),
            ("urn", "run"),
        ],
        user_aliases: false,
        options: &[],
    },
];

/// Subcommands of git whose words name revisions, files and texts, and are never run.
pub(super) const GIT_DATA: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "prune",
    "pull",
    "push",
    "range-diff",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "version",
    "whatchanged",
    "worktree",
];

/// Further subcommands of git. A name in neither list may be an alias.
pub(super) const GIT_OTHER: &[&str] = &[
    "archive",
    "bisect",
    "config",
    "credential",
    "difftool",
    "fast-export",
    "fast-import",
    "filter-branch",
    "for-each-ref",
    "for-each-repo",
    "hash-object",
    "instaweb",
    "lfs",
    "maintenance",
    "mergetool",
    "rebase",
    "repack",
    "replace",
    "request-pull",
    "send-email",
    "sparse-checkout",
    "submodule",
    "subtree",
    "var",
    "verify-commit",
    "verify-tag",
    "write-tree",
];

/// Options of git subcommands (empty: of all) whose value is run, sets what is run, or names a file that is written.
pub(super) const GIT_BEYOND: &[(&str, &str)] = &[
    ("", "--exec"),
    ("", "--extcmd"),
    ("", "--open-files-in-pager"),
    ("", "--output"),
    ("", "--receive-pack"),
    ("", "--upload-pack"),
    ("", "-O"),
    ("clone", "--config"),
    ("clone", "--template"),
    ("clone", "-c"),
    ("clone", "-u"),
];

/// Shells whose text is not read, and commands of other shells that change what words mean.
pub(super) const OPAQUE: &[&str] =
    &["autoload", "cmd", "csh", "elvish", "emulate", "fish", "nu", "powershell", "pwsh", "tcsh", "xonsh", "zmodload"];

/// Programs that run text or input, by which another program may reach a guarded one without naming it.
pub(super) const RUNNERS: &[&str] = &[
    "ash",
    "bash",
    "csh",
    "dash",
    "doas",
    "elvish",
    "fish",
    "ksh",
    "ksh93",
    "mksh",
    "parallel",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "ssh",
    "su",
    "sudo",
    "tcsh",
    "xargs",
    "xonsh",
    "yash",
    "zsh",
];

/// The shells whose program text is read.
pub(super) const SHELLS: &[&str] = &["bash", "dash", "ksh", "sh", "zsh"];

/// Programs that run the text of another language, of their words or their input, without the number of their version.
pub(super) const INTERPRETERS: &[&str] =
    &["Rscript", "bun", "deno", "julia", "lua", "node", "osascript", "perl", "php", "pypy", "python", "ruby", "tclsh"];

/// The folders in which a program of a known name is that program.
pub(super) const STANDARD_FOLDERS: &[&str] = &["/bin/", "/opt/homebrew/bin/", "/usr/bin/", "/usr/local/bin/"];

/// Programs and commands of the shell for which words and input are only data, and which write only their output.
pub(super) const DATA_ONLY: &[&str] = &[
    ":",
    "[",
    "alias",
    "basename",
    "bg",
    "break",
    "cat",
    "cd",
    "cmp",
    "comm",
    "continue",
    "cut",
    "date",
    "declare",
    "df",
    "diff",
    "dirname",
    "dirs",
    "disown",
    "du",
    "echo",
    "egrep",
    "enable",
    "exit",
    "export",
    "expr",
    "false",
    "fg",
    "fgrep",
    "file",
    "fold",
    "free",
    "getopts",
    "gh",
    "grep",
    "hash",
    "head",
    "history",
    "hostname",
    "id",
    "jobs",
    "jq",
    "kill",
    "let",
    "local",
    "logout",
    "ls",
    "mapfile",
    "md5sum",
    "mkdir",
    "mktemp",
    "nl",
    "od",
    "paste",
    "pgrep",
    "pkill",
    "popd",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rev",
    "rg",
    "rmdir",
    "seq",
    "set",
    "sha256sum",
    "shift",
    "shopt",
    "sleep",
    "sort",
    "stat",
    "strings",
    "suspend",
    "tac",
    "tail",
    "test",
    "times",
    "touch",
    "tr",
    "tree",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "uname",
    "unset",
    "wait",
    "wc",
    "whereis",
    "which",
    "whoami",
    "yes",
];

/// Options of the programs in [`DATA_ONLY`] whose value is run, names a file that is written, or is a name that the shell evaluates.
pub(super) const DATA_BUT: &[(&str, &[&str])] = &[
    ("gh", &["--shell"]),
    ("printf", &["-v"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("sort", &["--compress-program", "--output", "-o"]),
    ("test", &["-v"]),
    ("tree", &["-o"]),
    ("wait", &["-p"]),
    ("[", &["-v"]),
];

/// Commands among [`DATA_ONLY`] that evaluate a subscript within a word.
pub(super) const EVALUATES: &[&str] = &["[", "printf", "test"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        for list in [GIT_DATA, GIT_OTHER, INTERPRETERS, OPAQUE, RUNNERS, SHELLS, DATA_ONLY] {
            assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
        }
    }
}
