//! Those who watch without being waited for: live streams, and a user's own actor (Session observation).

use std::num::NonZeroUsize;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tipstaff::dispatch::{Outcome, Subscriber};
use tipstaff::observation::{ActorFeed, Observed};
use tipstaff::signal::Signal;
use tipstaff::{Runtime, Session};
use tokio::sync::mpsc;

use super::rig::{Latch, note, session_id, soon};

fn size(size: usize) -> NonZeroUsize {
    NonZeroUsize::new(size).unwrap()
}

fn number(fact: &Signal) -> u64 {
    fact.payload().value()["number"].as_u64().unwrap()
}

async fn up() -> (Runtime, Session) {
    let runtime = Runtime::builder().spawn().await.unwrap();
    let session = runtime.session(session_id("s")).open().await.unwrap();
    (runtime, session)
}

/// A user's message: facts are one sort of it.
enum BoardMessage {
    Seen(Observed),
    Question(u64),
}

impl From<Observed> for BoardMessage {
    fn from(observed: Observed) -> Self {
        Self::Seen(observed)
    }
}

/// A user's actor: it shows what it sees once the gate lets it, and then lets go of it.
struct Board {
    gate: Latch,
    shown: mpsc::Sender<(u64, u64)>,
}

#[ractor::actor(message = BoardMessage, state = ())]
impl Board {
    async fn pre_start(&self, _myself: ActorRef<BoardMessage>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _myself: ActorRef<BoardMessage>, message: BoardMessage, _: &mut ()) -> Result<(), ActorProcessingErr> {
        match message {
            BoardMessage::Seen(seen) => {
                self.gate.passed().await;
                self.shown.send((number(&seen), seen.missed())).await?;
            }
            BoardMessage::Question(answer) => self.shown.send((answer, 0)).await?,
        }
        Ok(())
    }
}

async fn board(bound: usize) -> (ActorRef<BoardMessage>, Latch, mpsc::Receiver<(u64, u64)>, ActorFeed<BoardMessage>) {
    let (shown, reader) = mpsc::channel(64);
    let gate = Latch::new();
    let (actor, _task) = Actor::spawn(None, Board { gate: gate.clone(), shown }, ()).await.unwrap();
    let feed = ActorFeed::new(actor.clone(), size(bound));
    (actor, gate, reader, feed)
}

/// P-4: an actor that does not keep up delays no emitter: it holds at most as many facts as it may, and learns how many it missed and where.
#[tokio::test]
async fn an_actor_that_is_slow_is_told_what_it_missed() {
    let (runtime, session) = up().await;
    let (actor, gate, mut shown, feed) = board(2).await;
    let _registered = session.observe(feed.subscriber("board")).unwrap();
    for n in 0..5 {
        let report = session.emit(note(&session, n)).await.unwrap();
        assert!(report.entries().all(|entry| matches!(entry.outcome, Outcome::Returned)), "a dropped fact is no failure");
    }
    assert_eq!(feed.missed(), 3);
    gate.open_for_all();
    assert_eq!((shown.recv().await, shown.recv().await), (Some((0, 0)), Some((1, 0))));
    // A question of its own stands behind what was sent: when it is answered, both places are free.
    actor.cast(BoardMessage::Question(99)).unwrap();
    assert_eq!(shown.recv().await, Some((99, 0)));
    let _report = session.emit(note(&session, 5)).await.unwrap();
    let _report = session.emit(note(&session, 6)).await.unwrap();
    assert_eq!((shown.recv().await, shown.recv().await), (Some((5, 3)), Some((6, 0))));
    assert_eq!(feed.missed(), 3);
    actor.stop(None);
    runtime.shutdown(soon()).await.unwrap();
}

/// P-3, P-4: an actor that has ended is a failure of its subscriber alone; the fact itself is shared, not copied.
#[tokio::test]
async fn an_actor_that_has_ended_fails_alone() {
    let (runtime, session) = up().await;
    let (actor, gate, mut shown, _own) = board(8).await;
    gate.open_for_all();
    let (registration, feed) = session.observe_actor("board", actor.clone()).unwrap();
    let (other, mut seen) = mpsc::channel(8);
    let other = Subscriber::declared_sync("other", move |fact: &Arc<Signal>| drop(other.try_send(Arc::clone(fact))));
    let _registered = session.observe(other).unwrap();
    let _report = session.emit(note(&session, 0)).await.unwrap();
    assert_eq!((shown.recv().await, seen.recv().await.map(|fact| number(&fact))), (Some((0, 0)), Some(0)));

    actor.stop_and_wait(None, None).await.unwrap();
    let report = session.emit(note(&session, 1)).await.unwrap();
    let outcomes: Vec<_> = report.entries().map(|entry| entry.outcome.clone()).collect();
    assert!(matches!(&outcomes[0], Outcome::Isolated(failure) if failure.code() == "actor_gone"), "{outcomes:?}");
    assert_eq!(seen.recv().await.map(|fact| number(&fact)), Some(1));
    assert_eq!(feed.missed(), 0, "it did not miss it by being slow");
    assert!(session.unobserve(&registration));
    runtime.shutdown(soon()).await.unwrap();
}

/// Session observation, live stream: registered with a session it tells what was missed, and ends with its registration or with the session.
#[tokio::test]
async fn a_live_stream_of_a_session_ends_with_it() {
    let (runtime, session) = up().await;
    let (_kept, mut to_the_end) = session.observe_live("screen", size(2)).unwrap();
    let (registration, mut ended) = session.observe_live("other", size(8)).unwrap();
    for n in 0..5 {
        let _report = session.emit(note(&session, n)).await.unwrap();
    }
    assert!(session.unobserve(&registration));
    for n in 0..5 {
        let next = ended.next().await.unwrap();
        assert_eq!((number(&next.fact), next.missed), (n, 0));
    }
    assert!(ended.next().await.is_none(), "with its registration, once all is read");
    session.end(soon()).await;
    let (third, fourth) = (to_the_end.next().await.unwrap(), to_the_end.next().await.unwrap());
    assert_eq!((number(&third.fact), third.missed, number(&fourth.fact), fourth.missed), (3, 3, 4, 0));
    assert!(to_the_end.next().await.is_none(), "with the session");
    assert_eq!(to_the_end.missed(), 3);
    runtime.shutdown(soon()).await.unwrap();
}
