//! How many nanoseconds does one allow-only interceptor cost in a chain, against a plain loop of boxed async closures; and how many does the digest
//! of a judged value cost, against SHA-256 of its canonical bytes?
//!
//! `cargo bench --bench chain` (add `-- --quick` for a short run). Criterion's own statistics come first, then one table with the ratios and the
//! growth. All variants of a table run in one process; contexts, plans and reports are built outside the clock.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::{CallableRef, CanonicalError, Digest, canonical_json, digest_of};
use tipstaff_core::interception::{ChainOutcome, Decision, Judged, Plan, PlanBuilder, Registration, StageSpec};

const COUNTS: [usize; 4] = [1, 5, 10, 50];
const CALLABLE: CallableRef = CallableRef::from_static("bench::allow@1");

/// A context whose digest is known already: what is measured is the chain.
struct Known {
    value: Value,
    digest: Digest,
}

impl Judged for Known {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        Ok(self.digest)
    }
}

/// A tool call whose arguments hold one text of the given size.
fn call(bytes: usize) -> Value {
    json!({ "tool": "shell", "arguments": { "command": "x".repeat(bytes), "timeout_ms": 1000 }, "cwd": "/work" })
}

fn known() -> Arc<Known> {
    let value = call(256);
    let digest = digest_of(&value).expect("a tool call has a canonical form");
    Arc::new(Known { value, digest })
}

/// What the plain loop answers.
enum Verdict {
    Allow,
    Deny(String),
}

type Boxed = Box<dyn Fn(Arc<Known>) -> BoxFuture<'static, Verdict> + Send + Sync>;

fn allows(context: &Known) -> bool {
    black_box(&context.value)["tool"] != "rm"
}

fn plain_loop(count: usize) -> Vec<Boxed> {
    let one = |_| -> Boxed {
        Box::new(|context| {
            Box::pin(async move { if allows(&context) { Verdict::Allow } else { Verdict::Deny("no".to_owned()) } })
        })
    };
    (0..count).map(one).collect()
}

async fn run_plain_loop(closures: &[Boxed], context: &Arc<Known>) -> Result<(), String> {
    for closure in closures {
        match closure(Arc::clone(context)).await {
            Verdict::Allow => {}
            Verdict::Deny(reason) => return Err(reason),
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Closure,
    Future,
}

fn decision(context: &Known) -> Decision<Known> {
    if allows(context) { Decision::proceed() } else { Decision::stop() }
}

fn plan(count: usize, kind: Kind) -> Plan<Known> {
    let register = |builder: PlanBuilder<Known>, at: usize| {
        let name = format!("guard-{at}");
        builder.register(match kind {
            Kind::Closure => Registration::decide(name, "policy", CALLABLE, |context: &Known, _| decision(context)),
            Kind::Future => {
                Registration::decide_async(name, "policy", CALLABLE, |context: Arc<Known>, _| async move { decision(&context) })
            }
        })
    };
    let stages = [StageSpec::guard("policy"), StageSpec::own_step("perform")];
    (0..count).fold(PlanBuilder::new("bench", &stages), register).build().expect("the plan is well formed")
}

/// The median of what each variant took, in nanoseconds per iteration.
#[derive(Default)]
struct Table(RefCell<BTreeMap<String, Vec<f64>>>);

impl Table {
    fn measured(&self, variant: &str, iterations: u64, took: Duration) -> Duration {
        let mut samples = self.0.borrow_mut();
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
        samples.entry(variant.to_owned()).or_default().push(took.as_nanos() as f64 / iterations as f64);
        took
    }

    fn median(&self, variant: &str) -> Option<f64> {
        let samples = self.0.borrow();
        let mut samples = samples.get(variant)?.clone();
        samples.sort_by(f64::total_cmp);
        samples.get(samples.len() / 2).copied()
    }
}

fn chains(criterion: &mut Criterion, table: &Table) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let mut group = criterion.benchmark_group("chain");
    for count in COUNTS {
        let context = known();
        let closures = plain_loop(count);
        let variant = format!("loop/{count}");
        group.bench_function(BenchmarkId::new("loop", count), |bencher| {
            bencher.iter_custom(|iterations| {
                let took = runtime.block_on(async {
                    let start = Instant::now();
                    for _ in 0..iterations {
                        black_box(run_plain_loop(&closures, &context).await).expect("everybody allows");
                    }
                    start.elapsed()
                });
                table.measured(&variant, iterations, took)
            });
        });
        for (name, kind) in [("closures", Kind::Closure), ("futures", Kind::Future)] {
            let plan = plan(count, kind);
            let variant = format!("{name}/{count}");
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                bencher.iter_custom(|iterations| {
                    let mut report = plan.report();
                    let deadline = Deadline::after(Duration::from_secs(3600));
                    let took = runtime.block_on(async {
                        let start = Instant::now();
                        for _ in 0..iterations {
                            let outcome = plan.apply(Arc::clone(&context), deadline, &mut report).await;
                            assert!(matches!(black_box(outcome), ChainOutcome::Permitted(_)));
                        }
                        start.elapsed()
                    });
                    table.measured(&variant, iterations, took)
                });
            });
        }
    }
    group.finish();
}

