//! The owners beside the action executor, each through its own form (2-interception, "Owners to ship").

mod forms;
mod service;
mod survival;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tipstaff::interception::{
    Admission, Decision, PlanError, Registration, ResultDecision, ResultOn, StageKind, StageSpec, Turn,
};
use tipstaff::operation::{Owner, OwnerPlan, ResultOf};
use tipstaff::state::{MemoryStore, Store};
use tipstaff::{Runtime, Session, owner_plan};

use super::rig::{Log, callable, session_id, soon};

type Registered<O> = Registration<<O as Owner>::Context, ResultOf<O>>;

/// A registration at a stage that notes its name and lets everything pass.
fn passes<O: Owner>(stage: &StageSpec, log: &Log) -> Registered<O> {
    let (name, log) = (stage.name().to_owned(), log.clone());
    match stage.kind() {
        StageKind::Result(_) => Registration::on_result(
            name.clone(),
            name.clone(),
            callable("passes"),
            move |_: &O::Context, _: &ResultOf<O>, _: &Turn| {
                log.note(name.clone());
                ResultDecision::Keep
            },
        ),
        StageKind::Admission => {
            Registration::admit(name.clone(), name.clone(), callable("passes"), move |_: &O::Context, _: &Turn| {
                log.note(name.clone());
                Admission::Admit
            })
        }
        _ => Registration::decide(name.clone(), name.clone(), callable("passes"), move |_: &O::Context, turn: &Turn| {
            log.note(if turn.is_again() { format!("{name} again") } else { name.clone() });
            Decision::proceed()
        }),
    }
}

/// A plan with such a registration at every stage that takes one.
fn passing<O: Owner>(log: &Log) -> OwnerPlan<O> {
    let open = O::stages().into_iter().filter(|stage| stage.kind() != StageKind::OwnStep);
    open.fold(owner_plan::<O>("test"), |plan, stage| plan.register(passes::<O>(&stage, log))).build().unwrap()
}

/// A runtime with a store, and one session of it with a ring.
async fn up(store: impl Store) -> (Runtime, Session) {
    let runtime = Runtime::builder().store(store).spawn().await.unwrap();
    let session = runtime.session(session_id("s")).recent(NonZeroUsize::new(64).unwrap()).open().await.unwrap();
    (runtime, session)
}

/// A runtime without a store, whose facts stand in the session's ring: for paused time.
async fn up_in_memory() -> (Runtime, Session) {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let session = runtime.session(session_id("s")).recent(NonZeroUsize::new(64).unwrap()).open().await.unwrap();
    (runtime, session)
}

async fn down(runtime: Runtime) {
    runtime.shutdown(soon()).await.unwrap();
}

/// The kinds of the facts in the ring.
fn shown(session: &Session) -> Vec<String> {
    session.recent().unwrap().facts.iter().map(|fact| fact.kind().as_str().to_owned()).collect()
}

/// The payload of the last fact in the ring.
fn last(session: &Session) -> Value {
    session.recent().unwrap().facts.last().unwrap().payload().value().clone()
}

fn refuses_own_steps<O: Owner>() {
    let log = Log::default();
    for stage in O::stages() {
        let built = owner_plan::<O>("test").register(passes::<O>(&stage, &log)).build();
        match (stage.kind(), built) {
            (StageKind::OwnStep, Err(PlanError::OwnStep { registration, stage: at })) => {
                assert_eq!((&*registration, &*at), (stage.name(), stage.name()), "{}", O::NAME);
            }
            (StageKind::OwnStep, built) => panic!("{}: {} takes a registration: {built:?}", O::NAME, stage.name()),
            (_, Ok(plan)) => assert_eq!(plan.registrations().collect::<Vec<_>>(), [stage.name()]),
            (_, Err(error)) => panic!("{}: {} refuses: {error}", O::NAME, stage.name()),
        }
    }
    let nowhere = passes::<O>(&StageSpec::guard("nowhere"), &log);
    let error = owner_plan::<O>("test").register(nowhere).build().unwrap_err();
    assert_eq!(error.to_string(), "registration \"nowhere\" names stage \"nowhere\", which its owner does not declare");
}

/// I-18: a step of an owner's own takes no registration, and the refusal names it; so does a stage that the owner does not have.
#[test]
fn no_owner_takes_a_registration_that_it_would_never_call() {
    refuses_own_steps::<tipstaff::operation::ActionExecutor>();
    refuses_own_steps::<tipstaff::operation::service::ServiceCall>();
    refuses_own_steps::<tipstaff::operation::harness::ProviderHarness>();
    refuses_own_steps::<tipstaff::operation::prompt::PromptSubmission>();
    refuses_own_steps::<tipstaff::operation::lifecycle::SessionLifecycle>();
    refuses_own_steps::<tipstaff::compat::HookedEvent>();
}

/// I-4: only a step of the owner survives its caller; a stage that takes registrations cannot declare it.
#[test]
fn a_stage_that_takes_registrations_cannot_survive_its_caller() {
    struct Shielding;
    impl Owner for Shielding {
        const NAME: &'static str = "shielding";
        type Context = String;
        type Output = Value;

        fn stages() -> Vec<StageSpec> {
            vec![StageSpec::result("post", ResultOn::Both).shielded(std::time::Duration::from_secs(1))]
        }
    }
    let error = owner_plan::<Shielding>("test").build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "stage \"post\" is a result stage and declares that it survives its caller: only a step of the owner may"
    );
}

/// I-7: what a stage declares of its survival is part of the plan's digest.
#[test]
fn survival_is_part_of_the_digest() {
    let digest = |stage: StageSpec| tipstaff::interception::PlanBuilder::<Value>::new("p", &[stage]).build().unwrap().digest();
    let bound = std::time::Duration::from_secs(5);
    let (plain, shielded) = (StageSpec::own_step("teardown").deadline(bound), StageSpec::own_step("teardown").shielded(bound));
    assert_ne!(digest(plain), digest(shielded));
}

fn request() -> tipstaff::operation::service::ServiceRequest {
    tipstaff::operation::service::ServiceRequest::new("model", json!({ "prompt": "hello" }))
}

fn memory() -> MemoryStore {
    MemoryStore::new()
}
