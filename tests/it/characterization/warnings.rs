//! Counts what the library logs at warning level and above, on the thread of one scenario.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// The count of one scenario; the thread's log goes there until it is dropped.
pub(super) struct Warnings {
    count: Arc<AtomicU64>,
    _guard: DefaultGuard,
}

impl Warnings {
    pub(super) fn begin() -> Self {
        let count = Arc::<AtomicU64>::default();
        let guard = tracing::subscriber::set_default(Counter(Arc::clone(&count)));
        Self { count, _guard: guard }
    }

    /// How many there were since it was last asked.
    pub(super) fn take(&self) -> u64 {
        self.count.swap(0, Ordering::SeqCst)
    }
}

struct Counter(Arc<AtomicU64>);

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("tipstaff") && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
