//! Owners of operations beside the action executor: started in a runtime, and driven each through its own form.
//!
//! What they share is one piece of code: [`OwnerHandle::propose`] to [`OwnerHandle::perform`] here, the actor behind them, and the steps of
//! [`operation`](tipstaff_core::operation). What differs is the form.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tipstaff_core::cancel::Cancellation;
use tipstaff_core::clock::Deadline;
use tipstaff_core::interception::PlanBuilder;
use tipstaff_core::operation::harness::{Provider, ProviderHarness};
use tipstaff_core::operation::lifecycle::{Committed, SessionLifecycle, Transition};
use tipstaff_core::operation::prompt::{Prompt, PromptSubmission};
use tipstaff_core::operation::service::{ServiceCall, ServiceReply, ServiceRequest, ServiceStream};
use tipstaff_core::operation::{
    Answer, ChunkSource, Ending, Failure, Granted, IntoPerformance, Operation, Owner, Performing, Permit, Proposed, ResultOf,
    TearsDown, perform,
};

use crate::authorization::{CompletionTicket, Rulings};
use crate::observation::SessionAudit;
use crate::port::PortMetrics;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::supervision::ChildId;

/// A plan builder with the stages of an owner declared.
pub fn owner_plan<O: Owner>(name: impl Into<Arc<str>>) -> PlanBuilder<O::Context, ResultOf<O>> {
    PlanBuilder::new(name, &O::stages())
}

/// An operation of this owner that is on record; nobody has been asked yet.
pub type OwnerProposed<O> = Proposed<O, SessionAudit>;
/// Permission to perform one operation of this owner, once.
pub type OwnerPermit<O> = Permit<O, SessionAudit, CompletionTicket<O>>;
/// A streamed answer of a service call.
pub type CallStream = ServiceStream<SessionAudit, CompletionTicket<ServiceCall>>;

/// One owner of operations that runs in a runtime: a supervised actor with a plan of its own. Made by [`Runtime::start_owner`]. Cheap to clone;
/// dropping the last handle stops nothing, [`Self::stop`] and the runtime's own end do.
///
/// Facts of its operations go to the session that is named with each of them.
pub struct OwnerHandle<O: Owner> {
    rulings: Rulings<O>,
    runtime: Runtime,
    child: ChildId,
}

impl<O: Owner> OwnerHandle<O> {
    pub(crate) const fn new(rulings: Rulings<O>, runtime: Runtime, child: ChildId) -> Self {
        Self { rulings, runtime, child }
    }

    /// Puts an operation on record, as the first step of the long form: propose, [`authorize`](Self::authorize), evidence, the owner's form, review,
    /// record.
    ///
    /// # Cancel safety
    /// Cancel safe: until it returns, nothing is on record.
    ///
    /// # Errors
    /// The answer, where a required audit could not take the proposal (P-10).
    pub async fn propose(
        &self,
        session: &Session,
        operation: impl Into<Operation<O::Context>>,
    ) -> Result<OwnerProposed<O>, Answer<O>> {
        Proposed::submit(operation.into(), session.audit()).await
    }

    /// Asks for the permit of a proposed operation.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor and records the attempt as cancelled.
    ///
    /// # Errors
    /// The answer, where the operation must not be performed.
    pub async fn authorize(&self, proposed: OwnerProposed<O>) -> Result<OwnerPermit<O>, Answer<O>> {
        proposed.authorize(&self.rulings).await
    }

    /// Runs one operation through the planes, by the short form that every owner has: proposed, judged, performed by `body`, recorded, observed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor or drops the body's future; the attempt has its closing fact either way (P-2).
    pub async fn perform<F, Fut, R>(&self, session: &Session, operation: impl Into<Operation<O::Context>>, body: F) -> Answer<O>
    where
        F: FnOnce(Granted<O>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<O::Output>,
    {
        perform(operation.into(), session.audit(), &self.rulings, body).await
    }

    /// What its port holds and has counted.
    #[must_use]
    pub fn metrics(&self) -> PortMetrics {
        self.rulings.0.metrics()
    }

    /// Ends the owner: what it decides is denied, and it waits for the teardowns that have survived their callers as long as it may take to stop.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back.
    pub async fn stop(&self, deadline: Deadline) {
        self.runtime.stop_owner(self.child, deadline).await;
    }

    /// From the proposal to its permit, with its evidence where the profile asks for it.
    pub(crate) async fn permitted(
        &self,
        session: &Session,
        operation: impl Into<Operation<O::Context>>,
    ) -> Result<OwnerPermit<O>, Answer<O>> {
        let proposed = self.propose(session, operation).await?;
        self.authorize(proposed).await?.record_evidence().await
    }
}

impl<O: TearsDown> OwnerHandle<O> {
    /// From the proposal to its beginning, with what has to be torn down.
    async fn begun<F, Fut>(
        &self,
        session: &Session,
        operation: impl Into<Operation<O::Context>>,
        teardown: F,
    ) -> Result<Performing<O, SessionAudit, CompletionTicket<O>>, Answer<O>>
    where
        F: FnOnce(Ending, Cancellation) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Ok(self.permitted(session, operation).await?.begin(teardown))
    }
}

