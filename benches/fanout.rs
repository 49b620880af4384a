//! How long does one emission to 1, 10 and 100 in-process subscribers take (nanoseconds), against a plain loop over `Arc<dyn Fn>` for
//! sync handlers and `join_all` over boxed futures for async ones?
//!
//! Both sides do the same work in each handler: one atomic addition, or, as a metrics subscriber does, one count by kind in a map behind a
//! lock. The emission also takes a snapshot, keeps a deadline, catches panics, measures time and makes the report.
//! Run with `cargo bench --bench fanout`; the table comes last.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use criterion::Criterion;
use futures::future::join_all;
use tipstaff_core::clock::Timestamp;
use tipstaff_core::dispatch::{Dispatcher, Subscriber};
use tipstaff_core::id::SessionId;
use tipstaff_core::signal::{LifecycleKind, Signal, SignalKind};
use tokio::runtime::Runtime;
use tokio::task::yield_now;

const SIZES: [usize; 3] = [1, 10, 100];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(30)
        .configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let shapes = [Shape::Sync, Shape::SyncCounts, Shape::AsyncReady, Shape::AsyncWaits];
    let rows: Vec<_> =
        shapes.iter().flat_map(|&shape| SIZES.map(|size| (shape, size, row(&mut criterion, &runtime, shape, size)))).collect();
    criterion.final_summary();
    print(&rows);
}

#[derive(Clone, Copy)]
enum Shape {
    /// A sync handler that adds.
    Sync,
    /// A sync handler that counts by kind.
    SyncCounts,
    /// An async handler that ends at its first poll.
    AsyncReady,
    /// An async handler that is polled twice.
    AsyncWaits,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync, adds",
            Self::SyncCounts => "sync, counts by kind",
            Self::AsyncReady => "async, ready at once",
            Self::AsyncWaits => "async, waits once",
        }
    }
}

/// Medians of one emission and of its baseline.
struct Pair {
    emission: f64,
    baseline: f64,
}

fn row(criterion: &mut Criterion, runtime: &Runtime, shape: Shape, size: usize) -> Pair {
    let session = SessionId::new("bench").expect("a fine name");
    let fact = Arc::new(Signal::builder(session, LifecycleKind::NodeCompleted, Timestamp::from_micros(1)).build());
    let work = Arc::new(Work::default());
    let id = |side: &str| format!("{}/{size}/{side}", shape.name());
    let baseline = match shape {
        Shape::Sync | Shape::SyncCounts => {
            let handlers: Vec<SyncHandler> = (0..size).map(|_| sync_handler(&work, shape)).collect();
            measure(criterion, &id("plain loop"), |times| {
                runtime.block_on(async {
                    for _ in 0..times {
                        handlers.iter().for_each(|handler| handler(black_box(&fact)));
                    }
                });
            })
        }
        Shape::AsyncReady | Shape::AsyncWaits => {
            let handlers: Vec<AsyncHandler> = (0..size).map(|_| async_handler(&work, shape)).collect();
            measure(criterion, &id("join_all"), |times| {
                runtime.block_on(async {
                    for _ in 0..times {
                        join_all(handlers.iter().map(|handler| handler(Arc::clone(black_box(&fact))))).await;
                    }
                });
            })
        }
    };
    let registry = registry(&work, shape, size);
    let emission = measure(criterion, &id("emission"), |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let _report = black_box(registry.emit(black_box(&fact)).await);
            }
        });
    });
    Pair { emission, baseline }
}

