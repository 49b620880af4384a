//! The planes of tipstaff without actors: interception, observation and delivery kernels, declarations and the embedded store.
//!
//! A tipstaff is the officer who guards a court, watches its proceedings and serves its papers. This crate does the same for agent runtimes. Users add
//! the package `tipstaff`, which runs these kernels in supervised actors and re-exports this crate; use this one alone to build an actor system of
//! your own on the same decisions.
//!
//! # Glossary
//!
//! These words are used for these things and no others. "Bus" is not among them.
//!
//! | word               | meaning                                                                      | may change or refuse work?         | durable by itself? |
//! |--------------------|------------------------------------------------------------------------------|------------------------------------|--------------------|
//! | operation          | executable work with a status and one completion                             | its owner changes its lifecycle    | no                 |
//! | interceptor        | ordered control around one owner's operation                                 | yes, by a typed decision           | no                 |
//! | signal             | an immutable fact that occurred: an envelope around a typed payload          | no                                 | no                 |
//! | subscriber         | an in-process consumer of a signal                                           | no                                 | no                 |
//! | commit participant | stages evidence or an outbox intent inside the owner's transaction           | may fail the commit before it is   | with the commit    |
//! | message            | an addressed payload with sender and recipient                               | not by observation                 | transport-specific |
//! | delivery           | a post-commit attempt to convey a durable fact                               | never changes the fact             | yes                |
//! | observing subscriber | a process woken at declared boundaries with a batch of facts               | no                                 | its retryable class |
//!
//! Commit participants, deliveries and observing subscribers are words of the delivery plane, which holds the journal today.
//!
//! # Code map
//!
//! | folder           | holds                                                            | plane        |
//! |------------------|------------------------------------------------------------------|--------------|
//! | [`operation`]    | the order that every operation keeps; the only place where the planes meet | all |
//! | [`interception`] | decisions, plans, the ordered chain, reports                     | interception |
//! | [`guard`]        | guards from a policy file, as ordinary interceptors              | interception |
//! | [`dispatch`]     | the fan-out kernel and its policies, generic over the fact       | observation  |
//! | [`observation`]  | recent facts, live streams, the ledger of losses                 | observation  |
//! | [`signal`]       | facts: kinds, payloads, filters, redaction                       | shared       |
//! | [`state`]        | the store behind small traits: SQLite, and a model in memory     | delivery     |
//! | [`transcript`]   | readers of recorded sessions                                     | -            |
//! | [`declare`]      | canonical JSON, digests, durable names of handlers               | -            |
//! | [`id`], [`clock`], [`cancel`], [`telemetry`] | identifiers, time, asking work to end, names of spans and events | - |
//!
//! Imports run downwards only; `tests/it/layering.rs` holds the whole table.
//!
//! # Two ways to walk
//!
//! *One operation*: `Session::perform` in the package `tipstaff` -> [`operation::perform`], whose steps are types -> the authorization actor -> the
//! chain ([`interception::Plan::apply`]) -> the body -> the closing fact -> the way of a signal.
//!
//! *One signal*: the session's admission numbers it, pushes it to the journal's port and to the observer's port -> beside one another, the writer
//! thread commits it ([`state::JournalWriter::commit`]) and the observer fans it out ([`dispatch::Dispatcher::emit`]).
//!
//! # What is promised
//!
//! | promise                                                                                              | test                                |
//! |------------------------------------------------------------------------------------------------------|-------------------------------------|
//! | P-2 the record of a proposal survives every way in which authorization or a subscriber can fail      | `tests/it/gate_arms.rs`             |
//! | P-9 a proposal is on record before anybody is asked, and has exactly one closing fact                | `tests/it/operation_way.rs`         |
//! | P-14 completing a permit is never refused; a dropped one is on record                                | `tests/it/operation_way.rs`         |
//! | I-3 a guard that fails, panics or is late denies                                                     | `tests/it/interception.rs`          |
//! | I-6 equal values have one digest under every feature set of serde_json                               | `tests/it/digest.rs`                |
//! | I-4 a declared teardown survives its caller, for a declared time                                     | `tests/it/operation_owners.rs`      |
//! | I-12 an operation is performed at most once per attempt                                              | `tests/compile_fail.rs`             |
//! | F-10 a report names every matched subscriber, in registration order                                  | `tests/it/dispatch.rs`              |
//! | L-21 positions of a session are gapless in commit order                                              | `tests/it/store_conformance.rs`     |
//! | a confirmed append survives `kill -9`                                                                | `tests/it/journal_durability.rs`    |
//!
//! # What is not promised
//!
//! Exactly-once effects: a crash between performing and recording leaves an attempt that is closed as ambiguous. Best-effort observation loses under
//! overload; what is known to be lost is counted. An inline subscriber or interceptor that blocks its thread cannot be ended by a deadline, only
//! disregarded. Under `panic = "abort"` nothing is promised but what is on disk.
//!
//! # Features
//!
//! `sqlite` (default): the embedded store. `shell-guards`: guards from a policy file. `compat`: dispatch profiles, hooks and rows of the system that this
//! one follows, for those who come from it. `testing`: fault points, the manual clock and the conformance
//! suite of stores. Interception and observation alone need none of them.

pub mod cancel;
pub mod clock;
#[cfg(feature = "compat")]
pub mod compat;
pub mod declare;
pub mod dispatch;
#[cfg(feature = "shell-guards")]
pub mod guard;
pub mod id;
pub mod interception;
pub mod observation;
pub mod operation;
pub mod signal;
pub mod state;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transcript;
