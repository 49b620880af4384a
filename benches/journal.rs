//! How many confirmed facts per second does a runtime's journal take from concurrent emitters, against raw inserts in groups of the same size on the
//! same disk? (facts/s)
//!
//! Each emitter is a task that confirms one fact after the other through its session. The substrate is a prepared insert of the same row into the same
//! table, one transaction for as many rows as there are emitters, in an open loop on one thread: no queue, no task, no counters, no answers. Samples
//! are taken in turns, since a disk's own flush rate drifts, and only the ratio counts. The reach is 0.8 (spec 9).

use std::cell::RefCell;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use rusqlite::{Connection, params};
use serde_json::json;
use tipstaff::clock::Deadline;
use tipstaff::id::SessionId;
use tipstaff::operation::Audit;
use tipstaff::signal::{Payload, PayloadType, Signal, SignalKind};
use tipstaff::state::{Durability, SqliteOptions, SqliteStore};
use tipstaff::{Runtime, Session};
use tokio::task::JoinSet;

const EMITTERS: [usize; 3] = [1, 64, 256];
/// Facts of each emitter before the other side has its turn.
const EACH: usize = 8;

type Row = (Durability, usize, Duration, Duration, u64);

fn main() {
    let rows = RefCell::new(Vec::<Row>::new());
    let mut criterion = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(5)).configure_from_args();
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("the system gives threads");
    for durability in [Durability::PowerLoss, Durability::ProcessCrash] {
        let mut group = criterion.benchmark_group(format!("journal/{durability:?}").to_lowercase());
        for emitters in EMITTERS {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let runtime = tokio.block_on(runtime(&folder.path().join("journal.db"), durability));
            let session = tokio.block_on(runtime.session(SessionId::generate()).open()).expect("it opens");
            let mut raw = Raw::open(&folder.path().join("raw.db"), durability);
            let mut sum = (Duration::ZERO, Duration::ZERO, 0);
            group.throughput(Throughput::Elements((emitters * EACH) as u64));
            group.bench_function(BenchmarkId::from_parameter(emitters), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut ours = Duration::ZERO;
                    for round in 0..rounds {
                        if round % 2 == 0 {
                            ours += tokio.block_on(emit(&session, emitters));
                            sum.1 += raw.append(&session, emitters);
                        } else {
                            sum.1 += raw.append(&session, emitters);
                            ours += tokio.block_on(emit(&session, emitters));
                        }
                        sum.2 += (emitters * EACH) as u64;
                    }
                    sum.0 += ours;
                    ours
                });
            });
            rows.borrow_mut().push((durability, emitters, sum.0, sum.1, sum.2));
            tokio.block_on(runtime.shutdown(Deadline::after(Duration::from_secs(30)))).expect("it ends");
        }
        group.finish();
    }
    criterion.final_summary();
    print_table(&rows.into_inner());
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print_table(rows: &[Row]) {
    println!("\n{:<14} {:>9} {:>16} {:>14} {:>8}  reach", "durability", "emitters", "journal facts/s", "raw rows/s", "ratio");
    for (durability, emitters, ours, raw, count) in rows.iter().filter(|row| row.4 > 0) {
        let (ours, raw) = (*count as f64 / ours.as_secs_f64(), *count as f64 / raw.as_secs_f64());
        let durability = format!("{durability:?}").to_lowercase();
        println!("{durability:<14} {emitters:>9} {ours:>16.0} {raw:>14.0} {:>7.2}x  >= 0.80x", ours / raw);
    }
}

async fn runtime(path: &std::path::Path, durability: Durability) -> Runtime {
    let options = SqliteOptions::default().durability(durability);
    let store = SqliteStore::open_with(path, options).expect("an empty place");
    Runtime::builder().store(store).spawn().await.expect("it starts")
}

/// All emitters, each of which confirms its facts one after the other.
async fn emit(session: &Session, emitters: usize) -> Duration {
    let facts: Vec<Vec<Signal>> = (0..emitters).map(|_| (0..EACH).map(|n| fact(session, n)).collect()).collect();
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for facts in facts {
        let audit = session.audit();
        tasks.spawn(async move {
            for fact in facts {
                audit.confirm(fact, Deadline::after(Duration::from_secs(60))).await.expect("the disk takes it");
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("an emitter does not panic");
    }
    begun.elapsed()
}

fn fact(session: &Session, n: usize) -> Signal {
    let shape = PayloadType::new("bench.payload", 1).expect("a short name is a type");
    let payload = Payload::from_value(shape, json!({ "text": "x".repeat(280), "n": n }));
    let _made_by_the_emitter = payload.wire();
    session.signal(SignalKind::user("bench.fact").expect("the kind has a namespace")).payload(payload).build()
}

/// The substrate: the journal's main table, its settings, and nothing else of it.
struct Raw {
    connection: Connection,
    seq: i64,
}

impl Raw {
    fn open(path: &std::path::Path, durability: Durability) -> Self {
        drop(SqliteStore::open(path).expect("an empty place"));
        let connection = Connection::open(path).expect("the file is there");
        let synchronous = match durability {
            Durability::PowerLoss => "FULL",
            Durability::ProcessCrash => "NORMAL",
        };
        let settings = format!("PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -8192");
        connection.execute_batch(&settings).expect("settings of SQLite");
        Self { connection, seq: 0 }
    }

    /// As many facts as the emitters of one turn confirm, in groups of the emitters' number.
    fn append(&mut self, session: &Session, group: usize) -> Duration {
        let facts: Vec<Vec<Signal>> = (0..EACH).map(|n| (0..group).map(|_| fact(session, n)).collect()).collect();
        let begun = Instant::now();
        for group in &facts {
            self.append_group(group);
        }
        begun.elapsed()
    }

    fn append_group(&mut self, group: &[Signal]) {
        self.connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        let insert = "INSERT INTO signals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let mut insert = self.connection.prepare(insert).expect("the table is there");
        for signal in group {
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
