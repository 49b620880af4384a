//! One observed session: how facts enter, who sees them, and operations within it.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ractor::{ActorRef, Message};
use tipstaff_core::clock::{Deadline, Timestamp};
use tipstaff_core::dispatch::{
    DispatchError, DispatchReport, Dispatcher, JournalState, Refusal, RegisterError, Registration, Subscriber,
};
use tipstaff_core::id::SessionId;
use tipstaff_core::observation::{LiveStream, LossCounts, Recent, RecentFacts, live_stream};
use tipstaff_core::operation::{
    ActionExecutor, Answer, AuditMode, Granted, IntoPerformance, Operation, Permit, Proposed, ToolCall, Unrecorded, perform,
};
use tipstaff_core::signal::{Redactions, Signal, SignalBuilder, SignalKind, SignalSeq};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::authorization::CompletionTicket;
use crate::journal::{Confirm, Request};
use crate::observation::{
    ActorFeed, Admission, AdmissionParts, Admitted, Emission, Here, Observed, SessionAudit, Wants, deliver,
};
use crate::port::{Mailbox, Reservation};
use crate::runtime::{Runtime, RuntimeError};
use crate::supervision::ChildId;
use crate::tree;

/// How long an emission may wait for its own report beyond the policy's deadline.
const REPORT: Duration = Duration::from_secs(35);

/// Facts that an observing actor may hold at the same time, where nothing else is said.
pub const ACTOR_BOUND: NonZeroUsize = NonZeroUsize::new(1024).expect("the literal is not zero");

/// A tool call that is on record; nobody has been asked yet.
pub type ProposedCall = Proposed<ActionExecutor, SessionAudit>;
/// Permission to perform one tool call, once.
pub type CallPermit = Permit<ActionExecutor, SessionAudit, CompletionTicket<ActionExecutor>>;
/// The end of one attempt of a tool call.
pub type CallAnswer = Answer<ActionExecutor>;

/// One observed session of a runtime. Cheap to clone; handles stay valid over restarts of its observer.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    admission: Arc<Admission>,
    runtime: Runtime,
    observer: ChildId,
    mailbox: Arc<Mailbox<Emission>>,
    /// What the session had lost when it ended.
    final_losses: OnceLock<LossCounts>,
    /// Live streams, which end with the session. Held for a push or a take.
    live: Mutex<Vec<Registration>>,
}

/// Describes a session before it is opened. The order in which its subscriptions are declared means nothing for the audit: the journal is fed before
/// and independently of every subscriber (P-4, P-5).
#[must_use = "a session is opened by `open`"]
pub struct SessionBuilder {
    runtime: Runtime,
    id: SessionId,
    audit: Option<AuditMode>,
    ring: Option<NonZeroUsize>,
    redactions: Redactions,
    subscribers: Vec<Subscriber<Signal>>,
}

impl SessionBuilder {
    pub(crate) fn new(runtime: Runtime, id: SessionId) -> Self {
        Self { runtime, id, audit: None, ring: None, redactions: Redactions::default(), subscribers: Vec::new() }
    }

    /// How its facts must reach the journal (P-10). Without this: required where the runtime has a store, off where it has none.
    pub fn audit(mut self, mode: AuditMode) -> Self {
        self.audit = Some(mode);
        self
    }

    /// Keeps the most recent facts in memory (P-5).
    pub fn recent(mut self, facts: NonZeroUsize) -> Self {
        self.ring = Some(facts);
        self
    }

    /// Keeps fields and patterns out of stored and shown payloads (P-15).
    pub fn redact(mut self, redactions: Redactions) -> Self {
        self.redactions = redactions;
        self
    }

    /// Registers a subscriber.
    pub fn observe(mut self, subscriber: Subscriber<Signal>) -> Self {
        self.subscribers.push(subscriber);
        self
    }

