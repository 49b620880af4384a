//! What does one emission under each named profile cost at 1, 10 and 100 subscribers (nanoseconds), against a plain loop over the same handlers and
//! against `join_all` over the same futures (a sync handler's is ready when it was called), and what does each further subscriber add?
//!
//! The handlers do nothing and the baselines box nothing (`join_all` itself allocates for each of more than thirty futures), so a ratio here is the most
//! that it can be: it sets the snapshot, the turns, the nets under panics, the box of each future and the report against an indirect call. `fanout` asks
//! the same of `observation` with handlers that do a little work.
//! A profile with a synchronous entry is emitted as its owner does, preflight included, and takes no async handlers.
//!
//! # What do the rows of sync handlers on threads say?
//! The terminal profiles hand each sync handler to a thread and wait for its answer. What is timed there is the machine's scheduler, by the number of its
//! cores and by what else runs; no baseline does that work. These rows show the size and that it grows linearly, no more.
//!
//! Run with `cargo bench --bench profiles`; the table comes last. The sides of a row take turns, so that a busy machine slows down all alike.

use std::future::{Ready, ready};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use futures::future::join_all;
use tipstaff_core::dispatch::profile::{self, compat};
use tipstaff_core::dispatch::{DispatchError, DispatchPolicy, DispatchReport, Dispatcher, OFFLOAD_THREADS, Refusal, Subscriber};
use tokio::runtime::Runtime;

const SIZES: [usize; 3] = [1, 10, 100];

type Profile = (&'static str, fn() -> DispatchPolicy);

const PROFILES: [Profile; 8] = [
    ("observation", profile::observation),
    ("terminal_registry", profile::terminal_registry),
    ("scheduler", compat::scheduler),
    ("terminal_callback", compat::terminal_callback),
    ("session_observer", compat::session_observer),
    ("broadcaster", compat::broadcaster),
    ("message_added_sync", compat::message_added_sync),
    ("message_added_async", compat::message_added_async),
];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut rows = Vec::new();
    for (profile, policy) in PROFILES {
        let mut group = criterion.benchmark_group(profile);
        for declared in [Declared::Sync, Declared::Async] {
            for size in SIZES {
                let Some(emitter) = Emitter::new(policy(), declared, size) else { continue };
                let sides = Sides { runtime: &runtime, emitter, plain: Plain::new(declared, size), fact: Arc::new(7) };
                group.bench_function(BenchmarkId::new(declared.name(), size), |bencher| {
                    bencher.iter_custom(|times| sides.time(Side::Emission, times));
                });
                rows.push(Row { profile, declared, size, nanos: sides.in_turns() });
            }
        }
        group.finish();
    }
    criterion.final_summary();
    print(&rows);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Sync,
    Async,
}

impl Declared {
    const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
        }
    }
}

type Fact = Arc<u64>;
type Called = Arc<dyn Fn(&Fact)>;
type Awaited = Arc<dyn Fn(Fact) -> Ready<()>>;

fn called(fact: &Fact) {
    black_box(fact);
}

fn awaited(fact: Fact) -> Ready<()> {
    black_box(fact);
    ready(())
}

/// The handlers without a dispatcher.
enum Plain {
    Sync(Vec<Called>),
    Async(Vec<Awaited>),
}

impl Plain {
    fn new(declared: Declared, size: usize) -> Self {
        match declared {
            Declared::Sync => Self::Sync((0..size).map(|_| Arc::new(called) as _).collect()),
            Declared::Async => Self::Async((0..size).map(|_| Arc::new(awaited) as _).collect()),
        }
    }

    async fn one_by_one(&self, fact: &Fact) {
        match self {
            Self::Sync(handlers) => handlers.iter().for_each(|handler| handler(fact)),
            Self::Async(handlers) => {
                for handler in handlers {
                    handler(Arc::clone(fact)).await;
                }
            }
        }
    }

    async fn joined(&self, fact: &Fact) {
        match self {
            Self::Sync(handlers) => drop(join_all(handlers.iter().map(|handler| async { handler(fact) })).await),
            Self::Async(handlers) => drop(join_all(handlers.iter().map(|handler| handler(Arc::clone(fact)))).await),
        }
    }
}

/// A dispatcher, and the way in that its policy has.
struct Emitter {
    dispatcher: Dispatcher<u64>,
    has_sync_entry: bool,
}

