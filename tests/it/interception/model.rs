//! Random plans against a plain reading of the rules (I-5, I-10, I-14, I-15).

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

/// What a scripted interceptor answers, as a function of the context, which is one integer.
#[derive(Debug, Clone, Copy)]
enum Script {
    Continue,
    DenyMultiplesOf(u64),
    AskMultiplesOf(u64),
    Add(u64),
    Stop,
    StopAdding(u64),
    Fail,
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Guard,
    Transform,
    Advisory,
}

fn script() -> impl Strategy<Value = Script> {
    prop_oneof![
        6 => Just(Script::Continue),
        2 => (2_u64..6).prop_map(Script::DenyMultiplesOf),
        2 => (2_u64..6).prop_map(Script::AskMultiplesOf),
        4 => (0_u64..4).prop_map(Script::Add),
        1 => Just(Script::Stop),
        1 => (0_u64..4).prop_map(Script::StopAdding),
        1 => Just(Script::Fail),
        1 => Just(Script::Panic),
    ]
}

/// Keeps most scripts within their stage's contract, so that chains get far.
fn sensible(kind: Kind, script: Script, wild: bool) -> Script {
    match (kind, script) {
        _ if wild => script,
        (Kind::Guard, Script::Add(_) | Script::Stop | Script::StopAdding(_)) | (Kind::Advisory, _) => Script::Continue,
        _ => script,
    }
}

fn plans() -> impl Strategy<Value = Vec<(Kind, Vec<Script>)>> {
    let kind = prop_oneof![3 => Just(Kind::Guard), 3 => Just(Kind::Transform), 1 => Just(Kind::Advisory)];
    let scripts = prop::collection::vec((script(), prop::bool::weighted(0.05)), 0..4);
    let stage = (kind, scripts)
        .prop_map(|(kind, scripts)| (kind, scripts.into_iter().map(|(script, wild)| sensible(kind, script, wild)).collect()));
    prop::collection::vec(stage, 0..6)
}

/// The rules, read plainly. What it returns is the ending, the final context and every call with the context it saw.
struct Reading {
    context: u64,
    calls: Vec<(usize, u64)>,
    asks: Vec<usize>,
}

enum Step {
    On,
    Stop,
}

impl Reading {
    fn step(&mut self, kind: Kind, at: usize, script: Script) -> Result<Step, &'static str> {
        self.calls.push((at, self.context));
        self.asks.retain(|asker| *asker != at);
        // The error mapping of the stage: guards deny, transforms propagate, advisers are isolated.
        let broken = match kind {
            Kind::Guard => Err("denied"),
            Kind::Transform => Err("failed"),
            Kind::Advisory => Ok(Step::On),
        };
        let before = self.context;
        match (kind, script) {
            (_, Script::Continue) => Ok(Step::On),
            (_, Script::Fail | Script::Panic) => broken,
            (_, Script::DenyMultiplesOf(of) | Script::AskMultiplesOf(of)) if !before.is_multiple_of(of) => Ok(Step::On),
            (Kind::Advisory, _) | (Kind::Guard, Script::Add(_) | Script::Stop | Script::StopAdding(_)) => broken,
            (_, Script::DenyMultiplesOf(_)) => Err("denied"),
            (_, Script::AskMultiplesOf(_)) => {
                self.asks.push(at);
                Ok(Step::On)
            }
            (Kind::Transform, Script::Add(by)) => {
                self.context += by;
                Ok(Step::On)
            }
            (Kind::Transform, Script::Stop) => Ok(Step::Stop),
            (Kind::Transform, Script::StopAdding(by)) => {
                self.context += by;
                Ok(Step::Stop)
            }
        }
    }

    fn run(&mut self, stages: &[(Kind, Vec<Script>)]) -> Result<&'static str, &'static str> {
        let last_transform = stages.iter().rposition(|(kind, scripts)| *kind == Kind::Transform && !scripts.is_empty());
        let mut guards: Vec<(usize, Script, u64)> = Vec::new();
        let (mut at, mut stopped) = (0, false);
        for (place, (kind, scripts)) in stages.iter().enumerate() {
            let skipped = stopped && *kind != Kind::Guard;
            for (offset, script) in scripts.iter().enumerate().filter(|_| !skipped) {
                if *kind == Kind::Guard {
                    guards.push((at + offset, *script, self.context));
                }
                if let Step::Stop = self.step(*kind, at + offset, *script)? {
                    stopped = true;
                    break;
                }
            }
            at += scripts.len();
            if last_transform == Some(place) {
                for (guard, script, judged) in std::mem::take(&mut guards) {
                    if judged != self.context {
                        self.step(Kind::Guard, guard, script)?;
                    }
                }
            }
        }
        Ok(if self.asks.is_empty() { "permitted" } else { "escalated" })
    }
}

