//! Guards from a policy file: shell commands and paths are judged by what they would do, as far as their text says it.
//!
//! A policy is a TOML file of `[[guard]]` tables. Each looks at the simple commands of a call (`command`), or at the paths that it names
//! (`path`), and answers with its `action`:
//!
//! | key                                     | means                                                                                      |
//! |-----------------------------------------|--------------------------------------------------------------------------------------------|
//! | `name`                                  | the guard's name, unique in the file                                                       |
//! | `tools`                                 | the tools it is for; absent: every shell tool, or every tool that takes a path             |
//! | `command.program`                       | the base name of the program                                                               |
//! | `command.subcommand`                    | any of these is the first word that is no option                                           |
//! | `command.options`, `command.words`      | any of the options or of the patterns (`*`, `?`) is given                                  |
//! | `command.options_all`                   | of each group (`-f\|--force`) one is given                                                 |
//! | `command.operands.outside`              | an operand is in none of these folders (from the workspace; `<workspace>`, `<temporary>`)  |
//! | `command.flow.from`, `command.flow.to`  | what one of the first prints runs as program text of one of the second (or of `eval` ..)   |
//! | `path.outside`                          | `"workspace"` or a list as above                                                           |
//! | `action`                                | `deny`, `ask`, `allow`, `record`, or `rewrite` with `rewrite = { program = ".." }`         |
//! | `reason`                                | what the caller is told                                                                    |
//! | `policy.temporary_folders`              | folders for temporary files; `["/tmp"]` when absent                                        |
//!
//! ## What is read, and what is asked about
//!
//! A line is read as bash reads it: every simple command in lists, pipelines, groups, subshells, functions, loops and branches, in substitutions,
//! here-documents and here-strings, in the text of `sh -c` and `eval`, in the words of wrappers such as `env`, `sudo`, `xargs` and `find -exec`.
//! Every branch counts, whatever its condition says. Words are known as far as the line tells them: quotes, codes of characters, braces, and
//! variables that the line itself assigns. A `cd` in the line moves what relative paths mean.
//!
//! What the line does not tell is `ask`, for every command guard that it could concern: a program word that is computed, a text from outside that a
//! shell would run, an operand that could be anywhere, a program that no table knows and whose words name the guarded one, a change to what names
//! stand for, and a text that cannot be read, is longer than 64 KiB or deeper than 64 levels. So is an input that holds no command in a known form.
//! A guard never answers `allow` by not understanding.
//!
//! ## What is out of sight
//!
//! A guard reads the line and nothing else. It does not see what a named script, a make target or a package script does, nor what a program that is no
//! shell makes of its own language: `python -c`, `node -e`, `perl -e`, an editor's macro, a query. It does not know the user's aliases, functions,
//! start-up files, git aliases and settings, nor variables from outside, so that a plain word is taken for the program of that name. A program
//! outside the tables that runs a command it got by another way than its words, from a file, a socket or its settings, passes; so does one whose words
//! name no guarded program, though it would start one. A pattern is not expanded: a file whose name looks like an option becomes one when `*` finds
//! it. Text that a later call types into a program that still runs, and files that an earlier call wrote, are not followed from call to call. The
//! reading is bash's; `sh`, `dash`, `zsh` and `ksh` read some texts in another way, and where one is named it is read as bash would. Paths are judged by
//! their text, so that symbolic links and hard links are not seen, and a path guard looks at the tools that name a path, not at what commands
//! write. A guard is a rail for an agent that means well; against one that does not, it needs a sandbox below it.
//!
//! ## Does `allow` override `deny`?
//!
//! No. The most severe answer counts, whatever the order of the file: `deny`, `ask`, `allow`. An `allow` ends what is weaker, the rewriting
//! of the call. A file in which a later line silently opens what an earlier one closed would be the alternative.

mod command;
mod doubt;
mod error;
mod file;
mod grammar;
mod interceptor;
mod judgement;
mod options;
mod paths;
mod policy;
mod programs;
mod rule;
mod shell;
mod subject;
mod tools;

pub use error::{PolicyError, PolicyFault};
pub use interceptor::{ASK, DENY};
pub use judgement::{Answer, GuardedCall, Judgement, Match, Note, Rewrite, Site};
pub use policy::Policy;
