//! The command-line program.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let end = tipstaff::cli::run(std::env::args_os(), &mut io::stdout().lock(), &mut io::stderr());
    ExitCode::from(end.code())
}
