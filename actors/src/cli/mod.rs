//! The command-line program.

mod args;
mod exit;

pub use exit::Exit;