fn compiled(stages: &[(Kind, Vec<Script>)], calls: &Arc<Mutex<Vec<(usize, u64)>>>) -> Plan<Value> {
    let specs: Vec<StageSpec> = stages
        .iter()
        .enumerate()
        .map(|(place, (kind, _))| match kind {
            Kind::Guard => StageSpec::guard(place.to_string()),
            Kind::Transform => StageSpec::transform(place.to_string()),
            Kind::Advisory => StageSpec::advisory(place.to_string()),
        })
        .collect();
    let approver = tipstaff::interception::Approver::EndsAttempt("someone".into());
    let mut builder = PlanBuilder::new("model", &specs).approver(approver);
    let mut at = 0;
    for (place, (_, scripts)) in stages.iter().enumerate() {
        for script in scripts.iter().copied() {
            let (calls, number) = (Arc::clone(calls), at);
            let answer = move |context: &Value| {
                let context = context.as_u64().expect("the context is a number");
                calls.lock().expect("nobody panics while holding it").push((number, context));
                match script {
                    Script::DenyMultiplesOf(of) if context.is_multiple_of(of) => Ok(Decision::deny(NO, "a multiple")),
                    Script::AskMultiplesOf(of) if context.is_multiple_of(of) => {
                        Ok(Decision::ask(AskRequest::new(UNSURE, "a multiple")))
                    }
                    Script::Continue | Script::DenyMultiplesOf(_) | Script::AskMultiplesOf(_) => Ok(Decision::proceed()),
                    Script::Add(by) => Ok(Decision::replace(json!(context + by))),
                    Script::Stop => Ok(Decision::stop()),
                    Script::StopAdding(by) => Ok(Decision::stop_with(json!(context + by))),
                    Script::Fail => Err(tipstaff::interception::InterceptError::new("scripted")),
                    Script::Panic => std::panic::resume_unwind(Box::new("scripted")),
                }
            };
            let stage = place.to_string();
            // Every other one answers by a future.
            let registration = if number % 2 == 0 {
                Registration::decide(number.to_string(), stage, CALLABLE, move |context: &Value, _: &Turn| answer(context))
            } else {
                Registration::decide_async(number.to_string(), stage, CALLABLE, move |context: Arc<Value>, _| {
                    std::future::ready(answer(&context))
                })
            };
            builder = builder.register(registration);
            at += 1;
        }
    }
    builder.build().expect("the plan is well formed")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// The chain calls whom the rules say, in that order, with that context, and ends as they say; its report names everybody once.
    #[test]
    fn a_chain_does_what_the_rules_say(stages in plans(), context in 0_u64..12) {
        let mut reading = Reading { context, calls: Vec::new(), asks: Vec::new() };
        let expected = match reading.run(&stages) { Ok(ending) | Err(ending) => ending };
        let calls = Arc::new(Mutex::new(Vec::new()));
        let plan = compiled(&stages, &calls);
        let (outcome, report) = futures::executor::block_on(apply(&plan, json!(context)));
        prop_assert_eq!(ending(&outcome), expected);
        prop_assert_eq!(&*calls.lock().expect("nobody panics while holding it"), &reading.calls);
        match &outcome {
            ChainOutcome::Permitted(permit) => prop_assert_eq!(&*permit.context, &json!(reading.context)),
            ChainOutcome::Escalated(escalated) => {
                let mut askers: Vec<usize> = escalated.asks.iter().map(|ask| ask.registration.parse().expect("a number")).collect();
                askers.sort_unstable();
                reading.asks.sort_unstable();
                prop_assert_eq!(askers, reading.asks);
            }
            ChainOutcome::Denied(denied) => {
                let last = reading.calls.last().expect("somebody denied");
                let last = last.0.to_string();
                prop_assert_eq!(denied.denial.registration.as_deref(), Some(last.as_str()));
            }
            ChainOutcome::Failed(failure) => {
                let last = reading.calls.last().expect("somebody failed");
                let last = last.0.to_string();
                prop_assert_eq!(&*failure.registration, last.as_str());
            }
            ChainOutcome::Deferred { .. } => prop_assert!(false, "nobody admits here"),
        }
        prop_assert_eq!(report.steps().count(), plan.registrations().count());
        let called = report.steps().chain(report.again()).filter(|step| step.answer().was_called()).count();
        prop_assert_eq!(called, reading.calls.len());
    }
}
