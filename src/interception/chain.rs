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

use std::ops::Range;
use std::sync::Arc;

use super::answer::{Admission, Turn};
use super::budget::Budget;
use super::call::{self, Failure, Started};
use super::decision::{Decision, Disposition, Said};
use super::denial::{Denial, DenialCause};
use super::error::{ChainFailure, FailureKind, Violation};
use super::evaluator::{AdmitCall, Call, DecideCall, DecideFuture, DecidePlain};
use super::judged::Judged;
use super::outcome::{Basis, ChainOutcome, Denied, Escalated, Permitted, WouldHave};
use super::plan::{Approver, Calls, Compiled, Plan, Shape, Stage};
use super::report::{Answer, Details, Entry, Place, Report, SkipReason, Subject};
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
    pub async fn apply_identified(
        &self,
        context: Arc<C>,
        digest: Digest,
        deadline: Deadline,
        report: &mut Report,
    ) -> ChainOutcome<C> {
        let Compiled { shape, calls } = &*self.0;
        report.begin(shape);
        let judged = report.judge(digest);
        let mut chain = Chain {
            shape,
            report,
            context,
            digest,
            judged,
            budget: Budget::start(deadline),
            stops: false,
            stopped_by: None,
            would_have: None,
        };
        match chain.run(calls).await {
            Ok(()) => chain.permitted(),
            Err(end) => *end,
        }
    }
}

/// The digest of a value, with a panic of its code caught.
pub(super) fn identify(value: &impl Judged) -> Result<Digest, Failure> {
    call::caught(|| value.digest())?.map_err(|error| FailureKind::ContextInvalid(error).into())
}

/// A context without identity is denied, with nobody called: nothing could say later what was judged.
fn unidentified<C>(report: &Report, failure: &FailureKind) -> ChainOutcome<C> {
    let mut denial = Denial::by_host(DenialCause::ContextInvalid, format!("the proposed context {}", failure.text()));
    denial.never_called = report.never_called();
    ChainOutcome::Denied(Box::new(Denied { denial, owner_stop: false, observed: None, notes: Vec::new() }))
}

/// The chain's early end.
type End<C> = Box<ChainOutcome<C>>;

