//! What a guard, a transform or an advisory interceptor decides.

use std::fmt;
use std::sync::Arc;

use super::denial::{DenialCode, cut};
use super::error::Violation;
use super::evidence::EvidenceRef;

/// How many notes, labels and evidence references one decision may carry, each. More of them is a contract violation.
pub const MAX_REMARKS: usize = 64;

/// The longest code of a note and the longest label, in bytes.
const MAX_WORD_BYTES: usize = 256;

/// The longest text of a note, in bytes. What is longer is cut, and the cut says so.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// A typed decision on one proposed operation. Built by its constructors only, so that no impossible mixture exists: an ask stands beside
/// continuing only, a reason beside a denial only.
///
/// | constructor                    | meaning                                                                         |
/// |--------------------------------|---------------------------------------------------------------------------------|
/// | [`proceed`](Self::proceed)     | go on                                                                           |
/// | [`replace`](Self::replace)     | go on with another context                                                      |
/// | [`stop`](Self::stop)           | skip the rest of this stage and every later transform and advisory stage (I-14)   |
/// | [`stop_with`](Self::stop_with) | the same, with another context                                                  |
/// | [`deny`](Self::deny)           | the operation is not performed                                                  |
/// | [`ask`](Self::ask)             | go on, but a person must approve; never an allow (I-10)                         |
#[must_use = "a decision decides nothing until it is returned"]
pub struct Decision<C>(
    /// Nothing is said by most decisions: to go on is one null pointer.
    pub(super) Option<Box<Said<C>>>,
);

/// What happens to the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disposition {
    Continue,
    Stop,
    Deny,
}

/// What a decision says beyond going on.
pub(super) struct Said<C> {
    pub(super) disposition: Disposition,
    pub(super) replacement: Option<Arc<C>>,
    pub(super) denial: Option<(DenialCode, String)>,
    pub(super) ask: Option<AskRequest>,
    pub(super) owner_stop: bool,
    pub(super) notes: Vec<Note>,
    pub(super) labels: Vec<Arc<str>>,
    pub(super) evidence: Vec<EvidenceRef>,
}

impl<C> Decision<C> {
    fn bare(disposition: Disposition) -> Self {
        let mut decision = Self::proceed();
        decision.said().disposition = disposition;
        decision
    }

    /// Goes on with the context as it is.
    pub const fn proceed() -> Self {
        Self(None)
    }

    /// Goes on with another context. Only a transform may answer so.
    pub fn replace(context: impl Into<Arc<C>>) -> Self {
        Self::proceed().with_replacement(context)
    }

    /// Ends the rest of its own stage and every later transform and advisory stage (I-14). It skips no later guard, no re-run of a guard and no step of
    /// the owner. Only a transform may answer so, or a guard whose stage declares [`StageSpec::stop_ends_stage`](super::StageSpec::stop_ends_stage).
    pub fn stop() -> Self {
        Self::bare(Disposition::Stop)
    }

    /// As [`Self::stop`], with another context for what follows.
    pub fn stop_with(context: impl Into<Arc<C>>) -> Self {
        Self::stop().with_replacement(context)
    }

    /// Denies the operation and ends the chain. The reason is for people; whoever handles the denial decides by the code.
    pub fn deny(code: DenialCode, reason: impl Into<String>) -> Self {
        let mut decision = Self::bare(Disposition::Deny);
        decision.said().denial = Some((code, reason.into()));
        decision
    }

    /// Goes on, and asks for an approval at the end of the chain. A later denial outranks the ask; the same guard's re-run replaces it (I-5, I-10).
    pub fn ask(request: AskRequest) -> Self {
        let mut decision = Self::proceed();
        decision.said().ask = Some(request);
        decision
    }

    /// Adds a note: a code for programs and a text for people. Notes may stand on every disposition.
    pub fn with_note(mut self, code: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        self.said().notes.push(Note { code: code.into(), text: cut(text.into(), MAX_TEXT_BYTES) });
        self
    }

    /// Adds a label to the permit. On a denial it stays in the report: labels stand on permits only.
    pub fn with_label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.said().labels.push(label.into());
        self
    }

    /// Adds a pointer to evidence.
    pub fn with_evidence(mut self, evidence: EvidenceRef) -> Self {
        self.said().evidence.push(evidence);
        self
    }

    /// Adds a replacement. On a denial it is observed, never performed.
    pub fn with_replacement(mut self, context: impl Into<Arc<C>>) -> Self {
        self.said().replacement = Some(context.into());
        self
    }

    /// Asks the owner to stop altogether after a denial. On anything else it is a contract violation.
    pub fn stopping_owner(mut self) -> Self {
        self.said().owner_stop = true;
        self
    }

    /// Whether the decision refuses the operation.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        self.0.as_ref().is_some_and(|said| said.disposition == Disposition::Deny)
    }

    fn said(&mut self) -> &mut Said<C> {
        self.0.get_or_insert_with(|| {
            Box::new(Said {
                disposition: Disposition::Continue,
                replacement: None,
                denial: None,
                ask: None,
                owner_stop: false,
                notes: Vec::new(),
                labels: Vec::new(),
                evidence: Vec::new(),
            })
        })
    }
}

impl<C> Said<C> {
    /// What is wrong with the remarks, if anything.
    pub(super) fn violation(&self) -> Option<Violation> {
        let unreadable = |word: &str| word.is_empty() || word.len() > MAX_WORD_BYTES || word.chars().any(char::is_control);
        if self.owner_stop && self.disposition != Disposition::Deny {
            Some(Violation::OwnerStopWithoutDenial)
        } else if [self.notes.len(), self.labels.len(), self.evidence.len()].iter().any(|count| *count > MAX_REMARKS) {
            Some(Violation::TooManyRemarks)
        } else if self.notes.iter().any(|note| unreadable(&note.code)) || self.labels.iter().any(|label| unreadable(label)) {
            Some(Violation::RemarkUnreadable)
        } else {
            None
        }
    }
}

impl<C> fmt::Debug for Decision<C> {
    /// Never shows the context.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(said) = &self.0 else { return f.write_str("Decision(proceed)") };
        f.debug_struct("Decision")
            .field("disposition", &said.disposition)
            .field("replaces", &said.replacement.is_some())
            .field("denial", &said.denial)
            .field("ask", &said.ask)
            .finish_non_exhaustive()
    }
}

/// A remark beside a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// For programs: 1 to 256 printable bytes.
    pub code: Arc<str>,
    /// For people.
    pub text: String,
}

/// What an interceptor asks a person to approve. It never means allow (I-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    code: DenialCode,
    reason: String,
}

impl AskRequest {
    /// An ask with the code and the reason that a denial carries when nobody can be asked. A reason beyond 4 KiB is cut, and the cut says so.
    #[must_use]
    pub fn new(code: DenialCode, reason: impl Into<String>) -> Self {
        Self { code, reason: cut(reason.into(), MAX_TEXT_BYTES) }
    }

    /// The asker's code.
    #[must_use]
    pub const fn code(&self) -> &DenialCode {
        &self.code
    }

    /// What to tell the person.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
