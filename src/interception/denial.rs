//! Denials: who refused, by which code, and of which class.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A typed refusal. It is an answer, never an error, and a fact of its own (P-1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// The reason code: the interceptor's own, or the host's for its [`DenialCause`].
    pub code: DenialCode,
    /// What to tell: at most [`Denial::MAX_REASON_BYTES`] bytes.
    pub reason: String,
    /// The class of the cause. A policy that refused and a guard that failed differ here, not in the text.
    pub cause: DenialCause,
    /// The stage that refused; absent if no stage was reached.
    pub stage: Option<Arc<str>>,
    /// The registration that refused; absent if none was reached.
    pub registration: Option<Arc<str>>,
    /// The registrations before the operation that were never called, in plan order.
    pub never_called: Vec<Arc<str>>,
}

impl Denial {
    /// The longest reason. What is longer is cut, and the cut says so.
    pub const MAX_REASON_BYTES: usize = 4 * 1024;

    /// A denial of the host's own, under the code of its cause.
    #[must_use]
    pub fn by_host(cause: DenialCause, reason: impl Into<String>) -> Self {
        Self::new(cause.code(), reason, cause)
    }

    pub(super) fn new(code: DenialCode, reason: impl Into<String>, cause: DenialCause) -> Self {
        let reason = cut(reason.into(), Self::MAX_REASON_BYTES);
        Self { code, reason, cause, stage: None, registration: None, never_called: Vec::new() }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "denied by {}: {}", self.registration.as_deref().unwrap_or("the host"), self.reason)
    }
}

/// Cuts a text at a character boundary, so that it and the remark on the cut fit into `max` bytes.
pub(super) fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        let remark = format!(" [cut: {} bytes]", text.len());
        let mut keep = max - remark.len();
        while !text.is_char_boundary(keep) {
            keep -= 1;
        }
        text.truncate(keep);
        text.push_str(&remark);
    }
    text
}

/// Why an operation was denied, by class. Closed: an operator acts on each of them in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenialCause {
    /// An interceptor decided so.
    Policy,
    /// An interceptor answered with an error.
    InterceptorFailed,
    /// An interceptor panicked.
    Panicked,
    /// An interceptor's answer did not come in time, or the budget was spent before it could be asked.
    TimedOut,
    /// An interceptor answered what its stage does not allow (I-15).
    ContractViolation,
    /// The judged value, or a replacement, has no canonical form.
    ContextInvalid,
    /// An interceptor asked and the plan names no approver (I-10).
    NoApprover,
    /// No place was free in time.
    Overloaded,
    /// The authorization actor crashed while it held the proposal.
    AuthorizationRestarted,
    /// The authorization actor has spent its restart budget.
    AuthorizationDegraded,
    /// The authorization plane cannot be reached.
    AuthorizationUnavailable,
    /// A required journal cannot accept the record (P-10).
    AuditUnavailable,
    /// The evidence that must be stored before the call cannot be stored (I-11).
    EvidenceUnavailable,
    /// The proposal, or the interceptor's own work, was cancelled.
    Cancelled,
}

impl DenialCause {
    /// Every cause.
    pub const ALL: [Self; 14] = [
        Self::Policy,
        Self::InterceptorFailed,
        Self::Panicked,
        Self::TimedOut,
        Self::ContractViolation,
        Self::ContextInvalid,
        Self::NoApprover,
        Self::Overloaded,
        Self::AuthorizationRestarted,
        Self::AuthorizationDegraded,
        Self::AuthorizationUnavailable,
        Self::AuditUnavailable,
        Self::EvidenceUnavailable,
        Self::Cancelled,
    ];

    /// The host's code for the cause, in the host's own namespace `tipstaff.`.
    #[must_use]
    pub const fn code(self) -> DenialCode {
        DenialCode(Cow::Borrowed(match self {
            Self::Policy => "tipstaff.policy",
            Self::InterceptorFailed => "tipstaff.interceptor_failed",
            Self::Panicked => "tipstaff.panicked",
            Self::TimedOut => "tipstaff.timed_out",
            Self::ContractViolation => "tipstaff.contract_violation",
            Self::ContextInvalid => "tipstaff.context_invalid",
            Self::NoApprover => "tipstaff.no_approver",
            Self::Overloaded => "tipstaff.overloaded",
            Self::AuthorizationRestarted => "tipstaff.authorization_restarted",
            Self::AuthorizationDegraded => "tipstaff.authorization_degraded",
            Self::AuthorizationUnavailable => "tipstaff.authorization_unavailable",
            Self::AuditUnavailable => "tipstaff.audit_unavailable",
            Self::EvidenceUnavailable => "tipstaff.evidence_unavailable",
            Self::Cancelled => "tipstaff.cancelled",
        }))
    }

