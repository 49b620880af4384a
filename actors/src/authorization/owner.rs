//! The actor that decides proposals of one owner. Its phases are its messages: propose -> (decide, on a task of its own) -> permit -> complete.
//!
//! | message  | it does                                                                                                         |
//! |----------|-----------------------------------------------------------------------------------------------------------------|
//! | Propose  | runs the plan on a task of its own, within the owner's bound; answers with a ruling                              |
//! | Complete | strikes the permit off the list of open ones                                                                    |
//!
//! Proposals wait in the port while the bound is reached. A crash takes the proposals in flight with it; each is answered by its handle with
//! `AuthorizationRestarted`, and none was performed, because a permit exists only once its ruling was sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use tipstaff_core::id::{AttemptId, OperationId};
use tipstaff_core::interception::{ChainOutcome, Denial, DenialCause, Denied};
use tipstaff_core::operation::{Completion, CompletionPlace, Grant, Owner, OwnerPlan, Proposal, Ruling, Verdict};
use tipstaff_core::telemetry;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::crash::{CrashPoint, Doors};
use crate::port::{Context, Doorbell, Handler, HandlerError, Port, Reply, Reservation};

/// What travels to the owner of one sort of operation.
pub(crate) enum Proposing<O: Owner> {
    /// May this be performed?
    Propose(Proposal<O>, Reply<Ruling<O, CompletionTicket<O>>>),
    /// A permitted attempt has ended.
    Complete(Completion),
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
    /// The operation.
    pub operation: OperationId,
    /// The attempt.
    pub attempt: AttemptId,
    /// For how long it has been open.
    pub open_for: Duration,
}

/// The open permits of one owner.
#[derive(Clone, Default)]
pub(crate) struct OpenPermits(Arc<DashMap<AttemptId, (OperationId, Instant)>>);

impl OpenPermits {
    /// Every open permit, in no order.
    pub(crate) fn list(&self) -> Vec<OpenPermit> {
        let now = Instant::now();
        let open = |entry: dashmap::mapref::multiple::RefMulti<'_, AttemptId, (OperationId, Instant)>| {
            let (operation, since) = entry.value();
            OpenPermit {
                operation: operation.clone(),
                attempt: entry.key().clone(),
                open_for: now.saturating_duration_since(*since),
            }
        };
        self.0.iter().map(open).collect()
    }

    fn list_open(&self, operation: OperationId, attempt: AttemptId) -> Listed {
        self.0.insert(attempt.clone(), (operation, Instant::now()));
        Listed { open: self.clone(), attempt }
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

/// A permit's line in the list of open ones. It ends with the ticket, also where the ruling that carried it was never read: on the way to a proposer
/// that went away, nobody is left to complete it.
struct Listed {
    open: OpenPermits,
    attempt: AttemptId,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.0.remove(&self.attempt);
    }
}

impl<O: Owner> CompletionPlace for CompletionTicket<O> {
    /// The list of open permits is brought up to date here: it is right also while the actor restarts. The message tells the actor.
    fn complete(mut self, completion: Completion) {
        drop(self.listed);
        // Refused only by a port that is closed for good: then there is no owner to tell.
        let _closed = self.place.send(Proposing::Complete(completion));
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
    bound: usize,
    deciding: JoinSet<()>,
    in_flight: Arc<AtomicUsize>,
    doors: Doors,
}

impl<O: Owner> Decider<O> {
    pub(crate) fn new(plan: OwnerPlan<O>, port: Port<Proposing<O>>, open: OpenPermits, bound: usize, doors: Doors) -> Self {
        Self { plan, port, open, bound, deciding: JoinSet::new(), in_flight: Arc::default(), doors }
    }
}

impl<O: Owner> Handler for Decider<O> {
    type Message = Proposing<O>;

    async fn started(&mut self, _context: &Context<Proposing<O>>) -> Result<(), HandlerError> {
        self.doors.pass(CrashPoint::AuthorizerStarting);
        Ok(())
    }

    fn ready(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) < self.bound
    }

    async fn handle(&mut self, message: Proposing<O>, context: &Context<Proposing<O>>) -> Result<(), HandlerError> {
        while self.deciding.try_join_next().is_some() {}
        match message {
            Proposing::Propose(proposal, reply) if !reply.is_closed() => {
                self.doors.pass(CrashPoint::AuthorizerInHand);
                self.decide(proposal, reply, context.doorbell());
            }
            Proposing::Propose(..) => {}
            Proposing::Complete(completion) => {
                tracing::trace!(target: telemetry::AUTHORIZATION, owner = O::NAME, attempt = %completion.attempt, status = completion.status.as_str(), "a permit was completed");
            }
        }
        Ok(())
    }
}

impl<O: Owner> Decider<O> {
    fn decide(&mut self, proposal: Proposal<O>, mut reply: Reply<Ruling<O, CompletionTicket<O>>>, doorbell: Doorbell) {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        let place = Place { in_flight: Arc::clone(&self.in_flight), bound: self.bound, doorbell };
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
            // Unheard, a permit gives back its place and its line in the list by being dropped.
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
                let listed = open.list_open(proposal.operation().clone(), proposal.attempt().clone());
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

/// A place of the owner's bound. When it was the last one, the owner is rung to look again.
struct Place {
    in_flight: Arc<AtomicUsize>,
    bound: usize,
    doorbell: Doorbell,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == self.bound {
            self.doorbell.ring();
        }
    }
}
