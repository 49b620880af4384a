//! What came of a hooked call, and of each of its hooks.

use std::sync::Arc;

use serde_json::Value;

use super::hook::{HookCanceller, HookError};
use super::service::HookedEvent;
use crate::operation::{Answer, StreamState};

/// What came of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// How its turn ended.
    pub status: HookStatus,
    /// What went wrong.
    pub error: Option<String>,
    /// Whether its caller was asked to go no further.
    pub should_exit: bool,
    /// What it returned.
    pub response: HookResponse,
}

impl Default for HookEvent {
    fn default() -> Self {
        Self { status: HookStatus::Pending, error: None, should_exit: false, response: HookResponse::None }
    }
}

/// How a hook's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookStatus {
    /// Its turn did not come.
    Pending,
    /// It returned.
    Completed,
    /// It ran into its deadline.
    Failed,
    /// It was cancelled, or failed before the call.
    Cancelled,
    /// It failed after the call.
    Aborted,
}

impl HookStatus {
    /// The name in records of the original.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Aborted => "aborted",
        }
    }
}

/// What a hook returned.
#[derive(Debug, Clone, PartialEq)]
pub enum HookResponse {
    /// Nothing: it did not return.
    None,
    /// A value.
    Value(Value),
    /// A future that nobody awaits, because the hook is declared sync. It was dropped.
    Unawaited,
}

/// What the caller of a hooked call sees.
#[derive(Debug, Clone, PartialEq)]
pub enum HookedEnd {
    /// The call's result.
    Returned(Value),
    /// A failure, as itself.
    Raised {
        /// Whose: a hook's name, or `core`.
        by: Arc<str>,
        /// The failure: never a cancellation.
        error: HookError,
    },
    /// A hook's failure, as a text: the original raises an error of its own here.
    HookFailed {
        /// Whose.
        by: Arc<str>,
        /// What it said.
        message: String,
    },
    /// A cancellation.
    Cancelled {
        /// Whose; the call's own stands under `core`.
        by: HookCanceller,
    },
    /// The call ended in a way that the original does not have: the operation's own end says which.
    Other,
}

/// A hooked call that has ended.
#[must_use = "the call may have failed: look at its end"]
#[derive(Debug)]
pub struct HookedAnswer {
    /// What its caller sees.
    pub end: HookedEnd,
    /// The hook before the call's event is made, if there is one.
    pub pre_create: Option<HookEvent>,
    /// The hook before the call, if there is one.
    pub pre: Option<HookEvent>,
    /// The hook after the call, if there is one.
    pub post: Option<HookEvent>,
    /// How the stream ended; `None` where none was opened.
    pub stream: Option<StreamState>,
    /// The operation's own answer: identities, status, report.
    pub answer: Answer<HookedEvent>,
}
