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

use super::answer::{ResultDecision, Turn};
use super::budget::Budget;
use super::call::{self, Failure, Started};
use super::chain::identify;
use super::denial::{Denial, DenialCause, cut};
use super::error::{ChainFailure, FailureKind};
use super::evaluator::{Call, ResultCall};
use super::judged::Judged;
use super::outcome::{Basis, ResultOutcome, Withheld};
use super::plan::{Calls, Compiled, Plan, Shape, Stage};
use super::report::{Answer, Details, Entry, Place, Report, SkipReason, Subject};
use super::stage::{OnFailure, ResultEnd, StageKind, StageSpec};
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
        end: ResultEnd,
        context: &Arc<C>,
        result: Arc<R>,
        deadline: Deadline,
        report: &mut Report,
    ) -> ResultOutcome<R> {
        let Compiled { shape, calls } = &*self.0;
        report.begin_result(shape);
        let mut chain =
            ResultChain { shape, report, context, result, identity: None, replaced: false, budget: Budget::start(deadline) };
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
    budget: Budget,
}

impl<C: Judged, R: Judged> ResultChain<'_, C, R> {
    async fn run(&mut self, end: ResultEnd, calls: &[Calls<C, R>]) -> Result<(), End<R>> {
        let shape = self.shape;
        for (stage, code) in shape.stages.iter().zip(calls) {
            let (StageKind::Result(on), Calls::Result(calls)) = (stage.spec.kind, code) else { continue };
            if on.covers(end) {
                self.stage(stage, calls).await?;
            } else {
                self.skip(stage);
            }
        }
        Ok(())
    }

    async fn stage(&mut self, stage: &Stage, calls: &[ResultCall<C, R>]) -> Result<(), End<R>> {
        let stage_by = self.budget.of_stage(stage.spec.deadline);
        for (registration, call) in (stage.from..stage.to).zip(calls) {
            let answer = self.ask(registration, call, stage_by).await;
            let elapsed_ns = self.budget.lap();
            match answer {
                Ok((_, by)) if self.budget.is_late(by) => {
                    self.failed(registration, &stage.spec, FailureKind::TimedOut, elapsed_ns)?
                }
                Ok((answer, _)) => self.answered(registration, stage, answer, elapsed_ns)?,
                Err(failure) => self.failed(registration, &stage.spec, *failure, elapsed_ns)?,
            }
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        registration: usize,
        call: &ResultCall<C, R>,
        stage_by: Deadline,
    ) -> Result<(ResultDecision<R>, Deadline), Failure> {
        let (digest, judged) = self.identity()?;
        let bound = self.shape.registrations[registration].bound;
        let by = self.budget.of_call(bound, stage_by).ok_or_else(|| Failure::new(FailureKind::NotStarted))?;
        let turn = Turn::new(by, digest, false);
        let answer = match call {
            Call::Plain(call) => call::plain(|| call(self.context, &self.result, &turn)),
            Call::Future(call) => {
                let place = Place { registration, again: false };
                match call::started(|| call(Arc::clone(self.context), Arc::clone(&self.result), turn)).await {
                    Started::Answered(answer) => answer,
                    Started::Waiting(called) => {
                        let in_flight = self.report.in_flight(place, Subject::Judged(judged), self.budget.now());
                        call::waited(called, by, in_flight).await
                    }
                }
            }
        }?;
        Ok((answer, by))
    }

    fn identity(&mut self) -> Result<(Digest, u32), Failure> {
        if let Some(identity) = self.identity {
            return Ok(identity);
        }
        let digest = identify(&*self.result)?;
        let identity = (digest, self.report.judge(digest));
        self.identity = Some(identity);
        // The digest is the chain's time, not the interceptor's.
        self.budget.lap();
        Ok(identity)
    }

    fn answered(&mut self, registration: usize, stage: &Stage, answer: ResultDecision<R>, elapsed_ns: u64) -> Result<(), End<R>> {
        match answer {
            ResultDecision::Keep => {
                self.push(registration, Answer::Kept, elapsed_ns, None);
                Ok(())
            }
            ResultDecision::Replace(result) => match identify(&*result) {
                Ok(digest) => {
                    let details = Details { replacement: Some(digest), ..Details::default() };
                    self.push(registration, Answer::Replaced, elapsed_ns, Some(details));
                    self.replace(result, digest);
                    Ok(())
                }
                Err(failure) => self.failed(registration, &stage.spec, *failure, elapsed_ns),
            },
            ResultDecision::Withhold { reason } => {
                let reason = cut(reason, Denial::MAX_REASON_BYTES);
                let details = Details { reason: Some(reason.clone()), ..Details::default() };
                self.push(registration, Answer::Withheld, elapsed_ns, Some(details));
                self.withhold(registration, reason, DenialCause::Policy)
            }
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
        self.budget.lap();
    }

    /// Records a failure and does what its stage declares (I-3).
    fn failed(&mut self, registration: usize, spec: &StageSpec, failure: FailureKind, elapsed_ns: u64) -> Result<(), End<R>> {
        let reason = failure.text();
        let details = Details { reason: Some(reason.clone()), ..Details::default() };
        self.push(registration, failure.answer(spec.on_failure), elapsed_ns, Some(details));
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

    fn push(&mut self, registration: usize, answer: Answer, elapsed_ns: u64, details: Option<Details>) {
        let subject = match (answer, self.identity) {
            (Answer::NotStarted(_), _) | (_, None) => Subject::Nothing,
            (_, Some((_, judged))) => Subject::Judged(judged),
        };
        let entry = Entry { answer, subject, elapsed_ns, details: details.map(Box::new) };
        self.report.push(Place { registration, again: false }, entry);
    }

    fn only_evaluates(&self) -> bool {
        self.shape.basis == Basis::NotEnforced
    }
}
