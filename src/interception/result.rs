//! The chain after the operation: result stages (I-15, I-16).
//!
//! | answer   | the chain                                                                      |
//! |----------|--------------------------------------------------------------------------------|
//! | keep     | goes on                                                                        |
//! | replace  | goes on with the replacement                                                   |
//! | withhold | ends: Withheld                                                                 |
//! | failure  | by the stage's declaration: Failed, or Withheld where it declares `Deny` (I-3) |
//!
//! A plan that only evaluates asks everybody and keeps the result.

use std::sync::Arc;

use tokio::time::Instant;

use super::answer::{ResultDecision, Turn};
use super::call;
use super::chain::{identify, within};
use super::denial::{Denial, DenialCause, cut};
use super::error::{ChainFailure, FailureKind};
use super::evaluator::{Call, ResultCall};
use super::judged::Judged;
use super::outcome::{Basis, ResultOutcome, Withheld};
use super::plan::{Calls, Compiled, Plan, Shape, Stage};
use super::report::{Answer, Details, Entry, Place, Report, SkipReason, Subject, nanos};
use super::stage::{OnFailure, ResultPhase, StageKind, StageSpec};
use crate::clock::Deadline;
use crate::declare::Digest;

impl<C: Judged, R: Judged> Plan<C, R> {
    /// Runs the result stages for one end of the operation, and fills the rest of the report. The operation was performed, whatever is answered here
    /// (I-16).
    ///
    /// The report is the one that [`Self::apply`] filled; one of another plan is emptied first. The result's digest is computed only if a registration
    /// will judge it, and once per change.
    ///
    /// # Cancel safety
    /// Dropping the future drops the interceptor that is running, and the caller has no result; the report says who was cancelled.
    ///
    /// # Panics
    /// As [`Self::apply`].
    pub async fn apply_result(
        &self,
        end: ResultPhase,
        context: &Arc<C>,
        result: Arc<R>,
        deadline: Deadline,
        report: &mut Report,
    ) -> ResultOutcome<R> {
        let Compiled { shape, calls } = &*self.0;
        report.begin_result(shape);
        let mut chain =
            ResultChain { shape, report, context, result, identity: None, replaced: false, deadline, now: Instant::now() };
        match chain.run(end, calls).await {
            Ok(()) => ResultOutcome::Kept { result: chain.result, replaced: chain.replaced },
            Err(end) => *end,
        }
    }
}

type End<R> = Box<ResultOutcome<R>>;

struct ResultChain<'p, C, R> {
    shape: &'p Shape,
    report: &'p mut Report,
    context: &'p Arc<C>,
    result: Arc<R>,
    /// The result's digest and its place in the report, once somebody needs it.
    identity: Option<(Digest, u32)>,
    replaced: bool,
    deadline: Deadline,
    now: Instant,
}

