//! The chain before the operation: admission, guards, transforms, advisers, in the plan's order.
//!
//! | stage     | answer            | the chain                                                                     |
//! |-----------|-------------------|-------------------------------------------------------------------------------|
//! | admission | admit             | goes on                                                                       |
//! | admission | defer             | ends: Deferred                                                                |
//! | any       | continue          | goes on                                                                       |
//! | any       | ask               | goes on; the ask stands until the end, or until the same guard runs again     |
//! | transform | replace           | goes on with the replacement; guards judged before it are due again           |
//! | transform | stop              | skips the rest of the stage, and later transform and advisory stages (I-14)   |
//! | guard     | stop              | contract violation, unless the stage declares it                              |
//! | any voter | deny              | ends: Denied                                                                  |
//! | advisory  | all but continue  | contract violation                                                            |
//! | any       | failure           | by the stage's declaration: Denied, Failed, or goes on (I-3)                  |
//! | the end   | an ask stands     | Denied without approver, Escalated with one (I-10)                            |
//! | the end   | otherwise         | Permitted                                                                     |
//!
//! After the last transform stage every guard that judged another digest runs again, once, in plan order (I-5). A plan that only evaluates asks
//! everybody, applies nothing and ends as Permitted; the first end that it would have come to is kept (I-22).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::answer::{Admission, Turn};
use super::call;
use super::decision::{Decision, Disposition, Said};
use super::denial::{Denial, DenialCause};
use super::error::{ChainFailure, FailureKind, Violation};
use super::evaluator::{AdmitCall, Call, DecideCall};
use super::judged::Judged;
use super::outcome::{Basis, ChainOutcome, Denied, Escalated, Permitted, WouldHave};
use super::plan::{Approver, Calls, Compiled, Plan, Shape, Stage};
use super::report::{Answer, Details, Entry, Place, Report, SkipReason, Subject, nanos};
use super::stage::{OnFailure, StageKind, StageSpec};
use crate::clock::Deadline;
use crate::declare::Digest;

impl<C: Judged, R> Plan<C, R> {
    /// Runs the stages before the operation, and fills the report as it goes. What the report held is gone.
    ///
    /// # Ordering
    /// One registration after the other, in plan order; each transform sees the replacements before it. When this returns, every registration of
    /// every stage has been settled, and the operation's body can only be started from [`ChainOutcome::Permitted`] (P04).
    ///
    /// The deadline is one budget for all stages (P11). Once it is spent, nobody is started any more; what that means is each stage's declaration.
    ///
    /// # Cancel safety
    /// Dropping the future drops the interceptor that is running (I-4), and nothing is permitted. The report then holds what was answered, who was
    /// cancelled and who was never called.
    ///
    /// # Panics
    /// Never by what an interceptor or the context does. An interceptor that waits needs a tokio runtime with timers; without one it counts as panicked.
    pub async fn apply(&self, context: Arc<C>, deadline: Deadline, report: &mut Report) -> ChainOutcome<C> {
        match identify(&*context) {
            Ok(digest) => self.apply_identified(context, digest, deadline, report).await,
            Err(failure) => {
                report.begin(&self.0.shape);
                unidentified(report, &failure)
            }
        }
    }

    /// As [`Self::apply`], for a context whose digest the caller has computed already: it is computed once per change.
    ///
    /// # Cancel safety
    /// As [`Self::apply`].
    pub async fn apply_identified(&self, context: Arc<C>, digest: Digest, deadline: Deadline, report: &mut Report) -> ChainOutcome<C> {
        let Compiled { shape, calls } = &*self.0;
        report.begin(shape);
        let judged = report.judge(digest);
        let mut chain =
            Chain { shape, report, context, digest, judged, deadline, now: Instant::now(), stopped_by: None, would_have: None };
        match chain.run(calls).await {
            Ok(()) => chain.permitted(),
            Err(end) => *end,
        }
    }
}

/// The digest of a value, with a panic of its code caught.
pub(super) fn identify(value: &impl Judged) -> Result<Digest, FailureKind> {
    call::caught(|| value.digest())?.map_err(FailureKind::ContextInvalid)
}

