//! How many confirmed appends per second does one writer commit, by rows per commit, against raw inserts on the same disk? (rows/s, `synchronous = FULL`)
//!
//! The disk's own flush rate drifts by a factor of ten within minutes, so each sample of the journal is taken beside one of the raw substrate, in
//! turns, and only the ratio counts. The substrate is a prepared insert of the same row into the same table in an open loop: no counters, no
//! idempotency, no attempts, no answers. The reach is 0.8 (spec 9).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use rusqlite::{Connection, params};
use serde_json::json;
use tipstaff_core::clock::Timestamp;
use tipstaff_core::id::{AttemptId, OperationId, SessionId};
use tipstaff_core::signal::{LifecycleKind, Payload, PayloadType, Signal, SignalKind};
use tipstaff_core::state::{Here, JournalWrite, JournalWriter, SqliteStore, Store};

const SIZES: [usize; 4] = [1, 64, 256, 1024];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// Facts of a kind of a user's own.
    Facts,
    /// Proposals and their closing facts, in turns: two tables each.
    Operations,
}

fn main() {
    let measured = RefCell::new(BTreeMap::<(Load, usize), (Duration, Duration, u64)>::new());
    let mut criterion = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(6)).configure_from_args();
    for load in [Load::Facts, Load::Operations] {
        let mut group = criterion.benchmark_group(format!("append/{load:?}").to_lowercase());
        for size in SIZES {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut journal = Journal::open(&folder.path().join("journal.db"));
            let mut raw = Raw::open(&folder.path().join("raw.db"));
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter_custom(|rounds| {
                    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
                    for round in 0..rounds {
                        // Made by the emitters, on their threads: not part of the append.
                        let (mine, other) = (load.group(size), load.group(size));
                        let both: [(&mut dyn FnMut(), &mut Duration); 2] =
                            [(&mut || journal.append(&mine), &mut ours), (&mut || raw.append(&other), &mut theirs)];
                        let mut in_turns: Vec<_> = both.into_iter().collect();
                        if round % 2 == 1 {
                            in_turns.reverse();
                        }
                        for (append, total) in in_turns {
                            let begun = Instant::now();
                            append();
                            *total += begun.elapsed();
                        }
                    }
                    let mut measured = measured.borrow_mut();
                    let sum = measured.entry((load, size)).or_default();
                    (sum.0, sum.1, sum.2) = (sum.0 + ours, sum.1 + theirs, sum.2 + rounds * size as u64);
                    ours
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
    print_table(&measured.into_inner());
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print_table(measured: &BTreeMap<(Load, usize), (Duration, Duration, u64)>) {
    println!("\n{:<12} {:>14} {:>16} {:>16} {:>8}  reach", "load", "rows/commit", "journal rows/s", "raw rows/s", "ratio");
    for ((load, size), (ours, theirs, rows)) in measured {
        let (mine, raw) = (*rows as f64 / ours.as_secs_f64(), *rows as f64 / theirs.as_secs_f64());
        println!("{:<12} {size:>14} {mine:>16.0} {raw:>16.0} {:>7.2}x  >= 0.80x", format!("{load:?}").to_lowercase(), mine / raw);
    }
}

impl Load {
    fn group(self, size: usize) -> Vec<JournalWrite> {
        let session = SessionId::new("bench").expect("a short name is an identity");
        let shape = PayloadType::new("bench.payload", 1).expect("a short name is a type");
        let user = SignalKind::user("bench.fact").expect("the kind has a namespace");
        let mut operation = OperationId::generate();
        let fact = |n: usize| {
            let kind = match (self, n % 2) {
                (Self::Facts, _) => user.clone(),
                (Self::Operations, 0) => LifecycleKind::OperationProposed.into(),
                (Self::Operations, _) => LifecycleKind::OperationCompleted.into(),
            };
            // A group of one is half an operation: its closing fact then stands without its proposal.
            if n.is_multiple_of(2) {
                operation = OperationId::generate();
            }
            let payload = Payload::from_value(shape.clone(), json!({ "text": "x".repeat(280), "n": n }));
            let _made_by_the_emitter = payload.wire();
            let attempt = AttemptId::new("1").expect("a digit is an identity");
            let signal = Signal::builder(session.clone(), kind, Timestamp::from_micros(0));
            let signal = signal.operation(operation.clone()).attempt(attempt).payload(payload).build();
            JournalWrite::Append(Arc::new(signal))
        };
        (0..size).map(fact).collect()
    }
}

/// The journal as a runtime opens it.
struct Journal(Box<dyn JournalWriter>);

impl Journal {
    fn open(path: &std::path::Path) -> Self {
        let store = SqliteStore::open(path).expect("an empty place");
        Self(store.open_writer(&Here::read().instance("bench")).expect("the store is new"))
    }

    fn append(&mut self, group: &[JournalWrite]) {
        let answers = self.0.commit(group).expect("the disk takes it");
        assert!(answers.iter().all(Result::is_ok));
    }
}

/// The substrate: the journal's main table, its settings, and nothing else of it.
struct Raw {
    connection: Connection,
    seq: i64,
}

impl Raw {
    fn open(path: &std::path::Path) -> Self {
        drop(SqliteStore::open(path).expect("an empty place"));
        let connection = Connection::open(path).expect("the file is there");
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -8192").expect("settings of SQLite");
        Self { connection, seq: 0 }
    }

    fn append(&mut self, group: &[JournalWrite]) {
        self.connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        let insert = "INSERT INTO signals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let mut insert = self.connection.prepare(insert).expect("the table is there");
        for write in group {
            let JournalWrite::Append(signal) = write else { unreachable!("the loads have facts only") };
            let wire = signal.payload().wire();
            self.seq += 1;
            let row = params![
                1,
                self.seq,
                signal.id().as_str(),
                signal.kind().as_str(),
                signal.role().as_str(),
                signal.invocation().map(|id| id.as_str()),
                signal.attempt().map(|id| id.as_str()),
                signal.operation().map(|id| id.as_str()),
                signal.subject().map(|subject| subject.kind()),
                signal.subject().map(|subject| subject.id()),
                signal.payload().shape().name(),
                signal.payload().shape().version(),
                signal.occurred_at().as_micros(),
                wire.len() as i64,
                &*wire,
            ];
            insert.execute(row).expect("the row is new");
        }
        self.connection.execute_batch("COMMIT").expect("the disk takes it");
    }
}
