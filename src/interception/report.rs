//! Reports: what every registration answered (I-8).

mod record;
mod step;

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

pub use record::{ReportRecord, StepRecord};
pub(super) use step::Details;
pub use step::{Answer, SkipReason, Step};

use super::budget::nanos;
use super::decision::Note;
use super::outcome::{Basis, Escalation};
use super::plan::Shape;
use super::progress::Progress;
use crate::declare::Digest;

/// What every registration of a plan answered, in plan order (I-8).
///
/// The caller owns it while [`Plan::apply`](super::Plan::apply) fills it. If that future is dropped, the report says which interceptor was running then
/// ([`Answer::Cancelled`]) and which were never called (AH-1).
pub struct Report {
    shape: Arc<Shape>,
    /// What has been answered, from the first registration on.
    steps: Vec<Entry>,
    /// What guards answered when they ran again, in plan order, each with its registration.
    again: Vec<(usize, Entry)>,
    /// The digests that were judged: the proposed context first, then one per change.
    digests: Vec<Digest>,
    /// Whether any entry has details.
    detailed: bool,
    /// Who else follows how far the chain came.
    progress: Option<Progress>,
}

/// The answer of one registration.
pub(super) struct Entry {
    pub(super) answer: Answer,
    pub(super) subject: Subject,
    pub(super) elapsed_ns: u64,
    pub(super) details: Option<Box<Details>>,
}

/// What an entry refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Nothing,
    /// A judged digest, by its place among the report's digests.
    Judged(u32),
    /// The registration whose stop skipped this one.
    StoppedBy(u32),
}

/// Which answer of a registration is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) registration: usize,
    pub(super) again: bool,
}

impl Report {
    pub(super) fn new(shape: Arc<Shape>) -> Self {
        let steps = Vec::with_capacity(shape.registrations.len());
        Self { shape, steps, again: Vec::new(), digests: Vec::with_capacity(1), detailed: false, progress: None }
    }

    /// Lets somebody else follow how far the chain comes, while this report is being filled.
    #[must_use]
    pub fn followed_by(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The plan's name.
    #[must_use]
    pub fn plan(&self) -> &str {
        &self.shape.name
    }

    /// The plan's digest.
    #[must_use]
    pub fn plan_digest(&self) -> Digest {
        self.shape.digest
    }

    /// On what a permission of the plan rests (I-22).
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.shape.basis
    }