/// A context without identity is denied, with nobody called: nothing could say later what was judged.
fn unidentified<C>(report: &Report, failure: &FailureKind) -> ChainOutcome<C> {
    let mut denial = Denial::by_host(DenialCause::ContextInvalid, format!("the proposed context {}", failure.text()));
    denial.never_called = report.never_called();
    ChainOutcome::Denied(Box::new(Denied { denial, owner_stop: false, observed: None, notes: Vec::new() }))
}

/// The chain's early end.
type End<C> = Box<ChainOutcome<C>>;

/// Whether the rest of a stage has its turn.
enum Flow {
    On,
    Stop,
}

struct Chain<'p, C> {
    shape: &'p Shape,
    report: &'p mut Report,
    context: Arc<C>,
    digest: Digest,
    /// The place of `digest` in the report.
    judged: u32,
    deadline: Deadline,
    /// The end of the last step, which is the start of the next: the clock is read once a step.
    now: Instant,
    /// The registration that stopped (I-14).
    stopped_by: Option<u32>,
    would_have: Option<Box<WouldHave>>,
}

impl<C: Judged> Chain<'_, C> {
    async fn run<R>(&mut self, calls: &[Calls<C, R>]) -> Result<(), End<C>> {
        let shape = self.shape;
        for (at, (stage, code)) in shape.stages.iter().zip(calls).enumerate() {
            match code {
                Calls::OwnStep => {}
                Calls::Admission(calls) => self.admission(stage, calls).await?,
                Calls::Deciding(calls) => self.deciding(stage, calls).await?,
                Calls::Result(_) => break,
            }
            if shape.last_transform == Some(at) {
                self.recheck(&shape.stages[..at], calls).await?;
            }
        }
        self.settle_asks()
    }

    async fn admission(&mut self, stage: &Stage, calls: &[AdmitCall<C>]) -> Result<(), End<C>> {
        let stage_by = self.budget(&stage.spec);
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            let place = Place { registration, again: false };
            let Some(turn) = self.turn(place, stage_by) else {
                self.failed(place, &stage.spec, FailureKind::NotStarted)?;
                continue;
            };
            let (subject, started) = (Subject::Judged(self.judged), self.now);
            let answer = match call {
                Call::Plain(call) => call::plain(|| call(&self.context, &turn)),
                Call::Future(call) => {
                    let in_flight = self.report.in_flight(place, subject, started);
                    call::future(|| call(Arc::clone(&self.context), turn), turn.deadline, in_flight).await
                }
            };
            match self.in_time(answer, turn.deadline) {
                Ok((Admission::Admit, elapsed_ns)) => {
                    self.report.push(place, Entry { answer: Answer::Admitted, subject, elapsed_ns, details: None });
                }
                Ok((Admission::Defer { retry_at, reason }, elapsed_ns)) => {
                    let details = Details { reason: Some(reason.clone()), ..Details::default() };
                    self.report
                        .push(place, Entry { answer: Answer::Deferred, subject, elapsed_ns, details: Some(details.into()) });
                    let registration = Arc::clone(&self.shape.registrations[registration].name);
                    self.end(ChainOutcome::Deferred { retry_at, reason, registration })?;
                }
                Err(failure) => self.failed(place, &stage.spec, failure)?,
            }
        }
        Ok(())
    }

    async fn deciding(&mut self, stage: &Stage, calls: &[DecideCall<C>]) -> Result<(), End<C>> {
        if stage.from == stage.to {
            return Ok(());
        }
        if let (Some(by), StageKind::Transform | StageKind::Advisory) = (self.stopped_by, stage.spec.kind) {
            self.skip(stage.from..stage.to, false, by);
            return Ok(());
        }
        let stage_by = self.budget(&stage.spec);
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            if let Flow::Stop = self.decide(Place { registration, again: false }, &stage.spec, call, stage_by).await? {
                let by = self.stop_at(registration);
                self.skip(registration + 1..stage.to, false, by);
                break;
            }
        }
        Ok(())
    }

    /// Runs every guard again whose input digest changed (I-5).
    async fn recheck<R>(&mut self, stages: &[Stage], calls: &[Calls<C, R>]) -> Result<(), End<C>> {
        for (stage, code) in stages.iter().zip(calls) {
            let (StageKind::Guard, Calls::Deciding(calls)) = (stage.spec.kind, code) else { continue };
            let stage_by = self.budget(&stage.spec);
            for (registration, call) in (stage.from..stage.to).zip(calls) {
                let place = Place { registration, again: true };
                // One that was skipped by a stop has judged nothing, and is not asked now.
                let Some(Subject::Judged(before)) = self.report.entry(registration).map(|entry| entry.subject) else { continue };
                if self.report.digest_at(before) == Some(&self.digest) {
                    self.report.push(place, Entry::bare(Answer::Skipped(SkipReason::Unchanged), Subject::Judged(before)));
                } else if let Flow::Stop = self.decide(place, &stage.spec, call, stage_by).await? {
                    let by = self.stop_at(registration);
                    self.skip(registration + 1..stage.to, true, by);
                    break;
                }
            }
        }
        Ok(())
    }

    async fn decide(&mut self, place: Place, spec: &StageSpec, call: &DecideCall<C>, stage_by: Deadline) -> Result<Flow, End<C>> {
        let Some(turn) = self.turn(place, stage_by) else {
            self.failed(place, spec, FailureKind::NotStarted)?;
            return Ok(Flow::On);
        };
        let answer = match call {
            Call::Plain(call) => call::plain(|| call(&self.context, &turn)),
            Call::Future(call) => {
                let (subject, started) = (Subject::Judged(self.judged), self.now);
                let in_flight = self.report.in_flight(place, subject, started);
                call::future(|| call(Arc::clone(&self.context), turn), turn.deadline, in_flight).await
            }
        };
        match self.in_time(answer, turn.deadline) {
            Ok((Decision { disposition: Disposition::Continue, replacement: None, said: None }, elapsed_ns)) => {
                let subject = Subject::Judged(self.judged);
                self.report.push(place, Entry { answer: Answer::Continued, subject, elapsed_ns, details: None });
                Ok(Flow::On)
            }
            Ok((decision, elapsed_ns)) => self.decided(place, spec, decision, elapsed_ns),
            Err(failure) => {
                self.failed(place, spec, failure)?;
                Ok(Flow::On)
            }
        }
    }

    /// Takes a decision that says more than to go on.
    #[cold]
    fn decided(&mut self, place: Place, spec: &StageSpec, decision: Decision<C>, elapsed_ns: u64) -> Result<Flow, End<C>> {
        if let Some(violation) = violation(spec, &decision) {
            self.failed(place, spec, FailureKind::ContractViolation(violation))?;
            return Ok(Flow::On);
        }
        let Decision { disposition, replacement, said } = decision;
        let Said { denial, ask, owner_stop, notes, labels, evidence } = said.map(|said| *said).unwrap_or_default();
        let subject = Subject::Judged(self.judged);
        let mut details = Details { ask, owner_stop, notes, labels, evidence, ..Details::default() };
        if let Some((code, reason)) = denial {
            let denial = Denial::new(code, reason, DenialCause::Policy);
            details.code = Some(denial.code.clone());
            details.reason = Some(denial.reason.clone());
            self.report.push(place, Entry { answer: Answer::Denied, subject, elapsed_ns, details: Some(details.into()) });
            self.deny(place, denial, owner_stop, replacement)?;
            return Ok(Flow::On);
        }
        if let Some(replacement) = replacement {
            match self.replace(replacement) {
                Ok(digest) => details.replacement = Some(digest),
                Err(failure) => {
                    self.failed(place, spec, failure)?;
                    return Ok(Flow::On);
                }
            }
        }
        let answer = match (disposition, &details.ask, &details.replacement) {
            (Disposition::Stop, _, _) => Answer::Stopped,
            (_, Some(_), _) => Answer::Asked,
            (_, None, Some(_)) => Answer::Replaced,
            (_, None, None) => Answer::Continued,
        };
        self.report.push(place, Entry { answer, subject, elapsed_ns, details: Some(details.into()) });
        Ok(if answer == Answer::Stopped { Flow::Stop } else { Flow::On })
    }

    /// Takes a replacement as the context, unless the plan only evaluates. The digest is computed once per change.
    fn replace(&mut self, replacement: Arc<C>) -> Result<Digest, FailureKind> {
        let digest = identify(&*replacement)?;
        if !self.only_evaluates() {
            self.context = replacement;
            if digest != self.digest {
                self.digest = digest;
                self.judged = self.report.judge(digest);
            }
        }
        self.now = Instant::now();
        Ok(digest)
    }

    /// What is left of the asks at the end (I-10).
    fn settle_asks(&mut self) -> Result<(), End<C>> {
        let asks = self.report.asks();
        let Some(first) = asks.first() else { return Ok(()) };
        match &self.shape.approver {
            Approver::None => {
                let mut denial = Denial::new(first.request.code().clone(), first.request.reason(), DenialCause::NoApprover);
                denial.stage = Some(Arc::clone(&first.stage));
                denial.registration = Some(Arc::clone(&first.registration));
                self.end_denied(denial, false, None)
            }
            Approver::EndsAttempt(approver) => {
                let (approver, context) = (Arc::clone(approver), Arc::clone(&self.context));
                let notes = self.report.notes();
                self.end(ChainOutcome::Escalated(Box::new(Escalated { approver, asks, context, digest: self.digest, notes })))
            }
        }
    }

    fn permitted(self) -> ChainOutcome<C> {
        let Self { shape, report, context, digest, would_have, .. } = self;
        ChainOutcome::Permitted(Permitted {
            context,
            digest,
            basis: shape.basis,
            labels: report.labels(),
            notes: report.notes(),
            would_have,
        })
    }

    // Ends.

    /// Records a failure and does what its stage declares (I-3).
    #[cold]
    fn failed(&mut self, place: Place, spec: &StageSpec, failure: FailureKind) -> Result<(), End<C>> {
        let elapsed_ns = nanos(self.read_clock());
        let mapping = spec.on_failure;
        let subject = if matches!(failure, FailureKind::NotStarted) { Subject::Nothing } else { Subject::Judged(self.judged) };
        let reason = failure.text();
        let details = Details { reason: Some(reason.clone()), ..Details::default() };
        let answer = failure.answer(mapping);
        self.report.push(place, Entry { answer, subject, elapsed_ns, details: Some(details.into()) });
        let registered = &self.shape.registrations[place.registration];
        match mapping {
            OnFailure::Deny => {
                let reason = format!("interceptor {} {reason}", registered.name);
                self.deny(place, Denial::by_host(failure.cause(), reason), false, None)
            }
            OnFailure::Propagate => {
                self.end(ChainOutcome::Failed(Box::new(ChainFailure::new(&registered.stage, &registered.name, failure))))
            }
            OnFailure::Isolate => {
                isolated(self.shape, place.registration, &reason);
                Ok(())
            }
        }
    }

    fn deny(&mut self, place: Place, mut denial: Denial, owner_stop: bool, observed: Option<Arc<C>>) -> Result<(), End<C>> {
        let registered = &self.shape.registrations[place.registration];
        denial.stage = Some(Arc::clone(&registered.stage));
        denial.registration = Some(Arc::clone(&registered.name));
        self.end_denied(denial, owner_stop, observed)
    }

    fn end_denied(&mut self, mut denial: Denial, owner_stop: bool, observed: Option<Arc<C>>) -> Result<(), End<C>> {
        denial.never_called = self.report.never_called();
        let notes = self.report.notes();
        self.end(ChainOutcome::Denied(Box::new(Denied { denial, owner_stop, observed, notes })))
    }

    /// Ends the chain. Where the plan only evaluates, the first end is kept and the chain goes on.
    fn end(&mut self, outcome: ChainOutcome<C>) -> Result<(), End<C>> {
        if !self.only_evaluates() {
            return Err(Box::new(outcome));
        }
        if self.would_have.is_none() {
            self.would_have = match outcome {
                ChainOutcome::Permitted(_) => None,
                ChainOutcome::Denied(denied) => Some(WouldHave::Denied(denied.denial)),
                ChainOutcome::Deferred { retry_at, registration, .. } => Some(WouldHave::Deferred { retry_at, registration }),
                ChainOutcome::Escalated(escalated) => Some(WouldHave::Escalated(escalated.asks)),
                ChainOutcome::Failed(failure) => Some(WouldHave::Failed(*failure)),
            }
            .map(Box::new);
        }
        Ok(())
    }

    fn only_evaluates(&self) -> bool {
        self.shape.basis == Basis::NotEnforced
    }

    // Time and place.

    /// The registration's turn, unless the budget is spent.
    fn turn(&self, place: Place, stage_by: Deadline) -> Option<Turn> {
        let by = match self.shape.registrations[place.registration].bound {
            Some(bound) => within(self.now, bound, stage_by),
            None => stage_by,
        };
        (self.now < by.instant()).then_some(Turn { deadline: by, digest: self.digest, again: place.again })
    }

    /// The deadline of a stage, inside the proposal's.
    fn budget(&self, spec: &StageSpec) -> Deadline {
        spec.deadline.map_or(self.deadline, |deadline| within(self.now, deadline, self.deadline))
    }

    /// Ends a step. An answer that came after its bound is a timeout, even if it is an allow (AH-2).
    fn in_time<A>(&mut self, answer: Result<A, FailureKind>, by: Deadline) -> Result<(A, u64), FailureKind> {
        let answer = answer?;
        let started = self.now;
        let now = Instant::now();
        if now >= by.instant() {
            return Err(FailureKind::TimedOut);
        }
        self.now = now;
        Ok((answer, nanos(now - started)))
    }

    fn read_clock(&mut self) -> Duration {
        let started = std::mem::replace(&mut self.now, Instant::now());
        self.now - started
    }

    fn stop_at(&mut self, registration: usize) -> u32 {
        let by = u32::try_from(registration).expect("plans are bounded");
        self.stopped_by = Some(by);
        by
    }

    fn skip(&mut self, registrations: std::ops::Range<usize>, again: bool, by: u32) {
        for registration in registrations {
            let entry = Entry::bare(Answer::Skipped(SkipReason::Stopped), Subject::StoppedBy(by));
            self.report.push(Place { registration, again }, entry);
        }
    }
}

