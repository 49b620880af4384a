//! What does an emission through a session's observer cost beside a plain loop over the same handlers, and what does an idle session weigh?
//! (microseconds per emission; KiB per session)
//!
//! `alone` waits for each emission's report: the whole way there and back. `in a row` submits 256 facts and waits for the last one's report: what an
//! emitter pays who does not wait for each. The plain side is a loop over `Arc<dyn Fn>`, or `join_all` over boxed futures, in the emitter's task:
//! no number, no journal, no bound, no isolation, no report. The difference is the fixed cost of the hop; it does not grow with the subscribers.

use std::cell::RefCell;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use futures::future::join_all;
use tipstaff::clock::Deadline;
use tipstaff::dispatch::Subscriber;
use tipstaff::id::SessionId;
use tipstaff::signal::{Signal, SignalKind};
use tipstaff::{Runtime, Session};

const SUBSCRIBERS: [usize; 3] = [1, 10, 100];
const IN_A_ROW: u64 = 256;
const SESSIONS: usize = 10_000;

type Plain = Arc<dyn Fn(&Arc<Signal>) + Send + Sync>;
type Awaited = Arc<dyn Fn(Arc<Signal>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The times of one row: alone, in a row, plain; and how many emissions of each.
#[derive(Clone, Copy)]
struct Row {
    is_async: bool,
    subscribers: usize,
    alone: Duration,
    in_a_row: Duration,
    plain: Duration,
    count: u64,
}

fn main() {
    let rows = RefCell::new(Vec::<Row>::new());
    let mut criterion = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(4)).configure_from_args();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    // First, before anything else has made the process grow.
    tokio.block_on(idle_sessions());
    let mut group = criterion.benchmark_group("emission");
    for is_async in [false, true] {
        for subscribers in SUBSCRIBERS {
            let sides = tokio.block_on(Sides::new(is_async, subscribers));
            let mut sum =
                Row { is_async, subscribers, alone: Duration::ZERO, in_a_row: Duration::ZERO, plain: Duration::ZERO, count: 0 };
            group.bench_function(BenchmarkId::new(if is_async { "async" } else { "sync" }, subscribers), |bencher| {
                bencher.iter_custom(|rounds| {
                    let turns = rounds.div_ceil(IN_A_ROW);
                    let before = sum.alone;
                    for _ in 0..turns {
                        tokio.block_on(sides.turn(&mut sum));
                    }
                    (sum.alone - before).mul_f64(rounds as f64 / (turns * IN_A_ROW) as f64)
                });
            });
            rows.borrow_mut().push(sum);
            tokio.block_on(sides.runtime.shutdown(Deadline::after(Duration::from_secs(30)))).expect("it ends");
        }
    }
    group.finish();
    criterion.final_summary();
    print_table(&rows.into_inner());
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print_table(rows: &[Row]) {
    println!(
        "\n{:<6} {:>11} {:>10} {:>13} {:>10} {:>14} {:>18}",
        "kind", "subscribers", "alone us", "in a row us", "plain us", "hop us, alone", "hop us, in a row"
    );
    for row in rows.iter().filter(|row| row.count > 0) {
        let us = |time: Duration| time.as_secs_f64() * 1e6 / row.count as f64;
        let (alone, in_a_row, plain) = (us(row.alone), us(row.in_a_row), us(row.plain));
        let kind = if row.is_async { "async" } else { "sync" };
        let (hop, hop_in_a_row) = (alone - plain, in_a_row - plain);
        println!(
            "{kind:<6} {:>11} {alone:>10.3} {in_a_row:>13.3} {plain:>10.3} {hop:>14.3} {hop_in_a_row:>18.3}",
            row.subscribers
        );
    }
}

/// What one idle session weighs, by the growth of the process over 10,000 of them. The reach is 12 KiB.
#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
async fn idle_sessions() {
    let runtime = Runtime::builder().spawn().await.expect("it starts");
    let open = async |n: usize| {
        let session = runtime.session(SessionId::new(format!("idle-{n}")).expect("an identity"));
        session.observe(Subscriber::declared_sync("one", |_: &Arc<Signal>| {})).open().await.expect("it opens")
    };
    let mut sessions = Vec::with_capacity(SESSIONS + 100);
    for n in 0..100 {
        sessions.push(open(n).await);
    }
    let (before, begun) = (resident_bytes(), Instant::now());
    for n in 0..SESSIONS {
        sessions.push(open(100 + n).await);
    }
    let each = begun.elapsed() / SESSIONS as u32;
    match (before, resident_bytes()) {
        (Some(before), Some(after)) => {
            let kib = (after.saturating_sub(before)) as f64 / 1024.0 / SESSIONS as f64;
            println!("idle session: {kib:.2} KiB each over {SESSIONS} (reach <= 12 KiB), opened in {each:?} each");
        }
        _ => println!("idle session: the system does not tell the size of the process"),
    }
    runtime.shutdown(Deadline::after(Duration::from_secs(60))).await.expect("it ends");
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

struct Sides {
    runtime: Runtime,
    session: Session,
    kind: SignalKind,
    plain: Vec<Plain>,
    awaited: Vec<Awaited>,
}

impl Sides {
    async fn new(is_async: bool, subscribers: usize) -> Self {
        let runtime = Runtime::builder().spawn().await.expect("it starts");
        let mut session = runtime.session(SessionId::generate());
        let (mut plain, mut awaited) = (Vec::<Plain>::new(), Vec::<Awaited>::new());
        let seen = Arc::new(AtomicU64::new(0));
        for n in 0..subscribers {
            let (ours, theirs) = (Arc::clone(&seen), Arc::clone(&seen));
            let name = format!("subscriber-{n}");
            if is_async {
                session = session.observe(Subscriber::declared_async(name, move |fact: Arc<Signal>| {
                    let seen = Arc::clone(&ours);
                    async move { count(&seen, &fact) }
                }));
                awaited.push(Arc::new(move |fact| {
                    let seen = Arc::clone(&theirs);
                    Box::pin(async move { count(&seen, &fact) })
                }));
            } else {
                session = session.observe(Subscriber::declared_sync(name, move |fact: &Arc<Signal>| count(&ours, fact)));
                plain.push(Arc::new(move |fact| count(&theirs, fact)));
            }
        }
        let session = session.open().await.expect("it opens");
        Self { runtime, session, kind: SignalKind::user("bench.fact").expect("a kind"), plain, awaited }
    }

    /// One turn of each side.
    async fn turn(&self, sum: &mut Row) {
        let fact = || self.session.signal(self.kind.clone()).build();
        let begun = Instant::now();
        for _ in 0..IN_A_ROW {
            black_box(self.session.emit(fact()).await.expect("it is seen"));
        }
        sum.alone += begun.elapsed();

        let begun = Instant::now();
        for _ in 1..IN_A_ROW {
            self.session.submit(fact()).expect("the session is open");
        }
        black_box(self.session.emit(fact()).await.expect("it is seen"));
        sum.in_a_row += begun.elapsed();

        let begun = Instant::now();
        for _ in 0..IN_A_ROW {
            let fact = Arc::new(fact());
            for handler in &self.plain {
                handler(&fact);
            }
            if !self.awaited.is_empty() {
                join_all(self.awaited.iter().map(|handler| handler(Arc::clone(&fact)))).await;
            }
        }
        sum.plain += begun.elapsed();
        sum.count += IN_A_ROW;
    }
}

fn count(seen: &AtomicU64, fact: &Signal) {
    black_box(fact);
    seen.fetch_add(1, Ordering::Relaxed);
}
