//! How many microseconds does it take to judge and rewrite a shell line, by its length and at the worst; and what share of a proposal is that?
//!
//! `cargo bench --bench guard` (add `-- --quick` for a short run). The policy is `examples/policies/guardrails.toml`: three command guards, a flow and a
//! rewriting. Criterion's own statistics come first, then the tables. Their times are those of the processor, where the system tells them, since a busy
//! machine would count twice. The bar is 10 ms for 64 KiB, whatever stands in them: the last table times each line of
//! `tests/it/shell_lines/worst.rs`, and tells the slowest. In the table of shares a proposal with guards and one without take turns through
//! the authorization actor, without an audit and with the journal in memory, and the ratio counts.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

#[path = "../tests/it/shell_lines/worst.rs"]
mod worst;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::guard::{GuardedCall, Policy};
use tipstaff::id::SessionId;
use tipstaff::operation::{AuditMode, ExecutionScope, ToolCall};
use tipstaff::state::MemoryStore;
use tipstaff::{Runtime, Session, action_plan, policy_plan};

const POLICY: &str = include_str!("../examples/policies/guardrails.toml");

/// What an agent writes when it works: folders, pipes, a loop, a message in a here-document.
const TYPICAL: &str = "cd packages/web && npm run build 2>&1 | tail -20 && git add -A && git commit -m \"$(cat <<'EOF'\nBuild the page\n\nIt has a title.\nEOF\n)\"";
const PART: &str = "for f in src/*.ts; do\n  if grep -q \"useState\" \"$f\"; then echo \"== $f\"; sed -n '1,40p' \"$f\" | head -20; fi\ndone\nrm -rf build/cache && npm test -- --watch=false 2>&1 | tail -30\n";

/// Proposals in a row before the other side has its turn.
const TURN: u64 = 32;

/// The length that the bar is for.
const LONG: usize = 64 * 1024;

fn lengths() -> Vec<(&'static str, String)> {
    let of = |bytes: usize| PART.repeat(bytes / PART.len());
    vec![
        ("one word", "ls".to_owned()),
        ("plain", "git status && git diff --stat".to_owned()),
        ("typical", TYPICAL.to_owned()),
        ("1 KiB", of(1_024)),
        ("8 KiB", of(8 * 1_024)),
        ("64 KiB", of(LONG)),
    ]
}

fn policy() -> Arc<Policy> {
    Arc::new(Policy::parse(POLICY, "guardrails.toml").expect("the example is a policy"))
}

fn call(input: &Value) -> GuardedCall<'_> {
    GuardedCall { tool: "Bash", input, cwd: Some("/home/mara/tree"), workspace: Some("/home/mara/tree") }
}

/// Judges a line.
fn judged(policy: &Policy, input: &Value) {
    black_box(policy.judge(black_box(&call(input))));
}

/// Judges a line and rewrites it, as the two registrations of a policy do.
fn guarded(policy: &Policy, input: &Value) {
    judged(policy, input);
    black_box(policy.rewrite(black_box(&call(input))));
}

fn micros(took: Duration, count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 52 bits")]
    let mean = took.as_secs_f64() * 1e6 / count as f64;
    mean
}

/// How long this thread has been on a processor; nothing where the system does not tell.
fn on_processor() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

/// Microseconds of one round: of the processor, else of the clock.
fn cost(work: impl Fn()) -> f64 {
    // The system counts in ticks of some milliseconds.
    const ENOUGH: Duration = Duration::from_millis(80);
    let (begun, before) = (Instant::now(), on_processor());
    for round in 1.. {
        work();
        if begun.elapsed() < ENOUGH {
            continue;
        }
        let spent = on_processor().zip(before).map_or_else(|| begun.elapsed(), |(after, before)| after.saturating_sub(before));
        if spent >= ENOUGH {
            return micros(spent, round);
        }
    }
    unreachable!("the rounds have no end")
}

fn main() {
    let policy = policy();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("guard");
    let mut measured = Vec::new();
    for (name, line) in lengths() {
        let (bytes, input) = (line.len(), json!({ "command": line }));
        let mut chosen = false;
        group.bench_function(BenchmarkId::new("line", name), |bencher| {
            chosen = true;
            bencher.iter(|| guarded(&policy, &input));
        });
        if chosen {
            measured.push((name, bytes, cost(|| judged(&policy, &input)), cost(|| guarded(&policy, &input))));
        }
    }
    group.finish();
    let shares = shares(&mut criterion, &policy);
    criterion.final_summary();
    show_lengths(&measured);
    show_shares(&shares);
    // Where other numbers are asked for, the hard lines are not timed.
    if !measured.is_empty() {
        show_worst(&policy);
    }
}

fn show_lengths(measured: &[(&str, usize, f64, f64)]) {
    println!("\n{:<10} {:>8} {:>12} {:>18} {:>14}", "line", "bytes", "us to judge", "and to rewrite us", "ns per byte");
    for (name, bytes, judged, both) in measured {
        #[expect(clippy::cast_precision_loss, reason = "a line is short")]
        let byte = judged * 1e3 / *bytes as f64;
        println!("{name:<10} {bytes:>8} {judged:>12.2} {both:>18.2} {byte:>14.1}");
    }
}