const SIZES: [(&str, usize); 3] = [("256 B", 256), ("8 KiB", 8 * 1024), ("100 KiB", 100 * 1024)];

fn digests(criterion: &mut Criterion, table: &Table) {
    let mut group = criterion.benchmark_group("digest");
    for (size, bytes) in SIZES {
        let value = call(bytes);
        let canonical = canonical_json(&value).expect("a tool call has a canonical form");
        let time = |variant: String, run: &dyn Fn() -> Digest, iterations: u64| {
            let start = Instant::now();
            for _ in 0..iterations {
                black_box(run());
            }
            table.measured(&variant, iterations, start.elapsed())
        };
        group.bench_function(BenchmarkId::new("sha256", size), |bencher| {
            bencher.iter_custom(|iterations| time(format!("sha256/{size}"), &|| Digest::of(black_box(&canonical)), iterations));
        });
        group.bench_function(BenchmarkId::new("digest", size), |bencher| {
            let run = || digest_of(black_box(&value)).expect("a tool call has a canonical form");
            bencher.iter_custom(|iterations| time(format!("digest/{size}"), &run, iterations));
        });
    }
    group.finish();
}

fn show(table: &Table) -> Option<()> {
    let (first, last) = (COUNTS[0], COUNTS[COUNTS.len() - 1]);
    #[expect(clippy::cast_precision_loss, reason = "the counts are small")]
    let per_further = |name: &str| {
        Some((table.median(&format!("{name}/{last}"))? - table.median(&format!("{name}/{first}"))?) / (last - first) as f64)
    };
    println!(
        "\nchain, allow-only interceptors, ns per run       (reach: 1.5x of the loop; absolute bar: 200 ns per interceptor)"
    );
    println!("{:>14} {:>10} {:>10} {:>8} {:>10} {:>8}", "interceptors", "loop", "closures", "ratio", "futures", "ratio");
    let row = |label: &str, plain: f64, closures: f64, futures: f64| {
        let (by_closures, by_futures) = (closures / plain, futures / plain);
        println!("{label:>14} {plain:>10.0} {closures:>10.0} {by_closures:>7.2}x {futures:>10.0} {by_futures:>7.2}x");
    };
    for count in COUNTS {
        let of = |name: &str| table.median(&format!("{name}/{count}"));
        row(&count.to_string(), of("loop")?, of("closures")?, of("futures")?);
    }
    row("per further", per_further("loop")?, per_further("closures")?, per_further("futures")?);
    println!("\ndigest of a judged value, ns");
    println!("{:>14} {:>10} {:>10} {:>8}", "size", "sha-256", "digest", "ratio");
    for (size, _) in SIZES {
        let (floor, digest) = (table.median(&format!("sha256/{size}"))?, table.median(&format!("digest/{size}"))?);
        println!("{size:>14} {floor:>10.0} {digest:>10.0} {:>7.2}x", digest / floor);
    }
    Some(())
}

fn main() {
    let table = Table::default();
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    chains(&mut criterion, &table);
    digests(&mut criterion, &table);
    criterion.final_summary();
    if show(&table).is_none() {
        println!("no table: a filter left out a variant");
    }
}
