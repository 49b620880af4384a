//! The ordered chain (spec 2): plans, decisions, failures, asks, results and reports, through the public face.

mod ask;
mod failure;
mod model;
mod order;
mod plan;
mod report;
mod result;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::declare::CallableRef;
use tipstaff::interception::{
    AskRequest, ChainOutcome, Decision, DenialCode, Plan, PlanBuilder, Registration, Report, StageSpec, Turn,
};

const CALLABLE: CallableRef = CallableRef::from_static("test::interceptor@1");
const NO: DenialCode = DenialCode::from_static("test.no");
const UNSURE: DenialCode = DenialCode::from_static("test.unsure");

/// Stages of every deciding kind, with own steps between them.
fn stages() -> [StageSpec; 7] {
    [
        StageSpec::own_step("start"),
        StageSpec::guard("admit"),
        StageSpec::guard("security"),
        StageSpec::transform("transform"),
        StageSpec::advisory("advise"),
        StageSpec::guard("final"),
        StageSpec::own_step("perform"),
    ]
}

fn builder() -> PlanBuilder<Value> {
    PlanBuilder::new("test", &stages())
}

fn build(registrations: impl IntoIterator<Item = Registration<Value>>) -> Plan<Value> {
    registrations.into_iter().fold(builder(), PlanBuilder::register).build().expect("the plan is well formed")
}

/// A registration that always answers the same.
fn says(name: &str, stage: &str, decision: impl Fn() -> Decision<Value> + Send + Sync + 'static) -> Registration<Value> {
    Registration::decide(name, stage, CALLABLE, move |_: &Value, _: &Turn| decision())
}

fn allow(name: &str, stage: &str) -> Registration<Value> {
    says(name, stage, Decision::proceed)
}

fn deny(name: &str, stage: &str) -> Registration<Value> {
    says(name, stage, || Decision::deny(NO, "not on my watch"))
}

fn ask(name: &str, stage: &str) -> Registration<Value> {
    says(name, stage, || Decision::ask(AskRequest::new(UNSURE, "better ask")))
}

/// Appends a text to the member `trail`, after a delay.
fn appends(name: &'static str, stage: &str, delay: Duration) -> Registration<Value> {
    Registration::decide_async(name, stage, CALLABLE, move |context: Arc<Value>, _| async move {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let mut next = Value::clone(&context);
        let trail = next["trail"].as_str().unwrap_or_default().to_owned();
        next["trail"] = json!(trail + name);
        Decision::replace(next)
    })
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

async fn apply(plan: &Plan<Value>, context: Value) -> (ChainOutcome<Value>, Report) {
    apply_within(plan, context, Duration::from_secs(60)).await
}

async fn apply_within(plan: &Plan<Value>, context: Value, budget: Duration) -> (ChainOutcome<Value>, Report) {
    let mut report = plan.report();
    let outcome = plan.apply(Arc::new(context), Deadline::after(budget), &mut report).await;
    (outcome, report)
}

/// The report in short: `name answer`, in plan order.
fn answers(report: &Report) -> Vec<String> {
    report.steps().map(|step| format!("{} {}", step.registration(), step.answer().as_str())).collect()
}

/// The re-runs in short.
fn again(report: &Report) -> Vec<String> {
    report.again().map(|step| format!("{} {}", step.registration(), step.answer().as_str())).collect()
}

/// Which kind of outcome it is.
fn ending<C>(outcome: &ChainOutcome<C>) -> &'static str {
    match outcome {
        ChainOutcome::Permitted(_) => "permitted",
        ChainOutcome::Denied(_) => "denied",
        ChainOutcome::Deferred { .. } => "deferred",
        ChainOutcome::Escalated(_) => "escalated",
        ChainOutcome::Failed(_) => "failed",
    }
}

/// The permitted context.
fn permitted(outcome: ChainOutcome<Value>) -> Value {
    match outcome {
        ChainOutcome::Permitted(permit) => Value::clone(&permit.context),
        other => panic!("expected a permission, found {other:?}"),
    }
}

/// A small generator, so that shuffles and delays are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
