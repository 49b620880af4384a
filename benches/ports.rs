//! What does a message through a bounded port cost, against a raw ractor cast in the same run? (ns per message; p50 of a round trip; ratios)
//!
//! `cargo bench --bench ports`, or `-- --quick`. Criterion measures each side by itself; the table at the end interleaves the two sides and
//! gives the median of the pairwise ratios, and the ratio of the best repeats, which other work on the machine disturbs least. The raw
//! mailbox is unbounded and pays for its whole backlog: that a bound can be cheaper than none is part of the answer. A call through a port
//! always has a deadline, so it stands against a raw call without a timeout and against one with it.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tipstaff::clock::Deadline;
use tipstaff::port::{Context, Handler, HandlerError, Overflow, Port, PortSpec, Reply, spawn};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const CAPACITY: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
const SIZES: [u64; 3] = [5_000, 20_000, 80_000];
const CALLS: [u64; 3] = [500, 2_000, 8_000];

enum Message {
    Count,
    Last,
    Echo(u64, Reply<u64>),
}

/// The owner does almost nothing, so that only the way to it is measured.
struct Counter(mpsc::UnboundedSender<()>);

impl Handler for Counter {
    type Message = Message;

    async fn handle(&mut self, message: Message, _context: &Context<Message>) -> Result<(), HandlerError> {
        match message {
            Message::Count => {}
            Message::Last => self.0.send(()).expect("the bench listens"),
            Message::Echo(number, reply) => reply.send(number).expect("the bench waits"),
        }
        Ok(())
    }
}

enum Raw {
    Count,
    Last,
    Echo(u64, ractor::RpcReplyPort<u64>),
}

struct RawCounter;

#[ractor::actor(message = Raw, state = mpsc::UnboundedSender<()>, arguments = mpsc::UnboundedSender<()>)]
impl RawCounter {
    async fn pre_start(
        &self,
        _myself: ActorRef<Raw>,
        done: mpsc::UnboundedSender<()>,
    ) -> Result<mpsc::UnboundedSender<()>, ActorProcessingErr> {
        Ok(done)
    }

    async fn handle(
        &self,
        _myself: ActorRef<Raw>,
        message: Raw,
        done: &mut mpsc::UnboundedSender<()>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Raw::Count => {}
            Raw::Last => done.send(())?,
            Raw::Echo(number, reply) => reply.send(number)?,
        }
        Ok(())
    }
}

/// Runs a measurement on one of the runtime's own workers, as a caller in a program would be.
fn on_worker<T: Send + 'static>(runtime: &Runtime, measure: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(async {
        let mut worker = JoinSet::new();
        worker.spawn(measure);
        worker.join_next().await.expect("one task was spawned").expect("a measurement does not panic")
    })
}

fn port_sends(runtime: &Runtime, producers: u64, messages: u64) -> Duration {
    on_worker(runtime, async move {
        let (port, mailbox) = PortSpec::new("bench", CAPACITY, Overflow::Wait).open();
        let (done, mut all) = mpsc::unbounded_channel();
        let owner = spawn(&mailbox, Counter(done)).await.expect("the owner starts");
        let deadline = Deadline::after(Duration::from_secs(60));
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..producers {
            let port: Port<Message> = port.clone();
            tasks.spawn(async move {
                for _ in 1..messages / producers {
                    port.send(Message::Count, deadline).await.expect("accepted");
                }
                port.send(Message::Last, deadline).await.expect("accepted");
            });
        }
        for _ in 0..producers {
            all.recv().await;
        }
        let took = began.elapsed();
        owner.stop(deadline).await;
        took
    })
}

fn raw_casts(runtime: &Runtime, producers: u64, messages: u64) -> Duration {
    on_worker(runtime, async move {
        let (done, mut all) = mpsc::unbounded_channel();
        let (actor, join) = Actor::spawn(None, RawCounter, done).await.expect("the actor starts");
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..producers {
            let actor = actor.clone();
            tasks.spawn(async move {
                for _ in 1..messages / producers {
                    actor.cast(Raw::Count).expect("accepted");
                }
                actor.cast(Raw::Last).expect("accepted");
            });
        }
        for _ in 0..producers {
            all.recv().await;
        }
        let took = began.elapsed();
        actor.stop(None);
        join.await.expect("the actor ends");
        took
    })
}

/// Each round trip's time, sorted.
fn port_calls(runtime: &Runtime, calls: u64) -> Vec<Duration> {
    on_worker(runtime, async move {
        let (port, mailbox) = PortSpec::new("bench", CAPACITY, Overflow::Wait).open();
        let (done, _all) = mpsc::unbounded_channel();
        let owner = spawn(&mailbox, Counter(done)).await.expect("the owner starts");
        let deadline = Deadline::after(Duration::from_secs(60));
        let mut times = Vec::new();
        for number in 0..calls {
            let began = Instant::now();
            let echo = port.call(deadline, |reply| Message::Echo(number, reply)).await.expect("answered");
            times.push(began.elapsed());
            assert_eq!(echo, number);
        }
        owner.stop(deadline).await;
        times.sort_unstable();
        times
    })
}