    /// Opens the session and starts its observer.
    ///
    /// # Errors
    /// [`RuntimeError::SessionOpen`] when a session of this identity is open already, [`RuntimeError::NoStore`] when a required audit has no store to go
    /// to, [`RuntimeError::Register`] when two subscribers share a name, [`RuntimeError::Supervision`] when the runtime is stopping.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an observer without a session, idle until the runtime stops. The identity stays free.
    pub async fn open(self) -> Result<Session, RuntimeError> {
        let Self { runtime, id, audit, ring, redactions, subscribers } = self;
        let journal = runtime.journal();
        let audit = audit.unwrap_or(if journal.is_some() { AuditMode::Required } else { AuditMode::Off });
        if audit == AuditMode::Required && journal.is_none() {
            return Err(RuntimeError::NoStore { session: id });
        }
        let dispatcher = Arc::new(Dispatcher::observation());
        for subscriber in subscribers {
            let _registered = dispatcher.register(subscriber)?;
        }
        let (observer, mailbox) = tree::observer_port();
        let mailbox = Arc::new(mailbox);
        let admission = Arc::new(Admission::new(AdmissionParts {
            session: id.clone(),
            audit,
            journal: journal.filter(|_| audit != AuditMode::Off).cloned(),
            observer,
            dispatcher,
            attempts: runtime.open_attempts().clone(),
            ring: ring.map(RecentFacts::new),
            redactions,
            clock: Arc::clone(runtime.clock()),
        }));
        let child = runtime.start_observer(tree::session_observer(Arc::clone(&mailbox), runtime.doors().clone())).await?;
        let session = Session(Arc::new(Inner {
            admission,
            runtime: runtime.clone(),
            observer: child,
            mailbox,
            final_losses: OnceLock::new(),
            live: Mutex::default(),
        }));
        match runtime.register_session(id, &session) {
            Ok(()) => Ok(session),
            Err(error) => {
                session.stop_observer(Deadline::after(Duration::from_secs(5))).await;
                Err(error)
            }
        }
    }
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder").field("id", &self.id).field("audit", &self.audit).finish_non_exhaustive()
    }
}

