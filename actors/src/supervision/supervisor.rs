//! The supervisor's actor: performs what `kernel.rs` decides.
//!
//! Four things reach it, and none of them makes it wait: the substrate's supervision events, the reports of its helper tasks, the
//! requests of its handles, and a stop. Only when it ends does it wait: for its children, each within its stop timeout. It ends
//! its children itself, since the substrate kills the children of an actor that ends; this is a courtesy to the children, and
//! nothing is incorrect without it.

use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::child::{Parent, Started};
use super::end::{Cause, End};
use super::error::{SpawnError, StartError};
use super::event::ReportSink;
use super::handle::{SupervisorHandle, SupervisorPhase};
use super::incarnation::{Incarnation, drop_guarded};
use super::shared::Shared;
use super::spec::SupervisorSpec;

/// The door to supervision: spawns the root of a tree.
#[derive(Debug, Clone, Copy)]
pub struct Supervisor;

impl Supervisor {
    /// Spawns a supervisor that stands alone, on the tokio runtime of the caller. Returns at once; [`SupervisorHandle::started`]
    /// waits for the children.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// [`SpawnError::Refused`].
    pub async fn spawn(spec: SupervisorSpec) -> Result<SupervisorHandle, SpawnError> {
        Self::spawn_root(None, spec).await
    }

    /// Spawns a supervisor below an actor of the host.
    ///
    /// The host's actor sees `ActorStarted`, then `ActorTerminated` after a [`shutdown`](SupervisorHandle::shutdown), or
    /// `ActorFailed` with [`SupervisorEnded`](super::SupervisorEnded) when the restart budget is spent; never a child's event.
    ///
    /// By the substrate's default an actor stops when a child ends: a host that wants to survive our end handles supervision
    /// events. A host that ends kills us: call `shutdown` first.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// [`SpawnError::Refused`] when the host's actor is ending.
    pub async fn spawn_under(parent: ActorCell, spec: SupervisorSpec) -> Result<SupervisorHandle, SpawnError> {
        Self::spawn_root(Some(parent), spec).await
    }

    async fn spawn_root(parent: Option<ActorCell>, spec: SupervisorSpec) -> Result<SupervisorHandle, SpawnError> {
        let spec = Arc::new(spec);
        let shared = Shared::new(&spec);
        let name = Arc::clone(&spec.name);
        let arguments = Arguments { reports: spec.reports.clone(), spec, shared: Arc::clone(&shared), nested: false };
        let spawned = match parent {
            Some(parent) => Actor::spawn_linked(None, SupervisorActor, arguments, parent).await,
            None => Actor::spawn(None, SupervisorActor, arguments).await,
        };
        let (_, task) = spawned.map_err(|error| SpawnError::Refused { name, source: Cause::new(error) })?;
        shared.owns_task(task);
        Ok(SupervisorHandle::new(shared))
    }
}

/// The start of a supervisor below another: done when its own children are up. Given up before, it is killed.
pub(crate) async fn start_below(parent: Parent, spec: Arc<SupervisorSpec>, shared: Arc<Shared>) -> Result<Started, StartError> {
    shared.stands_below(&parent.shared, parent.child);
    let reports = spec.reports.clone().or_else(|| parent.reports.clone());
    let arguments = Arguments { spec, shared: Arc::clone(&shared), nested: true, reports };
    shared.vacant().await;
    let started = parent.spawn(SupervisorActor, arguments).await?;
    shared.settled().await.map_err(|ended| StartError::Subtree { name: ended.name, cause: ended.cause })?;
    Ok(started)
}

struct SupervisorActor;

struct Arguments {
    spec: Arc<SupervisorSpec>,
    shared: Arc<Shared>,
    nested: bool,
    reports: Option<ReportSink>,
}

#[ractor::actor(message = (), state = Incarnation, arguments = Arguments)]
impl SupervisorActor {
    async fn pre_start(&self, myself: ActorRef<()>, arguments: Arguments) -> Result<Incarnation, ActorProcessingErr> {
        let Arguments { spec, shared, nested, reports } = arguments;
        shared.take_over(myself.clone());
        shared.publish(|status| {
            status.phase = SupervisorPhase::Starting;
            status.restarts = 0;
        });
        Ok(Incarnation::new(myself, spec, shared, nested, reports))
    }

    async fn post_start(&self, _: ActorRef<()>, state: &mut Incarnation) -> Result<(), ActorProcessingErr> {
        state.begin();
        state.conclude().await
    }

    async fn handle(&self, _: ActorRef<()>, _: (), state: &mut Incarnation) -> Result<(), ActorProcessingErr> {
        state.serve();
        state.conclude().await
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut Incarnation,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(actor, last_state, reason) => {
                // Never read. Dropped before anything else, since the next incarnation may need what it holds.
                drop_guarded(last_state);
                state.on_end(actor.get_id(), End::terminated(reason));
            }
            SupervisionEvent::ActorFailed(actor, error) => state.on_end(actor.get_id(), End::Failed(Cause::boxed(error))),
            // A start says more in its own report. Groups are not used, and other variants exist only with features of others.
            _ => return Ok(()),
        }
        state.conclude().await
    }

    async fn post_stop(&self, _: ActorRef<()>, state: &mut Incarnation) -> Result<(), ActorProcessingErr> {
        state.wind_down().await;
        Ok(())
    }
}
