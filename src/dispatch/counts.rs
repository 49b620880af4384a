//! What became of work that no report tells of. Counts of a dispatcher never go down.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$docs:meta])* $name:ident),+ $(,)?) => {
        /// What became of work that no report tells of, since the dispatcher was made.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct DispatcherCounts {
            $($(#[$docs])* pub $name: u64),+
        }

        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64),+
        }

        impl Counters {
            pub(super) fn read(&self) -> DispatcherCounts {
                DispatcherCounts { $($name: self.$name.load(Ordering::Relaxed)),+ }
            }
        }
    };
}

counters! {
    /// Detached handlers that were let go on.
    detached,
    /// Of these, those that returned.
    detached_returned,
    /// Those that failed or panicked; each has one warning.
    detached_failed,
    /// Those that were cancelled by their own account.
    detached_cancelled,
    /// Those that were ended at their greatest age. Of a handler on a thread it is only no longer waited for.
    detached_expired,
    /// Those that were ended with the dispatcher.
    detached_stopped,
    /// Calls of ordered registrations that ended, however.
    ordered_called,
    /// Of these, those that failed or panicked; each has one warning.
    ordered_failed,
    /// Emissions that a full queue did without, the newest or the oldest.
    ordered_dropped,
    /// Emissions that waited in a queue when the dispatcher was stopped, or whose handler was ended by that.
    ordered_stopped,
    /// Returned awaitables that were dropped unawaited because their phase had ended.
    dropped_unawaited,
    /// Returned awaitables that a policy drops unawaited.
    discarded_unawaited,
    /// Handlers on a thread that their emission gave up (F-17).
    abandoned,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
