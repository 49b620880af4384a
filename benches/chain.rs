//! How many nanoseconds does one allow-only interceptor cost in a chain, against a plain loop of boxed async closures; and how many does the digest
//! of a judged value cost, against SHA-256 of its canonical bytes?
//!
//! `cargo bench --bench chain` (add `-- --quick` for a short run). Criterion's own statistics come first, then one table with the ratios and the
//! growth. The variants of a table take turns in one process; contexts, plans and reports are built outside the clock.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::{CallableRef, CanonicalError, Digest, canonical_json, digest_of};
use tipstaff_core::interception::{ChainOutcome, Decision, Judged, Plan, PlanBuilder, Registration, StageSpec};
use tokio::runtime::Runtime;

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
    json!({ "tool": "shell", "arguments": { "command": "x".repeat(bytes), "timeout_ms": 1000 }, "cwd": "/home/mara" })
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

/// One thing that is timed: how long so many iterations take.
struct Variant {
    name: &'static str,
    size: String,
    run: Box<dyn Fn(u64) -> Duration>,
}

/// The loop, the chain of closures and the chain of futures, by number of interceptors.
fn chains(runtime: &Rc<Runtime>) -> Vec<Variant> {
    let mut variants = Vec::new();
    for count in COUNTS {
        let (closures, context, runs_in) = (plain_loop(count), known(), Rc::clone(runtime));
        let run = move |iterations| {
            runs_in.block_on(async {
                let start = Instant::now();
                for _ in 0..iterations {
                    black_box(run_plain_loop(&closures, &context).await).expect("everybody allows");
                }
                start.elapsed()
            })
        };
        variants.push(Variant { name: "loop", size: count.to_string(), run: Box::new(run) });
        for (name, kind) in [("closures", Kind::Closure), ("futures", Kind::Future)] {
            let (plan, context, runs_in) = (plan(count, kind), known(), Rc::clone(runtime));
            let run = move |iterations| {
                let mut report = plan.report();
                let deadline = Deadline::after(Duration::from_secs(3600));
                runs_in.block_on(async {
                    let start = Instant::now();
                    for _ in 0..iterations {
                        let outcome = plan.apply(Arc::clone(&context), deadline, &mut report).await;
                        assert!(matches!(black_box(outcome), ChainOutcome::Permitted(_)));
                    }
                    start.elapsed()
                })
            };
            variants.push(Variant { name, size: count.to_string(), run: Box::new(run) });
        }
    }
    variants
}

const SIZES: [(&str, usize); 3] = [("256 B", 256), ("8 KiB", 8 * 1024), ("100 KiB", 100 * 1024)];

fn timed(run: impl Fn() -> Digest, iterations: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(run());
    }
    start.elapsed()
}

/// The hash alone and the digest of the value, by size of its largest text.
fn digests() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (size, bytes) in SIZES {
        let value = call(bytes);
        let canonical = canonical_json(&value).expect("a tool call has a canonical form");
        let hash = move |iterations| timed(|| Digest::of(black_box(&canonical)), iterations);
        let digest = move |iterations| timed(|| digest_of(black_box(&value)).expect("it has a canonical form"), iterations);
        variants.push(Variant { name: "sha-256", size: size.to_owned(), run: Box::new(hash) });
        variants.push(Variant { name: "digest", size: size.to_owned(), run: Box::new(digest) });
    }
    variants
}

/// Nanoseconds per iteration of each variant: the median of rounds in which all variants take turns, so that a busy machine slows down all alike.
fn in_turns(variants: &[Variant]) -> Vec<f64> {
    const ROUNDS: usize = 41;
    const ROUND: Duration = Duration::from_micros(500);
    let per_iteration = |took: Duration, iterations: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
        let nanos = took.as_nanos() as f64 / iterations as f64;
        nanos
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let iterations: Vec<u64> =
        variants.iter().map(|variant| (ROUND.as_nanos() as f64 / per_iteration((variant.run)(16), 16)).max(1.0) as u64).collect();
    let mut samples = vec![Vec::with_capacity(ROUNDS); variants.len()];
    for _ in 0..ROUNDS {
        for ((variant, iterations), samples) in variants.iter().zip(&iterations).zip(&mut samples) {
            samples.push(per_iteration((variant.run)(*iterations), *iterations));
        }
    }
    samples
        .iter_mut()
        .map(|samples| {
            samples.sort_by(f64::total_cmp);
            samples[ROUNDS / 2]
        })
        .collect()
}

fn show_chains(medians: &[f64]) {
    let row = |label: &str, row: &[f64]| {
        let (by_closures, by_futures) = (row[1] / row[0], row[2] / row[0]);
        println!("{label:>14} {:>10.0} {:>10.0} {by_closures:>7.2}x {:>10.0} {by_futures:>7.2}x", row[0], row[1], row[2]);
    };
    println!(
        "\nchain of allow-only interceptors, ns per run     (reach per further one: 1.5x of the loop; absolute bar: 200 ns)"
    );
    println!("{:>14} {:>10} {:>10} {:>8} {:>10} {:>8}", "interceptors", "loop", "closures", "ratio", "futures", "ratio");
    let rows: Vec<&[f64]> = medians.chunks(3).collect();
    for (count, medians) in COUNTS.iter().zip(&rows) {
        row(&count.to_string(), medians);
    }
    for (pair, counts) in rows.windows(2).zip(COUNTS.windows(2)) {
        #[expect(clippy::cast_precision_loss, reason = "the counts are small")]
        let further = (counts[1] - counts[0]) as f64;
        let growth: Vec<f64> = pair[1].iter().zip(pair[0]).map(|(more, less)| (more - less) / further).collect();
        row(&format!("each {} to {}", counts[0] + 1, counts[1]), &growth);
    }
}

fn show_digests(medians: &[f64]) {
    println!("\ndigest of a judged value, ns");
    println!("{:>14} {:>10} {:>10} {:>8}", "size", "sha-256", "digest", "ratio");
    for ((size, _), row) in SIZES.iter().zip(medians.chunks(2)) {
        println!("{size:>14} {:>10.0} {:>10.0} {:>7.2}x", row[0], row[1], row[1] / row[0]);
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
    let (chains, digests) = (chains(&Rc::new(runtime)), digests());
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    for (group, variants) in [("chain", &chains), ("digest", &digests)] {
        let mut group = criterion.benchmark_group(group);
        for variant in variants {
            group.bench_function(BenchmarkId::new(variant.name, &variant.size), |bencher| bencher.iter_custom(&variant.run));
        }
        group.finish();
    }
    criterion.final_summary();
    show_chains(&in_turns(&chains));
    show_digests(&in_turns(&digests));
}
