//! One incarnation of a supervisor: what it holds of its children, and how the kernel's effects are performed.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ractor::{ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorStatus};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::child::{ChildId, Parent, Standing, Started};
use super::early::EarlyEnds;
use super::end::End;
use super::error::{EndCause, StartChildError, StartError, SupervisorEnded};
use super::event::{ReportKind, ReportSink, SupervisionReport, TARGET};
use super::handle::{ChildInfo, SupervisorPhase};
use super::kernel::{Effect, Ending, Input, Kernel};
use super::shared::{Command, Shared};
use super::spec::{ChildSpec, SupervisorSpec};
use super::tasks::{Cancel, TaskReport, Tasks};

/// Requests and task reports that are taken before the actor looks at stops, kills and supervision events again.
const BATCH: usize = 32;

type StartReply = oneshot::Sender<Result<ChildId, StartChildError>>;

/// What this incarnation holds of a child.
struct Slot {
    spec: Arc<ChildSpec>,
    dynamic: bool,
    actor: Option<ActorCell>,
    /// Of the running incarnation, or of the last one until the next start has waited for it.
    task: Option<JoinHandle<()>>,
    /// The start under way, and what cancels it.
    start: Option<(u64, Cancel)>,
    timer: Option<AbortHandle>,
    start_error: Option<StartError>,
    start_reply: Option<StartReply>,
    stop_replies: Vec<oneshot::Sender<bool>>,
}

/// The state of one incarnation. Dropping it, in order or by a kill, aborts the helper tasks and tells those whom
/// nobody else will tell.
pub(crate) struct Incarnation {
    myself: ActorRef<()>,
    spec: Arc<SupervisorSpec>,
    shared: Arc<Shared>,
    nested: bool,
    reports: Option<ReportSink>,
    kernel: Kernel,
    slots: HashMap<ChildId, Slot>,
    by_actor: HashMap<ActorId, ChildId>,
    tasks: Tasks,
    early: EarlyEnds<ActorId, End>,
    /// Children that had ended when their start reported, while the event about it was not seen: it is next in the queue, or will
    /// never come.
    unseen: Vec<ActorId>,
    /// Tasks of forgotten children that had not ended when their end was seen.
    ending: Vec<JoinHandle<()>>,
    effects: Vec<Effect>,
    degraded_changed: bool,
    /// Reports of what the status does not say yet.
    untold: Vec<SupervisionReport>,
    exhausted: Option<EndCause>,
}

impl Incarnation {
    pub(crate) fn new(
        myself: ActorRef<()>,
        spec: Arc<SupervisorSpec>,
        shared: Arc<Shared>,
        nested: bool,
        reports: Option<ReportSink>,
    ) -> Self {
        // Spread only: two supervisors should not jitter alike.
        let seed = RandomState::new().hash_one(myself.get_id());
        Self {
            kernel: Kernel::new(spec.rules(nested), seed),
            tasks: Tasks::new(Arc::clone(&shared)),
            myself,
            spec,
            shared,
            nested,
            reports,
            slots: HashMap::new(),
            by_actor: HashMap::new(),
            early: EarlyEnds::new(),
            unseen: Vec::new(),
            ending: Vec::new(),
            effects: Vec::new(),
            degraded_changed: false,
            untold: Vec::new(),
            exhausted: None,
        }
    }

    /// Takes the children of the specification in.
    pub(crate) fn begin(&mut self) {
        let spec = Arc::clone(&self.spec);
        for (at, child) in spec.children.iter().enumerate() {
            // Stopped for good, or finished, under a former incarnation.
            if !child.is_gone() {
                self.add(ChildId::new(at as u64), Arc::clone(child), None);
            }
        }
        // Requests may have waited for this incarnation.
        self.shared.ring();
    }

    /// Takes in what tasks and handles have to say, up to a bound.
    pub(crate) fn serve(&mut self) {
        // Disarmed before the queues are looked at: what comes in from now on rings again.
        self.shared.disarm();
        self.settle_unseen();
        for _ in 0..BATCH {
            if let Some(report) = self.tasks.try_next() {
                self.on_report(report);
            } else if let Some(command) = self.shared.try_command() {
                self.on_command(command);
            } else {
                return;
            }
        }
        self.shared.ring();
    }