/// Times each hard line, and tells the slowest.
fn show_worst(policy: &Policy) {
    const SHOWN: usize = 15;
    let timed = |(name, line)| {
        let input = json!({ "command": line });
        (cost(|| judged(policy, &input)) / 1e3, name)
    };
    let mut times: Vec<(f64, String)> = worst::lines(LONG).into_iter().map(timed).collect();
    times.sort_by(|one, other| other.0.total_cmp(&one.0));
    let slow = times.iter().filter(|time| time.0 > 10.0).count();
    println!("\n64 KiB made to be hard, ms to judge (bar: 10 ms; {slow} of {} above)", times.len());
    times.iter().take(SHOWN).for_each(|(ms, name)| println!("{ms:>10.2}  {name}"));
}

/// What stands behind the session of a row.
#[derive(Debug, Clone, Copy)]
enum Record {
    Off,
    Memory,
}

struct Share {
    record: Record,
    name: &'static str,
    guarded: Duration,
    plain: Duration,
    count: u64,
}

/// A session of a runtime with guards, and one of a runtime without.
struct Sides {
    runtimes: [Runtime; 2],
    sessions: [Session; 2],
}

impl Sides {
    async fn new(record: Record, policy: &Arc<Policy>) -> Self {
        let plans = [policy_plan("bench", policy), action_plan("bench").build()];
        let (mut runtimes, mut sessions) = (Vec::new(), Vec::new());
        for plan in plans {
            let (builder, audit) = match record {
                Record::Off => (Runtime::builder(), AuditMode::Off),
                Record::Memory => (Runtime::builder().store(MemoryStore::default()), AuditMode::Required),
            };
            let runtime = builder.actions(plan.expect("the plan builds")).spawn().await.expect("it starts");
            sessions.push(runtime.session(SessionId::generate()).audit(audit).open().await.expect("it opens"));
            runtimes.push(runtime);
        }
        match (runtimes.try_into(), sessions.try_into()) {
            (Ok(runtimes), Ok(sessions)) => Self { runtimes, sessions },
            _ => unreachable!("there are two of each"),
        }
    }
}

async fn timed(session: &Session, call: &ToolCall) -> Duration {
    let begun = Instant::now();
    for _ in 0..TURN {
        let answer = session.perform(call.clone(), async |_granted| Ok::<_, std::io::Error>(json!(null))).await;
        assert!(answer.result().is_some(), "the policy has nothing against it");
    }
    begun.elapsed()
}

fn shares(criterion: &mut Criterion, policy: &Arc<Policy>) -> Vec<Share> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives threads");
    let mut group = criterion.benchmark_group("guarded_proposal");
    let mut shares = Vec::new();
    for record in [Record::Off, Record::Memory] {
        let sides = tokio.block_on(Sides::new(record, policy));
        for (name, line) in lengths().into_iter().filter(|(name, _)| matches!(*name, "plain" | "typical" | "1 KiB")) {
            let folder: Arc<str> = "/home/mara/tree".into();
            let scope = ExecutionScope { cwd: Some(folder.clone()), workspace: Some(folder) };
            let call = ToolCall::new("Bash", json!({ "command": line })).scope(scope);
            let mut share = Share { record, name, guarded: Duration::ZERO, plain: Duration::ZERO, count: 0 };
            group.bench_function(BenchmarkId::new(format!("{record:?}").to_lowercase(), name), |bencher| {
                bencher.iter_custom(|rounds| {
                    let turns = rounds.div_ceil(TURN);
                    let mut own = Duration::ZERO;
                    for _ in 0..turns {
                        let guarded = tokio.block_on(timed(&sides.sessions[0], &call));
                        share.plain += tokio.block_on(timed(&sides.sessions[1], &call));
                        own += guarded;
                    }
                    share.guarded += own;
                    share.count += turns * TURN;
                    #[expect(clippy::cast_precision_loss, reason = "the counts are small")]
                    let part = rounds as f64 / (turns * TURN) as f64;
                    own.mul_f64(part)
                });
            });
            shares.push(share);
        }
        for runtime in sides.runtimes {
            tokio.block_on(runtime.shutdown(Deadline::after(Duration::from_secs(30)))).expect("it ends");
        }
    }
    group.finish();
    shares
}

fn show_shares(shares: &[Share]) {
    println!("\n{:<8} {:<10} {:>12} {:>12} {:>8} {:>16}", "record", "line", "guarded us", "without us", "ratio", "guards' share");
    for Share { record, name, guarded, plain, count } in shares.iter().filter(|share| share.count > 0) {
        let (guarded, plain) = (micros(*guarded, *count), micros(*plain, *count));
        let (ratio, percent) = (guarded / plain, 100.0 * (guarded - plain) / guarded);
        let record = format!("{record:?}").to_lowercase();
        println!("{record:<8} {name:<10} {guarded:>12.2} {plain:>12.2} {ratio:>7.2}x {percent:>15.0}%");
    }
}
