//! Promises, end to end. One binary; each module is one promise or one folder of data.
//!
//! Each module is `cfg(test)`, so that the lints know its helpers as parts of tests.

#[cfg(test)]
mod data;
#[cfg(test)]
mod dispatch;
#[cfg(test)]
mod gate_arms;
#[cfg(test)]
mod journal_durability;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod pitfalls;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod shell_lines;
#[cfg(test)]
mod store_conformance;
#[cfg(test)]
mod supervision;
#[cfg(test)]
mod supervision_kernel;
#[cfg(test)]
mod transcript_reader;