/// The earlier of a budget from now on and a deadline.
pub(super) fn within(now: Instant, budget: Duration, deadline: Deadline) -> Deadline {
    now.checked_add(budget).map_or(deadline, |instant| deadline.earlier(Deadline::at(instant)))
}

/// Logs a failure that its stage isolates.
pub(super) fn isolated(shape: &Shape, registration: usize, reason: &str) {
    let registered = &shape.registrations[registration];
    tracing::warn!(plan = %shape.name, stage = %registered.stage, registration = %registered.name, reason, "isolated interceptor");
}

/// What a decision breaks of its stage's contract (I-15).
fn violation<C>(spec: &StageSpec, decision: &Decision<C>) -> Option<Violation> {
    let Decision { disposition, replacement, said } = decision;
    let asks = said.as_ref().is_some_and(|said| said.ask.is_some());
    let of_kind = match (spec.kind, disposition) {
        (StageKind::Guard, Disposition::Stop) if !spec.stop_ends_stage => Some(Violation::GuardStopped),
        (StageKind::Guard, Disposition::Continue | Disposition::Stop) if replacement.is_some() => Some(Violation::GuardReplaced),
        (StageKind::Advisory, Disposition::Deny) => Some(Violation::AdvisoryDenied),
        (StageKind::Advisory, Disposition::Stop) => Some(Violation::AdvisoryStopped),
        (StageKind::Advisory, Disposition::Continue) if asks => Some(Violation::AdvisoryAsked),
        (StageKind::Advisory, Disposition::Continue) if replacement.is_some() => Some(Violation::AdvisoryReplaced),
        _ => None,
    };
    of_kind.or_else(|| said.as_ref().and_then(|said| said.violation(*disposition)))
}