impl Session {
    /// Its identity.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.admission.parts().session
    }

    /// The runtime that it belongs to.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// How its facts must reach the journal.
    #[must_use]
    pub fn audit_mode(&self) -> AuditMode {
        self.0.admission.parts().audit
    }

    /// Begins a fact of this session, stamped by the runtime's clock.
    pub fn signal(&self, kind: impl Into<SignalKind>) -> SignalBuilder {
        Signal::builder(self.id().clone(), kind, self.0.admission.now())
    }

    /// The wall time of the runtime's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.admission.now()
    }

    /// Registers a subscriber; it sees the emissions that are admitted from now on (F-8).
    ///
    /// # Errors
    /// [`RegisterError`]: the name is taken or not usable, or there are too many.
    pub fn observe(&self, subscriber: Subscriber<Signal>) -> Result<Registration, RegisterError> {
        self.0.admission.parts().dispatcher.register(subscriber)
    }

    /// Registers a live stream of at most `capacity` unread facts: bounded, lossy, and it tells its reader how many it missed. No emitter waits for it.
    ///
    /// The stream ends with its registration or with the session, after what is unread has been read.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub fn observe_live(
        &self,
        name: impl Into<Arc<str>>,
        capacity: NonZeroUsize,
    ) -> Result<(Registration, LiveStream), RegisterError> {
        let (feed, stream) = live_stream(capacity);
        let registration = self.observe(feed.subscriber(name))?;
        self.live().push(registration.clone());
        Ok((registration, stream))
    }

    /// Registers a user's actor: facts come as its own message, at most [`ACTOR_BOUND`] that it has not let go of. What comes beyond them is dropped, and
    /// the next one says how many before it. No emitter waits for the actor.
    ///
    /// For another bound, or for some facts only, register the subscriber of an [`ActorFeed`].
    ///
    /// # Errors
    /// As [`Self::observe`].
    ///
    /// # Examples
    /// ```
    /// use tipstaff::Runtime;
    /// use tipstaff::observation::Observed;
    /// use tipstaff::signal::LifecycleKind;
    ///
    /// struct Board(tokio::sync::mpsc::Sender<String>);
    ///
    /// #[ractor::actor(message = Observed, state = ())]
    /// impl Board {
    ///     async fn pre_start(&self, _: ractor::ActorRef<Observed>, _: ()) -> Result<(), ractor::ActorProcessingErr> {
    ///         Ok(())
    ///     }
    ///
    ///     async fn handle(&self, _: ractor::ActorRef<Observed>, seen: Observed, _: &mut ()) -> Result<(), ractor::ActorProcessingErr> {
    ///         Ok(self.0.send(format!("{} after {} missed", seen.kind(), seen.missed())).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::builder().spawn().await?;
    /// let session = runtime.own_session().await?;
    /// let (lines, mut shown) = tokio::sync::mpsc::channel(8);
    /// let (board, _task) = ractor::Actor::spawn(None, Board(lines), ()).await?;
    ///
    /// let (_registered, feed) = session.observe_actor("board", board)?;
    /// session.emit(session.signal(LifecycleKind::RunStarted).build()).await?;
    ///
    /// assert_eq!(shown.recv().await.as_deref(), Some("run_started after 0 missed"));
    /// assert_eq!(feed.missed(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe_actor<M: Message + From<Observed>>(
        &self,
        name: impl Into<Arc<str>>,
        actor: ActorRef<M>,
    ) -> Result<(Registration, ActorFeed<M>), RegisterError> {
        let feed = ActorFeed::new(actor, ACTOR_BOUND);
        Ok((self.observe(feed.subscriber(name))?, feed))
    }

    /// Ends a registration. `false`: it had ended, or is another session's. An emission under way keeps its snapshot.
    pub fn unobserve(&self, registration: &Registration) -> bool {
        self.live().retain(|live| live != registration);
        self.0.admission.parts().dispatcher.unregister(registration)
    }

    /// Emits a fact and waits until its subscribers have ended; never for the commit (F-16).
    ///
    /// # Ordering
    /// Facts of one session reach the journal in the order of their admission. Emissions may overlap.
    ///
    /// # Durability
    /// The fact is submitted to the journal; the report says `Pending`. [`Self::emit_confirmed`] waits for the commit.
    ///
    /// # Cancel safety
    /// Before the first wait is over nothing was emitted. After it, dropping the future takes nothing back from the journal; the handlers that have not
    /// ended are dropped, and the emission is counted as undelivered (F-12).
    ///
    /// # Errors
    /// [`EmitError`]. The fact itself is submitted to the journal in every case but [`EmitError::OtherSession`].
    pub async fn emit(&self, fact: Signal) -> Result<DispatchReport, EmitError> {
        self.emit_within(fact, None).await.map(|(report, _)| report)
    }

    /// Emits a fact and waits for its commit as well.
    ///
    /// # Durability
    /// When this returns `Ok`, the fact is committed at the returned position.
    ///
    /// # Cancel safety
    /// As [`Self::emit`].
    ///
    /// # Errors
    /// As [`Self::emit`], and [`EmitError::Unrecorded`] when the fact is not known to be committed; without a journal, before any handler runs.
    pub async fn emit_confirmed(&self, fact: Signal, deadline: Deadline) -> Result<(SignalSeq, DispatchReport), EmitError> {
        if self.0.admission.parts().journal.is_none() {
            return Err(EmitError::Unrecorded(Unrecorded::NoJournal));
        }
        let (report, seq) = self.emit_within(fact, Some(deadline)).await?;
        match seq {
            Some(Ok(seq)) => Ok((seq, report.with_journal(JournalState::Confirmed(seq.0)))),
            Some(Err(why)) => Err(EmitError::Unrecorded(why)),
            None => Err(EmitError::Unrecorded(Unrecorded::NoJournal)),
        }
    }

    /// Submits a fact without waiting for anyone: to the journal, and to the subscribers as far as the observer has room.
    ///
    /// # Durability
    /// Submitted, not confirmed. A journal without room is a counted gap.
    ///
    /// # Errors
    /// [`EmitError::OtherSession`], [`EmitError::SessionEnded`]: the late fact is journalled and shown to nobody.
    pub fn submit(&self, fact: Signal) -> Result<JournalState, EmitError> {
        self.check(&fact)?;
        let Admitted { journal, late } = self.0.admission.admit(fact, None, Wants::default());
        if late { Err(EmitError::SessionEnded) } else { Ok(journal) }
    }

    /// As [`Self::submit`], for an emitter that shows the fact to others as well: the fact as it may be shown, or `None` where nobody may see it any more.
    #[cfg(feature = "compat")]
    pub(crate) fn record(&self, fact: Signal) -> Option<Arc<Signal>> {
        self.check(&fact).ok()?;
        let (fact, admitted) = self.0.admission.admit_shared(fact);
        (!admitted.late).then_some(fact)
    }

    /// As [`Self::submit`], but waits for room in a required journal first: for a source that can be slowed down.
    ///
    /// # Cancel safety
    /// Cancel safe: a dropped future has submitted nothing.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn submit_in_turn(&self, fact: Signal, deadline: Deadline) -> Result<JournalState, EmitError> {
        self.check(&fact)?;
        let mut place = self.0.admission.place(deadline).await;
        let Admitted { journal, late } = self.0.admission.admit(fact, place.as_mut(), Wants::default());
        if late { Err(EmitError::SessionEnded) } else { Ok(journal) }
    }

    /// Waits until everything submitted before is committed, or counted as lost.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future only stops the waiting.
    ///
    /// # Errors
    /// [`Unrecorded`] when the journal does not answer in time, or there is none.
    pub async fn settled(&self, deadline: Deadline) -> Result<(), Unrecorded> {
        match &self.0.admission.parts().journal {
            Some(journal) => journal.settled(deadline).await,
            None => Err(Unrecorded::NoJournal),
        }
    }

    /// Runs one tool call through the planes: proposed, judged, performed by `body` if it is permitted, recorded, observed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor or drops the body's future; the attempt has its closing fact either way (P-2).
    pub async fn perform<F, Fut, R>(&self, call: impl Into<Operation<ToolCall>>, body: F) -> CallAnswer
    where
        F: FnOnce(Granted<ActionExecutor>) -> Fut + Send,
        Fut: Future<Output = R> + Send,
        R: IntoPerformance<serde_json::Value>,
    {
        perform(call.into(), self.audit(), self.0.runtime.actions(), body).await
    }

    /// Puts a tool call on record, as the first step of the long form: propose, [`authorize`](Self::authorize), evidence, perform, review, record.
    ///
    /// # Cancel safety
    /// Cancel safe: until it returns, nothing is on record.
    ///
    /// # Errors
    /// The answer, where a required audit could not take the proposal (P-10).
    pub async fn propose(&self, call: impl Into<Operation<ToolCall>>) -> Result<ProposedCall, CallAnswer> {
        Proposed::submit(call.into(), self.audit()).await
    }

    /// Asks for the permit of a proposed call.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running interceptor and records the attempt as cancelled.
    ///
    /// # Errors
    /// The answer, where the call must not be performed.
    pub async fn authorize(&self, proposed: ProposedCall) -> Result<CallPermit, CallAnswer> {
        proposed.authorize(self.0.runtime.actions()).await
    }

    /// The audit of this session, for owners of operations of one's own.
    #[must_use]
    pub fn audit(&self) -> SessionAudit {
        SessionAudit(Arc::clone(&self.0.admission))
    }

    /// The most recent facts, where the session keeps them.
    #[must_use]
    pub fn recent(&self) -> Option<Recent> {
        self.0.admission.parts().ring.as_ref().map(RecentFacts::snapshot)
    }

    /// Facts of this session that are not in the journal although its audit asked for it. It never goes down. After the
    /// session's end it is what stood then; the runtime's own total goes on.
    #[must_use]
    pub fn losses(&self) -> LossCounts {
        self.0.final_losses.get().copied().unwrap_or_else(|| self.0.runtime.ledger().session(self.id()))
    }

    /// Emissions that its subscribers missed, wholly or in part: the observer's port was full, the observer was degraded or crashed with them, or
    /// their emitter went away. The journal did not miss them.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.0.admission.undelivered()
    }

    /// Ends the session: what was admitted is shown to its subscribers within the deadline, then the observer stops. Later facts are journalled and
    /// answered with [`EmitError::SessionEnded`] (F-23).
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing back.
    pub async fn end(&self, deadline: Deadline) {
        self.0.admission.end();
        self.stop_observer(deadline).await;
        let live = std::mem::take(&mut *self.live());
        for registration in &live {
            self.unobserve(registration);
        }
        self.0.admission.parts().dispatcher.stop(deadline).await;
        let ledger = self.0.runtime.ledger();
        // Kept for this handle's readers: the ledger forgets a session that has ended once its gaps are written.
        if self.0.final_losses.set(ledger.session(self.id())).is_ok() {
            ledger.end_session(self.id());
        }
        self.0.runtime.forget_session(self);
    }

    fn live(&self) -> MutexGuard<'_, Vec<Registration>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn stop_observer(&self, deadline: Deadline) {
        self.0.mailbox.drain();
        self.0.runtime.stop_observer(self.0.observer, deadline).await;
    }

    /// Whether both are handles on one session, not only on one identity.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn check(&self, fact: &Signal) -> Result<(), EmitError> {
        if fact.session() == self.id() {
            return Ok(());
        }
        Err(EmitError::OtherSession { fact: fact.session().clone(), session: self.id().clone() })
    }

    async fn emit_within(
        &self,
        fact: Signal,
        confirm_by: Option<Deadline>,
    ) -> Result<(DispatchReport, Option<Result<SignalSeq, Unrecorded>>), EmitError> {
        self.check(&fact)?;
        let admission = &self.0.admission;
        let deadline = confirm_by.unwrap_or_else(|| Deadline::after(REPORT));
        let mut place = admission.place(deadline).await;
        let (confirm, confirmation) = oneshot::channel();
        let confirm = confirm_by.map(|_| confirm);
        let report = match admission.depth() {
            Some(_) => self.emit_inside(fact, place.as_mut(), confirm).await?,
            None => self.emit_outside(fact, place.as_mut(), confirm).await?,
        };
        let seq = match confirm_by {
            None => None,
            Some(by) => Some(match timeout_at(by.instant(), confirmation).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_dropped)) => Err(Unrecorded::Refused { reason: "the journal ended before it answered".to_owned() }),
                Err(_elapsed) => Err(Unrecorded::Late),
            }),
        };
        Ok((report, seq))
    }

    /// Through the observer.
    async fn emit_outside(
        &self,
        fact: Signal,
        place: Option<&mut Reservation<Request>>,
        confirm: Option<Confirm>,
    ) -> Result<DispatchReport, EmitError> {
        let (report, reported) = oneshot::channel();
        if self.0.admission.admit(fact, place, Wants { confirm, report: Some(report) }).late {
            return Err(EmitError::SessionEnded);
        }
        match timeout_at(Deadline::after(REPORT).instant(), reported).await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(_)) | Err(_) => Err(EmitError::Undelivered),
        }
    }

    /// By a handler of this session, which holds the place of its own emission and waits for no other: a full observer would wait for it (F-14).
    async fn emit_inside(
        &self,
        fact: Signal,
        place: Option<&mut Reservation<Request>>,
        confirm: Option<Confirm>,
    ) -> Result<DispatchReport, EmitError> {
        let Here { emit, admitted, undelivered } = self.0.admission.admit_here(fact, place, confirm);
        if admitted.late {
            undelivered.delivered();
            return Err(EmitError::SessionEnded);
        }
        match deliver(emit, undelivered).await {
            Ok(report) => Ok(report.with_journal(admitted.journal)),
            Err(DispatchError::Refused(Refusal::TooDeep { limit })) => Err(EmitError::TooDeep { limit }),
            Err(DispatchError::Refused(_) | DispatchError::Raised(_)) => Err(EmitError::Undelivered),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).field("audit", &self.audit_mode()).finish_non_exhaustive()
    }
}

/// Why an emission has no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The fact belongs to another session. Nothing was done with it.
    #[error("the fact belongs to session {fact}, not to {session}: emit it there")]
    OtherSession {
        /// The session that the fact names.
        fact: SessionId,
        /// This session.
        session: SessionId,
    },
    /// The session has ended. The fact was journalled; nobody was shown it (F-23).
    #[error("the session has ended: the fact is journalled and shown to nobody")]
    SessionEnded,
    /// The observer had no room, crashed with the emission, or is degraded. The journal has the fact; subscribers may have missed it.
    #[error("the observer did not report: subscribers may have missed the fact, the journal has it")]
    Undelivered,
    /// The handler that emits stands inside as many emissions of its own session as may stand inside one another (F-14). The journal has the fact; nobody
    /// was shown it.
    #[error("{limit} emissions of the session stand inside one another: emit from a task of its own instead of from a handler")]
    TooDeep {
        /// How many may.
        limit: usize,
    },
    /// The fact is not known to be committed.
    #[error("the fact is not known to be committed: {0}")]
    Unrecorded(#[source] Unrecorded),
}
