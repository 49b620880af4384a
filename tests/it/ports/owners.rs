//! Owners: order, restarts, drains and ends.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tipstaff::port::{
    Context, Doorbell, End, Handler, HandlerError, Overflow, PoisonRule, Port, PortSpec, Reply, SendError, SpawnError, spawn,
};
use tokio::sync::{Semaphore, mpsc};

use super::support::{Ask, after_ms, assert_accounted, gated, open, recorder, settle, soon, spec};

/// "Handles and queued messages survive restarts"; "a crash loses exactly what is being handled"; pitfall 9.
#[tokio::test]
async fn handles_and_queued_messages_survive_a_crash() {
    let (port, mailbox) = open(16, Overflow::Wait);
    let (owner, mut reports) = recorder();
    port.send(Ask::Note(1), soon()).await.unwrap();
    port.send(Ask::Panic(2), soon()).await.unwrap();
    port.send(Ask::Note(3), soon()).await.unwrap();
    let mut first = spawn(&mailbox, owner).await.unwrap();
    first.ended().await;
    assert_eq!(port.metrics().data_depth, 1);

    let (owner, mut later) = recorder();
    let _second = spawn(&mailbox, owner).await.unwrap();
    assert_eq!(later.recv().await, Some(3));
    assert_eq!(port.call(soon(), |reply| Ask::Echo(4, reply)).await.unwrap(), 4);
    assert_eq!((reports.recv().await, reports.recv().await, reports.recv().await), (Some(1), Some(2), None));
    let metrics = port.metrics();
    assert_eq!((metrics.crashed_in_hand, metrics.accepted), (1, 4));
    assert_accounted(&metrics);
}

/// A crash by an error loses the one message in hand as well.
#[tokio::test]
async fn a_handlers_error_ends_the_incarnation_and_is_counted_once() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let (owner, _reports) = recorder();
    let mut owner = spawn(&mailbox, owner).await.unwrap();
    port.try_send(Ask::Fail(1)).unwrap();
    owner.ended().await;
    assert_eq!(port.metrics().crashed_in_hand, 1);
    assert_accounted(&port.metrics());
}

/// A kill in a handler loses the one message in hand, and nothing twice.
#[tokio::test]
async fn a_kill_in_a_handler_is_counted_as_one_message_in_hand() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let (owner, mut reports, _gate) = gated();
    let mut owner = spawn(&mailbox, owner).await.unwrap();
    port.try_send(Ask::Note(1)).unwrap();
    port.try_send(Ask::Note(2)).unwrap();
    assert_eq!(reports.recv().await, Some(1));
    assert_eq!(port.metrics().in_hand, 1);
    owner.kill();
    owner.ended().await;
    let metrics = port.metrics();
    assert_eq!((metrics.crashed_in_hand, metrics.in_hand, metrics.data_depth), (1, 0, 1));
    assert_accounted(&metrics);
}

/// Pitfall 4: crash and stop at many points with numbered messages; accepted = handled + in hand at a crash + counted as dropped, always.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_message_is_accounted_for_after_crashes_and_stops() {
    const MESSAGES: u64 = 2_000;
    let (port, mailbox) = open(8, Overflow::Wait);
    let sender = {
        let port = port.clone();
        async move {
            for number in 0..MESSAGES {
                let message = if number % 97 == 50 { Ask::Panic(number) } else { Ask::Note(number) };
                port.send(message, soon()).await.unwrap();
            }
        }
    };
    let served = async {
        let mut turn = 0_u64;
        while port.metrics().handled + port.metrics().crashed_in_hand < MESSAGES {
            let (owner, mut reports) = recorder();
            let mut owner = spawn(&mailbox, owner).await.unwrap();
            turn += 1;
            if turn % 3 == 0 {
                // A stop amid the stream: what is queued waits for the next incarnation.
                let _some = reports.recv().await;
                assert_eq!(owner.stop(soon()).await, End::Stopped);
            } else {
                tokio::select! {
                    () = owner.ended() => {}
                    () = all_done(&port, MESSAGES) => {}
                }
            }
            assert_accounted(&port.metrics());
        }
    };
    tokio::join!(sender, served);
    let metrics = port.metrics();
    assert_eq!(metrics.accepted, MESSAGES);
    assert_eq!(metrics.crashed_in_hand, (0..MESSAGES).filter(|number| number % 97 == 50).count() as u64);
    assert_eq!(metrics.handled + metrics.crashed_in_hand, MESSAGES);
    assert_accounted(&metrics);
}