    /// The name, as it is written into records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self.code().0 {
            Cow::Borrowed(code) => code.strip_prefix(HOST).expect("every code of a cause is the host's own"),
            Cow::Owned(_) => unreachable!("every code of a cause is a literal"),
        }
    }
}

impl fmt::Display for DenialCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The namespace of the host's own codes.
const HOST: &str = "tipstaff.";

/// The longest code, in bytes.
const MAX_CODE_BYTES: usize = 128;

/// A reason code: lower-case words joined by dots, such as `git.force_push`. The namespace `tipstaff.` is the host's own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DenialCode(Cow<'static, str>);

/// A text that is no reason code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no reason code: {remedy}")]
pub struct InvalidCode {
    text: String,
    remedy: &'static str,
}

impl DenialCode {
    /// A code from a text.
    ///
    /// # Errors
    /// [`InvalidCode`] when it is not made of lower-case letters, digits, `_` and `-` with single dots between words, is longer than 128 bytes, or
    /// stands in the host's namespace.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidCode> {
        let text = text.into();
        match fault(text.as_bytes(), false) {
            None => Ok(Self(Cow::Owned(text))),
            Some(remedy) => Err(InvalidCode { text, remedy }),
        }
    }

    /// A code from a literal. In a `const`, a bad literal stops the build.
    ///
    /// # Panics
    /// When the literal is no reason code.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(fault(text.as_bytes(), false).is_none(), "a reason code is lower-case words joined by dots, outside `tipstaff.`");
        Self(Cow::Borrowed(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is wrong with a code. A byte loop, so that literals are checked while compiling.
const fn fault(text: &[u8], host: bool) -> Option<&'static str> {
    if text.is_empty() || text.len() > MAX_CODE_BYTES {
        return Some("give it 1 to 128 bytes");
    }
    let mut at = 0;
    let mut word = 0;
    while at < text.len() {
        match text[at] {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => word += 1,
            b'.' if word > 0 => word = 0,
            b'.' => return Some("a word between its dots is empty"),
            _ => return Some("it holds lower-case letters, digits, `_`, `-`, and dots between words"),
        }
        at += 1;
    }
    if word == 0 {
        return Some("a word between its dots is empty");
    }
    if !host && starts_with(text, HOST.as_bytes()) {
        return Some("the namespace `tipstaff.` is the host's own");
    }
    None
}

const fn starts_with(text: &[u8], start: &[u8]) -> bool {
    let mut at = 0;
    while at < start.len() {
        if at >= text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl fmt::Display for DenialCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DenialCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DenialCode({})", self.0)
    }
}

impl Serialize for DenialCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Reading a record accepts the host's codes as well.
impl<'de> Deserialize<'de> for DenialCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match fault(text.as_bytes(), true) {
            None => Ok(Self(Cow::Owned(text))),
            Some(remedy) => Err(serde::de::Error::custom(InvalidCode { text, remedy })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_lower_case_words_joined_by_dots() {
        for good in ["a", "git.force_push", "a-1.b.c"] {
            assert_eq!(DenialCode::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "a.", ".a", "a..b", "A", "a b", "ä", "tipstaff.policy"] {
            assert!(DenialCode::new(bad).is_err(), "{bad:?}");
        }
        assert!(DenialCode::new("a".repeat(MAX_CODE_BYTES + 1)).is_err());
    }

    /// Every class has a code and a name of its own; the host's code can be read back, but not built by anyone else.
    #[test]
    fn every_cause_has_its_own_code() {
        let codes: std::collections::BTreeSet<_> = DenialCause::ALL.iter().map(|cause| cause.code()).collect();
        assert_eq!(codes.len(), DenialCause::ALL.len());
        for cause in DenialCause::ALL {
            assert_eq!(fault(cause.code().as_str().as_bytes(), true), None);
            assert!(DenialCode::new(cause.code().as_str()).is_err());
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
            let written = serde_json::to_string(&cause.code()).unwrap();
            assert_eq!(serde_json::from_str::<DenialCode>(&written).unwrap(), cause.code());
        }
    }

    #[test]
    fn a_long_reason_is_cut_and_says_so() {
        let denial = Denial::by_host(DenialCause::Overloaded, "ä".repeat(4000));
        assert!(denial.reason.len() <= Denial::MAX_REASON_BYTES);
        assert!(denial.reason.ends_with("ä [cut: 8000 bytes]"), "{}", denial.reason);
    }
}
