//! The fact itself: identity, source, role, kind and payload (P-11).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Payload, PayloadType, SignalError, SignalKind};
use crate::clock::Timestamp;
use crate::id::{AttemptId, InvocationId, OperationId, SessionId, SignalId};

/// The position that the journal gave a fact within its session. It starts at 1 and has no gaps in commit order (L-21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignalSeq(pub u64);

impl SignalSeq {
    /// Before every fact: reading after it reads from the beginning.
    pub const START: Self = Self(0);
}

impl fmt::Display for SignalSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) fn plain(what: &'static str, text: Arc<str>) -> Result<Arc<str>, SignalError> {
    if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
        return Err(SignalError::Name { what, text: text.to_string() });
    }
    Ok(text)
}

/// Who emitted a fact, by role: `operation`, `scheduler`, a name of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EmitterRole(Arc<str>);

impl EmitterRole {
    /// A role by name.
    ///
    /// # Errors
    /// [`SignalError::Name`] when the name is empty, longer than 256 bytes or holds a control character.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, SignalError> {
        plain("emitter role", name.into()).map(Self)
    }

    /// A role of this crate's own.
    pub(crate) fn shipped(name: &'static str) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a fact is about: a kind of thing and its identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    kind: Arc<str>,
    id: Arc<str>,
}

impl Subject {
    /// A subject by kind and identity.
    ///
    /// # Errors
    /// [`SignalError::Name`] when one is empty, longer than 256 bytes or holds a control character.
    pub fn new(kind: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Result<Self, SignalError> {
        Ok(Self { kind: plain("subject kind", kind.into())?, id: plain("subject identity", id.into())? })
    }

    /// The kind of thing.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Which one.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// An immutable fact that occurred.
///
/// All of it is stored and nothing is cut (P-11); the journal adds the position.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    id: SignalId,
    session: SessionId,
    invocation: Option<InvocationId>,
    attempt: Option<AttemptId>,
    operation: Option<OperationId>,
    role: EmitterRole,
    subject: Option<Subject>,
    kind: SignalKind,
    payload: Payload,
    occurred_at: Timestamp,
}

impl Signal {
    /// Begins a fact of a session. Without more it has a fresh identity, the role `host` and an empty payload.
    pub fn builder(session: SessionId, kind: impl Into<SignalKind>, occurred_at: Timestamp) -> SignalBuilder {
        SignalBuilder(Self {
            id: SignalId::generate(),
            session,
            invocation: None,
            attempt: None,
            operation: None,
            role: EmitterRole::shipped("host"),
            subject: None,
            kind: kind.into(),
            payload: Payload::from_value(PayloadType::shipped("tipstaff.empty", 1), Value::Null),
            occurred_at,
        })
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> &SignalId {
        &self.id
    }

    /// The session that it belongs to.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The source invocation.
    #[must_use]
    pub fn invocation(&self) -> Option<&InvocationId> {
        self.invocation.as_ref()
    }

    /// The source attempt.
    #[must_use]
    pub fn attempt(&self) -> Option<&AttemptId> {
        self.attempt.as_ref()
    }

    /// The operation, if it is about one.
    #[must_use]
    pub fn operation(&self) -> Option<&OperationId> {
        self.operation.as_ref()
    }

    /// Who emitted it.
    #[must_use]
    pub fn role(&self) -> &EmitterRole {
        &self.role
    }

    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &SignalKind {
        &self.kind
    }

    /// Its payload.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// The same fact with another payload: what redactions leave of it (P-15).
    pub(super) fn with_payload(self, payload: Payload) -> Self {
        Self { payload, ..self }
    }

    /// When it occurred, by its emitter's clock.
    #[must_use]
    pub fn occurred_at(&self) -> Timestamp {
        self.occurred_at
    }
}

/// Builds a [`Signal`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct SignalBuilder(Signal);

impl SignalBuilder {
    /// Sets the identity. Appending the same identity again returns the first position.
    pub fn id(mut self, id: SignalId) -> Self {
        self.0.id = id;
        self
    }

    /// Sets the source invocation.
    pub fn invocation(mut self, id: InvocationId) -> Self {
        self.0.invocation = Some(id);
        self
    }

    /// Sets the source attempt.
    pub fn attempt(mut self, id: AttemptId) -> Self {
        self.0.attempt = Some(id);
        self
    }

    /// Sets the operation.
    pub fn operation(mut self, id: OperationId) -> Self {
        self.0.operation = Some(id);
        self
    }

    /// Sets the emitter's role.
    pub fn role(mut self, role: EmitterRole) -> Self {
        self.0.role = role;
        self
    }

    /// Sets what the fact is about.
    pub fn subject(mut self, subject: Subject) -> Self {
        self.0.subject = Some(subject);
        self
    }

    /// Sets the payload.
    pub fn payload(mut self, payload: Payload) -> Self {
        self.0.payload = payload;
        self
    }

    /// The fact.
    #[must_use]
    pub fn build(self) -> Signal {
        self.0
    }
}
