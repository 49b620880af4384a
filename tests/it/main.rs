//! Promises, end to end. One binary; each module is one promise or one folder of data.
mod dispatch;
mod gate_arms;

mod journal_durability;
mod store_conformance;


mod ports;


mod data;
mod shell_lines;

//!
//! Each module is `cfg(test)`, so that the lints know its helpers as parts of tests.

#[cfg(test)]
mod data;
#[cfg(test)]
mod transcript_reader;
