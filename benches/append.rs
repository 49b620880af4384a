//! How many confirmed appends per second does one writer commit, by rows per commit, against raw inserts on the same disk? (rows/s, `synchronous = FULL`)
//!
//! The disk's own flush rate drifts by a factor of ten within minutes, so short blocks of the journal and of the raw substrate take turns, and only
//! the ratio counts. One of them is open at a time, because SQLite's connections of one process share a page cache and would evict each other's
//! pages. The substrate is a prepared insert of the same row into the same table in an open loop: no counters, no idempotency, no attempts, no
//! answers. The reach is 0.8 (spec 9).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use rusqlite::{Connection, Statement, params};
use serde_json::json;
use tipstaff_core::clock::Timestamp;
use tipstaff_core::id::{AttemptId, OperationId, SessionId};
use tipstaff_core::signal::{LifecycleKind, Payload, PayloadType, Signal, SignalKind};
use tipstaff_core::state::{Here, JournalWrite, SqliteStore, Store};

const SIZES: [usize; 4] = [1, 64, 256, 1024];
/// Groups between two turns.
const BLOCK: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// Facts of a kind of a user's own.
    Facts,
    /// Proposals and their closing facts, in turns: two tables each.
    Operations,
}

/// Sums over all samples of one line of the table.
#[derive(Default)]
struct Sum {
    journal: Duration,
    raw: Duration,
    rows: u64,
}

fn main() {
    let measured = RefCell::new(BTreeMap::<(Load, usize), Sum>::new());
    let mut criterion = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(6)).configure_from_args();
    for load in [Load::Facts, Load::Operations] {
        let mut group = criterion.benchmark_group(format!("append/{load:?}").to_lowercase());
        for size in SIZES {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (journal, raw) = (folder.path().join("journal.db"), folder.path().join("raw.db"));
            let mut seq = 0;
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut sum = Sum::default();
                    for begun in (0..rounds).step_by(BLOCK) {
                        let block = (rounds - begun).min(BLOCK as u64) as usize;
                        if (begun / BLOCK as u64).is_multiple_of(2) {
                            sum.journal += Journal::block(&journal, load, size, block);
                            sum.raw += Raw::block(&raw, &mut seq, load, size, block);
                        } else {
                            sum.raw += Raw::block(&raw, &mut seq, load, size, block);
                            sum.journal += Journal::block(&journal, load, size, block);
                        }
                    }
                    let mut measured = measured.borrow_mut();
                    let total = measured.entry((load, size)).or_default();
                    total.journal += sum.journal;
                    total.raw += sum.raw;
                    total.rows += rounds * size as u64;
                    sum.journal
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
    print_table(&measured.into_inner());
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print_table(measured: &BTreeMap<(Load, usize), Sum>) {
    println!("\n{:<12} {:>14} {:>16} {:>16} {:>8}  reach", "load", "rows/commit", "journal rows/s", "raw rows/s", "ratio");
    for ((load, size), sum) in measured {
        let (mine, raw) = (sum.rows as f64 / sum.journal.as_secs_f64(), sum.rows as f64 / sum.raw.as_secs_f64());
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

/// Runs an append for each group, and counts its time only. The groups are made beforehand, as emitters make them on their own threads.
fn timed(load: Load, size: usize, block: usize, mut append: impl FnMut(&[JournalWrite])) -> Duration {
    let groups: Vec<_> = (0..block).map(|_| load.group(size)).collect();
    let begun = Instant::now();
    groups.iter().for_each(|group| append(group));
    begun.elapsed()
}

/// The journal as a runtime opens it.
struct Journal;

impl Journal {
    fn block(path: &Path, load: Load, size: usize, block: usize) -> Duration {
        let store = SqliteStore::open(path).expect("our own file");
        let mut writer = store.open_writer(&Here::read().instance("bench")).expect("nobody else writes");
        timed(load, size, block, |group| {
            let answers = writer.commit(group).expect("the disk takes it");
            assert!(answers.iter().all(Result::is_ok));
        })
    }
}

/// The substrate: the journal's main table, its settings, and nothing else of it.
struct Raw;

impl Raw {
    fn block(path: &Path, seq: &mut i64, load: Load, size: usize, block: usize) -> Duration {
        drop(SqliteStore::open(path).expect("our own file"));
        let connection = Connection::open(path).expect("the file is there");
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -8192").expect("settings of SQLite");
        let insert = "INSERT INTO signals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let mut insert = connection.prepare(insert).expect("the table is there");
        timed(load, size, block, |group| {
            connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
            for write in group {
                let JournalWrite::Append(signal) = write else { unreachable!("the loads have facts only") };
                *seq += 1;
                insert_raw(&mut insert, *seq, signal);
            }
            connection.execute_batch("COMMIT").expect("the disk takes it");
        })
    }
}

fn insert_raw(insert: &mut Statement<'_>, seq: i64, signal: &Signal) {
    let wire = signal.payload().wire();
    let row = params![
        1,
        seq,
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
