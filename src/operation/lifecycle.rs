//! Session lifecycle: the owner of a session's transitions from one status to another.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Owner;
use crate::declare::{CanonicalError, Digest, digest_of};
use crate::id::SessionId;
use crate::interception::{Judged, StageSpec};
use crate::signal::Subject;

/// The owner of a session's transitions.
///
/// Its order: validate -> *commit -> observe*. The steps in italics are its own: the commit is compare-and-set in its host's store, and the attempt's
/// closing fact, which names what was found there, is what observers see.
#[derive(Debug, Clone, Copy)]
pub struct SessionLifecycle;

/// The stages of the session lifecycle.
pub mod stage {
    /// Guard: is this transition allowed.
    pub const VALIDATE: &str = "validate";
    /// Own step: the store's compare-and-set.
    pub const COMMIT: &str = "commit";
    /// Own step: the closing fact.
    pub const OBSERVE: &str = "observe";
}

impl Owner for SessionLifecycle {
    const NAME: &'static str = "session_lifecycle";
    type Context = Transition;
    type Output = Committed;

    fn stages() -> Vec<StageSpec> {
        vec![StageSpec::guard(stage::VALIDATE), StageSpec::own_step(stage::COMMIT), StageSpec::own_step(stage::OBSERVE)]
    }

    /// The session whose status would change.
    fn subject(transition: &Transition) -> Option<Subject> {
        Subject::new("session", transition.session.as_str()).ok()
    }
}

/// A requested transition of a session: what is judged, and exactly what will be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Arc<str>>,
    to: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
}

/// What the commit of a transition found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Committed {
    /// The session is in the requested status.
    Applied,
    /// The session was in another status than the request expected; nothing changed.
    Conflict {
        /// The status that it is in; `None` when there is no such session.
        found: Option<Arc<str>>,
    },
}

impl Transition {
    /// A transition of a session to a status, from whatever it is in.
    #[must_use]
    pub fn to(session: SessionId, status: impl Into<Arc<str>>) -> Self {
        Self { session, from: None, to: status.into(), reason: None }
    }

    /// Says in which status the session is expected: in any other, nothing changes.
    #[must_use]
    pub fn expecting(mut self, status: impl Into<Arc<str>>) -> Self {
        self.from = Some(status.into());
        self
    }

    /// Says why, by a reason code.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The requested status.
    #[must_use]
    pub fn status(&self) -> &str {
        &self.to
    }

    /// The expected status.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// Why, by a reason code.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

impl Judged for Transition {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}
