//! Which port's handler the current task is, so that a wait can name both its ends and a handler never waits for itself.

use std::sync::Arc;

tokio::task_local! {
    static SERVING: Serving;
}

/// The port that a handler serves.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) identity: usize,
    pub(super) name: Arc<str>,
}

impl Serving {
    /// Runs the handler's future.
    pub(super) async fn run<F: Future>(self, handler: F) -> F::Output {
        SERVING.scope(self, handler).await
    }
}

/// Whether the current task is the handler of that port.
pub(super) fn serves(identity: usize) -> bool {
    SERVING.try_with(|serving| serving.identity == identity).unwrap_or(false)
}

/// Who is running, for people.
pub(super) fn name() -> Arc<str> {
    SERVING.try_with(|serving| Arc::clone(&serving.name)).unwrap_or_else(|_outside| Arc::from("outside the actors"))
}