impl Emitter {
    /// `None`: the policy refuses such handlers.
    fn new(policy: DispatchPolicy, declared: Declared, size: usize) -> Option<Self> {
        // A thread is idle again a moment after its answer: with twice as many and some, none is ever refused.
        let threads = NonZeroUsize::new(2 * size).map_or(OFFLOAD_THREADS, |twice| twice.saturating_add(OFFLOAD_THREADS.get()));
        let dispatcher = Dispatcher::with_threads(policy, threads);
        for at in 0..size {
            let name = format!("subscriber {at}");
            let subscriber = match declared {
                Declared::Sync => Subscriber::declared_sync(name, called),
                Declared::Async => Subscriber::declared_async(name, awaited),
            };
            let _ = dispatcher.register(subscriber).expect("unique names");
        }
        let has_sync_entry = match dispatcher.preflight_sync() {
            Ok(_) => true,
            Err(Refusal::NoSyncEntry) => false,
            Err(Refusal::DeclaredAsync { .. }) => return None,
            Err(refusal) => panic!("nothing else is refused: {refusal}"),
        };
        Some(Self { dispatcher, has_sync_entry })
    }

    async fn emit(&self, fact: &Fact) -> Result<DispatchReport, DispatchError> {
        if self.has_sync_entry {
            let ready = self.dispatcher.preflight_sync()?;
            return self.dispatcher.emit_sync(fact, &ready);
        }
        self.dispatcher.emit(fact).await
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    PlainLoop,
    JoinAll,
    Emission,
}

const SIDES: [Side; 3] = [Side::PlainLoop, Side::JoinAll, Side::Emission];

/// What is compared in one row.
struct Sides<'a> {
    runtime: &'a Runtime,
    emitter: Emitter,
    plain: Plain,
    fact: Fact,
}

impl Sides<'_> {
    /// How long so many runs of one side take.
    fn time(&self, side: Side, times: u64) -> Duration {
        self.runtime.block_on(async {
            let (mut last, begun) = (None, Instant::now());
            for _ in 0..times {
                let fact = black_box(&self.fact);
                match side {
                    Side::PlainLoop => self.plain.one_by_one(fact).await,
                    Side::JoinAll => self.plain.joined(fact).await,
                    Side::Emission => last = Some(black_box(self.emitter.emit(fact).await)),
                }
            }
            let took = begun.elapsed();
            assert!(
                last.is_none_or(|ended| ended.is_ok_and(|report| report.all_returned())),
                "every handler was called and returned"
            );
            took
        })
    }

    /// Nanoseconds per run of each side: the median of rounds in which they take turns.
    fn in_turns(&self) -> [f64; SIDES.len()] {
        const ROUNDS: usize = 101;
        const TURN: Duration = Duration::from_micros(100);
        let times = SIDES.map(|side| {
            let once = (self.time(side, 16) / 16).max(Duration::from_nanos(1));
            u64::try_from(TURN.as_nanos() / once.as_nanos()).unwrap_or(1).max(1)
        });
        let mut nanos = SIDES.map(|_| Vec::with_capacity(ROUNDS));
        for _ in 0..ROUNDS {
            for ((side, times), nanos) in SIDES.into_iter().zip(times).zip(&mut nanos) {
                nanos.push(self.time(side, times).as_nanos() as f64 / times as f64);
            }
        }
        nanos.map(|mut nanos| {
            nanos.sort_by(f64::total_cmp);
            nanos[ROUNDS / 2]
        })
    }
}

struct Row {
    profile: &'static str,
    declared: Declared,
    size: usize,
    /// By side.
    nanos: [f64; SIDES.len()],
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print(rows: &[Row]) {
    println!(
        "\n| profile | handlers | subscribers | loop, ns | join_all, ns | emission, ns | by loop | by join_all | per added subscriber, ns |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut smaller: Option<(usize, f64)> = None;
    for Row { profile, declared, size, nanos: [plain, joined, emission] } in rows {
        let growth = match smaller {
            Some((less, time)) if less < *size => format!("{:.1}", (emission - time) / (size - less) as f64),
            Some(_) | None => "-".to_owned(),
        };
        let (handlers, by_plain, by_joined) = (declared.name(), emission / plain, emission / joined);
        println!(
            "| {profile} | {handlers} | {size} | {plain:.0} | {joined:.0} | {emission:.0} | {by_plain:.1} | {by_joined:.1} | {growth} |"
        );
        smaller = Some((*size, *emission));
    }
}
