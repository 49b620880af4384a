//! The loop: one event of a transcript after the other, through the runtime.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::Digest;
use tipstaff_core::id::{AttemptId, InvalidId, OperationId, SessionId, SignalId};
use tipstaff_core::operation::{AuditMode, Operation, Performance, Unrecorded};
use tipstaff_core::signal::{LifecycleKind, SignalError, SignalSeq};
use tipstaff_core::state::{JournalReader, PageLimit, ReadFilter, StoreError};
use tipstaff_core::transcript::{
    Call, CallResult, Counts, Damage, End, Event, Lifecycle, Outcome, Reader, ReaderOptions, Thread, TranscriptError,
    UnknownBecause, UnmatchedResult,
};

use super::facts;
use crate::runtime::{Runtime, RuntimeError};
use crate::session::{CallPermit, EmitError, Session};

/// Events between two confirmations.
const CONFIRM_EVERY: u32 = 1_000;
/// How long the journal may take to settle what was submitted, and how long a submission may wait for room.
const PATIENCE: Duration = Duration::from_secs(60);
/// Permits that wait for their result at once. Beyond it the oldest call ends as ambiguous, so that memory stays bounded.
const MAX_OPEN: usize = 512;
/// Attempts of one call under one policy that a killed replay may have left.
pub(super) const MAX_TRIES: u32 = 8;

/// Replays transcripts on a runtime.
#[derive(Debug, Clone)]
pub struct Replay {
    runtime: Runtime,
    policy: Option<Digest>,
    options: ReaderOptions,
}

/// One replayed transcript.
#[derive(Debug)]
pub struct Replayed {
    /// Its session in the journal.
    pub session: SessionId,
    /// The thread.
    pub thread: Thread,
    /// What the reader counted in the file.
    pub counts: Counts,
    /// Where the file is damaged; at most 64 places.
    pub damage: Vec<Damage>,
    /// The position in the journal before which everything is from an earlier replay.
    pub resumed_after: SignalSeq,
    /// Facts that the journal did not take.
    pub lost: u64,
}

impl Replay {
    /// Replays on a runtime whose plan was compiled from the policy with this digest; `None` for a runtime without guards.
    #[must_use]
    pub fn new(runtime: Runtime, policy: Option<Digest>) -> Self {
        Self { runtime, policy, options: ReaderOptions::default() }
    }

    /// Replays one file. `heard` is called with the line that was reached, now and then, for a progress display.
    ///
    /// # Durability
    /// When this returns `Ok`, everything is committed, or counted in [`Replayed::lost`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the operations that were open abandoned, and so recorded. Replaying the file again continues.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub async fn file(&self, path: &Path, heard: impl FnMut(u64)) -> Result<Replayed, ReplayError> {
        self.transcript(Reader::open(path, self.options)?, heard).await
    }

    /// Replays anything that reads.
    ///
    /// # Durability
    /// As [`Self::file`].
    ///
    /// # Cancel safety
    /// As [`Self::file`].
    ///
    /// # Errors
    /// As [`Self::file`].
    pub async fn transcript<R: Read>(&self, mut reader: Reader<R>, mut heard: impl FnMut(u64)) -> Result<Replayed, ReplayError> {
        let thread = reader.thread().clone();
        let id = facts::session_of(&thread)?;
        let journal = Arc::clone(self.runtime.reader().ok_or_else(|| RuntimeError::NoStore { session: id.clone() })?);
        let resumed_after = last_position(&*journal, &id)?;
        let session = self.runtime.session(id.clone()).audit(AuditMode::Required).open().await?;
        let mut run = Run {
            session: session.clone(),
            journal,
            policy: self.policy,
            resuming: resumed_after > SignalSeq::START,
            workspace: None,
            open: HashMap::new(),
            order: VecDeque::new(),
        };
        let read = run.through(&mut reader, &mut heard).await;
        // Calls that were open are abandoned, and so recorded, before the session ends: on every way out.
        drop(run);
        let lost = session.losses().all().facts;
        session.end(Deadline::after(PATIENCE)).await;
        read?;
        Ok(Replayed {
            session: id,
            thread,
            counts: reader.counts().clone(),
            damage: reader.damage().to_vec(),
            resumed_after,
            lost,
        })
    }
}

fn last_position(journal: &dyn JournalReader, session: &SessionId) -> Result<SignalSeq, StoreError> {
    let last = journal.last_seq(session)?;
    Ok(last.unwrap_or(SignalSeq::START))
}

/// One reading under way.
struct Run {
    session: Session,
    journal: Arc<dyn JournalReader>,
    policy: Option<Digest>,
    /// Whether an earlier replay left facts: then each is looked up before it is submitted again.
    resuming: bool,
    /// The first working directory that the transcript names.
    workspace: Option<Arc<str>>,
    open: HashMap<OperationId, CallPermit>,
    /// The open calls in file order, ended ones among them until they come up.
    order: VecDeque<OperationId>,
}

