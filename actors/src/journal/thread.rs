//! The writer thread: the only one that writes to the store.
//!
//! | it finds             | it does                                                                        |
//! |----------------------|--------------------------------------------------------------------------------|
//! | requests             | commits them as one group, answers each, then looks again                      |
//! | nothing for a while  | writes owed gaps and ends, notes that it is alive, folds the write-ahead log   |
//! | a closed port        | closes the record of its instance and ends                                     |
//! | a later thread waits | ends; the instance lives on in the later one, which begins when this has ended |
//!
//! | the store says         | the facts of the group                                                        |
//! |------------------------|-------------------------------------------------------------------------------|
//! | committed              | are recorded; a refused one is lost and counted                               |
//! | it failed              | are written once more under the same identities, then lost and counted       |
//! | nothing: it panicked   | are left to the next writer, which writes them once more, then counted       |

use std::sync::Arc;
use std::time::{Duration, Instant};

use tipstaff_core::observation::{LossLedger, LossReason};
use tipstaff_core::operation::Unrecorded;
use tipstaff_core::signal::{EmitterRole, LifecycleKind, Payload, PayloadType, Signal};
use tipstaff_core::state::{AppendError, Appended, JournalReader, JournalWrite, JournalWriter, StoreError};
use tipstaff_core::telemetry;
use tokio::sync::oneshot;

use super::gaps::GapsInHand;
use super::handle::Health;
use super::request::{Entry, Hand, Left, Request};
use super::turn::Turn;
use crate::port::{Next, ThreadMailbox};

/// The largest group, in facts. Measured: beyond it a group gains little and its first fact waits longer.
const MAX_GROUP: usize = 1024;
/// The largest group, in bytes of payload.
const MAX_GROUP_BYTES: usize = 1024 * 1024;
/// How long the thread waits for work before it uses the quiet: an idle poll costs one wake-up.
const QUIET: Duration = Duration::from_millis(500);
/// How often a thread without quiet notes that its instance is alive.
const SEEN_EVERY: Duration = Duration::from_secs(5);

/// The state of the thread.
pub(super) struct WriterThread<'t> {
    pub(super) writer: Box<dyn JournalWriter>,
    pub(super) mailbox: ThreadMailbox<Request>,
    pub(super) health: Health,
    pub(super) ledger: LossLedger,
    pub(super) reader: Arc<dyn JournalReader>,
    pub(super) left: Left,
    pub(super) gaps: GapsInHand,
    pub(super) turn: &'t Turn,
    /// How many of the oldest owed ends were owed before the queue was last seen empty: their proposals are settled.
    pub(super) passed: usize,
}