async fn all_done(port: &Port<Ask>, messages: u64) {
    while port.metrics().handled + port.metrics().crashed_in_hand < messages {
        tokio::task::yield_now().await;
    }
}

/// Sends to itself and to a sibling while it starts.
struct Eager {
    sibling: Port<Ask>,
    begun: mpsc::UnboundedSender<u64>,
}

impl Handler for Eager {
    type Message = Ask;

    async fn started(&mut self, context: &Context<Ask>) -> Result<(), HandlerError> {
        // The port is full already. A wait for room in one's own port ends at once instead of at the deadline.
        let refused = context.port().send(Ask::Note(100), soon()).await;
        assert!(matches!(refused, Err(SendError::Full(_))));
        let _full = self.sibling.send(Ask::Note(200), after_ms(10)).await;
        Ok(())
    }

    async fn handle(&mut self, message: Ask, _context: &Context<Ask>) -> Result<(), HandlerError> {
        let _unread = self.begun.send(message.number());
        Ok(())
    }
}

/// Pitfall 7: capacity 1, both owners send to themselves and to each other while they start, and producers wait already.
#[tokio::test(start_paused = true)]
async fn a_start_that_sends_to_itself_and_a_sibling_does_not_deadlock() {
    let (a, a_box) = open(1, Overflow::Wait);
    let (b, b_box) = open(1, Overflow::Wait);
    a.try_send(Ask::Note(1)).unwrap();
    b.try_send(Ask::Note(1)).unwrap();
    let (begun, mut reports) = mpsc::unbounded_channel();
    let owners = async {
        let one = spawn(&a_box, Eager { sibling: b.clone(), begun: begun.clone() }).await.unwrap();
        let other = spawn(&b_box, Eager { sibling: a.clone(), begun: begun.clone() }).await.unwrap();
        (one, other)
    };
    let (waiting_a, waiting_b, owners) = tokio::join!(a.send(Ask::Note(2), soon()), b.send(Ask::Note(2), soon()), owners);
    waiting_a.unwrap();
    waiting_b.unwrap();
    for _ in 0..4 {
        reports.recv().await.unwrap();
    }
    drop(owners);
}

/// Sends each number to a peer, and reports what the peer refuses.
struct Forwarder {
    peer: Port<Ask>,
    refused: mpsc::UnboundedSender<u64>,
}

impl Handler for Forwarder {
    type Message = Ask;

    async fn handle(&mut self, message: Ask, _context: &Context<Ask>) -> Result<(), HandlerError> {
        if let Err(refusal) = self.peer.try_send(message) {
            let _unread = self.refused.send(refusal.into_message().number());
        }
        Ok(())
    }
}

/// Pitfall 16: a refused send is an answer to the sender, not its end.
#[tokio::test]
async fn a_full_peer_never_ends_its_sender() {
    let (peer, _peer_box) = open(1, Overflow::Reject);
    let (port, mailbox) = open(16, Overflow::Wait);
    let (refused, mut refusals) = mpsc::unbounded_channel();
    let _owner = spawn(&mailbox, Forwarder { peer, refused }).await.unwrap();
    for number in 0..10 {
        port.send(Ask::Note(number), soon()).await.unwrap();
    }
    for number in 1..10 {
        assert_eq!(refusals.recv().await, Some(number));
    }
    assert_eq!(port.metrics().crashed_in_hand, 0);
}

/// Pitfall 19: there is no "last handle dropped means stop".
#[tokio::test]
async fn dropping_every_handle_ends_nothing() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let (owner, mut reports) = recorder();
    let mut owner = spawn(&mailbox, owner).await.unwrap();
    port.try_send(Ask::Note(1)).unwrap();
    drop(port);
    assert_eq!(reports.recv().await, Some(1));
    settle().await;
    let port = mailbox.port();
    assert_eq!(port.call(soon(), |reply| Ask::Echo(2, reply)).await.unwrap(), 2);
    mailbox.close();
    owner.ended().await;
}