    /// The last step of whatever was done: tells the status, and after a spent budget stops the children and fails, which the
    /// level above sees.
    pub(crate) async fn conclude(&mut self) -> Result<(), ActorProcessingErr> {
        self.publish();
        if self.kernel.ending().is_none() {
            return Ok(());
        }
        let cause = self.wind_down().await;
        Err(Box::new(SupervisorEnded { name: Arc::clone(self.shared.name()), cause }))
    }

    /// Stops the children in reverse order, serving meanwhile, and returns when the last task has ended.
    pub(crate) async fn wind_down(&mut self) -> EndCause {
        self.drive(Input::WindDown);
        self.publish();
        while !self.kernel.is_over() {
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                biased;
                Some(report) = self.tasks.next() => self.on_report(report),
                Some(command) = poll_fn(|cx| shared.poll_command(cx)) => self.on_command(command),
                else => break,
            }
            self.publish();
        }
        for task in self.ending.drain(..) {
            let _ = task.await;
        }
        let cause = self.end_cause();
        self.shared.publish(|status| status.phase = SupervisorPhase::Down(cause.clone()));
        cause
    }

    fn add(&mut self, id: ChildId, spec: Arc<ChildSpec>, reply: Option<StartReply>) {
        let dynamic = reply.is_some();
        let facts = spec.facts(self.spec.default_backoff(), dynamic);
        let slot = Slot {
            spec,
            dynamic,
            actor: None,
            task: None,
            start: None,
            timer: None,
            start_error: None,
            start_reply: reply,
            stop_replies: Vec::new(),
        };
        self.slots.insert(id, slot);
        self.drive(Input::Add { child: id, facts });
    }

    /// A supervision event about some actor. One that is being stopped is not known here any more: it is down when its stop says
    /// so.
    pub(crate) fn on_end(&mut self, actor: ActorId, end: End) {
        let Some(child) = self.by_actor.remove(&actor) else { return self.early.seen(actor, end) };
        let Some(incarnation) = self.kernel.incarnation(child) else { return };
        if let Some(slot) = self.slots.get_mut(&child) {
            slot.actor = None;
        }
        self.drive(Input::Down { child, incarnation, end });
    }

    /// Whatever event there was about these has been handled since: events come before messages.
    fn settle_unseen(&mut self) {
        for actor in std::mem::take(&mut self.unseen) {
            if self.by_actor.contains_key(&actor) {
                self.on_end(actor, End::StartFailed(StartError::NotLinked));
            }
        }
    }

    fn on_report(&mut self, report: TaskReport) {
        match report {
            TaskReport::StartEnded { child, incarnation, outcome } => self.on_start_ended(child, incarnation, outcome),
            TaskReport::StopEnded { child, incarnation, killed } => {
                self.drive(Input::Down { child, incarnation, end: End::Asked { killed } });
            }
            TaskReport::Overdue { child } => self.report(child, ReportKind::Overdue),
            TaskReport::TimerFired { child, generation } => self.drive(Input::Timer { child, generation }),
        }
    }

    fn on_start_ended(&mut self, child: ChildId, incarnation: u64, outcome: Option<Result<Started, StartError>>) {
        let Some(slot) = self.slots.get_mut(&child) else { return };
        let Some((start, _)) = slot.start.take() else { return };
        let (started, failed) = match outcome {
            Some(Ok(started)) => (started.take(), End::StartFailed(StartError::NotLinked)),
            Some(Err(error)) => (None, End::StartFailed(error)),
            None => (None, End::Asked { killed: false }),
        };
        let early = self.early.over(start, started.as_ref().map(|(actor, _)| actor.get_id()));
        match started {
            Some((actor, task)) if early.is_some() || self.is_ours(&actor) => {
                if let Some(slot) = self.slots.get_mut(&child) {
                    slot.task = task;
                    slot.actor = early.is_none().then(|| actor.clone());
                }
                if early.is_none() {
                    self.by_actor.insert(actor.get_id(), child);
                }
                self.drive(Input::Started { child, incarnation });
                if let Some(end) = early
                    && !self.kernel.is_stopping(child)
                {
                    self.drive(Input::Down { child, incarnation, end });
                }
            }
            started => {
                if let Some((actor, task)) = started {
                    actor.kill();
                    self.ending.extend(task);
                }
                if let (Some(slot), End::StartFailed(error)) = (self.slots.get_mut(&child), &failed) {
                    slot.start_error = Some(error.clone());
                }
                self.drive(Input::Down { child, incarnation, end: failed });
            }
        }
    }

    /// Whether we hear of the actor's end. One that is no longer linked because it has ended is looked at again after its event.
    fn is_ours(&mut self, actor: &ActorCell) -> bool {
        // In this order: an actor that ends is stopping before it is unlinked.
        if actor.try_get_supervisor().is_some_and(|above| above.get_id() == self.myself.get_id()) {
            return true;
        }
        let ended = actor.get_status() >= ActorStatus::Stopping;
        if ended {
            self.unseen.push(actor.get_id());
            self.shared.ring();
        }
        ended
    }

    fn on_command(&mut self, command: Command) {
        match command {
            command if self.kernel.ending().is_some() && matches!(command, Command::StartChild { .. }) => command.refuse(),
            Command::StartChild { spec, reply } => {
                let limit = self.spec.max_dynamic;
                if self.kernel.dynamic() >= limit {
                    let _ = reply.send(Err(StartChildError::Full { spec, limit }));
                } else {
                    let id = self.shared.next_dynamic();
                    self.add(id, Arc::from(spec), Some(reply));
                }
            }
            Command::StopChild { child, reply } => match self.slots.get_mut(&child) {
                Some(slot) => {
                    // Callers that gave up leave nothing behind.
                    slot.stop_replies.retain(|reply| !reply.is_closed());
                    slot.stop_replies.push(reply);
                    self.drive(Input::Stop { child });
                }
                None => drop(reply.send(false)),
            },
            Command::Children { reply } => drop(reply.send(self.children())),
        }
    }

    fn children(&self) -> Vec<ChildInfo> {
        let mut children: Vec<ChildInfo> = self
            .slots
            .iter()
            .map(|(&id, slot)| ChildInfo {
                id,
                name: Arc::clone(slot.spec.name()),
                dynamic: slot.dynamic,
                running: self.kernel.is_running(id),
                degraded: self.kernel.degraded().contains(&id),
                restarts: self.kernel.restarts_of(id),
            })
            .collect();
        children.sort_unstable_by_key(|child| child.id);
        children
    }

    fn drive(&mut self, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        self.kernel.step(input, Instant::now(), &mut effects);
        if self.exhausted.is_none() {
            // While the child that did it still has its name.
            self.exhausted = self.exhaustion();
        }
        for effect in effects.drain(..) {
            self.perform(effect);
        }
        self.effects = effects;
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start { child, incarnation } => self.start(child, incarnation),
            Effect::CancelStart { child } => {
                if let Some((_, cancel)) = self.slots.get_mut(&child).and_then(|slot| slot.start.as_mut()) {
                    cancel.cancel();
                }
            }
            Effect::Stop { child, incarnation } => self.stop(child, incarnation),
            Effect::Arm { child, generation, delay } => {
                let timer = self.tasks.timer(child, generation, delay);
                if let Some(slot) = self.slots.get_mut(&child) {
                    slot.timer = Some(timer);
                }
            }
            Effect::Disarm { child } => {
                if let Some(timer) = self.slots.get_mut(&child).and_then(|slot| slot.timer.take()) {
                    timer.abort();
                }
            }
            Effect::Tell { child, standing } => self.tell(child, standing),
            Effect::Report { child, what } => self.report(child, what),
            Effect::Forget { child } => self.forget(child),
        }
    }

    fn start(&mut self, child: ChildId, incarnation: u64) {
        let Some(slot) = self.slots.get_mut(&child) else { return };
        let cell = self.myself.get_cell();
        let parent = Parent { cell, shared: Arc::clone(&self.shared), child, reports: self.reports.clone() };
        let cancel = self.tasks.start((child, incarnation), Arc::clone(&slot.spec), parent, slot.task.take());
        slot.start = Some((self.early.begin(), cancel));
        slot.timer = None;
    }

    fn stop(&mut self, child: ChildId, incarnation: u64) {
        let Some(slot) = self.slots.get_mut(&child) else { return };
        let (_, grace) = slot.spec.timeouts();
        let task = slot.task.take();
        match slot.actor.take() {
            Some(actor) => {
                self.by_actor.remove(&actor.get_id());
                self.tasks.stop((child, incarnation), self.myself.get_cell(), actor, task, grace);
            }
            // Its end was seen together with its start.
            None => self.tasks.await_end((child, incarnation), task),
        }
    }

    fn tell(&mut self, child: ChildId, standing: Standing) {
        let Some(slot) = self.slots.get_mut(&child) else { return };
        slot.spec.tell(standing);
        if standing == Standing::Up
            && let Some(reply) = slot.start_reply.take()
        {
            let _ = reply.send(Ok(child));
        }
    }

    fn report(&mut self, child: ChildId, what: ReportKind) {
        self.degraded_changed |= matches!(what, ReportKind::Degraded { .. } | ReportKind::Recovered { .. });
        let Some(slot) = self.slots.get(&child) else { return };
        let supervisor = Arc::clone(self.shared.name());
        let report = SupervisionReport { supervisor, child: Arc::clone(slot.spec.name()), id: child, what };
        report.trace();
        if self.reports.is_some() {
            self.untold.push(report);
        }
    }

    /// After the status says so too: whoever reads a report and then looks finds what was reported.
    fn tell_reports(&mut self) {
        if let Some(sink) = &self.reports {
            self.untold.drain(..).for_each(|report| sink.put(report));
        }
    }

    fn forget(&mut self, child: ChildId) {
        let Some(slot) = self.slots.remove(&child) else { return };
        self.degraded_changed = true;
        if let Some(actor) = &slot.actor {
            self.by_actor.remove(&actor.get_id());
        }
        if let Some(task) = slot.task {
            self.ending.retain(|task| !task.is_finished());
            self.ending.push(task);
        }
        if let Some(reply) = slot.start_reply {
            let error = slot.start_error.map_or(StartChildError::Stopped, StartChildError::Failed);
            let _ = reply.send(Err(error));
        }
        for reply in slot.stop_replies {
            let _ = reply.send(true);
        }
        drop_guarded(slot.spec);
    }

    fn exhaustion(&self) -> Option<EndCause> {
        let Some(Ending::Exhausted { child, end }) = self.kernel.ending() else { return None };
        let name = self.slots.get(child).map_or_else(|| Arc::from(""), |slot| Arc::clone(slot.spec.name()));
        Some(EndCause::Exhausted { child: name, end: Box::new(end.clone()) })
    }

    fn end_cause(&self) -> EndCause {
        match (&self.exhausted, self.kernel.ending()) {
            (Some(exhausted), _) => exhausted.clone(),
            (None, Some(_)) => EndCause::Asked,
            (None, None) => EndCause::Killed,
        }
    }

    fn publish(&mut self) {
        let degraded = std::mem::take(&mut self.degraded_changed).then(|| {
            let name = |id| self.slots.get(id).map(|slot| Arc::clone(slot.spec.name()));
            self.kernel.degraded().iter().filter_map(name).collect()
        });
        let (kernel, tasks) = (&self.kernel, self.tasks.len());
        self.shared.publish(|status| {
            if kernel.ending().is_some() {
                status.phase = SupervisorPhase::Stopping;
            } else if matches!(status.phase, SupervisorPhase::Starting) && kernel.is_up() {
                status.phase = SupervisorPhase::Up;
            }
            status.children = kernel.len();
            status.restarts = kernel.restarts();
            status.tasks = tasks;
            if let Some(degraded) = degraded {
                status.degraded = degraded;
            }
        });
        self.tell_reports();
    }
}

impl Drop for Incarnation {
    /// In order or by a kill, this is the end of the incarnation. Children of the specification of a supervisor below another are
    /// told by that one how they stand.
    fn drop(&mut self) {
        for slot in self.slots.values().filter(|slot| slot.dynamic || !self.nested) {
            slot.spec.tell(Standing::Gone);
        }
        let cause = self.end_cause();
        self.shared.publish(|status| {
            status.children = 0;
            status.tasks = 0;
            if !matches!(status.phase, SupervisorPhase::Down(_) | SupervisorPhase::Ended(_)) {
                status.phase = SupervisorPhase::Down(cause);
            }
        });
        self.tell_reports();
        self.shared.leave();
        if !self.nested {
            self.shared.close();
        }
    }
}

/// Drops what a user made: its drop may panic, which must not take the supervisor and all children with it.
pub(crate) fn drop_guarded<T>(value: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(value))).is_err() {
        tracing::error!(target: TARGET, "something of an ended child panicked when it was dropped");
    }
}
