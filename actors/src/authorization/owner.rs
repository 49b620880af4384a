//! The actor that decides proposals of one owner. Its phases are its messages: propose -> (decide, on a task of its own) -> permit -> complete.
//!
//! | message  | it does                                                                                                         |
//! |----------|-----------------------------------------------------------------------------------------------------------------|
//! | Propose  | runs the plan on a task of its own, within the owner's bound; answers with a ruling                              |
//! | Complete | strikes the permit off the list of open ones                                                                    |
//! | Survive  | runs what is left of an attempt whose caller has gone, on a task of its own; then as Complete (I-4)               |
//!
//! Proposals wait in the port while the bound is reached. A crash takes the proposals in flight with it; each is answered by its handle with
//! `AuthorizationRestarted`, and none was performed, because a permit exists only once its ruling was sent. What survives a caller does not survive its
//! owner: a crash breaks a teardown off, and an orderly end waits for it as long as the owner may take to stop. The attempt is recorded either way.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tipstaff_core::id::{AttemptId, OperationId};
use tipstaff_core::interception::{ChainOutcome, Denial, DenialCause, Denied};
use tipstaff_core::operation::{Completion, CompletionPlace, Grant, Owner, OwnerPlan, Proposal, Ruling, Shielded, Verdict};
use tipstaff_core::telemetry;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::crash::{CrashPoint, Doors};
use crate::port::{Context, Doorbell, Handler, HandlerError, Places, Port, Reply, Reservation};

/// What travels to the owner of one sort of operation.
pub(crate) enum Proposing<O: Owner> {
    /// May this be performed?
    Propose(Proposal<O>, Reply<Ruling<O, CompletionTicket<O>>>),
    /// A permitted attempt has ended.
    Complete(Completion),
    /// The caller of a permitted attempt has gone; this is left of it.
    Survive(Survivor),
}

/// What is left of an attempt whose caller has gone. Its permit is open until then.
pub(crate) struct Survivor {
    rest: Shielded,
    _listed: Listed,
}

/// The answer of a port whose owner has spent its restart budget (P-8): nothing waits, nothing is allowed.
pub(crate) fn degraded<O: Owner>(message: Proposing<O>) {
    if let Proposing::Propose(_, reply) = message {
        let why = "the authorization actor has spent its restart budget";
        // The proposer may have gone.
        let _unheard = reply.send(denied(DenialCause::AuthorizationDegraded, why));
    }
}

pub(crate) fn denied<O: Owner, P>(cause: DenialCause, reason: impl Into<String>) -> Ruling<O, P> {
    let denial = Denial::by_host(cause, reason);
    let denied = Denied { denial, owner_stop: false, observed: None, notes: Vec::new() };
    Ruling { verdict: Verdict::Denied(Box::new(denied)), report: None }
}

/// A permit that is open: issued, and not completed. Registered outside the actor, so that a restart forgets none (P-14).
#[derive(Debug, Clone)]
pub struct OpenPermit {
    /// The name of its owner.
    pub owner: &'static str,
    /// The operation.
    pub operation: OperationId,
    /// The attempt.
    pub attempt: AttemptId,
    /// For how long it has been open.
    pub open_for: Duration,
}

/// The open permits of one runtime's owners, each under a number of its own: attempts are named by their callers, and two operations may use one name.
#[derive(Clone, Default)]
pub(crate) struct OpenPermits(Arc<Register>);

#[derive(Default)]
struct Register {
    issued: AtomicU64,
    open: DashMap<u64, Entry>,
}

struct Entry {
    owner: &'static str,
    operation: OperationId,
    attempt: AttemptId,
    since: Instant,
}

impl OpenPermits {
    /// Every open permit, in no order.
    pub(crate) fn list(&self) -> Vec<OpenPermit> {
        let now = Instant::now();
        let open = |entry: dashmap::mapref::multiple::RefMulti<'_, u64, Entry>| {
            let Entry { owner, operation, attempt, since } = entry.value();
            let open_for = now.saturating_duration_since(*since);
            OpenPermit { owner, operation: operation.clone(), attempt: attempt.clone(), open_for }
        };
        self.0.open.iter().map(open).collect()
    }

    fn issue(&self, owner: &'static str, operation: OperationId, attempt: AttemptId) -> Listed {
        let number = self.0.issued.fetch_add(1, Ordering::Relaxed);
        self.0.open.insert(number, Entry { owner, operation, attempt, since: Instant::now() });
        Listed { open: self.clone(), number }
    }
}

/// One permit on the list of open ones. Dropped, however the permit ends or wherever its ruling is lost, it is off the list.
struct Listed {
    open: OpenPermits,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.0.open.remove(&self.number);
    }
}

impl fmt::Debug for OpenPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// A place in the owner's completion lane, held by one permit.
pub struct CompletionTicket<O: Owner> {
    place: Reservation<Proposing<O>>,
    listed: Listed,
}

impl<O: Owner> CompletionPlace for CompletionTicket<O> {
    /// The list of open permits is brought up to date here: it is right also while the actor restarts. The message tells the actor.
    fn complete(mut self, completion: Completion) {
        drop(self.listed);
        // Refused only by a port that is closed for good: then there is no owner to tell.
        let _closed = self.place.send(Proposing::Complete(completion));
    }

    /// Refused, or answered by a degraded port: what is left is dropped, and the attempt ends at once.
    fn shield(mut self, rest: Shielded) {
        let _refused = self.place.send(Proposing::Survive(Survivor { rest, _listed: self.listed }));
    }
}