static SET_ASIDE: AtomicU64 = AtomicU64::new(0);

/// Pitfall 25: the same message crashes its owner N times in a row: further ones of its key are set aside and reported, siblings are handled.
#[tokio::test]
async fn a_poison_message_is_set_aside_and_its_siblings_are_handled() {
    let rule = PoisonRule {
        key: |message: &Ask| Some(message.number()),
        crashes: NonZeroU32::new(2).unwrap(),
        set_aside: |message| {
            SET_ASIDE.fetch_add(message.number(), Ordering::SeqCst);
        },
    };
    let (port, mailbox) = spec(16, Overflow::Wait).poison(rule).open();
    for _ in 0..5 {
        port.try_send(Ask::Panic(666)).unwrap();
    }
    port.try_send(Ask::Note(1)).unwrap();
    for _ in 0..2 {
        let (owner, _reports) = recorder();
        spawn(&mailbox, owner).await.unwrap().ended().await;
    }
    let (owner, mut reports) = recorder();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    assert_eq!(reports.recv().await, Some(1));
    settle().await;
    let metrics = port.metrics();
    assert_eq!((metrics.crashed_in_hand, metrics.set_aside, metrics.handled), (2, 3, 1));
    assert_eq!(SET_ASIDE.load(Ordering::SeqCst), 3 * 666);
    assert_accounted(&metrics);
}

/// "Control is served before the data lane", and completions between the two.
#[tokio::test]
async fn control_is_served_first_then_completions_then_data() {
    let (port, mailbox) = spec(8, Overflow::Wait).completions(NonZeroUsize::MIN).open();
    port.try_send(Ask::Note(30)).unwrap();
    port.try_send(Ask::Note(31)).unwrap();
    port.try_reserve_completion().unwrap().send(Ask::Note(20)).unwrap();
    port.try_send_control(Ask::Note(10)).unwrap();
    let (owner, mut reports) = recorder();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    for number in [10, 20, 30, 31] {
        assert_eq!(reports.recv().await, Some(number));
    }
}

/// Works on up to `bound` messages at once, in tasks of its own.
struct Concurrent {
    bound: usize,
    busy: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
    tasks: tokio::task::JoinSet<()>,
}

impl Handler for Concurrent {
    type Message = Reply<()>;

    fn ready(&self) -> bool {
        self.busy.load(Ordering::SeqCst) < self.bound
    }

    async fn handle(&mut self, reply: Reply<()>, context: &Context<Reply<()>>) -> Result<(), HandlerError> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        let (busy, gate, doorbell): (_, _, Doorbell) = (Arc::clone(&self.busy), Arc::clone(&self.gate), context.doorbell());
        self.tasks.spawn(async move {
            gate.acquire().await.unwrap().forget();
            busy.fetch_sub(1, Ordering::SeqCst);
            doorbell.ring();
            let _late = reply.send(());
        });
        Ok(())
    }
}

/// "The owner pops only while a place of its concurrency bound is free", and looks again when one becomes free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_takes_no_more_data_than_it_has_places_for() {
    const BOUND: usize = 3;
    let (port, mailbox) = open(64, Overflow::Wait);
    let (busy, most, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let owner = Concurrent {
        bound: BOUND,
        busy,
        most: Arc::clone(&most),
        gate: Arc::clone(&gate),
        tasks: tokio::task::JoinSet::new(),
    };
    let _owner = spawn(&mailbox, owner).await.unwrap();
    let calls = (0..40).map(|_| port.call(soon(), |reply| reply));
    let all = futures_join(calls.collect());
    let release = async {
        for _ in 0..40 {
            gate.add_permits(1);
            tokio::task::yield_now().await;
        }
    };
    let (answers, ()) = tokio::join!(all, release);
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
    assert!((1..=BOUND).contains(&most.load(Ordering::SeqCst)));
    assert_accounted(&port.metrics());
}

