//! The observer of one session: fans facts out to its subscribers, under the `observation` policy.
//!
//! Its phases are its message: an [`Emission`] arrives with the snapshot of its registrations, runs on a task of its own, and ends as a report. At
//! most [`MAX_IN_FLIGHT`] are in flight (F-24); then the port's overflow rule holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tipstaff_core::dispatch::{DispatchError, DispatchReport, Emit, JournalState};
use tipstaff_core::signal::Signal;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::crash::{CrashPoint, Doors};
use crate::port::{Context, Handler, HandlerError, Places};

/// Emissions of one session that run at the same time (F-24).
pub(crate) const MAX_IN_FLIGHT: usize = 1024;

/// Fans a fact out. Dropped before its end, or refused, the emission counts itself as undelivered.
///
/// # Errors
/// The dispatcher's own refusal: it has stopped, or the emission stands too deep inside others (F-14).
pub(crate) async fn deliver(emit: Emit<Signal>, undelivered: Undelivered) -> Result<DispatchReport, DispatchError> {
    let report = emit.await?;
    undelivered.delivered();
    Ok(report)
}

/// A fact and who is to see it.
pub(crate) struct Emission {
    /// The fact, the registrations at the moment of admission (F-8), and its places in the queues of ordered ones (F-18).
    pub(crate) emit: Emit<Signal>,
    pub(crate) journal: JournalState,
    pub(crate) report: Option<oneshot::Sender<DispatchReport>>,
    pub(crate) undelivered: Undelivered,
}

/// Counts an emission as undelivered unless it was fanned out to its end: whichever way it is lost, on a full port, with a degraded observer, with its
/// emitter or in a crash, it counts itself.
pub(crate) struct Undelivered(Option<Arc<AtomicU64>>);

impl Undelivered {
    pub(crate) fn counted_by(counter: &Arc<AtomicU64>) -> Self {
        Self(Some(Arc::clone(counter)))
    }

    pub(crate) fn delivered(mut self) {
        self.0 = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(counter) = &self.0 {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One incarnation of a session's observer. It has no state that matters: registrations live outside, queued facts in the port.
pub(crate) struct Observer {
    running: JoinSet<()>,
    places: Places,
    doors: Doors,
}

impl Observer {
    pub(crate) fn new(doors: Doors) -> Self {
        Self { running: JoinSet::new(), places: Places::new(MAX_IN_FLIGHT), doors }
    }
}

impl Handler for Observer {
    type Message = Emission;

    fn ready(&self) -> bool {
        self.places.is_free()
    }

    async fn handle(&mut self, emission: Emission, context: &Context<Emission>) -> Result<(), HandlerError> {
        while let Some(ended) = self.running.try_join_next() {
            // The fan-out contains what handlers do. What is left is ours; the emitter hears that nobody reported.
            if let Err(error) = ended {
                tracing::error!(target: "tipstaff::observation", %error, "an emission's task broke off");
            }
        }
        self.doors.pass(CrashPoint::ObserverInHand);
        let place = self.places.take(context.doorbell());
        let doors = self.doors.clone();
        self.running.spawn(async move {
            let _place = place;
            doors.pass(CrashPoint::ObserverBeforeFanOut);
            let Emission { emit, journal, report, undelivered } = emission;
            let delivery = deliver(emit, undelivered);
            let Some(mut report) = report else {
                let _nobody_waits = delivery.await;
                return;
            };
            let done = tokio::select! {
                biased;
                // The emitter went away: what is in flight is cancelled with it, and nothing is begun (F-12).
                () = report.closed() => return,
                done = delivery => done,
            };
            // A refused emission has no report: its emitter hears that nobody reported. The emitter may have gone at this very moment.
            if let Ok(done) = done {
                let _unheard = report.send(done.with_journal(journal));
            }
        });
        Ok(())
    }

    /// An orderly end lets the emissions in flight finish; each has the policy's own deadline, and the supervisor's stop timeout is above all.
    async fn stopping(&mut self, _context: &Context<Emission>) {
        while self.running.join_next().await.is_some() {}
    }
}