impl<O: Owner> fmt::Debug for CompletionTicket<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompletionTicket").field(&O::NAME).finish()
    }
}

/// One incarnation of an owner's actor.
pub(crate) struct Decider<O: Owner> {
    plan: OwnerPlan<O>,
    port: Port<Proposing<O>>,
    open: OpenPermits,
    /// Proposals that are decided at the same time.
    places: Places,
    deciding: JoinSet<()>,
    /// What is left of attempts whose callers have gone: as many as there are permits.
    surviving: JoinSet<Completion>,
    doors: Doors,
}

impl<O: Owner> Decider<O> {
    pub(crate) fn new(plan: OwnerPlan<O>, port: Port<Proposing<O>>, open: OpenPermits, bound: usize, doors: Doors) -> Self {
        Self { plan, port, open, places: Places::new(bound), deciding: JoinSet::new(), surviving: JoinSet::new(), doors }
    }
}

impl<O: Owner> Handler for Decider<O> {
    type Message = Proposing<O>;

    async fn started(&mut self, _context: &Context<Proposing<O>>) -> Result<(), HandlerError> {
        self.doors.pass(CrashPoint::AuthorizerStarting);
        Ok(())
    }

    fn ready(&self) -> bool {
        self.places.is_free()
    }

    async fn handle(&mut self, message: Proposing<O>, context: &Context<Proposing<O>>) -> Result<(), HandlerError> {
        self.reap();
        match message {
            Proposing::Propose(proposal, reply) if !reply.is_closed() => {
                self.doors.pass(CrashPoint::AuthorizerInHand);
                self.decide(proposal, reply, context.doorbell());
            }
            Proposing::Propose(..) => {}
            Proposing::Complete(completion) => completed::<O>(&completion),
            Proposing::Survive(Survivor { rest, _listed }) => {
                self.surviving.spawn(async move {
                    let _listed = _listed;
                    rest.await
                });
            }
        }
        Ok(())
    }

    /// Waits for the teardowns under way; their own bounds end them, and the owner's stop timeout.
    async fn stopping(&mut self, _context: &Context<Proposing<O>>) {
        while let Some(ended) = self.surviving.join_next().await {
            survived::<O>(ended);
        }
    }
}

fn completed<O: Owner>(completion: &Completion) {
    tracing::trace!(target: telemetry::AUTHORIZATION, owner = O::NAME, attempt = %completion.attempt, status = completion.status.as_str(), "a permit was completed");
}

fn survived<O: Owner>(ended: Result<Completion, JoinError>) {
    match ended {
        Ok(completion) => completed::<O>(&completion),
        Err(error) => {
            tracing::error!(target: telemetry::AUTHORIZATION, owner = O::NAME, %error, "what was left of an attempt broke off")
        }
    }
}

impl<O: Owner> Decider<O> {
    fn reap(&mut self) {
        while let Some(ended) = self.deciding.try_join_next() {
            // The chain contains what interceptors do. What is left is ours; the proposal was answered by its handle.
            if let Err(error) = ended {
                tracing::error!(target: telemetry::AUTHORIZATION, owner = O::NAME, %error, "a proposal's task broke off");
            }
        }
        while let Some(ended) = self.surviving.try_join_next() {
            survived::<O>(ended);
        }
    }

    fn decide(&mut self, proposal: Proposal<O>, mut reply: Reply<Ruling<O, CompletionTicket<O>>>, doorbell: Doorbell) {
        let place = self.places.take(doorbell);
        let (plan, port, open, doors) = (self.plan.clone(), self.port.clone(), self.open.clone(), self.doors.clone());
        self.deciding.spawn(async move {
            let _place = place;
            doors.pass(CrashPoint::AuthorizerBeforeRule);
            let ruling = tokio::select! {
                biased;
                ruling = rule(&plan, &proposal, &port, &open) => ruling,
                // Dropping the proposal's future cancels the running interceptor (I-4).
                () = reply.closed() => return,
            };
            doors.pass(CrashPoint::AuthorizerAfterRule);
            // Nobody waits any more: a permit in it is given back with its place, and was never open.
            let _unheard = reply.send(ruling);
        });
    }
}

async fn rule<O: Owner>(
    plan: &OwnerPlan<O>,
    proposal: &Proposal<O>,
    port: &Port<Proposing<O>>,
    open: &OpenPermits,
) -> Ruling<O, CompletionTicket<O>> {
    let mut report = plan.report().followed_by(proposal.progress().clone());
    let context = Arc::clone(proposal.context());
    let outcome = plan.apply_identified(context, proposal.digest(), proposal.deadline(), &mut report).await;
    let verdict = match outcome {
        ChainOutcome::Permitted(permitted) => match port.try_reserve_completion() {
            Some(place) => {
                let listed = open.issue(O::NAME, proposal.operation().clone(), proposal.attempt().clone());
                Verdict::Permit(Grant { permitted, plan: plan.clone(), place: CompletionTicket { place, listed } })
            }
            None => {
                let denial = Denial::by_host(DenialCause::Overloaded, "the owner has as many permits open as it may");
                Verdict::Denied(Box::new(Denied { denial, owner_stop: false, observed: None, notes: Vec::new() }))
            }
        },
        ChainOutcome::Denied(denied) => Verdict::Denied(denied),
        ChainOutcome::Deferred { retry_at, reason, registration } => Verdict::Deferred { retry_at, reason, registration },
        ChainOutcome::Escalated(escalated) => Verdict::Escalated(escalated),
        ChainOutcome::Failed(failure) => Verdict::Failed(failure),
    };
    Ruling { verdict, report: Some(report) }
}
