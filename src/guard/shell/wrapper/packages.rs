//! Package managers and version managers that run a program of their own finding.
//!
//! | in an entry     | means                                                                                   |
//! |-----------------|-----------------------------------------------------------------------------------------|
//! | `names`         | the programs that it is for                                                             |
//! | `subcommands`   | the subcommands after which a child stands; none: the program itself runs it            |
//! | the grammar     | the options before and after the subcommand                                             |
//! | `operands`      | how many operands stand before the child                                                |
//! | `texts`         | options whose value is text of a shell                                                  |
//! | `joins`         | options with which the words are joined into text of a shell                            |
//! | `moves`         | options after which the child runs in a folder that the line does not tell              |
//! | `dashes`        | the child stands after `--` only                                                        |
//! | `itself`        | the subcommand is the child's program                                                   |
//!
//! A version behind the program's name (`vitest@2`) is left out of it. With an option that is not in the table nothing is known:
//! it may take the next word.

use super::super::field::{Field, Open};
use super::options::{Call, Grammar, head, joined};
use super::{Child, Children, Folder, Found};

/// A program that runs others.
pub(super) struct Runner {
    names: &'static [&'static str],
    subcommands: &'static [&'static str],
    grammar: Grammar,
    operands: usize,
    texts: &'static [&'static str],
    joins: &'static [&'static str],
    moves: &'static [&'static str],
    dashes: bool,
    itself: bool,
}

/// The entries of a program.
pub(super) fn runner(name: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|runner| runner.names.contains(&name))
}

/// Every program of the table.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RUNNERS.iter().flat_map(|runner| runner.names.iter().copied())
}

/// What a call of it runs.
pub(super) fn run(call: &mut Call<'_>, runner: &Runner) -> Found {
    match read(call, runner) {
        Err(stop) if !stop.computed => Ok(Children::default()),
        found => found,
    }
}

fn read(call: &mut Call<'_>, runner: &Runner) -> Found {
    let mut options = call.leading(&runner.grammar, 1)?;
    if !runner.subcommands.is_empty() {
        let name = call.literal(options.rest).map(|name| if runner.itself { unversioned(name) } else { name });
        if name.is_none_or(|name| !runner.subcommands.contains(&name)) {
            return Ok(Children::default());
        }
    }
    if !runner.subcommands.is_empty() && !runner.itself {
        let more = call.leading(&runner.grammar, options.rest + 1)?;
        options.given.extend(more.given);
        (options.rest, options.ended) = (more.rest, more.ended);
    }
    let place = if options.has(runner.moves) { Folder::Unknown } else { Folder::Same };
    let mut list: Vec<Child> = options.values(runner.texts).cloned().map(Child::text).collect();
    let mut child = options.rest + runner.operands;
    (options.rest..child).for_each(|at| call.operand(at));
    if runner.dashes && !options.ended {
        match call.fields.iter().position(|word| word.literal() == Some("--")) {
            Some(at) => child = at + 1,
            None => return Ok(Children { list, known: false }),
        }
    } else if runner.operands > 0 && call.literal(child) == Some("--") {
        child += 1;
    }
    let mut words = call.rest(child);
    // The input or a file is program text of another language.
    if words.first().is_some_and(|word| word.text == "-" || word.text.ends_with(".py")) {
        return Ok(Children { list, known: false });
    }
    if options.has(runner.joins) {
        list.extend(joined(&words).map(Child::text));
    } else if list.is_empty() {
        words.iter_mut().take(1).for_each(strip_version);
        list.extend(Child::command(words));
    }
    Ok(list.into_iter().map(|child| child.within(&place)).collect::<Vec<_>>().into())
}

/// A package's name without `@VERSION`; `@` at its beginning is part of it.
fn unversioned(name: &str) -> &str {
    name.char_indices().skip(1).find(|(_, c)| *c == '@').map_or(name, |(at, _)| &name[..at])
}

fn strip_version(word: &mut Field) {
    let end = unversioned(&word.text).len();
    if end < word.text.len() {
        *word = head(word, end, Open::No);
    }
}

impl Runner {
    const fn new(
        names: &'static [&'static str],
        subcommands: &'static [&'static str],
        short: &'static str,
        long: &'static [&'static str],
    ) -> Self {
        let grammar = Grammar::new(short, long);
        Self { names, subcommands, grammar, operands: 0, texts: &[], joins: &[], moves: &[], dashes: false, itself: false }
    }

    const fn operands(mut self, operands: usize) -> Self {
        self.operands = operands;
        self
    }

    const fn texts(mut self, options: &'static [&'static str]) -> Self {
        self.texts = options;
        self
    }

    const fn joins(mut self, options: &'static [&'static str]) -> Self {
        self.joins = options;
        self
    }

    const fn moves(mut self, options: &'static [&'static str]) -> Self {
        self.moves = options;
        self
    }

    const fn itself(mut self) -> Self {
        self.itself = true;
        self
    }

    const fn dashes(mut self) -> Self {
        self.dashes = true;
        self
    }
}

const NPM: &[&str] = &[
    "cache:",
    "call:",
    "dry-run",
    "if-present",
    "ignore-scripts",
    "include-workspace-root",
    "loglevel:",
    "no",
    "no-install",
    "no-yes",
    "node-options:",
    "offline",
    "package:",
    "prefer-offline",
    "prefer-online",
    "prefix:",
    "quiet",
    "registry:",
    "shell-auto-fallback::",
    "silent",
    "userconfig:",
    "verbose",
    "workspace:",
    "workspaces",
    "yes",
];

