//! The command-line program. It holds no rules: it calls the public API, as a user's program would.

mod args;
mod exit;
mod files;
mod output;
mod replay;
mod replay_json;
mod replay_text;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::Parser;
pub use exit::Exit;
use tipstaff_core::state::{SqliteOptions, SqliteStore, StoreError};

use args::{Cli, Command};

/// Runs the program with a command line, its own name first, and two places for output.
///
/// It blocks until the command is done, on a tokio runtime of its own: call it where no other runtime is entered.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    run_on(args, out, err, |path, options| SqliteStore::open_with(path, options))
}

/// As [`run`], with the store opened by a function: how tests hand over fault points.
pub fn run_on(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    open: impl FnOnce(&Path, SqliteOptions) -> Result<SqliteStore, StoreError>,
) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(help) => return usage(&help, out, err),
    };
    listen(cli.global.verbose);
    let done = match cli.command {
        Command::Replay(command) => replay::run(&cli.global, command, out, err, open),
    };
    match done {
        Ok(exit) => exit,
        // Whoever reads has gone: there is nobody to tell.
        Err(error) if error.is_broken_pipe() => Exit::Done,
        Err(error) => {
            let exit = error.exit();
            // An error that cannot be written has no other place to go; the exit code tells it.
            let _untold = writeln!(err, "tipstaff: {}", output::chain(&error));
            exit
        }
    }
}

/// Help and version are answers; anything else is wrong usage.
fn usage(help: &clap::Error, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let (exit, to): (Exit, &mut dyn Write) = if help.use_stderr() { (Exit::Refused, err) } else { (Exit::Done, out) };
    let _untold = write!(to, "{}", help.render());
    exit
}

/// Diagnostics on standard error, only if asked for: a process has one subscriber, and the first one stays.
fn listen(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "tipstaff=info",
        _ => "tipstaff=trace",
    };
    let filter = tracing_subscriber::EnvFilter::new(level);
    let _taken = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
