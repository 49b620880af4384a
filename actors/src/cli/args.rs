//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Guardrails that fail closed, an audit that no denial can suppress, and delivery that survives a crash.
#[derive(Debug, Parser)]
#[command(name = "tipstaff", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

macro_rules! exit_codes {
    () => {
        "Exit codes: 0 done; 1 done, and something was found (a denial under --fail-on-deny); \
         2 wrong usage or a refused file; 3 store unavailable, or its schema is newer."
    };
}

const EXIT_CODES: &str = exit_codes!();

/// What every command understands.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The store: an SQLite file, created if it is not there. Without it, replay uses a temporary one.
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) db: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Colours in tables.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(super) color: Color,
    /// Diagnostics on standard error; twice for more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// When standard output is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run recorded coding-agent sessions through guards, audit and journal. Nothing of them is executed.
    Replay(ReplayArgs),
}

/// `tipstaff replay`.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(super) struct ReplayArgs {
    /// Transcripts (Claude Code session or Codex rollout, JSON lines), or folders of them.
    #[arg(required = true, value_name = "FILE")]
    pub(super) paths: Vec<PathBuf>,
    /// Guards (TOML). Without it every call is allowed, and recorded.
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// End with exit code 1 if a call was denied.
    #[arg(long)]
    pub(super) fail_on_deny: bool,
}

const REPLAY_HELP: &str = concat!(
    "Every call becomes an operation: proposed, judged by the guards, closed with its recorded outcome, and journalled. \
     After the first denied or rewritten call of a session the rest is counterfactual, and is marked so. With --db, \
     running again on a grown file continues: the same call under the same policy is the same attempt.\n\n",
    exit_codes!()
);