const PNPM: &[&str] = &[
    "allow-build:",
    "color",
    "dir:",
    "fail-if-no-match",
    "filter:",
    "filter-prod:",
    "if-present",
    "include-workspace-root",
    "no-bail",
    "no-color",
    "no-reporter-hide-prefix",
    "no-sort",
    "package:",
    "parallel",
    "recursive",
    "reporter:",
    "reporter-hide-prefix",
    "report-summary",
    "resume-from:",
    "shell-mode",
    "silent",
    "sort",
    "stream",
    "use-node-version:",
    "workspace-concurrency:",
    "workspace-root",
];

const UV: &[&str] = &[
    "active",
    "all-extras",
    "all-groups",
    "all-packages",
    "allow-insecure-host:",
    "cache-dir:",
    "color:",
    "compile-bytecode",
    "config-file:",
    "constraints:",
    "default-index:",
    "directory:",
    "env-file:",
    "exact",
    "exclude-newer:",
    "extra:",
    "extra-index-url:",
    "find-links:",
    "from:",
    "frozen",
    "group:",
    "index:",
    "index-strategy:",
    "index-url:",
    "isolated",
    "link-mode:",
    "locked",
    "managed-python",
    "native-tls",
    "no-active",
    "no-build",
    "no-cache",
    "no-config",
    "no-default-groups",
    "no-dev",
    "no-editable",
    "no-env-file",
    "no-extra:",
    "no-group:",
    "no-index",
    "no-managed-python",
    "no-progress",
    "no-project",
    "no-python-downloads",
    "no-sources",
    "no-sync",
    "offline",
    "only-dev",
    "only-group:",
    "overrides:",
    "package:",
    "prerelease:",
    "project:",
    "python:",
    "python-platform:",
    "quiet",
    "refresh",
    "refresh-package:",
    "reinstall",
    "reinstall-package:",
    "resolution:",
    "upgrade",
    "upgrade-package:",
    "verbose",
    "with:",
    "with-editable:",
    "with-requirements:",
];

const RUNNERS: &[Runner] = &[
    Runner::new(&["npx"], &[], "c:p:w:yqsdC:", NPM).texts(&["c", "call"]).moves(&["w", "C", "workspace", "workspaces", "prefix"]),
    Runner::new(&["npm"], &["exec", "x"], "c:w:yqspC:", NPM).texts(&["c", "call"]).moves(&[
        "w",
        "C",
        "workspace",
        "workspaces",
        "prefix",
    ]),
    Runner::new(&["pnpm"], &["exec", "dlx"], "C:F:crws", PNPM).joins(&["c", "shell-mode"]).moves(&[
        "C",
        "F",
        "r",
        "w",
        "dir",
        "filter",
        "filter-prod",
        "recursive",
        "workspace-root",
    ]),
    Runner::new(&["pnpx", "pnx"], &[], "cs", PNPM).joins(&["c", "shell-mode"]),
    Runner::new(&["yarn", "yarnpkg"], &["exec", "dlx"], "p:qs", &["package:", "quiet", "silent", "cwd:", "top-level"])
        .moves(&["cwd"]),
    Runner::new(&["bunx"], &[], "p:", &["bun", "package:", "no-install", "verbose", "silent"]),
    Runner::new(&["bun"], &["x"], "p:", &["bun", "package:", "no-install", "verbose", "silent"]),
    Runner::new(&["uv"], &["run"], "p:w:qvnUP:f:i:C:", UV).moves(&["directory"]),
    Runner::new(&["uvx"], &[], "p:w:qvnUP:f:i:C:", UV).moves(&["directory"]),
    Runner::new(&["mise", "rtx"], &["exec", "x"], "c:C:E:j:qvy", MISE).texts(&["c", "command"]).moves(&["C", "cd"]).dashes(),
    Runner::new(&["poetry"], &["run"], "C:P:nqv", POETRY).moves(&["C", "directory"]),
    Runner::new(&["pipenv", "rye"], &["run"], "qv", &["quiet", "verbose"]),
    Runner::new(&["pdm"], &["run"], "p:qv", &["project:", "quiet", "verbose"]).moves(&["p", "project"]),
    Runner::new(&["bundle", "rbenv", "pyenv", "nodenv", "asdf"], &["exec"], "", &["gemfile:", "keep-file-descriptors"]),
    Runner::new(&["rustup"], &["run"], "qv", &["quiet", "verbose", "install"]).operands(1),
    Runner::new(&["direnv"], &["exec"], "", &[]).operands(1),
    Runner::new(&["conda", "mamba", "micromamba"], &["run"], "n:p:v", CONDA).moves(&["cwd"]),
    Runner::new(&["dotenvx", "doppler", "op", "devbox", "infisical"], &["run"], "", &[]).dashes(),
    Runner::new(&["aws-vault"], &["exec"], "", &[]).dashes(),
    Runner::new(&["dotenv"], &[], "", &[]).dashes(),
    Runner::new(&["corepack"], COREPACK, "", &[]).itself(),
];

const MISE: &[&str] =
    &["command:", "cd:", "env:", "jobs:", "raw", "no-prepare", "fresh-env", "quiet", "verbose", "yes", "silent"];

const POETRY: &[&str] =
    &["directory:", "project:", "no-interaction", "quiet", "verbose", "no-ansi", "ansi", "no-plugins", "no-cache"];

const CONDA: &[&str] =
    &["name:", "prefix:", "verbose", "dev", "debug-wrapper-scripts", "cwd:", "no-capture-output", "live-stream"];

const COREPACK: &[&str] = &["npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg"];
