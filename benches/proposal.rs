//! What does a proposal through the authorization actor cost beside a raw actor call around the same chain? (microseconds, one proposal at a time)
//!
//! Both sides judge the same 256-byte call with the same compiled plan of allow-only interceptors and compute its digest once. The raw side is an
//! actor of the substrate that runs the chain in its handler and answers through the substrate's reply port: no bound, no deadline, no permit, no
//! identities, no record. Each sample takes both in turns, and only the ratio counts. The reach is 1.5 for five interceptors without an audit (spec 9);
//! the rows with an audit show what two facts per proposal add.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};
use serde_json::json;
use tipstaff::clock::Deadline;
use tipstaff::declare::{CallableRef, Digest};
use tipstaff::interception::{ChainOutcome, Decision, Judged, Registration};
use tipstaff::operation::{ActionExecutor, AuditMode, OwnerPlan, ToolCall, stage};
use tipstaff::state::{Durability, MemoryStore, SqliteOptions, SqliteStore};
use tipstaff::{Runtime, RuntimeBuilder, Session, action_plan};

/// What stands behind the session of a row.
#[derive(Debug, Clone, Copy)]
enum Record {
    Off,
    Memory,
    Sqlite,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    record: Record,
    interceptors: usize,
    workers: usize,
}

const ROWS: [Row; 6] = [
    Row { record: Record::Off, interceptors: 1, workers: 1 },
    Row { record: Record::Off, interceptors: 5, workers: 1 },
    Row { record: Record::Off, interceptors: 10, workers: 1 },
    Row { record: Record::Off, interceptors: 5, workers: 2 },
    Row { record: Record::Memory, interceptors: 5, workers: 1 },
    Row { record: Record::Sqlite, interceptors: 5, workers: 1 },
];

/// Proposals in a row before the other side has its turn.
const TURN: u64 = 64;

fn main() {
    let measured = RefCell::new(Vec::<(Row, Duration, Duration, u64)>::new());
    let mut criterion = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(4)).configure_from_args();
    let mut group = criterion.benchmark_group("proposal");
    for row in ROWS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tokio = tokio(row.workers);
        let sides = tokio.block_on(Sides::new(row, folder.path()));
        let name = format!("{:?}/{}", row.record, row.workers).to_lowercase();
        let mut sum = (Duration::ZERO, Duration::ZERO, 0);
        group.bench_function(BenchmarkId::new(name, row.interceptors), |bencher| {
            bencher.iter_custom(|rounds| {
                let sides = sides.clone();
                let turns = rounds.div_ceil(TURN);
                let (ours, raw) = tokio.block_on(on_a_worker(row.workers, async move {
                    let (mut ours, mut raw) = (Duration::ZERO, Duration::ZERO);
                    for _ in 0..turns {
                        ours += timed(&sides, async |sides| sides.propose().await).await;
                        raw += timed(&sides, async |sides| sides.ask().await).await;
                    }
                    (ours, raw)
                }));
                (sum.0, sum.1, sum.2) = (sum.0 + ours, sum.1 + raw, sum.2 + turns * TURN);
                ours.mul_f64(rounds as f64 / (turns * TURN) as f64)
            });
        });
        measured.borrow_mut().push((row, sum.0, sum.1, sum.2));
        let runtime = sides.runtime.clone();
        tokio.block_on(async move { runtime.shutdown(Deadline::after(Duration::from_secs(30))).await }).expect("it ends");
    }
    group.finish();
    criterion.final_summary();
    print_table(&measured.into_inner());
}

/// One caller beside the actors: on their thread, or on one of their threads, so that no side pays for waking a parked thread of `main`.
async fn on_a_worker<T: Send + 'static>(workers: usize, work: impl Future<Output = T> + Send + 'static) -> T {
    if workers == 1 {
        return work.await;
    }
    let mut set = tokio::task::JoinSet::new();
    set.spawn(work);
    set.join_next().await.expect("one was spawned").expect("it does not panic")
}