impl Run {
    /// Takes every event, and waits now and then, and at the end, until what was submitted is settled.
    async fn through<R: Read>(&mut self, reader: &mut Reader<R>, heard: &mut impl FnMut(u64)) -> Result<(), ReplayError> {
        let mut events = 0;
        while let Some(event) = reader.next() {
            let line = self.event(event?, reader.counts()).await?;
            events += 1;
            if events % CONFIRM_EVERY == 0 {
                self.session.settled(Deadline::after(PATIENCE)).await?;
                heard(line);
            }
        }
        Ok(self.session.settled(Deadline::after(PATIENCE)).await?)
    }

    /// Takes one event; returns the line that was reached.
    async fn event(&mut self, event: Event, counts: &Counts) -> Result<u64, ReplayError> {
        match event {
            Event::Call(call) => self.call(call).await,
            Event::Result(result) => self.result(result).await,
            Event::Unmatched(unmatched) => self.unmatched(unmatched).await,
            Event::Lifecycle(lifecycle) => self.lifecycle(lifecycle).await,
            Event::End(end) => self.end(end, counts).await,
        }
    }

    async fn call(&mut self, call: Call) -> Result<u64, ReplayError> {
        let line = call.place.line;
        if call.inherited {
            return Ok(line);
        }
        if self.workspace.is_none() {
            self.workspace = facts::working_directory(&call);
        }
        let detail = json!({
            "operation": call.key, "call_id": call.call_id, "tool": call.name, "line": line, "offset": call.place.offset, "stamp": call.stamp,
            "sidechain": call.sidechain, "agent": call.agent, "parent": call.parent, "already_ran": call.already_ran,
        });
        self.submit("call", &(&call.key, self.policy), detail).await?;
        let attempt = match self.standing(&call.key)? {
            Standing::Free(attempt) => attempt,
            Standing::Decided(_) | Standing::Elsewhere => return Ok(line),
        };
        let operation = Operation::new(facts::tool_call(&call, self.workspace.as_ref())).identified(call.key.clone(), attempt);
        let permit = match self.session.propose(operation).await {
            Ok(proposed) => self.session.authorize(proposed).await,
            Err(answer) => Err(answer),
        };
        // A denial is on record; the transcript's own outcome of it is counterfactual.
        if let Ok(permit) = permit {
            self.hold(call.key, permit).await;
        }
        Ok(line)
    }

    /// Keeps a permit until its result comes.
    async fn hold(&mut self, key: OperationId, permit: CallPermit) {
        if self.open.len() >= MAX_OPEN {
            while let Some(oldest) = self.order.pop_front() {
                if let Some(permit) = self.open.remove(&oldest) {
                    perform(permit, Performance::Unknown { reason: "more calls were open than a replay keeps".to_owned() }).await;
                    break;
                }
            }
        }
        match self.open.entry(key.clone()) {
            Entry::Vacant(free) => {
                free.insert(permit);
                self.order.push_back(key);
            }
            // The reader gives each use of an id its own key. Were it not so, the later permit would be recorded as abandoned.
            Entry::Occupied(_) => drop(permit),
        }
        // Ended calls are left in the order until they come up; many of them are swept out together.
        if self.order.len() > 2 * MAX_OPEN {
            self.order.retain(|key| self.open.contains_key(key));
        }
    }

    async fn result(&mut self, result: CallResult) -> Result<u64, ReplayError> {
        let line = result.place.line;
        if result.inherited {
            return Ok(line);
        }
        match self.open.remove(&result.key) {
            Some(permit) => perform(permit, facts::performance(&result.outcome)).await,
            None if is_told(&result.outcome) && !self.is_recorded(&result)? => {
                let mut detail = facts::outcome(&result.outcome);
                let id = facts::fact_id(self.session.id(), "result", &(&result.key, self.policy, &detail));
                detail["operation"] = json!(result.key);
                detail["line"] = json!(line);
                self.submit_as(id, "result", detail).await?;
            }
            None => {}
        }
        Ok(line)
    }

    /// Whether an earlier replay closed the call with this outcome. A call that the policy denied, or that was open at an earlier end of the file,
    /// was closed without it.
    fn is_recorded(&self, result: &CallResult) -> Result<bool, ReplayError> {
        if !self.resuming {
            return Ok(false);
        }
        Ok(match self.standing(&result.key)? {
            Standing::Decided(LifecycleKind::OperationCompleted | LifecycleKind::OperationFailed) => true,
            Standing::Decided(LifecycleKind::OperationAmbiguous) => matches!(result.outcome, Outcome::Unknown(_)),
            Standing::Decided(_) | Standing::Free(_) | Standing::Elsewhere => false,
        })
    }

    async fn unmatched(&mut self, unmatched: UnmatchedResult) -> Result<u64, ReplayError> {
        let line = unmatched.place.line;
        if !unmatched.inherited {
            let mut detail = facts::outcome(&unmatched.outcome);
            detail["call_id"] = json!(unmatched.call_id);
            detail["line"] = json!(line);
            detail["reason"] = json!(unmatched.reason.as_str());
            self.submit("unmatched_result", &(&unmatched.call_id, unmatched.place.offset, unmatched.place.part), detail).await?;
        }
        Ok(line)
    }

