//! The closed values that a policy is made of. Serialised names are the founding document's (ADR-0120 D2).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::handler::Declared;

macro_rules! policy_values {
    ($($(#[$docs:meta])* $name:ident { $($(#[$variant_docs:meta])* $variant:ident = $wire:literal),+ $(,)? })+) => {$(
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_docs])* #[serde(rename = $wire)] $variant),+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The serialised name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire),+ }
            }
        }

        impl fmt::Display for $name {
            /// The name in words, as a table shows it.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.as_str().split('_').enumerate().try_for_each(|(at, word)| {
                    if at > 0 { f.write_str(" ")?; }
                    f.write_str(word)
                })
            }
        }
    )+};
}

policy_values! {
    /// Which registrations a phase takes (F-1).
    Selector {
        /// Every registration.
        All = "all",
        /// Those that are declared sync.
        DeclaredSync = "declared_sync",
        /// Those that are declared async.
        DeclaredAsync = "declared_async",
    }

    /// Whether the handlers of a phase wait for one another.
    Concurrency {
        /// One after another, in registration order.
        Sequential = "sequential",
        /// Begun in registration order, none waits for another.
        Concurrent = "concurrent",
    }

    /// Where a sync handler runs (F-17).
    SyncHandlers {
        /// On the emission's task.
        Inline = "inline",
        /// On one of the dispatcher's own threads.
        Offload = "offload",
    }

    /// How a handler is known to be sync or async.
    HandlerClassification {
        /// By what its registration declares.
        ByDeclaration = "by_declaration",
        /// By what its call returns.
        ByReturnValue = "by_return_value",
    }

    /// What counts as an awaitable among returned values.
    ReturnedValueClassifier {
        /// Whatever can be awaited.
        InspectAwaitable = "inspect_awaitable",
        /// Native async bodies only.
        CoroutineOnly = "asyncio_coroutine_only",
        /// Returned values are not looked at.
        NotInspected = "not_inspected",
    }

    /// What becomes of an awaitable that a sync handler returned.
    ReturnedAwaitable {
        /// It is awaited before the handler's invocation ends.
        AwaitInInvocation = "await_in_invocation",
        /// All of them are awaited together once every handler was invoked.
        GatherAfterInvocations = "gather_after_invocations",
        /// It is dropped unawaited and reported so (deprecated; message profiles only).
        DiscardUnawaited = "discard_unawaited",
        /// A declared handler cannot return one.
        Reject = "reject",
    }

    /// Whether a synchronous owner may emit (F-13).
    SyncEntry {
        /// There is no synchronous entry.
        Unavailable = "unavailable",
        /// There is one.
        Allow = "allow",
        /// There is one; declared async registrations are refused in preflight.
        RejectDeclaredAsyncBeforeOwnerEffect = "reject_declared_async_before_owner_effect",
    }

    /// What a failed predicate means (F-21).
    PredicateFailure {
        /// It ends the emission.
        Propagate = "propagate",
        /// It is that handler's failure.
        CollectAsHandlerFailure = "collect_as_handler_failure",
        /// Silently unmatched.
        NoMatch = "no_match",
        /// Unmatched, with a report entry and one warning.
        Isolate = "isolate",
    }

    /// What becomes of a handler's failure.
    Failure {
        /// It ends the stage and reaches the emitter.
        Propagate = "propagate",
        /// It is kept until the stage has ended.
        Collect = "collect",
        /// It touches nobody else and does not reach the emitter as an error.
        Isolate = "isolate",
    }

    /// When a stage is over.
    Completion {
        /// Once every handler has ended.
        AwaitAll = "await_all",
        /// At the first failure; later handlers are not started.
        StopOnFailure = "stop_on_failure",
        /// At the first failure; the others are cancelled.
        CancelRemainingOnFailure = "cancel_remaining_on_failure",
        /// At once; handlers go on within bounds (F-20).
        DetachBounded = "detach_bounded",
    }

    /// How failures reach the emitter.
    ErrorSurface {
        /// In the report.
        ReturnReport = "return_report",
        /// The first one as an error.
        RaiseFirst = "raise_first",
        /// All of them as one group, also when it is one.
        RaiseGroup = "raise_group",
        /// A single one as itself, several as a group.
        UnwrapSingleElseGroup = "unwrap_single_else_group",
        /// In the log only.
        LogOnly = "log_only",
    }

    /// What becomes of a handler's cancellation (F-12).
    HandlerCancellation {
        /// It cancels the emission.
        Propagate = "propagate",
        /// It surfaces as an error of its own kind.
        Translate = "translate",
        /// It is kept apart from ordinary failures, in the report.
        Collect = "collect",
    }

    /// What the end of a budget means to the emitter (F-21).
    DeadlineDisposition {
        /// The report, as an error.
        Raise = "raise",
        /// The report, as a value.
        ReturnReport = "return_report",
        /// One log line.
        LogAndStop = "log_and_stop",
        /// Nothing is said.
        SilentStop = "silent_stop",
    }

    /// Whether a registration made while a phase runs takes part in it (F-8).
    LateRegistrations {
        /// From the next emission on.
        NextEmission = "next_emission",
        /// At the end of this one, as the original's session observer does (trace `session_observer/register_during_emit`).
        ThisEmission = "this_emission",
    }

    /// How the ends that the original system treats in a way of its own are treated: cancellations from outside, fatal failures, the
    /// store's refusals.
    Conduct {
        /// What is cancelled is dropped at once; a fatal failure and a refusal of the store are failures with a code of their own.
        Native = "native",
        /// As recorded: what is cancelled is told so and may end in its own way within a grace (F-19).
        Recorded = "recorded",
    }
}

impl Selector {
    /// Whether a phase of this selector takes a registration that is declared so.
    #[must_use]
    pub fn takes(self, declared: Declared) -> bool {
        match self {
            Self::All => true,
            Self::DeclaredSync => declared == Declared::Sync,
            Self::DeclaredAsync => declared == Declared::Async,
        }
    }
}
