//! An operation before it is proposed.

use std::sync::Arc;
use std::time::Duration;

use super::Profile;
use crate::id::{AttemptId, InvocationId, OperationId};

/// How long a ruling may take where the proposer says nothing.
pub const DEFAULT_RULING_BUDGET: Duration = Duration::from_secs(60);

/// One attempt of an operation, ready to be proposed.
#[derive(Debug, Clone)]
pub struct Operation<C> {
    pub(super) id: OperationId,
    pub(super) attempt: AttemptId,
    pub(super) invocation: Option<InvocationId>,
    pub(super) context: Arc<C>,
    pub(super) profile: Profile,
    pub(super) ruling_budget: Duration,
    pub(super) perform_budget: Option<Duration>,
}

/// A context is an operation with fresh identities and all defaults.
impl<C> From<C> for Operation<C> {
    fn from(context: C) -> Self {
        Self::new(context)
    }
}

impl<C> Operation<C> {
    /// An operation with fresh identities, the profile [`Profile::Minimal`], [`DEFAULT_RULING_BUDGET`] for its ruling, and no bound on performing.
    #[must_use]
    pub fn new(context: C) -> Self {
        Self {
            id: OperationId::generate(),
            attempt: AttemptId::generate(),
            invocation: None,
            context: Arc::new(context),
            profile: Profile::Minimal,
            ruling_budget: DEFAULT_RULING_BUDGET,
            perform_budget: None,
        }
    }

    /// Sets the identities. A retry is the same operation under a new attempt (I-12).
    ///
    /// An attempt that is open in this runtime is not proposed a second time: it is denied, and nobody is asked. That one which has ended, or is open in
    /// another process, is not proposed again is its proposer's duty: the journal refuses the facts of a second proposal and counts them as lost. Leave
    /// the identity fresh, or look the attempt up in the journal first, as the replay does.
    #[must_use]
    pub fn identified(mut self, id: OperationId, attempt: AttemptId) -> Self {
        self.id = id;
        self.attempt = attempt;
        self
    }

    /// Sets the invocation that it belongs to.
    #[must_use]
    pub fn within(mut self, invocation: InvocationId) -> Self {
        self.invocation = Some(invocation);
        self
    }

    /// Sets what it writes of its own (I-11).
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the budget of the ruling: reserving its places, waiting for its owner, and the whole chain. Past it the proposal is denied.
    #[must_use]
    pub fn ruled_within(mut self, budget: Duration) -> Self {
        self.ruling_budget = budget;
        self
    }

    /// Sets the budget of performing. Past it the body's future is dropped and the attempt has timed out.
    #[must_use]
    pub fn performed_within(mut self, budget: Duration) -> Self {
        self.perform_budget = Some(budget);
        self
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        &self.id
    }

    /// The identity of this attempt.
    #[must_use]
    pub fn attempt(&self) -> &AttemptId {
        &self.attempt
    }
}
