//! Does every interleaving of senders, waiters, a consumer and a close keep the promises of a port's core?
//!
//! `core.rs` is the file that the crate compiles. Each check runs it under many random schedules and many with forced preemptions; a lost
//! wake-up shows as a deadlock. Deleting the second look in `Core::look` turns `consumer_never_sleeps_on_a_message` red.

#[path = "../../../actors/src/port/core.rs"]
#[expect(dead_code, reason = "the crate uses what the checks do not")]
mod core;
mod facade;

#[cfg(test)]
mod checks;

fn main() {
    eprintln!("run `cargo test` here: the checks are tests");
}