struct Chain<'p, C> {
    shape: &'p Shape,
    report: &'p mut Report,
    context: Arc<C>,
    digest: Digest,
    /// The place of `digest` in the report.
    judged: u32,
    budget: Budget,
    /// Whether the answer in hand stops its stage.
    stops: bool,
    /// The registration that stopped last (I-14).
    stopped_by: Option<usize>,
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
        let stage_by = self.budget.of_stage(stage.spec.deadline);
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            let place = Place { registration, again: false };
            let Some(by) = self.due(place, stage_by) else {
                self.failed(place, &stage.spec, FailureKind::NotStarted, 0)?;
                continue;
            };
            let (subject, started) = (Subject::Judged(self.judged), self.budget.now());
            let answer = match call {
                Call::Plain(call) => call::plain(|| call(&self.context, &self.turn(place, by))),
                Call::Future(call) => match call::started(|| call(Arc::clone(&self.context), self.turn(place, by))).await {
                    Started::Answered(answer) => answer,
                    Started::Waiting(called) => call::waited(called, by, self.report.in_flight(place, subject, started)).await,
                },
            };
            let elapsed_ns = self.budget.lap();
            match self.in_time(answer, by) {
                Ok(Admission::Admit) => {
                    self.report.push(place, Entry { answer: Answer::Admitted, subject, elapsed_ns, details: None });
                }
                Ok(Admission::Defer { retry_at, reason }) => {
                    let details = Details { reason: Some(reason.clone()), ..Details::default() };
                    self.report
                        .push(place, Entry { answer: Answer::Deferred, subject, elapsed_ns, details: Some(details.into()) });
                    let registration = Arc::clone(&self.shape.registrations[registration].name);
                    self.end(ChainOutcome::Deferred { retry_at, reason, registration })?;
                }
                Err(failure) => self.failed(place, &stage.spec, *failure, elapsed_ns)?,
            }
        }
        Ok(())
    }

    async fn deciding(&mut self, stage: &Stage, calls: &[DecideCall<C>]) -> Result<(), End<C>> {
        if stage.from == stage.to {
            return Ok(());
        }
        if let (Some(by), StageKind::Transform | StageKind::Advisory) = (self.stopped_by, stage.spec.kind) {
            self.skip(stage.from..stage.to, by);
            return Ok(());
        }
        let stage_by = self.budget.of_stage(stage.spec.deadline);
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            self.decide(Place { registration, again: false }, &stage.spec, call, stage_by).await?;
            if std::mem::take(&mut self.stops) {
                self.skip(registration + 1..stage.to, registration);
                break;
            }
        }
        Ok(())
    }

    /// Runs every guard again whose input digest changed (I-5). A stop skips none of them (I-14). A guard that was skipped by one has judged nothing:
    /// since a stop skips the later transforms as well, nothing has changed since.
    async fn recheck<R>(&mut self, stages: &[Stage], calls: &[Calls<C, R>]) -> Result<(), End<C>> {
        for (stage, code) in stages.iter().zip(calls) {
            let (StageKind::Guard, Calls::Deciding(calls)) = (stage.spec.kind, code) else { continue };
            let stage_by = self.budget.of_stage(stage.spec.deadline);
            for (registration, call) in (stage.from..stage.to).zip(calls) {
                let place = Place { registration, again: true };
                let Some(Subject::Judged(before)) = self.report.entry(registration).map(|entry| entry.subject) else { continue };
                if self.report.digest_at(before) == Some(&self.digest) {
                    self.report.push(place, Entry::bare(Answer::Skipped(SkipReason::Unchanged), Subject::Judged(before)));
                } else {
                    self.decide(place, &stage.spec, call, stage_by).await?;
                }
            }
        }
        self.stops = false;
        Ok(())
    }

    /// One turn of a guard, a transform or an adviser. A plain closure never suspends: the loop below runs it without a future of its own.
    async fn decide(&mut self, place: Place, spec: &StageSpec, call: &DecideCall<C>, stage_by: Deadline) -> Result<(), End<C>> {
        match call {
            Call::Plain(call) => self.decide_at_once(place, spec, &**call, stage_by),
            Call::Future(call) => self.decide_in_time(place, spec, &**call, stage_by).await,
        }
    }

    fn decide_at_once(
        &mut self,
        place: Place,
        spec: &StageSpec,
        call: &DecidePlain<C>,
        stage_by: Deadline,
    ) -> Result<(), End<C>> {
        let Some(by) = self.due(place, stage_by) else { return self.not_started(place, spec) };
        let answer = call::plain(|| call(&self.context, &self.turn(place, by)));
        self.settle(place, spec, answer, by)
    }

    async fn decide_in_time(
        &mut self,
        place: Place,
        spec: &StageSpec,
        call: &DecideFuture<C>,
        stage_by: Deadline,
    ) -> Result<(), End<C>> {
        let Some(by) = self.due(place, stage_by) else { return self.not_started(place, spec) };
        let answer = match call::started(|| call(Arc::clone(&self.context), self.turn(place, by))).await {
            Started::Answered(answer) => answer,
            Started::Waiting(called) => {
                let in_flight = self.report.in_flight(place, Subject::Judged(self.judged), self.budget.now());
                call::waited(called, by, in_flight).await
            }
        };
        self.settle(place, spec, answer, by)
    }

    /// Ends a turn.
    #[inline]
    fn settle(
        &mut self,
        place: Place,
        spec: &StageSpec,
        answer: Result<Decision<C>, Failure>,
        by: Deadline,
    ) -> Result<(), End<C>> {
        let elapsed_ns = self.budget.lap();
        match self.in_time(answer, by) {
            Ok(Decision(None)) => {
                let subject = Subject::Judged(self.judged);
                self.report.push(place, Entry { answer: Answer::Continued, subject, elapsed_ns, details: None });
                Ok(())
            }
            Ok(Decision(Some(said))) => self.decided(place, spec, *said, elapsed_ns),
            Err(failure) => self.failed(place, spec, *failure, elapsed_ns),
        }
    }

    #[cold]
    fn not_started(&mut self, place: Place, spec: &StageSpec) -> Result<(), End<C>> {
        self.failed(place, spec, FailureKind::NotStarted, 0)
    }

    /// Takes a decision that says more than to go on.
    #[cold]
    fn decided(&mut self, place: Place, spec: &StageSpec, said: Said<C>, elapsed_ns: u64) -> Result<(), End<C>> {
        if let Some(violation) = violation(spec, &said) {
            return self.failed(place, spec, FailureKind::ContractViolation(violation), elapsed_ns);
        }
        let Said { disposition, replacement, denial, ask, owner_stop, notes, labels, evidence } = said;
        let subject = Subject::Judged(self.judged);
        let mut details = Details { ask, owner_stop, notes, labels, evidence, ..Details::default() };
        if let Some((code, reason)) = denial {
            let denial = Denial::new(code, reason, DenialCause::Policy);
            details.code = Some(denial.code.clone());
            details.reason = Some(denial.reason.clone());
            self.report.push(place, Entry { answer: Answer::Denied, subject, elapsed_ns, details: Some(details.into()) });
            return self.deny(place, denial, owner_stop, replacement);
        }
        if let Some(replacement) = replacement {
            match self.replace(replacement) {
                Ok(digest) => details.replacement = Some(digest),
                Err(failure) => return self.failed(place, spec, *failure, elapsed_ns),
            }
        }
        let answer = match (disposition, &details.ask, &details.replacement) {
            (Disposition::Stop, _, _) => Answer::Stopped,
            (_, Some(_), _) => Answer::Asked,
            (_, None, Some(_)) => Answer::Replaced,
            (_, None, None) => Answer::Continued,
        };
        self.report.push(place, Entry { answer, subject, elapsed_ns, details: Some(details.into()) });
        if answer == Answer::Stopped && !self.only_evaluates() {
            self.stops = true;
            self.stopped_by = Some(place.registration);
        }
        Ok(())
    }

    /// Takes a replacement as the context, unless the plan only evaluates. The digest is computed once per change.
    fn replace(&mut self, replacement: Arc<C>) -> Result<Digest, Failure> {
        let digest = identify(&*replacement)?;
        if !self.only_evaluates() {
            self.context = replacement;
            if digest != self.digest {
                self.digest = digest;
                self.judged = self.report.judge(digest);
            }
        }
        // The digest is the chain's time, not the next interceptor's.
        self.budget.lap();
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
    fn failed(&mut self, place: Place, spec: &StageSpec, failure: FailureKind, elapsed_ns: u64) -> Result<(), End<C>> {
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

    /// When the registration's answer is due, unless the budget is spent.
    #[inline]
    fn due(&self, place: Place, stage_by: Deadline) -> Option<Deadline> {
        self.budget.of_call(self.shape.registrations[place.registration].bound, stage_by)
    }

    #[inline]
    fn turn(&self, place: Place, by: Deadline) -> Turn {
        Turn::new(by, self.digest, place.again)
    }

    #[inline]
    fn in_time<A>(&self, answer: Result<A, Failure>, by: Deadline) -> Result<A, Failure> {
        match answer {
            Ok(_) if self.budget.is_late(by) => Err(FailureKind::TimedOut.into()),
            answer => answer,
        }
    }

    fn skip(&mut self, registrations: Range<usize>, by: usize) {
        let by = u32::try_from(by).expect("plans are bounded");
        for registration in registrations {
            let entry = Entry::bare(Answer::Skipped(SkipReason::Stopped), Subject::StoppedBy(by));
            self.report.push(Place { registration, again: false }, entry);
        }
    }
}

/// Logs a failure that its stage isolates.
pub(super) fn isolated(shape: &Shape, registration: usize, reason: &str) {
    let registered = &shape.registrations[registration];
    tracing::warn!(target: crate::telemetry::INTERCEPTION, plan = %shape.name, stage = %registered.stage, registration = %registered.name, reason, "isolated interceptor");
}

/// What a decision breaks of its stage's contract (I-15).
fn violation<C>(spec: &StageSpec, said: &Said<C>) -> Option<Violation> {
    let (asks, replaces) = (said.ask.is_some(), said.replacement.is_some());
    let of_kind = match (spec.kind, said.disposition) {
        (StageKind::Guard, Disposition::Stop) if !spec.stop_ends_stage => Some(Violation::GuardStopped),
        (StageKind::Guard, Disposition::Continue | Disposition::Stop) if replaces => Some(Violation::GuardReplaced),
        (StageKind::Advisory, Disposition::Deny) => Some(Violation::AdvisoryDenied),
        (StageKind::Advisory, Disposition::Stop) => Some(Violation::AdvisoryStopped),
        (StageKind::Advisory, Disposition::Continue) if asks => Some(Violation::AdvisoryAsked),
        (StageKind::Advisory, Disposition::Continue) if replaces => Some(Violation::AdvisoryReplaced),
        _ => None,
    };
    of_kind.or_else(|| said.violation())
}