async fn futures_join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        let mut open = false;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => open = true,
                }
            }
        }
        if open {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(outputs.iter_mut().map(|output| output.take().unwrap()).collect())
    })
    .await
}

/// An owner without a free place still takes control and completions.
#[tokio::test]
async fn an_owner_without_a_free_place_still_serves_control_and_completions() {
    struct Busy(mpsc::UnboundedSender<u64>);
    impl Handler for Busy {
        type Message = Ask;
        fn ready(&self) -> bool {
            false
        }
        async fn handle(&mut self, message: Ask, _context: &Context<Ask>) -> Result<(), HandlerError> {
            let _unread = self.0.send(message.number());
            Ok(())
        }
    }
    let (port, mailbox) = spec(8, Overflow::Wait).completions(NonZeroUsize::MIN).open();
    let (begun, mut reports) = mpsc::unbounded_channel();
    let _owner = spawn(&mailbox, Busy(begun)).await.unwrap();
    port.try_send(Ask::Note(30)).unwrap();
    settle().await;
    port.try_send_control(Ask::Note(10)).unwrap();
    assert_eq!(reports.recv().await, Some(10));
    port.try_reserve_completion().unwrap().send(Ask::Note(20)).unwrap();
    assert_eq!(reports.recv().await, Some(20));
    assert_eq!(port.metrics().data_depth, 1);
}

/// "Stop, kill and supervision keep ractor's priority": a stop comes through long before a full queue is worked off, and the rest stays queued.
#[tokio::test]
async fn a_stop_does_not_wait_for_the_queue() {
    let (port, mailbox) = open(1_000, Overflow::Reject);
    for number in 0..1_000 {
        port.try_send(Ask::Note(number)).unwrap();
    }
    let (owner, _reports) = recorder();
    let owner = spawn(&mailbox, owner).await.unwrap();
    assert_eq!(owner.stop(soon()).await, End::Stopped);
    let metrics = port.metrics();
    assert!(metrics.handled <= 64, "{metrics:?}");
    assert_eq!(metrics.crashed_in_hand, 0);
    assert_accounted(&metrics);
}

/// A drain handles what is queued, admits nothing new, and ends the owner.
#[tokio::test]
async fn a_drain_handles_what_is_queued_and_then_ends_the_owner() {
    let (port, mailbox) = open(300, Overflow::Reject);
    for number in 0..300 {
        port.try_send(Ask::Note(number)).unwrap();
    }
    let (owner, _reports) = recorder();
    let mut owner = spawn(&mailbox, owner).await.unwrap();
    mailbox.drain();
    assert!(matches!(port.try_send(Ask::Note(300)), Err(SendError::Closed(_))));
    owner.ended().await;
    let metrics = port.metrics();
    assert_eq!((metrics.handled, metrics.depth()), (300, 0));
}

/// What a permit reserved before a drain is still taken while the drain lasts.
#[tokio::test]
async fn a_reserved_place_is_good_during_a_drain() {
    let (port, mailbox) = open(4, Overflow::Reject);
    port.try_send(Ask::Note(1)).unwrap();
    let mut place = port.try_reserve(1).unwrap();
    mailbox.drain();
    place.send(Ask::Note(2)).unwrap();
    let (owner, mut reports) = recorder();
    spawn(&mailbox, owner).await.unwrap().ended().await;
    assert_eq!((reports.recv().await, reports.recv().await, reports.recv().await), (Some(1), Some(2), None));
}

