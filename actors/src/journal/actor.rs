//! The actor that owns the writer thread: it starts the thread, fails when the thread dies, and ends it in order.
//!
//! The thread consumes the port itself, so that a commit costs no hop. A thread that panics fails the actor, its supervisor starts another, and
//! the queue is where it was.
//!
//! A kill takes the actor and not its thread: each incarnation waits for its [turn](super::turn) before it starts another.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tipstaff_core::observation::LossLedger;
use tipstaff_core::state::{Here, InstanceIdentity, RuntimeInstance, Store, StoreError};
use tipstaff_core::telemetry;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::gaps::GapsInHand;
use super::handle::Health;
use super::request::{Left, Request};
use super::thread::WriterThread;
use super::turn::{Turn, Turns};
use crate::crash::Doors;
use crate::port::Mailbox;

/// How long an orderly stop waits for the queue to be written.
const DRAIN: Duration = Duration::from_secs(10);

/// How long a start waits for the thread before it to put down its group: two commits, each as patient as the store. Less than a start may take.
const HANDOVER: Duration = Duration::from_secs(20);

/// What every incarnation is started with.
#[derive(Clone)]
pub(crate) struct WriterArguments {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) here: Here,
    pub(crate) instance: InstanceIdentity,
    pub(crate) mailbox: Arc<Mailbox<Request>>,
    pub(crate) health: Health,
    pub(crate) ledger: LossLedger,
    pub(crate) left: Left,
    pub(crate) gaps: GapsInHand,
    pub(crate) turns: Turns,
    pub(crate) doors: Doors,
}

/// The supervised owner of the writer thread.
pub(crate) struct StateWriter;

/// One incarnation.
pub(crate) struct Incarnation {
    mailbox: Arc<Mailbox<Request>>,
    /// Resolves when the thread has ended; an error means that it panicked.
    ended: Option<oneshot::Receiver<()>>,
}

#[ractor::actor(message = (), state = Incarnation, arguments = WriterArguments)]
impl StateWriter {
    async fn pre_start(&self, myself: ActorRef<()>, arguments: WriterArguments) -> Result<Incarnation, ActorProcessingErr> {
        let mailbox = Arc::clone(&arguments.mailbox);
        let turn = arguments.turns.take(HANDOVER).await;
        let turn = turn.ok_or_else(|| format!("the writer thread before this one is still writing after {HANDOVER:?}"))?;
        let (opened, opening) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        start_thread(arguments, turn, opened, done, myself)?;
        opening.await.map_err(|_panicked| "the writer thread panicked while it opened the store")??;
        Ok(Incarnation { mailbox, ended: Some(ended) })
    }

    /// The only message: the thread has ended.
    async fn handle(&self, myself: ActorRef<()>, _look: (), incarnation: &mut Incarnation) -> Result<(), ActorProcessingErr> {
        let Some(ended) = incarnation.ended.take() else { return Ok(()) };
        match ended.await {
            Ok(()) => {
                myself.stop(None);
                Ok(())
            }
            Err(_panicked) => Err("the writer thread panicked".into()),
        }
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        _event: SupervisionEvent,
        _incarnation: &mut Incarnation,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    /// An orderly stop writes what is queued. A crash of the host skips this: nothing that was confirmed depends on it.
    async fn post_stop(&self, _myself: ActorRef<()>, incarnation: &mut Incarnation) -> Result<(), ActorProcessingErr> {
        incarnation.mailbox.drain();
        let Some(ended) = incarnation.ended.take() else { return Ok(()) };
        if timeout(DRAIN, ended).await.is_err() {
            tracing::error!(target: telemetry::JOURNAL, "the journal's queue was not written within {DRAIN:?}; what is left is counted as lost");
            incarnation.mailbox.close();
        }
        Ok(())
    }
}

/// Starts the thread. It recovers first: proposals of instances that are dead are closed as ambiguous before anything new is written (P-9).
#[expect(clippy::disallowed_methods, reason = "the one door to the writer thread: its actor owns it and waits for its end")]
fn start_thread(
    arguments: WriterArguments,
    turn: Turn,
    opened: oneshot::Sender<Result<(), StoreError>>,
    done: oneshot::Sender<()>,
    actor: ActorRef<()>,
) -> std::io::Result<()> {
    let WriterArguments { store, here, instance, mailbox, health, ledger, left, gaps, turns: _, doors: _ } = arguments;
    let work = move || {
        // Dropped last, also by a panic: the actor looks at what became of the thread.
        let _tell = Tell(actor);
        // Dropped after the writer: whoever has the turn next finds it closed.
        let turn = turn;
        let opening = store.open_writer(&instance).and_then(|writer| Ok((writer, store.reader()?)));
        let (mut writer, reader) = match opening {
            Ok(both) => both,
            Err(error) => {
                let _gone = opened.send(Err(error));
                return;
            }
        };
        let mut verdict = |of: &RuntimeInstance| here.judge(of);
        match writer.recover(&mut verdict) {
            Ok(recovered) => tracing::debug!(target: telemetry::JOURNAL, ?recovered, "recovered"),
            Err(error) => {
                let _gone = opened.send(Err(error));
                return;
            }
        }
        // Nobody owns a thread whose start was given up.
        if opened.send(Ok(())).is_err() {
            return;
        }
        WriterThread { writer, mailbox: mailbox.on_thread(), health, ledger, reader, left, gaps, turn: &turn, passed: 0 }.run();
        let _gone = done.send(());
    };
    std::thread::Builder::new().name("tipstaff-journal".to_owned()).spawn(work).map(drop)
}

struct Tell(ActorRef<()>);

impl Drop for Tell {
    fn drop(&mut self) {
        // An actor that has ended needs no news.
        let _gone = self.0.cast(());
    }
}