type AsyncHandler = Arc<dyn Fn(Arc<Signal>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

type SyncHandler = Arc<dyn Fn(&Arc<Signal>) + Send + Sync>;

#[derive(Default)]
struct Work {
    sum: AtomicU64,
    counts: Mutex<BTreeMap<SignalKind, u64>>,
}

impl Work {
    fn add(&self, fact: &Signal) {
        self.sum.fetch_add(fact.occurred_at().as_micros().unsigned_abs(), Ordering::Relaxed);
    }

    fn count(&self, fact: &Signal) {
        let mut counts = self.counts.lock().expect("nobody panics with it");
        match counts.get_mut(fact.kind()) {
            Some(count) => *count += 1,
            None => drop(counts.insert(fact.kind().clone(), 1)),
        }
    }
}

async fn wait(shape: Shape) {
    if matches!(shape, Shape::AsyncWaits) {
        yield_now().await;
    }
}

fn sync_handler(work: &Arc<Work>, shape: Shape) -> SyncHandler {
    let work = Arc::clone(work);
    match shape {
        Shape::SyncCounts => Arc::new(move |fact| work.count(fact)),
        Shape::Sync | Shape::AsyncReady | Shape::AsyncWaits => Arc::new(move |fact| work.add(fact)),
    }
}

fn async_handler(work: &Arc<Work>, shape: Shape) -> AsyncHandler {
    let work = Arc::clone(work);
    Arc::new(move |fact| {
        let work = Arc::clone(&work);
        Box::pin(async move {
            wait(shape).await;
            work.add(&fact);
        })
    })
}

fn registry(work: &Arc<Work>, shape: Shape, size: usize) -> Dispatcher<Signal> {
    let registry = Dispatcher::observation();
    for at in 0..size {
        let work = Arc::clone(work);
        let name = format!("subscriber {at}");
        let subscriber = match shape {
            Shape::Sync => Subscriber::declared_sync(name, move |fact: &Arc<Signal>| work.add(fact)),
            Shape::SyncCounts => Subscriber::declared_sync(name, move |fact: &Arc<Signal>| work.count(fact)),
            Shape::AsyncReady | Shape::AsyncWaits => Subscriber::declared_async(name, move |fact: Arc<Signal>| {
                let work = Arc::clone(&work);
                async move {
                    wait(shape).await;
                    work.add(&fact);
                }
            }),
        };
        let _ = registry.register(subscriber).expect("unique names");
    }
    registry
}

/// The median time of one emission, in nanoseconds, over slices of about fifty microseconds, which a busy machine rarely interrupts; not a
/// number if a filter left this benchmark out.
fn measure(criterion: &mut Criterion, id: &str, run: impl Fn(u64)) -> f64 {
    const SLICE: Duration = Duration::from_micros(50);
    let timed = |times: u64| {
        let begun = Instant::now();
        run(times);
        begun.elapsed()
    };
    let slices = RefCell::new(Vec::new());
    criterion.bench_function(id, |bencher| {
        let once = timed(256).max(Duration::from_nanos(256)) / 256;
        let slice = u64::try_from(SLICE.as_nanos() / once.as_nanos().max(1)).unwrap_or(1).max(1);
        bencher.iter_custom(|times| {
            let mut slices = slices.borrow_mut();
            let (mut left, mut elapsed) = (times, Duration::ZERO);
            while left > 0 {
                let taken = left.min(slice);
                let took = timed(taken);
                if taken == slice {
                    slices.push(took.as_nanos() as f64 / taken as f64);
                }
                left -= taken;
                elapsed += took;
            }
            elapsed
        });
    });
    let mut slices = slices.into_inner();
    slices.sort_by(f64::total_cmp);
    slices.get(slices.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print(rows: &[(Shape, usize, Pair)]) {
    println!("\n| handlers | subscribers | baseline, ns | emission, ns | ratio | per added subscriber, ns |");
    println!("|---|---:|---:|---:|---:|---:|");
    let mut smaller: Option<(usize, f64)> = None;
    for (shape, size, Pair { emission, baseline }) in rows {
        let growth = match smaller {
            Some((less, time)) if less < *size => format!("{:.1}", (emission - time) / (size - less) as f64),
            Some(_) | None => "-".to_owned(),
        };
        let ratio = emission / baseline;
        println!("| {} | {size} | {baseline:.0} | {emission:.0} | {ratio:.2} | {growth} |", shape.name());
        smaller = Some((*size, *emission));
    }
}
