//! What a reader hands out.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::outcome::Outcome;
use crate::id::{OperationId, SignalId};

/// One event of a transcript, in file order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A tool call was proposed, or is known only because it already ran ([`Call::already_ran`]).
    Call(Call),
    /// The one outcome of an earlier [`Event::Call`]: each call has exactly one, at the latest before [`Event::End`].
    Result(CallResult),
    /// A result that ends no call. It is shown and counted; there is no operation to close.
    Unmatched(UnmatchedResult),
    /// Something happened in the session's life.
    Lifecycle(Lifecycle),
    /// The last event.
    End(End),
}

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// The byte offset of the line in the file.
    pub offset: u64,
    /// Which object of the line, from 0: more than one stands on a glued line.
    pub part: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {})", self.line, self.offset)
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The stable key: product, thread, call id and occurrence. Re-reading a grown file yields the same key.
    pub key: OperationId,
    /// The product's own identifier. A call without one is named after its place.
    pub call_id: Arc<str>,
    /// How many different calls of this file used the same identifier before: 0 for the first.
    pub occurrence: u32,
    /// The tool's name as the product wrote it.
    pub name: Box<str>,
    /// The tool's namespace, where the product wrote one beside the name.
    pub namespace: Option<Box<str>>,
    /// The tool's input. Codex writes arguments as JSON text: it is parsed here, and stays [`Value::String`] when it is not one whole JSON
    /// value. The input of a Codex custom tool is text by nature.
    pub input: Value,
    /// The working directory of the record or of its turn. A Codex command may name its own `workdir` in the input.
    pub cwd: Option<Arc<str>>,
    /// Whether a sub-agent made the call.
    pub sidechain: bool,
    /// The sub-agent, where the record names one.
    pub agent: Option<Arc<str>>,
    /// The call inside which this one ran, when that is in the same file.
    pub parent: Option<OperationId>,
    /// Whether the call ran before any record of it was written, so that no guard could have stopped it.
    pub already_ran: bool,
    /// Whether the call was copied from the history of the thread that this one was forked from: context, not to be replayed.
    pub inherited: bool,
    /// Where the call stands.
    pub place: Place,
    /// The record's own time stamp, untouched. Stamps go backwards; file order is the order.
    pub stamp: Option<Box<str>>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The call's key.
    pub key: OperationId,
    /// The call's identifier.
    pub call_id: Arc<str>,
    /// How the call ended.
    pub outcome: Outcome,
    /// The sub-agent that the call started, where the result names it.
    pub started_agent: Option<Box<str>>,
    /// As [`Call::inherited`].
    pub inherited: bool,
    /// Where the outcome stands. For an outcome that no record tells (an interrupt, the end of the file), where the call stands.
    pub place: Place,
    /// As [`Call::stamp`]; absent when no record tells the outcome.
    pub stamp: Option<Box<str>>,
}

/// Why a result ended no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnmatchedReason {
    /// No call of the file has this identifier: it was compacted away, or stands in an earlier file.
    Orphan,
    /// The call has its result already, and this is another one.
    AlreadySettled,
    /// The call was ended as unknown by an interrupt, and a new turn had begun when the result came.
    TooLate,
}

impl UnmatchedReason {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::AlreadySettled => "already_settled",
            Self::TooLate => "too_late",
        }
    }
}

/// A result that ends no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedResult {
    /// The identifier that it names.
    pub call_id: Arc<str>,
    /// Why it ends nothing.
    pub reason: UnmatchedReason,
    /// What it tells.
    pub outcome: Outcome,
    /// As [`Call::inherited`].
    pub inherited: bool,
    /// Where it stands.
    pub place: Place,
    /// As [`Call::stamp`].
    pub stamp: Option<Box<str>>,
}

macro_rules! lifecycle_names {
    ($($(#[$docs:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// What happened in the session's life. The set is closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LifecycleName { $($(#[$docs])* $variant),+ }

        impl LifecycleName {
            /// Every name.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name, in lower case with underscores.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

lifecycle_names! {
    /// The thread named itself.
    SessionStarted = "session_started",
    /// A prompt was submitted.
    PromptSubmitted = "prompt_submitted",
    /// A turn began.
    TurnStarted = "turn_started",
    /// The settings of a turn: working directory, approval and sandbox policy, model. Told when they change.
    TurnContext = "turn_context",
    /// A turn ended.
    TurnEnded = "turn_ended",
    /// The user, or the client, interrupted a turn.
    TurnInterrupted = "turn_interrupted",
    /// The model's context was replaced or thinned. Calls before it stay.
    ContextCompacted = "context_compacted",
    /// A request to the vendor failed for good.
    ApiFailed = "api_failed",
    /// A request to the vendor was tried again.
    ApiRetry = "api_retry",
    /// The client ran hooks.
    HooksRan = "hooks_ran",
    /// A background task ended.
    BackgroundDone = "background_done",
    /// A reading of tokens or rate limits.
    BudgetReading = "budget_reading",
    /// A tool ran at the vendor and never passed the client.
    ToolRanRemotely = "tool_ran_remotely",
    /// A tool's own report of its end, for a call that the file does not hold.
    ToolEnded = "tool_ended",
    /// More about the outcome of a known call.
    OutcomeDetail = "outcome_detail",
    /// History was rolled back. The effects happened and stay counted.
    HistoryRolledBack = "history_rolled_back",
    /// A review began.
    EnteredReviewMode = "entered_review_mode",
    /// A review ended.
    ExitedReviewMode = "exited_review_mode",
    /// A guardian judged an action.
    GuardianAssessment = "guardian_assessment",
    /// A sub-agent was active.
    SubAgentActivity = "sub_agent_activity",
    /// Agents worked together.
    Collaboration = "collaboration",
    /// The client reported an error.
    Error = "error",
}

/// A moment in the session's life.
#[derive(Debug, Clone, PartialEq)]
pub struct Lifecycle {
    /// Stable: the same record of the same thread yields the same identity on every reading.
    pub id: SignalId,
    /// What happened.
    pub name: LifecycleName,
    /// The call that it is about.
    pub about: Option<OperationId>,
    /// A small object with what the record tells. Texts are cut to 256 bytes; prompts and outputs are not in it.
    pub detail: Value,
    /// As [`Call::inherited`].
    pub inherited: bool,
    /// Whether it belongs to a sub-agent.
    pub sidechain: bool,
    /// Where the record stands.
    pub place: Place,
    /// As [`Call::stamp`].
    pub stamp: Option<Box<str>>,
}

/// The end of a transcript. Neither product writes one: it is made when the file ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Whether the last turn ended and every call has its result.
    pub clean: bool,
    /// The calls without a result, in file order: at most 64 of them, [`Counts::calls_without_result`](super::Counts) says how many.
    pub open: Vec<OperationId>,
}