    async fn lifecycle(&mut self, lifecycle: Lifecycle) -> Result<u64, ReplayError> {
        let line = lifecycle.place.line;
        if !lifecycle.inherited {
            let detail = json!({
                "line": line, "stamp": lifecycle.stamp, "operation": lifecycle.about, "sidechain": lifecycle.sidechain, "detail": lifecycle.detail,
            });
            self.submit_as(lifecycle.id, lifecycle.name.as_str(), detail).await?;
        }
        Ok(line)
    }

    async fn end(&mut self, end: End, counts: &Counts) -> Result<u64, ReplayError> {
        for key in std::mem::take(&mut self.order) {
            if let Some(permit) = self.open.remove(&key) {
                perform(permit, Performance::Unknown { reason: "the transcript ended before its result".to_owned() }).await;
            }
        }
        // A grown file ends again; an unchanged one has ended there before.
        let about = (counts.physical_lines, counts.records, end.clean, &end.open);
        self.submit("session_ended", &about, json!({ "clean": end.clean, "open": end.open })).await?;
        Ok(counts.physical_lines)
    }

    async fn submit(&self, name: &'static str, about: &impl serde::Serialize, detail: Value) -> Result<(), ReplayError> {
        let id = facts::fact_id(self.session.id(), name, about);
        self.submit_as(id, name, detail).await
    }

    async fn submit_as(&self, id: SignalId, name: &'static str, detail: Value) -> Result<(), ReplayError> {
        if self.resuming && self.journal.signal(&id)?.is_some() {
            return Ok(());
        }
        let fact = facts::fact(self.session.id(), id, facts::kind(name)?, detail, self.session.now())?;
        self.session.submit_in_turn(fact, Deadline::after(PATIENCE)).await?;
        Ok(())
    }

    /// How a call stands in the journal under this policy.
    fn standing(&self, operation: &OperationId) -> Result<Standing, ReplayError> {
        for tried in 0..MAX_TRIES {
            let attempt = facts::attempt_of(operation, self.policy, tried);
            if !self.resuming {
                return Ok(Standing::Free(attempt));
            }
            let Some(row) = self.journal.attempt(operation, &attempt)? else { return Ok(Standing::Free(attempt)) };
            let Some(closed) = row.closed else { return Ok(Standing::Elsewhere) };
            let left = match closed.kind {
                LifecycleKind::OperationAmbiguous => self.is_without_decision(closed.seq)?,
                kind => matches!(kind, LifecycleKind::OperationAbandoned | LifecycleKind::OperationCancelled),
            };
            if !left {
                return Ok(Standing::Decided(closed.kind));
            }
        }
        Err(ReplayError::LeftTooOften { operation: operation.clone() })
    }

    fn is_without_decision(&self, seq: SignalSeq) -> Result<bool, StoreError> {
        let before = SignalSeq(seq.0.saturating_sub(1));
        let one = PageLimit::rows(NonZeroU32::MIN);
        let page = self.journal.read(self.session.id(), before, &ReadFilter::all(), one)?;
        Ok(page.facts.first().is_some_and(|fact| !facts::is_own_end(&fact.signal)))
    }
}

/// How a call stands in the journal.
enum Standing {
    /// It was not tried, or those who tried it were killed or broken off: this is the next attempt.
    Free(AttemptId),
    /// It was decided, and its attempt ended so.
    Decided(LifecycleKind),
    /// It is open: in this replay, which has not committed its end, or in another one that runs now.
    Elsewhere,
}

/// Whether a record of the transcript tells the outcome. Of a call without one there is nothing to add.
fn is_told(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Succeeded | Outcome::Failed { .. } | Outcome::Refused { .. } => true,
        Outcome::Unknown(because) => *because == UnknownBecause::NotTold,
    }
}

/// Performs with the recorded outcome. The answer is read back from the journal, like everything that is told.
async fn perform(permit: CallPermit, outcome: Performance<Value>) {
    let _answer = permit.perform(|_granted| async { outcome }).await.review().await.record().await;
}

/// Why a transcript could not be replayed to its end. What was replayed stands; replaying again continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The transcript cannot be read.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal did not settle what was submitted.
    #[error("the journal did not settle what was submitted: {0}")]
    Unrecorded(#[from] Unrecorded),
    /// The session cannot be opened.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The session ended while it was replayed.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// Replays were killed or broken off at one call again and again.
    #[error(
        "{MAX_TRIES} replays ended while the call {operation} was open: look at what stops them, then replay with another store"
    )]
    LeftTooOften {
        /// The call.
        operation: OperationId,
    },
    /// The transcript's thread has no usable name.
    #[error("the transcript's thread cannot be named: {0}")]
    Identity(#[from] InvalidId),
    /// A record cannot be made a signal.
    #[error("a record cannot be made a signal: {0}")]
    Signal(#[from] SignalError),
}
