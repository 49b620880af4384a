//! `SessionObserver.emit` and `authorize`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::compat::{ObserveError, Observed, SessionObserver, SessionObserverBuilder, testing};
use tipstaff::dispatch::profile::compat;
use tipstaff::dispatch::{HandlerError, Subscriber};
use tipstaff::observation::RecentFacts;
use tipstaff::signal::{EmitterRole, LifecycleKind, Signal, SignalKind};
use tipstaff::state::{MemoryStore, ReadFilter};
use tipstaff::{Runtime, Session};

use super::Driver;
use super::broadcaster::policy_of;
use super::dispatch::{Holds, asked, cancelling, failed, not_returned, register, results, said, subscriber};
use crate::characterization::run::{Driven, Stage};
use crate::characterization::scenario::{By, Entry, Outcome, Raised, Scenario};
use crate::characterization::script::Body;
use crate::characterization::world::World;
use crate::rig::{read, session_id, soon};

pub(super) const DRIVER: Driver = Driver {
    profile: "session_observer",
    policy: || serde_json::to_value(compat::session_observer()).expect("a policy is plain data"),
    threads: has_journal,
    drive: |stage, policy| drive(stage, policy).boxed_local(),
};

/// The journal's writer is a thread.
fn has_journal(scenario: &Scenario) -> bool {
    scenario.setup::<Setup>().is_ok_and(|setup| setup.persist.is_some())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::characterization) struct Setup {
    pub(in crate::characterization) gate: Option<GateSetup>,
    routes: Vec<RouteSetup>,
    pub(in crate::characterization) persist: Option<Persist>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::characterization) struct GateSetup {
    pub(in crate::characterization) kind: GateKind,
    /// A gate that answers at once is a future that is ready: there is one form here.
    #[serde(default, rename = "mode")]
    _mode: Option<GateMode>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::characterization) enum GateKind {
    Absent,
    Allow,
    Deny,
    Raise,
    None,
    Truthy,
    Cancel,
    RaiseFatal,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GateMode {
    Sync,
    Async,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteSetup {
    result: String,
    into: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::characterization) enum Persist {
    BeforeHandlers,
    AfterHandlers,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Filter {
    All {},
    TypeMismatch {},
    Predicate { result: String },
    TypeAndPredicate { result: String },
    CustomFilterRaises { error: String },
    Role { role: String },
}

const EMITTED: LifecycleKind = LifecycleKind::RunStarted;
const OTHER: LifecycleKind = LifecycleKind::RunEnded;

async fn drive(stage: Stage, policy: Option<Value>) -> Result<Driven, String> {
    let Setup { gate, routes, persist } = stage.scenario.setup()?;
    let runtime = match persist {
        Some(_) => Runtime::builder().store(MemoryStore::new()),
        None => Runtime::builder(),
    };
    let runtime = runtime.spawn().await.expect("a runtime comes up");
    let session = open(&runtime).await;
    let builder = gated(SessionObserver::builder(&session), gate.as_ref(), &stage.world);
    let (builder, streams) = routed(builder, &routes, &stage.world);
    let builder = match policy {
        None => builder,
        Some(policy) => testing::session_observer(builder, policy_of(policy)?),
    };
    let observer = builder.start().await.expect("a dispatcher comes up");
    let confirm = |at| (persist == Some(at)).then(|| observer.confirm_journal().map_err(|error| error.to_string())).transpose();
    let _journal = confirm(Persist::BeforeHandlers)?;
    let (observes, unobserves) = (observer.clone(), observer.clone());
    register(
        &stage,
        move |body, unique| observes.observe(filtered(body, unique)?).map_err(|error| error.to_string()),
        move |registration| {
            unobserves.unobserve(registration);
        },
    )?;
    let _journal = confirm(Persist::AfterHandlers)?;
    stage.begin();
    let outcome = emit(&stage, &observer).await?;
    stage.settle().await;
    let mut extra = facts(&session);
    if !routes.is_empty() {
        extra.insert(
            "streams".to_owned(),
            streams.iter().map(|(name, ring)| (name.clone(), json!(ring.snapshot().facts.len()))).collect(),
        );
    }
    if persist.is_some() {
        session.settled(soon()).await.expect("the journal answers");
        let kind = SignalKind::from(EMITTED);
        let rows = read(&**runtime.reader().expect("there is a store"), session.id(), &ReadFilter::all());
        extra.insert("persisted".to_owned(), json!(rows.iter().filter(|row| *row.signal.kind() == kind).count()));
        extra.insert("persist_unconfirmed".to_owned(), json!(session.losses().all().facts + session.losses().all().unknown));
    }
    runtime.shutdown(Deadline::after(std::time::Duration::from_secs(20))).await.expect("an orderly end");
    Ok(Driven { outcome, extra })
}

/// A session that keeps its recent facts.
pub(super) async fn open(runtime: &Runtime) -> Session {
    let facts = NonZeroUsize::new(64).expect("the literal is not zero");
    runtime.session(session_id("s1")).recent(facts).open().await.expect("a session opens")
}

/// The observer with the scenario's gate.
pub(super) fn gated(builder: SessionObserverBuilder, gate: Option<&GateSetup>, world: &Arc<World>) -> SessionObserverBuilder {
    let Some(gate) = gate.filter(|gate| gate.kind != GateKind::Absent) else { return builder };
    let (gate, world) = (gate.clone(), Arc::clone(world));
    builder.gate(move |_fact| {
        world.log("gate", "call");
        let name = gate.error.clone().unwrap_or_default();
        std::future::ready(match gate.kind {
            GateKind::Absent => unreachable!("there is no gate then"),
            GateKind::Allow | GateKind::Truthy => Ok(true),
            GateKind::Deny | GateKind::None => Ok(false),
            GateKind::Raise => Err(HandlerError::failed(name, "the gate failed")),
            GateKind::RaiseFatal => Err(HandlerError::fatal(name)),
            GateKind::Cancel => Err(HandlerError::Cancelled),
        })
    })
}

fn routed(
    builder: SessionObserverBuilder,
    routes: &[RouteSetup],
    world: &Arc<World>,
) -> (SessionObserverBuilder, BTreeMap<String, RecentFacts>) {
    let ring = || RecentFacts::new(NonZeroUsize::new(64).expect("the literal is not zero"));
    let mut streams = BTreeMap::<String, RecentFacts>::new();
    let builder = routes.iter().enumerate().fold(builder, |builder, (at, RouteSetup { result, into })| {
        let (world, result) = (Arc::clone(world), result.clone());
        let condition = Holds(move |_fact: &Signal| {
            world.log(&format!("route{at}"), "predicate");
            said(&result)
        });
        builder.route(condition, streams.entry(into.clone()).or_insert_with(ring).clone())
    });
    (builder, streams)
}

/// A handler with its filter: the type is compared before a predicate is asked.
fn filtered(body: &Arc<Body>, unique: String) -> Result<Subscriber<Signal, Value>, String> {
    let subscriber = subscriber(body, unique);
    let of_kind = |kind: LifecycleKind| move |fact: &Signal| *fact.kind() == SignalKind::from(kind);
    Ok(match body.handler.filter::<Filter>()? {
        None | Some(Filter::All {}) => subscriber,
        Some(Filter::TypeMismatch {}) => subscriber.when(of_kind(OTHER)),
        Some(Filter::Predicate { result }) | Some(Filter::TypeAndPredicate { result }) => subscriber.when(asked(body, result)),
        Some(Filter::CustomFilterRaises { error }) => subscriber.filtered_by(asked(body, format!("raise:{error}"))),
        Some(Filter::Role { role }) => subscriber.when(move |fact: &Signal| fact.role().as_str() == role),
    })
}

async fn emit(stage: &Stage, observer: &SessionObserver) -> Result<Outcome, String> {
    let fact = observer.session().signal(EMITTED);
    let fact = match &stage.scenario.emit.emitter_role {
        Some(role) => fact.role(EmitterRole::new(role.as_str()).map_err(|error| error.to_string())?),
        None => fact,
    };
    let fact = fact.build();
    match stage.scenario.emit.entry {
        Entry::Async => {
            let emission = observer.emit(fact);
            let handle = cancelling(emission.canceller());
            Ok(stage.emission(handle, async { ended(emission.await) }).await)
        }
        Entry::Authorize => {
            let authorized = async {
                match observer.authorize(fact).await {
                    Ok(allowed) => Outcome::Returned { value: json!(allowed) },
                    Err(error) => not_observed(&error),
                }
            };
            Ok(stage.emission(|| {}, authorized).await)
        }
        other => Err(format!("emit.entry: {other:?}")),
    }
}

fn ended(observed: Result<Observed, ObserveError>) -> Outcome {
    match observed {
        Ok(Observed::Reported(report)) => Outcome::Returned { value: results(&report) },
        // The original returns an empty list, as if nobody had subscribed.
        Ok(Observed::Denied(_)) => Outcome::Returned { value: json!([]) },
        Err(error) => not_observed(&error),
    }
}

fn not_observed(error: &ObserveError) -> Outcome {
    let cancelled = |by| Outcome::Raised { error: Raised::Cancelled { by, cause: None } };
    match error {
        ObserveError::GateCancelled => cancelled(By::Handler("gate".to_owned())),
        ObserveError::GateFatal(failure) => Outcome::Raised { error: failed(failure) },
        ObserveError::Route { error: HandlerError::Failed(failure), .. } => Outcome::Raised { error: failed(failure) },
        ObserveError::Route { error: HandlerError::Cancelled, route } => cancelled(By::Handler(format!("route{route}"))),
        ObserveError::Cancelled => cancelled(By::Emitter),
        ObserveError::Emission(error) => not_returned(error),
        other => super::dispatch::library(&other.to_string()),
    }
}

/// What the session keeps in memory: the emitted fact, and denials.
fn facts(session: &Session) -> BTreeMap<String, Value> {
    let recent = session.recent().expect("the session keeps its recent facts");
    let count = |kind: LifecycleKind| recent.facts.iter().filter(|fact| *fact.kind() == SignalKind::from(kind)).count();
    BTreeMap::from([
        ("stored".to_owned(), json!(count(EMITTED))),
        ("denials_stored".to_owned(), json!(count(LifecycleKind::OperationDenied))),
    ])
}
