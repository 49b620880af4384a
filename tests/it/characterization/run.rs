//! Runs one scenario: builds its world, lets the profile's driver emit, and puts the trace together.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use serde_json::Value;
use tokio::time::sleep;

use super::scenario::{Observed, Outcome, Scenario, Step};
use super::warnings::Warnings;
use super::world::{Pace, World};

/// An emission that has not ended by then is reported as hung. It is longer than the recorded mechanisms' own deadlines of 10 s and 30 s.
const HUNG: Duration = Duration::from_secs(45);

/// One scenario on its way.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) scenario: Arc<Scenario>,
    pub(super) world: Arc<World>,
    warnings: Arc<Warnings>,
    /// The events and the log of the emission, once it is settled.
    trace: Arc<OnceLock<(Vec<String>, u64)>>,
}

/// What a driver brings back.
pub(super) struct Driven {
    pub(super) outcome: Outcome,
    /// Read after the emission ended and was settled.
    pub(super) extra: BTreeMap<String, Value>,
}

/// Drives one mechanism. `Err`: the scenario uses what the driver does not know; nothing was compared.
pub(super) type Driving = LocalBoxFuture<'static, Result<Driven, String>>;

/// Runs the scenario through a driver, once.
pub(super) fn run(scenario: &Arc<Scenario>, pace: Pace, drive: &dyn Fn(Stage) -> Driving) -> Result<Observed, String> {
    let world = World::new(pace, latches(scenario));
    let stage = Stage { scenario: Arc::clone(scenario), world, warnings: Arc::new(Warnings::begin()), trace: Arc::default() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(pace == Pace::Paused)
        .build()
        .expect("a runtime can be built");
    let driven = runtime.block_on(drive(stage.clone()))?;
    let (events, logged) = stage.trace.get().cloned().expect("a driver settles its emission");
    let never_awaited = stage.world.never_awaited();
    runtime.shutdown_background();
    Ok(Observed {
        not_run: not_run(scenario, &events),
        never_awaited,
        outcome: driven.outcome,
        logs: BTreeMap::from([("WARNING".to_owned(), logged)]),
        extra: driven.extra,
        events,
    })
}

impl Stage {
    /// The preparation is over: what was logged until now is not the emission's, and is said.
    pub(super) fn begin(&self) -> u64 {
        self.warnings.take()
    }

    /// Waits for the emission as its emitter does: cancels it when the scenario says so, and gives up on it when it hangs.
    pub(super) async fn emission(&self, cancel: impl Fn(), emission: impl Future<Output = Outcome>) -> Outcome {
        let mut emission = pin!(emission);
        let outcome = tokio::select! {
            biased;
            outcome = &mut emission => outcome,
            () = self.cancelling(cancel) => unreachable!("it waits on after it has cancelled"),
            () = sleep(HUNG) => Outcome::Hung,
        };
        self.ended(&outcome);
        if outcome == Outcome::Hung {
            // What giving up does to it is no part of the trace.
            self.settle().await;
        }
        outcome
    }

    /// The emission of a synchronous entry: nothing can cancel it.
    pub(super) fn ended(&self, outcome: &Outcome) {
        let (who, what) = outcome.event().split_once(':').expect("it names the emitter");
        self.world.log(who, what);
    }

    async fn cancelling(&self, cancel: impl Fn()) {
        let emit = &self.scenario.emit;
        match (&emit.cancel_on_latch, emit.cancel_after_ms) {
            (None, None) => std::future::pending().await,
            (latch, after) => {
                if let Some(latch) = latch {
                    self.world.latch(latch).opened().await;
                }
                sleep(self.world.pace.span(after.unwrap_or(0))).await;
                self.world.log("emitter", "cancel");
                cancel();
                std::future::pending().await
            }
        }
    }

    /// Waits for late events, if the recorder did. What happens after it is no part of the trace.
    pub(super) async fn settle(&self) {
        if self.scenario.settle_ms > 0 && self.trace.get().is_none() {
            self.world.settle(self.scenario.settle_ms).await;
        }
        self.trace.get_or_init(|| (self.world.events(), self.warnings.take()));
    }
}

fn latches(scenario: &Scenario) -> BTreeSet<String> {
    let steps = scenario.handlers.iter().flat_map(|handler| handler.script.iter().chain(&handler.invoke_script));
    let named = steps.filter_map(|step| match step {
        Step::Set { latch } | Step::Await { latch } => Some(latch.clone()),
        _ => None,
    });
    named.chain(scenario.emit.cancel_on_latch.clone()).collect()
}

fn not_run(scenario: &Scenario, events: &[String]) -> Vec<String> {
    let ran =
        |name: &str| events.iter().any(|event| [":start", ":invoke"].iter().any(|what| event.strip_suffix(what) == Some(name)));
    let names: BTreeSet<&String> = scenario.handlers.iter().map(|handler| &handler.name).collect();
    names.into_iter().filter(|name| !ran(name)).cloned().collect()
}
