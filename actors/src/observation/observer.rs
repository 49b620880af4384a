//! The observer of one session: fans facts out to its subscribers, under the `observation` policy.
//!
//! Its phases are its message: an [`Emission`] arrives with the snapshot of its registrations, runs on a task of its own, and ends as a report. At
//! most [`MAX_IN_FLIGHT`] are in flight (F-24); then the port's overflow rule holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tipstaff_core::dispatch::{DispatchReport, JournalState, Snapshot, fan_out};
use tipstaff_core::signal::Signal;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::crash::{CrashPoint, Doors};
use crate::port::{Context, Handler, HandlerError, Places};

/// Emissions of one session that run at the same time (F-24).
pub(crate) const MAX_IN_FLIGHT: usize = 1024;

/// Emissions of one session that may stand inside one another: handlers that emit and await the report (F-14).
pub(crate) const MAX_DEPTH: usize = 64;

tokio::task_local! {
    /// The emission whose handlers run now.
    static WITHIN: Within;
}

/// Where the handlers that run now stand: in an emission of this session, so deep. A task that a handler starts stands nowhere.
#[derive(Clone)]
pub(crate) struct Within {
    /// The session, by the address of its counter.
    session: Arc<AtomicU64>,
    depth: usize,
}

impl Within {
    /// How deep the caller stands in emissions of the session with this counter.
    pub(crate) fn depth_of(session: &Arc<AtomicU64>) -> Option<usize> {
        WITHIN.try_with(|within| Arc::ptr_eq(&within.session, session).then_some(within.depth)).ok().flatten()
    }
}

/// Fans a fact out, so deep inside other emissions of its session. Dropped before its end, the emission counts itself as undelivered.
pub(crate) async fn deliver(
    fact: &Arc<Signal>,
    snapshot: &Snapshot<Signal>,
    undelivered: Undelivered,
    depth: usize,
) -> DispatchReport {
    let report = match &undelivered.0 {
        Some(session) => {
            let within = Within { session: Arc::clone(session), depth };
            WITHIN.scope(within, fan_out(snapshot, fact, None)).await
        }
        None => fan_out(snapshot, fact, None).await,
    };
    undelivered.delivered();
    report
}

/// A fact and who is to see it.
pub(crate) struct Emission {
    pub(crate) fact: Arc<Signal>,
    /// The registrations at the moment of admission (F-8).
    pub(crate) snapshot: Snapshot<Signal>,
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
            let Emission { fact, snapshot, journal, report, undelivered } = emission;
            let delivery = deliver(&fact, &snapshot, undelivered, 0);
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
            // The emitter may have gone at this very moment.
            let _unheard = report.send(done.with_journal(journal));
        });
        Ok(())
    }

    /// An orderly end lets the emissions in flight finish; each has the policy's own deadline, and the supervisor's stop timeout is above all.
    async fn stopping(&mut self, _context: &Context<Emission>) {
        while self.running.join_next().await.is_some() {}
    }
}
