//! Promises, end to end. One binary; each module is one promise or one folder of data.
//!
//! Each module is `cfg(test)`, so that the lints know its helpers as parts of tests.

#[cfg(test)]
mod characterization;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compat;
#[cfg(test)]
mod data;
#[cfg(test)]
mod defaults;
#[cfg(test)]
mod digest;
#[cfg(test)]
mod dispatch;
#[cfg(test)]
mod dispatch_policies;
#[cfg(test)]
mod dispatchers;
#[cfg(test)]
mod gate_arms;
#[cfg(test)]
mod interception;
#[cfg(test)]
mod journal_durability;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod legacy_dispatchers;
#[cfg(test)]
mod legacy_rows;
#[cfg(test)]
mod operation_owners;
#[cfg(test)]
mod operation_way;
#[cfg(test)]
mod pitfalls;
#[cfg(test)]
mod planes;
#[cfg(test)]
mod ports;
#[cfg(test)]
mod program;
#[cfg(test)]
mod replay_memory;
#[cfg(test)]
mod replay_resume;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod sessions;
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
#[cfg(test)]
mod transcripts;
#[cfg(test)]
mod watching;