/// Service calls: invoked or streamed, with a teardown that survives the caller.
impl OwnerHandle<ServiceCall> {
    /// Calls a service for a whole answer. The teardown is called once after it was begun, whatever becomes of the call and of its caller (I-4).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor, or drops the body's future: then the teardown runs with the owner, and the attempt is
    /// recorded after it.
    pub async fn invoke<F, Fut, R, T, TearFut>(
        &self,
        session: &Session,
        request: impl Into<Operation<ServiceRequest>>,
        body: F,
        teardown: T,
    ) -> Answer<ServiceCall>
    where
        F: FnOnce(Granted<ServiceCall>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<serde_json::Value>,
        T: FnOnce(Ending, Cancellation) -> TearFut + Send + 'static,
        TearFut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let whole = async |granted| body(granted).await.into_performance().map(ServiceReply::Whole);
        match self.begun(session, request, teardown).await {
            Ok(performing) => performing.run(whole).await.review().await.record().await,
            Err(answer) => answer,
        }
    }

    /// Calls a service for an answer in chunks, which are made as the caller takes them.
    ///
    /// # Errors
    /// The answer, where the call must not be performed. That opening the stream failed is told by its end: see [`ServiceStream`].
    ///
    /// # Cancel safety
    /// As [`Self::invoke`]; dropping the stream is the same.
    pub async fn stream<F, Fut, S, E, T, TearFut>(
        &self,
        session: &Session,
        request: impl Into<Operation<ServiceRequest>>,
        open: F,
        teardown: T,
    ) -> Result<CallStream, Answer<ServiceCall>>
    where
        F: FnOnce(Granted<ServiceCall>) -> Fut + Send,
        Fut: Future<Output = Result<S, E>> + Send,
        S: ChunkSource,
        E: fmt::Display,
        T: FnOnce(Ending, Cancellation) -> TearFut + Send + 'static,
        TearFut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Ok(self.begun(session, request, teardown).await?.stream(open).await)
    }
}

/// Launches of an agent provider.
impl OwnerHandle<ProviderHarness> {
    /// Launches a provider and follows it to its end: admitted, compiled, spawned, observed, torn down.
    ///
    /// # Cancel safety
    /// Dropping the future drops the step in hand. What was spawned is torn down with the owner, and the attempt is recorded after it.
    pub async fn launch<H: Provider>(
        &self,
        session: &Session,
        plan: impl Into<Operation<tipstaff_core::operation::harness::LaunchPlan>>,
        provider: Arc<H>,
    ) -> Answer<ProviderHarness> {
        match self.permitted(session, plan).await {
            Ok(permit) => permit.launch(provider).await.review().await.record().await,
            Err(answer) => answer,
        }
    }
}

/// What is put to a model.
impl OwnerHandle<PromptSubmission> {
    /// Submits a prompt: judged, transformed, judged again, and put to the model by `submit`.
    ///
    /// # Cancel safety
    /// As [`Self::perform`].
    pub async fn submit<F, Fut, R>(
        &self,
        session: &Session,
        prompt: impl Into<Operation<Prompt>>,
        submit: F,
    ) -> Answer<PromptSubmission>
    where
        F: FnOnce(Granted<PromptSubmission>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<serde_json::Value>,
    {
        self.perform(session, prompt, submit).await
    }
}

/// A session's transitions.
impl OwnerHandle<SessionLifecycle> {
    /// Moves a session to another status: validated, committed by `commit`, observed. The commit is the host's compare-and-set; that it found another
    /// status is an answer, [`Committed::Conflict`], and nothing changed.
    ///
    /// # Cancel safety
    /// As [`Self::perform`].
    pub async fn transition<F, Fut, R>(
        &self,
        session: &Session,
        transition: impl Into<Operation<Transition>>,
        commit: F,
    ) -> Answer<SessionLifecycle>
    where
        F: FnOnce(Granted<SessionLifecycle>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<Committed>,
    {
        self.perform(session, transition, commit).await
    }
}

impl<O: Owner> Clone for OwnerHandle<O> {
    fn clone(&self) -> Self {
        Self { rulings: self.rulings.clone(), runtime: self.runtime.clone(), child: self.child }
    }
}

impl<O: Owner> fmt::Debug for OwnerHandle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnerHandle").field(&O::NAME).finish()
    }
}