    /// Every registration in plan order, called or not.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.shape.registrations.iter().enumerate().map(|(at, registered)| Step::of(self, registered, self.steps.get(at)))
    }

    /// The guards that were due to run again after a change (I-5), in plan order. One that is missing was not reached.
    pub fn again(&self) -> impl Iterator<Item = Step<'_>> {
        self.again.iter().map(|(at, entry)| Step::of(self, &self.shape.registrations[*at], Some(entry)))
    }

    /// The digests that were judged, in order: the proposed context, then one per change, then the result if it was judged.
    #[must_use]
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// The registrations before the operation that were never called, in plan order.
    #[must_use]
    pub fn never_called(&self) -> Vec<Arc<str>> {
        let before = self.shape.registrations[..self.shape.before].iter().enumerate();
        before
            .filter(|(at, _)| self.steps.get(*at).is_none_or(|entry| !entry.answer.was_called()))
            .map(|(_, registered)| Arc::clone(&registered.name))
            .collect()
    }

    /// The report as data, for a journal.
    #[must_use]
    pub fn record(&self) -> ReportRecord {
        ReportRecord::of(self)
    }

    /// Empties the report for a new proposal of a plan.
    pub(super) fn begin(&mut self, shape: &Arc<Shape>) {
        if !Arc::ptr_eq(&self.shape, shape) {
            self.shape = Arc::clone(shape);
        }
        self.steps.clear();
        self.steps.reserve(shape.registrations.len());
        self.again.clear();
        self.digests.clear();
        self.detailed = false;
        if let Some(progress) = &self.progress {
            progress.begin(shape);
        }
    }

    /// Makes the report ready for the result stages: what stands before the operation stays as it is.
    pub(super) fn begin_result(&mut self, shape: &Arc<Shape>) {
        if !Arc::ptr_eq(&self.shape, shape) {
            self.begin(shape);
        }
        self.steps.truncate(shape.before);
        self.steps.resize_with(shape.before, || Entry::bare(Answer::NotReached, Subject::Nothing));
    }

    pub(super) fn judge(&mut self, digest: Digest) -> u32 {
        self.digests.push(digest);
        u32::try_from(self.digests.len() - 1).expect("a report holds one digest per change, and plans are bounded")
    }

    #[inline]
    pub(super) fn push(&mut self, place: Place, entry: Entry) {
        self.detailed |= entry.details.is_some();
        if place.again {
            self.again.push((place.registration, entry));
        } else {
            debug_assert_eq!(self.steps.len(), place.registration, "entries come in plan order");
            self.steps.push(entry);
            if let Some(progress) = &self.progress {
                progress.settled(self.steps.len());
            }
        }
    }

    pub(super) fn entry(&self, registration: usize) -> Option<&Entry> {
        self.steps.get(registration)
    }

    pub(super) fn digest_at(&self, place: u32) -> Option<&Digest> {
        self.digests.get(place as usize)
    }

    /// Watches a call that may not answer at once: if it is dropped between [`InFlight::took_off`] and [`InFlight::landed`], the report says so.
    #[inline]
    pub(super) fn in_flight(&mut self, place: Place, subject: Subject, started: Instant) -> InFlight<'_> {
        InFlight { report: self, place, subject, started, aloft: false }
    }

    /// Every answer that was given, in plan order; the re-run of a guard follows its first answer.
    fn given(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.steps.iter().enumerate().flat_map(|(at, first)| {
            std::iter::once((at, first))
                .chain(self.again.iter().filter(move |(again, _)| *again == at).map(|(at, entry)| (*at, entry)))
        })
    }

    /// The answer of each registration that stands: the re-run of a guard, if it ran again, replaces its first answer.
    fn standing(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.steps.iter().enumerate().map(|(at, first)| {
            let again = self.again.iter().find(|(again, entry)| *again == at && entry.answer.was_called());
            (at, again.map_or(first, |(_, entry)| entry))
        })
    }

    /// The notes of all answers.
    pub(super) fn notes(&self) -> Vec<Note> {
        if !self.detailed {
            return Vec::new();
        }
        self.given().filter_map(|(_, entry)| entry.details.as_deref()).flat_map(|details| details.notes.iter().cloned()).collect()
    }

    /// The labels of the permits that stand, each once.
    pub(super) fn labels(&self) -> Vec<Arc<str>> {
        let mut labels: Vec<Arc<str>> = Vec::new();
        if self.detailed {
            for (_, entry) in self.standing().filter(|(_, entry)| entry.answer.permits()) {
                for label in entry.details.iter().flat_map(|details| &details.labels) {
                    if !labels.contains(label) {
                        labels.push(Arc::clone(label));
                    }
                }
            }
        }
        labels
    }

    /// The asks that stand.
    pub(super) fn asks(&self) -> Vec<Escalation> {
        if !self.detailed {
            return Vec::new();
        }
        let asking = self.standing().filter_map(|(at, entry)| Some((at, entry.details.as_ref()?.ask.as_ref()?)));
        asking
            .map(|(at, request)| {
                let registered = &self.shape.registrations[at];
                Escalation {
                    stage: Arc::clone(&registered.stage),
                    registration: Arc::clone(&registered.name),
                    request: request.clone(),
                }
            })
            .collect()
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("plan", &self.plan())
            .field("steps", &self.steps().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Entry {
    pub(super) const fn bare(answer: Answer, subject: Subject) -> Self {
        Self { answer, subject, elapsed_ns: 0, details: None }
    }
}

/// A call that may wait for its answer.
pub(super) struct InFlight<'r> {
    report: &'r mut Report,
    place: Place,
    subject: Subject,
    started: Instant,
    aloft: bool,
}

impl InFlight<'_> {
    #[inline]
    pub(super) fn took_off(&mut self) {
        self.aloft = true;
    }

    #[inline]
    pub(super) fn landed(&mut self) {
        self.aloft = false;
    }
}

impl Drop for InFlight<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.aloft {
            let elapsed_ns = nanos(self.started.elapsed());
            self.report
                .push(self.place, Entry { answer: Answer::Cancelled(None), subject: self.subject, elapsed_ns, details: None });
        }
    }
}