impl WriterThread<'_> {
    /// Serves until the port is closed, or another incarnation waits for its turn.
    pub(super) fn run(mut self) {
        for group in self.left.take() {
            self.commit(Hand::new(group, None));
        }
        let mut seen = Instant::now();
        loop {
            if self.turn.is_wanted() {
                // The instance lives on: others would close its open attempts under the hands of the next thread.
                return;
            }
            let owed = self.health.owed_now();
            match self.mailbox.next(QUIET) {
                Next::Message(first) => {
                    let (entries, barriers, emptied) = self.gather(first);
                    if emptied {
                        self.passed = owed;
                    }
                    self.commit(Hand::new(entries, Some(self.left.clone())));
                    barriers.into_iter().for_each(|barrier| {
                        // Whoever waited may have gone.
                        let _unheard = barrier.send(());
                    });
                    if seen.elapsed() >= SEEN_EVERY {
                        self.upkeep("touch", |writer| writer.touch());
                        seen = Instant::now();
                    }
                }
                Next::TimedOut => {
                    self.passed = owed;
                    self.use_the_quiet();
                    seen = Instant::now();
                }
                Next::Closed => break,
            }
        }
        self.passed = self.health.owed_now();
        self.write_gaps();
        if let Err(error) = self.writer.end() {
            tracing::warn!(target: telemetry::JOURNAL, %error, "the record of this instance was not closed; recovery will judge it by its process");
        }
    }

    /// What is queued now, up to the bounds of a group, and whether that was all.
    fn gather(&mut self, first: Request) -> (Vec<Entry>, Vec<oneshot::Sender<()>>, bool) {
        let (mut entries, mut barriers, mut bytes, mut full) = (Vec::new(), Vec::new(), 0, false);
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Append(entry) => {
                    bytes += entry.fact().payload().wire().len();
                    entries.push(entry);
                }
                Request::Barrier(done) => barriers.push(done),
            }
            full = entries.len() >= MAX_GROUP || bytes >= MAX_GROUP_BYTES;
            next = if full { None } else { self.mailbox.try_next() };
        }
        (entries, barriers, !full)
    }

    fn commit(&mut self, hand: Hand) {
        if hand.entries().is_empty() {
            return;
        }
        let group: Vec<JournalWrite> = hand.entries().iter().map(|entry| JournalWrite::Append(entry.fact().clone())).collect();
        match self.write(&group) {
            Ok(answers) => self.answer(hand.put_down(), answers),
            Err(error) => {
                let reason = error.to_string();
                self.health.refused(reason.clone());
                hand.put_down()
                    .into_iter()
                    .for_each(|entry| entry.lost(LossReason::StoreAbsent, Unrecorded::Refused { reason: reason.clone() }));
            }
        }
        self.write_gaps();
    }

    fn answer(&mut self, entries: Vec<Entry>, answers: Vec<Result<Appended, AppendError>>) {
        let mut accepted = false;
        for (entry, answer) in entries.into_iter().zip(answers) {
            match answer {
                Ok(appended) => {
                    accepted = true;
                    entry.recorded(appended.seq);
                }
                Err(error) => {
                    let reason = match &error {
                        AppendError::Unavailable(_) => {
                            self.health.refused(error.to_string());
                            LossReason::StoreAbsent
                        }
                        _ => LossReason::Refused,
                    };
                    entry.lost(reason, Unrecorded::Refused { reason: error.to_string() });
                }
            }
        }
        if accepted {
            self.health.accepted();
        }
    }

    /// Writes a group, once more if the store fails: under the same identities, so that what was committed answers with its first position.
    fn write(&mut self, group: &[JournalWrite]) -> Result<Vec<Result<Appended, AppendError>>, StoreError> {
        self.writer.commit(group).or_else(|first| {
            tracing::warn!(target: telemetry::JOURNAL, error = %first, "a group was not committed; writing it once more");
            self.writer.commit(group)
        })
    }

    /// Writes what sessions have lost, now that the store may take it (P-10), and then the ends that are owed.
    fn write_gaps(&mut self) {
        if self.gaps.write(&mut *self.writer, &*self.reader, &self.ledger, &self.health).is_ok() {
            self.close_owed();
        }
    }

    /// Closes the attempts whose closing fact was lost and whose proposal is on record: nobody who reads the journal can know how they ended (I-17).
    fn close_owed(&mut self) {
        while let Some(lost) = self.health.first_owed() {
            match self.close_as_ambiguous(&lost) {
                Ok(true) => {
                    self.health.end_paid(&lost);
                    self.passed = self.passed.saturating_sub(1);
                }
                // It stays owed, also when the store panics here.
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Whether nothing is owed to the attempt any more.
    fn close_as_ambiguous(&mut self, lost: &Signal) -> Result<bool, StoreError> {
        let (Some(operation), Some(attempt)) = (lost.operation(), lost.attempt()) else { return Ok(true) };
        match self.reader.attempt(operation, attempt)? {
            // Its proposal may be in the queue still, behind which its end was lost: until that is settled, nobody knows whether an end is owed.
            None => return Ok(self.passed > 0),
            Some(row) if row.closed.is_some() || row.proposed.is_none() => return Ok(true),
            Some(_open) => {}
        }
        let answers = self.writer.commit(&[JournalWrite::Append(Arc::new(ambiguous(lost)))])?;
        // Any other refusal means that the attempt has its end.
        Ok(!answers.iter().any(|answer| matches!(answer, Err(AppendError::Unavailable(_)))))
    }

    fn use_the_quiet(&mut self) {
        self.write_gaps();
        self.upkeep("touch", |writer| writer.touch());
        self.upkeep("checkpoint", |writer| writer.checkpoint_when_idle());
    }

    fn upkeep(&mut self, what: &'static str, work: fn(&mut dyn JournalWriter) -> Result<(), StoreError>) {
        if let Err(error) = work(&mut *self.writer) {
            tracing::debug!(target: telemetry::JOURNAL, what, %error, "upkeep failed; it is tried again");
        }
    }
}

/// The closing fact in the place of one that was lost. It names what was lost, so that a reader can tell a lost denial from a lost completion.
fn ambiguous(lost: &Signal) -> Signal {
    let value = serde_json::json!({ "cause": "closing_fact_lost", "lost": lost.kind(), "lost_id": lost.id() });
    let shape = PayloadType::new("tipstaff.operation_ambiguous", 1).expect("the literal is a plain name");
    let role = EmitterRole::new("journal").expect("the literal is a plain name");
    let mut fact = Signal::builder(lost.session().clone(), LifecycleKind::OperationAmbiguous, lost.occurred_at())
        .role(role)
        .payload(Payload::from_value(shape, value));
    if let (Some(operation), Some(attempt)) = (lost.operation(), lost.attempt()) {
        fact = fact.operation(operation.clone()).attempt(attempt.clone());
    }
    if let Some(invocation) = lost.invocation() {
        fact = fact.invocation(invocation.clone());
    }
    if let Some(subject) = lost.subject() {
        fact = fact.subject(subject.clone());
    }
    fact.build()
}