impl<C: Judged, R: Judged> ResultChain<'_, C, R> {
    async fn run(&mut self, end: ResultPhase, calls: &[Calls<C, R>]) -> Result<(), End<R>> {
        let shape = self.shape;
        for (stage, code) in shape.stages.iter().zip(calls) {
            let (StageKind::Result(phase), Calls::Result(calls)) = (stage.spec.kind, code) else { continue };
            if phase.covers(end) {
                self.stage(stage, calls).await?;
            } else {
                self.skip(stage);
            }
        }
        Ok(())
    }

    async fn stage(&mut self, stage: &Stage, calls: &[ResultCall<C, R>]) -> Result<(), End<R>> {
        let stage_by = stage.spec.deadline.map_or(self.deadline, |deadline| within(self.now, deadline, self.deadline));
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            let answer = self.ask(registration, call, stage_by).await;
            let elapsed_ns = nanos(self.now - std::mem::replace(&mut self.now, Instant::now()));
            match answer {
                Ok(answer) => self.answered(registration, stage, answer, elapsed_ns)?,
                Err(failure) => self.failed(registration, &stage.spec, failure, elapsed_ns)?,
            }
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        registration: usize,
        call: &ResultCall<C, R>,
        stage_by: Deadline,
    ) -> Result<ResultDecision<R>, FailureKind> {
        let (digest, judged) = self.identity()?;
        let by = match self.shape.registrations[registration].bound {
            Some(bound) => within(self.now, bound, stage_by),
            None => stage_by,
        };
        if self.now >= by.instant() {
            return Err(FailureKind::NotStarted);
        }
        let turn = Turn { deadline: by, digest, again: false };
        let answer = match call {
            Call::Plain(call) => call::plain(|| call(self.context, &self.result, &turn)),
            Call::Future(call) => {
                let place = Place { registration, again: false };
                let in_flight = self.report.in_flight(place, Subject::Judged(judged), self.now);
                call::future(|| call(Arc::clone(self.context), Arc::clone(&self.result), turn), by, in_flight).await
            }
        }?;
        if by.has_passed() { Err(FailureKind::TimedOut) } else { Ok(answer) }
    }

    fn identity(&mut self) -> Result<(Digest, u32), FailureKind> {
        if let Some(identity) = self.identity {
            return Ok(identity);
        }
        let digest = identify(&*self.result)?;
        let identity = (digest, self.report.judge(digest));
        self.identity = Some(identity);
        Ok(identity)
    }

    fn answered(&mut self, registration: usize, stage: &Stage, answer: ResultDecision<R>, elapsed_ns: u64) -> Result<(), End<R>> {
        let subject = self.subject();
        let (answer, details) = match answer {
            ResultDecision::Keep => (Answer::Kept, None),
            ResultDecision::Replace(result) => match identify(&*result) {
                Err(failure) => return self.failed(registration, &stage.spec, failure, elapsed_ns),
                Ok(digest) => {
                    self.replace(result, digest);
                    (Answer::Replaced, Some(Details { replacement: Some(digest), ..Details::default() }))
                }
            },
            ResultDecision::Withhold { reason } => {
                let reason = cut(reason, Denial::MAX_REASON_BYTES);
                (Answer::Withheld, Some(Details { reason: Some(reason), ..Details::default() }))
            }
        };
        let withheld = match (&answer, &details) {
            (Answer::Withheld, Some(details)) => details.reason.clone(),
            _ => None,
        };
        let place = Place { registration, again: false };
        self.report.push(place, Entry { answer, subject, elapsed_ns, details: details.map(Box::new) });
        match withheld {
            Some(reason) => self.withhold(registration, reason, DenialCause::Policy),
            None => Ok(()),
        }
    }

    fn replace(&mut self, result: Arc<R>, digest: Digest) {
        if self.only_evaluates() {
            return;
        }
        self.result = result;
        self.replaced = true;
        if self.identity.is_none_or(|(before, _)| before != digest) {
            self.identity = Some((digest, self.report.judge(digest)));
        }
    }

    /// Records a failure and does what its stage declares (I-3).
    fn failed(&mut self, registration: usize, spec: &StageSpec, failure: FailureKind, elapsed_ns: u64) -> Result<(), End<R>> {
        let reason = failure.text();
        let details = Details { reason: Some(reason.clone()), ..Details::default() };
        let subject = if matches!(failure, FailureKind::NotStarted) { Subject::Nothing } else { self.subject() };
        let answer = failure.answer(spec.on_failure);
        let place = Place { registration, again: false };
        self.report.push(place, Entry { answer, subject, elapsed_ns, details: Some(details.into()) });
        let registered = &self.shape.registrations[registration];
        match spec.on_failure {
            // Isolating is refused for result stages when the plan is built; were it not, withholding is the safe reading.
            OnFailure::Deny | OnFailure::Isolate => {
                let reason = format!("interceptor {} {reason}", registered.name);
                self.withhold(registration, reason, failure.cause())
            }
            OnFailure::Propagate => {
                self.end(ResultOutcome::Failed(Box::new(ChainFailure::new(&registered.stage, &registered.name, failure))))
            }
        }
    }

    fn withhold(&self, registration: usize, reason: String, cause: DenialCause) -> Result<(), End<R>> {
        let registered = &self.shape.registrations[registration];
        let (stage, registration) = (Arc::clone(&registered.stage), Arc::clone(&registered.name));
        self.end(ResultOutcome::Withheld(Box::new(Withheld { reason, cause, stage, registration })))
    }

    fn end(&self, outcome: ResultOutcome<R>) -> Result<(), End<R>> {
        if self.only_evaluates() { Ok(()) } else { Err(Box::new(outcome)) }
    }

    fn skip(&mut self, stage: &Stage) {
        for registration in stage.from..stage.to {
            let entry = Entry::bare(Answer::Skipped(SkipReason::OtherEnd), Subject::Nothing);
            self.report.push(Place { registration, again: false }, entry);
        }
    }

    fn subject(&self) -> Subject {
        self.identity.map_or(Subject::Nothing, |(_, judged)| Subject::Judged(judged))
    }

    fn only_evaluates(&self) -> bool {
        self.shape.basis == Basis::NotEnforced
    }
}