/// A start that fails is an error to the one who starts, and takes nothing from the port.
#[tokio::test]
async fn a_failed_start_is_told_to_the_spawner_and_takes_nothing() {
    struct Broken {
        panics: bool,
    }
    impl Handler for Broken {
        type Message = Ask;
        async fn started(&mut self, _context: &Context<Ask>) -> Result<(), HandlerError> {
            assert!(!self.panics, "cannot start");
            Err(HandlerError::new("no store"))
        }
        async fn handle(&mut self, _message: Ask, _context: &Context<Ask>) -> Result<(), HandlerError> {
            Ok(())
        }
    }
    let (port, mailbox) = open(4, Overflow::Wait);
    port.try_send(Ask::Note(1)).unwrap();
    let refused = spawn(&mailbox, Broken { panics: false }).await.unwrap_err();
    assert!(matches!(&refused, SpawnError::Refused { source, .. } if source.to_string() == "no store"), "{refused:?}");
    let broken = spawn(&mailbox, Broken { panics: true }).await.unwrap_err();
    assert!(matches!(&broken, SpawnError::BrokenOff { reason, .. } if reason.contains("cannot start")), "{broken:?}");
    assert_eq!(port.metrics().data_depth, 1);
}

/// The order of an incarnation's life; `stopping` runs at an orderly end only.
#[tokio::test]
async fn stopping_runs_at_an_orderly_end_and_not_at_a_kill() {
    struct Witness(Arc<AtomicBool>);
    impl Handler for Witness {
        type Message = Ask;
        async fn handle(&mut self, _message: Ask, context: &Context<Ask>) -> Result<(), HandlerError> {
            context.stop();
            Ok(())
        }
        async fn stopping(&mut self, _context: &Context<Ask>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (port, mailbox) = open(4, Overflow::Wait);
    let stopped = Arc::new(AtomicBool::new(false));
    let mut killed = spawn(&mailbox, Witness(Arc::clone(&stopped))).await.unwrap();
    killed.kill();
    killed.ended().await;
    assert!(!stopped.load(Ordering::SeqCst));
    let mut owner = spawn(&mailbox, Witness(Arc::clone(&stopped))).await.unwrap();
    port.try_send(Ask::Note(1)).unwrap();
    owner.ended().await;
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(port.metrics().handled, 1);
}

/// An owner that does not stop in time is killed, and its message is counted.
#[tokio::test]
async fn an_owner_that_hangs_is_killed_at_the_deadline() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let (owner, mut reports, _gate) = gated();
    let owner = spawn(&mailbox, owner).await.unwrap();
    port.try_send(Ask::Note(1)).unwrap();
    reports.recv().await.unwrap();
    assert_eq!(owner.stop(after_ms(5)).await, End::Killed);
    assert_eq!(port.metrics().crashed_in_hand, 1);
}

/// Two owners of one mailbox at once: the newer one takes over, and no message is handled twice.
#[tokio::test]
async fn a_newer_incarnation_takes_over() {
    let (port, mailbox) = open(16, Overflow::Wait);
    let (owner, mut old) = recorder();
    let mut first = spawn(&mailbox, owner).await.unwrap();
    let (owner, mut new) = recorder();
    let _second = spawn(&mailbox, owner).await.unwrap();
    for number in 0..10 {
        port.send(Ask::Note(number), soon()).await.unwrap();
        assert_eq!(new.recv().await, Some(number));
    }
    drop(port);
    first.kill();
    first.ended().await;
    assert_eq!(old.recv().await, None);
}

/// Restarts leak nothing: 2,000 crashes behind one port, and the accounts still balance.
#[tokio::test]
async fn two_thousand_crashes_behind_one_port_lose_one_message_each() {
    let (port, mailbox) = open(4, Overflow::Wait);
    for number in 0..2_000 {
        port.try_send(Ask::Fail(number)).unwrap();
        let (owner, _reports) = recorder();
        tokio::time::timeout(Duration::from_secs(20), spawn(&mailbox, owner).await.unwrap().ended()).await.unwrap();
    }
    let metrics = port.metrics();
    assert_eq!((metrics.crashed_in_hand, metrics.depth()), (2_000, 0));
    assert_accounted(&metrics);
}

/// The name is for people and addresses nothing: many ports of one name live side by side.
#[tokio::test]
async fn ports_of_one_name_are_independent() {
    let spec = || PortSpec::new("twin", NonZeroUsize::MIN, Overflow::Reject);
    let ((a, _a_box), (b, _b_box)) = (spec().open(), spec().open());
    a.try_send(1).unwrap();
    b.try_send(1).unwrap();
    assert_eq!(a.name(), b.name());
}