async fn timed(sides: &Sides, one: impl AsyncFn(&Sides)) -> Duration {
    let begun = Instant::now();
    for _ in 0..TURN {
        one(sides).await;
    }
    begun.elapsed()
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print_table(measured: &[(Row, Duration, Duration, u64)]) {
    println!(
        "\n{:<10} {:>7} {:>12} {:>12} {:>12} {:>8}  reach",
        "record", "threads", "interceptors", "proposal us", "raw us", "ratio"
    );
    for (row, ours, raw, count) in measured.iter().filter(|(.., count)| *count > 0) {
        let (ours, raw) = (ours.as_secs_f64() * 1e6 / *count as f64, raw.as_secs_f64() * 1e6 / *count as f64);
        let reach = if matches!(row.record, Record::Off) { "<= 1.50x" } else { "-" };
        let record = format!("{:?}", row.record).to_lowercase();
        println!(
            "{record:<10} {:>7} {:>12} {ours:>12.2} {raw:>12.2} {:>7.2}x  {reach}",
            row.workers,
            row.interceptors,
            ours / raw
        );
    }
}

fn tokio(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = match workers {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(workers).enable_all().build().expect("the system gives threads")
}

/// Both sides, ready.
#[derive(Clone)]
struct Sides {
    runtime: Runtime,
    session: Session,
    raw: ActorRef<Ask>,
    call: ToolCall,
}

impl Sides {
    async fn new(row: Row, folder: &std::path::Path) -> Self {
        let plan = plan(row.interceptors);
        let (raw, _task) = Actor::spawn(None, Raw, plan.clone()).await.expect("an actor starts");
        let (builder, audit) = match row.record {
            Record::Off => (Runtime::builder(), AuditMode::Off),
            Record::Memory => (Runtime::builder().store(MemoryStore::default()), AuditMode::Required),
            Record::Sqlite => (sqlite(folder), AuditMode::Required),
        };
        let runtime = builder.actions(plan).spawn().await.expect("it starts");
        let session = runtime.session(tipstaff::id::SessionId::generate()).audit(audit).open().await.expect("it opens");
        let call = ToolCall::new("bash", json!({ "command": "x".repeat(220) }));
        Self { runtime, session, raw, call }
    }

    async fn propose(&self) {
        let answer = self.session.perform(self.call.clone(), async |_granted| Ok::<_, std::io::Error>(json!(null))).await;
        assert!(answer.result().is_some());
    }

    async fn ask(&self) {
        let context = Arc::new(self.call.clone());
        let digest = context.digest().expect("it is JSON");
        let outcome = call!(self.raw, Ask::Rule, context, digest).expect("the actor lives");
        let ChainOutcome::Permitted(permitted) = outcome else { unreachable!("the plan allows") };
        let result = async move { Ok::<_, std::io::Error>((permitted, json!(null))) }.await;
        assert!(result.is_ok());
    }
}

fn sqlite(folder: &std::path::Path) -> RuntimeBuilder {
    let options = SqliteOptions::default().durability(Durability::ProcessCrash);
    Runtime::builder().store(SqliteStore::open_with(folder.join("journal.db"), options).expect("an empty place"))
}

fn plan(interceptors: usize) -> OwnerPlan<ActionExecutor> {
    let allows = |n: usize| {
        let by = CallableRef::new(format!("bench::allow_{n}@1")).expect("a reference");
        Registration::decide(format!("allow_{n}"), stage::ACTION_POLICY, by, |_: &ToolCall, _turn| Decision::proceed())
    };
    (0..interceptors).fold(action_plan("bench"), |plan, n| plan.register(allows(n))).build().expect("the plan builds")
}

enum Ask {
    Rule(Arc<ToolCall>, Digest, RpcReplyPort<ChainOutcome<ToolCall>>),
}

/// The substrate: an actor that runs the chain in its handler.
struct Raw;

#[ractor::actor(message = Ask, state = OwnerPlan<ActionExecutor>, arguments = OwnerPlan<ActionExecutor>)]
impl Raw {
    async fn pre_start(
        &self,
        _: ActorRef<Ask>,
        plan: OwnerPlan<ActionExecutor>,
    ) -> Result<OwnerPlan<ActionExecutor>, ActorProcessingErr> {
        Ok(plan)
    }

    async fn handle(&self, _: ActorRef<Ask>, ask: Ask, plan: &mut OwnerPlan<ActionExecutor>) -> Result<(), ActorProcessingErr> {
        let Ask::Rule(context, digest, reply) = ask;
        let mut report = plan.report();
        let outcome = plan.apply_identified(context, digest, Deadline::after(Duration::from_secs(60)), &mut report).await;
        Ok(reply.send(outcome)?)
    }
}