/// Each round trip's time, sorted; with a timeout, as a port's call has one, or without.
fn raw_calls(runtime: &Runtime, calls: u64, timeout: Option<Duration>) -> Vec<Duration> {
    on_worker(runtime, async move {
        let (done, _all) = mpsc::unbounded_channel();
        let (actor, join) = Actor::spawn(None, RawCounter, done).await.expect("the actor starts");
        let mut times = Vec::new();
        for number in 0..calls {
            let began = Instant::now();
            let echo = actor.call(|reply| Raw::Echo(number, reply), timeout).await.expect("sent");
            times.push(began.elapsed());
            assert_eq!(echo.expect("answered"), number);
        }
        actor.stop(None);
        join.await.expect("the actor ends");
        times.sort_unstable();
        times
    })
}

fn p50(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

/// Criterion's view; of the middle size only when it is asked to be quick.
fn statistics(criterion: &mut Criterion, runtime: &Runtime, quick: bool) {
    let chosen = if quick { 1..2 } else { 0..3 };
    let mut group = criterion.benchmark_group("port");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    for producers in [1, 4] {
        for &messages in &SIZES[chosen.clone()] {
            group.throughput(Throughput::Elements(messages));
            let name = |side: &str| BenchmarkId::new(format!("{side}, {producers} producers"), messages);
            group.bench_function(name("send"), |bencher| {
                bencher.iter_custom(|runs| (0..runs).map(|_| port_sends(runtime, producers, messages)).sum());
            });
            group.bench_function(name("raw cast"), |bencher| {
                bencher.iter_custom(|runs| (0..runs).map(|_| raw_casts(runtime, producers, messages)).sum());
            });
        }
    }
    for &calls in &CALLS[chosen] {
        group.throughput(Throughput::Elements(calls));
        group.bench_function(BenchmarkId::new("call", calls), |bencher| {
            bencher.iter_custom(|runs| (0..runs).map(|_| port_calls(runtime, calls).iter().sum::<Duration>()).sum());
        });
        group.bench_function(BenchmarkId::new("raw call", calls), |bencher| {
            bencher.iter_custom(|runs| (0..runs).map(|_| raw_calls(runtime, calls, None).iter().sum::<Duration>()).sum());
        });
    }
    group.finish();
}

/// Nanoseconds per unit of both sides, the median of the pairwise ratios, and the ratio of the best repeats, from interleaved repeats.
fn compare(repeats: usize, units: u64, mut ours: impl FnMut() -> Duration, mut raw: impl FnMut() -> Duration) -> [f64; 4] {
    ours();
    raw();
    let pairs: Vec<_> = (0..repeats).map(|_| (ours().as_secs_f64(), raw().as_secs_f64())).collect();
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<_> = pairs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let per_unit = 1e9 / units as f64;
    let best = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).fold(f64::INFINITY, f64::min);
    let ours = median(|pair| pair.0) * per_unit;
    let raw = median(|pair| pair.1) * per_unit;
    [ours, raw, median(|pair| pair.0 / pair.1), best(|pair| pair.0) / best(|pair| pair.1)]
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn table(runtime: &Runtime, repeats: usize) {
    let minute = Some(Duration::from_secs(60));
    println!("{:<44} {:>8} {:>10} {:>10} {:>7} {:>7}  reach", "what", "size", "port ns", "raw ns", "ratio", "best");
    let line = |what: &str, size: u64, [port, raw, ratio, best]: [f64; 4], reach: &str| {
        println!("{what:<44} {size:>8} {port:>10.0} {raw:>10.0} {ratio:>6.2}x {best:>6.2}x  {reach}");
    };
    for producers in [1, 4] {
        for size in SIZES {
            let measured =
                compare(repeats, size, || port_sends(runtime, producers, size), || raw_casts(runtime, producers, size));
            line(&format!("message, {producers} producer(s), against raw cast"), size, measured, "<= 0.35x");
        }
    }
    for size in CALLS {
        let measured = compare(repeats, 1, || p50(&port_calls(runtime, size)), || p50(&raw_calls(runtime, size, None)));
        line("call p50, against raw call without timeout", size, measured, "<= 1.3x");
    }
    for size in CALLS {
        let measured = compare(repeats, 1, || p50(&port_calls(runtime, size)), || p50(&raw_calls(runtime, size, minute)));
        line("call p50, against raw call with timeout", size, measured, "");
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let said = |word: &str| std::env::args().any(|argument| argument == word);
    let mut criterion = Criterion::default().configure_from_args();
    statistics(&mut criterion, &runtime, said("--quick"));
    criterion.final_summary();
    if said("--bench") && !said("--list") {
        table(&runtime, if said("--quick") { 3 } else { 9 });
    }
}
