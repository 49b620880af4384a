//! How deep the caller stands in emissions of one dispatcher (F-14).
//!
//! A handler that emits on its own dispatcher and awaits the report holds its emission while it waits. The kernel needs no place for the inner emission, so
//! that nothing can lock up; what is bounded is the depth, so that a handler which answers a fact with a fact cannot go on for ever.

use super::snapshot::Resources;

/// Emissions of one dispatcher that may stand inside one another: handlers that emit and await the report (F-14).
///
/// They stand on one stack. Unoptimised, one of them takes up to 30 KiB of it, so that this many leave half of a worker's 2 MiB to the handlers.
pub const MAX_DEPTH: usize = 32;

tokio::task_local! {
    /// The emissions whose handlers run now, innermost last: the dispatcher by its address, and how deep.
    static WITHIN: Vec<(usize, usize)>;
}

/// Where the caller stands; to be entered on another thread.
#[derive(Clone, Default)]
pub(super) struct Standing(Vec<(usize, usize)>);

impl Standing {
    /// Where the caller stands now.
    pub(super) fn here() -> Self {
        Self(WITHIN.try_with(Clone::clone).unwrap_or_default())
    }

    /// Inside one more emission of a dispatcher; `None` when that is too deep.
    pub(super) fn inside(mut self, resources: &Resources) -> Option<Self> {
        let identity = std::ptr::from_ref(resources).addr();
        match self.0.iter_mut().find(|(of, _)| *of == identity) {
            Some((_, depth)) if *depth >= MAX_DEPTH => return None,
            Some((_, depth)) => *depth += 1,
            None => self.0.push((identity, 0)),
        }
        Some(self)
    }

    pub(super) fn scope<T>(self, run: impl Future<Output = T>) -> impl Future<Output = T> {
        WITHIN.scope(self.0, run)
    }

    pub(super) fn sync_scope<T>(self, run: impl FnOnce() -> T) -> T {
        WITHIN.sync_scope(self.0, run)
    }
}

/// How deep the caller stands in emissions of this dispatcher: 0 in a handler of an outermost emission; `None` outside.
pub(super) fn depth_in(resources: &Resources) -> Option<usize> {
    let identity = std::ptr::from_ref(resources).addr();
    WITHIN.try_with(|within| within.iter().find(|(of, _)| *of == identity).map(|(_, depth)| *depth)).ok().flatten()
}
