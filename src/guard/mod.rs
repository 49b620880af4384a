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
//! | `command.flow.from`, `command.flow.to`  | one of these programs appears (what flows where is not followed)                           |
//! | `path.outside`                          | `"workspace"` or a list as above                                                           |
//! | `action`                                | `deny`, `ask`, `allow`, `record`, or `rewrite` with `rewrite = { program = ".." }`         |
//! | `reason`                                | what the caller is told                                                                    |
//! | `policy.temporary_folders`              | folders for temporary files; `["/tmp"]` when absent                                        |
//!
//! ## What is read, and what is asked about
//!
//! A line is read when it is a list or pipeline of simple commands whose words are all literal: unquoted, quoted without expansions, or
//! escaped. Everything else is `ask`, for every command guard that is for the tool: an expansion, a pattern, a subshell, a loop, a
//! here-document, a redirection to a file, an assignment, a comment. So is a command that runs its words or its input, where it could run
//! the guarded program, and an input that holds no command in a known form. A guard never answers `allow` by not understanding.
//!
//! ## What is out of sight
//!
//! The contents of scripts, make targets and package scripts that a line names; aliases and functions of the user's own settings; programs
//! that an interpreter composes from parts; text that a later call types into a program that still runs; files that a command writes (a
//! path guard looks at the tools that name a path); symbolic links, since paths are judged by their text alone.
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
