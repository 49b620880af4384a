//! What an emission owes until its fact is on record, and what a cancellation of it reaches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tipstaff_core::dispatch::EmissionHandle;
use tipstaff_core::signal::Signal;
use tokio::sync::Notify;

use crate::session::Session;

/// A fact that is not on record yet. Dropped, it is put there: it has happened (P-2).
pub(super) struct Owed {
    session: Session,
    fact: Option<Signal>,
}

impl Owed {
    pub(super) fn new(session: &Session, fact: Signal) -> Self {
        Self { session: session.clone(), fact: Some(fact) }
    }

    pub(super) fn fact(&self) -> &Signal {
        self.fact.as_ref().expect("it is taken by paying, which takes this by value")
    }

    /// Records it; as it may be shown, unless the session has ended.
    pub(super) fn pay(mut self) -> Option<Arc<Signal>> {
        self.fact.take().and_then(|fact| self.session.record(fact))
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(fact) = self.fact.take() {
            let _shown_to_nobody = self.session.record(fact);
        }
    }
}

/// What a cancellation reaches: the gate, or the emission.
#[derive(Default)]
pub(super) struct Cancel {
    /// Locked for a few lines that never wait.
    emission: Mutex<(bool, Option<EmissionHandle>)>,
    asked: Notify,
}

impl Cancel {
    pub(super) fn cancel(&self) {
        let mut emission = self.emission();
        emission.0 = true;
        if let Some(handle) = &emission.1 {
            handle.cancel();
        }
        drop(emission);
        self.asked.notify_one();
    }

    pub(super) async fn asked(&self) {
        loop {
            if self.emission().0 {
                return;
            }
            self.asked.notified().await;
        }
    }

    pub(super) fn hand_over(&self, handle: EmissionHandle) {
        let mut emission = self.emission();
        if emission.0 {
            handle.cancel();
        }
        emission.1 = Some(handle);
    }

    fn emission(&self) -> MutexGuard<'_, (bool, Option<EmissionHandle>)> {
        self.emission.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
