//! Sending: bounds, overflow rules, lines, reservations, availability.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tipstaff::port::{Admission, Availability, Next, Overflow, Port, ReserveError, SendError, spawn};
use tracing::field::{Field, Visit};

use super::support::{Alive, Ask, after_ms, assert_accounted, gated, open, recorder, settle, soon, spec, start};

/// "Clone, `Send + Sync`", and every future can move between threads.
#[test]
fn ports_and_their_futures_are_send() {
    fn send_sync<T: Send + Sync + Clone>(_: &T) {}
    fn send<T: Send>(_: T) {}
    let (port, _mailbox) = open::<Ask>(1, Overflow::Wait);
    send_sync(&port);
    send(port.send(Ask::Note(1), soon()));
    send(port.call(soon(), |reply| Ask::Echo(1, reply)));
    send(port.reserve(1, soon()));
}

/// "Waiting": first come, first served, and one who does not wait does not overtake.
#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_and_not_overtaken() {
    let (port, mailbox) = open(1, Overflow::Wait);
    port.try_send(Ask::Note(0)).unwrap();
    let senders: Vec<_> = (1..=3)
        .map(|number| {
            let port = port.clone();
            Box::pin(async move { port.send(Ask::Note(number), soon()).await.map(drop) })
        })
        .collect();
    let mut senders = senders;
    for sender in &mut senders {
        assert!(futures::poll!(sender.as_mut()).is_pending());
    }
    assert_eq!(port.metrics().waiting, 3);
    let mut thread = mailbox.on_thread();
    assert_eq!(thread.try_next().unwrap().number(), 0);
    // The free place belongs to the first in line already.
    assert!(matches!(port.try_send(Ask::Note(9)), Err(SendError::Full(_))));
    for number in 1..=3 {
        assert!(futures::poll!(senders[0].as_mut()).is_ready());
        drop(senders.remove(0));
        assert_eq!(thread.try_next().unwrap().number(), number);
    }
    let metrics = port.metrics();
    assert_eq!((metrics.waits, metrics.waiting), (3, 0));
    assert_accounted(&metrics);
}

/// The wait ends at the deadline, and the message comes back.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_and_hands_the_message_back() {
    let (port, _mailbox) = open(1, Overflow::Wait);
    port.try_send(Ask::Note(0)).unwrap();
    let refused = port.send(Ask::Note(1), after_ms(50)).await.unwrap_err();
    assert!(matches!(&refused, SendError::Deadline(message) if message.number() == 1));
    let metrics = port.metrics();
    assert_eq!((metrics.refused, metrics.waits, metrics.waiting, metrics.accepted), (1, 1, 0, 1));
    assert!(metrics.longest_wait >= Duration::from_millis(50));
}

/// "A cancelled sender holds nothing": fifty of them, half after they were granted a place.
#[tokio::test(start_paused = true)]
async fn cancelled_senders_hold_nothing() {
    let (port, mailbox) = open(1, Overflow::Wait);
    let mut thread = mailbox.on_thread();
    for round in 0..50 {
        port.try_send(Ask::Note(round)).unwrap();
        let mut sender = Box::pin(port.send(Ask::Note(1_000), soon()));
        assert!(futures::poll!(sender.as_mut()).is_pending());
        if round % 2 == 0 {
            assert_eq!(thread.try_next().unwrap().number(), round);
            drop(sender);
        } else {
            drop(sender);
            assert_eq!(thread.try_next().unwrap().number(), round);
        }
    }
    let metrics = port.metrics();
    assert_eq!((metrics.depth(), metrics.reserved, metrics.waiting), (0, 0, 0));
    port.try_send(Ask::Note(1)).unwrap();
}

/// `Reject` hands the message back at once, even to one who would wait.
#[tokio::test]
async fn reject_hands_the_message_back_at_once() {
    let (port, _mailbox) = open(1, Overflow::Reject);
    port.send(Ask::Note(0), soon()).await.unwrap();
    let refused = port.send(Ask::Note(1), soon()).await.unwrap_err();
    assert!(matches!(&refused, SendError::Full(message) if message.number() == 1));
    assert_eq!(port.metrics().refused, 1);
}

/// `DropNewest` drops the new message and counts it.
#[tokio::test]
async fn drop_newest_drops_the_new_message_and_counts_it() {
    let (port, mailbox) = open(1, Overflow::DropNewest);
    assert_eq!(port.send(Ask::Note(0), soon()).await.unwrap(), Admission::Queued);
    assert_eq!(port.send(Ask::Note(1), soon()).await.unwrap(), Admission::DroppedNewest);
    let metrics = port.metrics();
    assert_eq!((metrics.accepted, metrics.dropped_newest), (2, 1));
    assert_accounted(&metrics);
    assert_eq!(mailbox.on_thread().try_next().unwrap().number(), 0);
}

/// `DropOldest` passes the place of the oldest message to the new one and counts the drop.
#[tokio::test]
async fn drop_oldest_evicts_the_oldest_message_and_counts_it() {
    let (port, mailbox) = open(2, Overflow::DropOldest);
    for number in 0..5 {
        let admission = port.try_send(Ask::Note(number)).unwrap();
        assert_eq!(admission, if number < 2 { Admission::Queued } else { Admission::EvictedOldest });
    }
    let metrics = port.metrics();
    assert_eq!((metrics.accepted, metrics.dropped_oldest, metrics.data_depth), (5, 3, 2));
    assert_accounted(&metrics);
    let mut thread = mailbox.on_thread();
    assert_eq!((thread.try_next().unwrap().number(), thread.try_next().unwrap().number()), (3, 4));
}

/// What came through a reservation was promised its place: it is not evicted, and a lane of nothing else is full.
#[tokio::test]
async fn drop_oldest_spares_what_came_through_a_reservation() {
    let (port, mailbox) = open(2, Overflow::DropOldest);
    port.try_reserve(1).unwrap().send(Ask::Note(1)).unwrap();
    port.try_send(Ask::Note(2)).unwrap();
    assert_eq!(port.try_send(Ask::Note(3)).unwrap(), Admission::EvictedOldest);
    let mut thread = mailbox.on_thread();
    assert_eq!((thread.try_next().unwrap().number(), thread.try_next().unwrap().number()), (1, 3));
    let _both = port.try_reserve(2).unwrap();
    assert!(matches!(port.try_send(Ask::Note(4)), Err(SendError::Full(_))));
}

/// A message whose destructor uses the port that drops it.
struct Nosy(Port<Nosy>, Arc<AtomicUsize>);

impl Drop for Nosy {
    fn drop(&mut self) {
        self.1.fetch_add(self.0.metrics().data_depth + 1, Ordering::SeqCst);
    }
}

/// "The evicted message is dropped outside the lock": its destructor may use the port. Likewise at a close.
#[test]
fn destructors_run_outside_the_lock() {
    let (port, mailbox) = open(1, Overflow::DropOldest);
    let seen = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        port.try_send(Nosy(port.clone(), Arc::clone(&seen))).unwrap();
    }
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    mailbox.close();
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

/// Each reserved place accepts one message, however full the lane is; unused ones return.
#[tokio::test]
async fn a_reserved_place_accepts_a_message_in_a_full_lane() {
    let (port, _mailbox) = open(3, Overflow::Reject);
    let mut places = port.try_reserve(2).unwrap();
    port.try_send(Ask::Note(0)).unwrap();
    assert!(matches!(port.try_send(Ask::Note(1)), Err(SendError::Full(_))));
    assert!(port.try_reserve(1).is_none());
    assert_eq!(port.metrics().reserved, 2);

    let mut closing = places.split(1).unwrap();
    assert!(places.split(2).is_none());
    places.send(Ask::Note(2)).unwrap();
    assert!(matches!(places.send(Ask::Note(3)), Err(SendError::Full(_))));
    closing.send(Ask::Note(4)).unwrap();
    assert_eq!((port.metrics().data_depth, port.metrics().reserved), (3, 0));
}

/// Dropping a reservation returns its unused places to those who wait.
#[tokio::test(start_paused = true)]
async fn unused_places_return_when_the_reservation_is_dropped() {
    let (port, _mailbox) = open(2, Overflow::Wait);
    let places = port.reserve(2, soon()).await.unwrap();
    let mut sender = Box::pin(port.send(Ask::Note(1), soon()));
    assert!(futures::poll!(sender.as_mut()).is_pending());
    drop(places);
    sender.await.unwrap();
    assert_eq!(port.metrics().reserved, 0);
}

/// A reservation waits in its turn, ends at its deadline, and one that can never succeed does not wait.
#[tokio::test(start_paused = true)]
async fn a_reservation_waits_in_line_and_ends_at_its_deadline() {
    let (port, mailbox) = open(2, Overflow::DropNewest);
    assert_eq!(port.reserve(3, soon()).await.unwrap_err(), ReserveError::TooMany { wanted: 3, capacity: 2 });
    port.try_send(Ask::Note(0)).unwrap();
    assert_eq!(port.reserve(2, after_ms(5)).await.unwrap_err(), ReserveError::Deadline);
    let mut both = Box::pin(port.reserve(2, soon()));
    assert!(futures::poll!(both.as_mut()).is_pending());
    // One place is free, but it is being waited for.
    assert_eq!(port.try_send(Ask::Note(1)).unwrap(), Admission::DroppedNewest);
    mailbox.on_thread().try_next().unwrap();
    assert_eq!(both.await.unwrap().places(), 2);
    mailbox.close();
    assert_eq!(port.reserve(1, soon()).await.unwrap_err(), ReserveError::Closed);
    assert!(port.try_reserve(1).is_none());
}

/// "Only `Closed` refuses" a reserved place, and hands the message back.
#[tokio::test]
async fn a_closed_port_hands_a_reserved_message_back() {
    let (port, mailbox) = open(2, Overflow::Wait);
    let mut place = port.try_reserve(1).unwrap();
    mailbox.close();
    let refused = place.send(Ask::Note(7)).unwrap_err();
    assert!(matches!(&refused, SendError::Closed(message) if message.number() == 7));
    assert_eq!(port.metrics().reserved, 0);
}

/// "Completions have a third lane whose capacity is the owner's bound of open permits."
#[tokio::test]
async fn completions_have_places_of_their_own() {
    let (port, mailbox) = spec(1, Overflow::Reject).completions(NonZeroUsize::new(2).unwrap()).open();
    port.try_send(Ask::Note(0)).unwrap();
    let (mut first, second) = (port.try_reserve_completion().unwrap(), port.try_reserve_completion().unwrap());
    assert!(port.try_reserve_completion().is_none());
    first.send(Ask::Note(1)).unwrap();
    // The place is the message's until it is popped.
    assert!(port.try_reserve_completion().is_none());
    assert_eq!((port.metrics().completion_depth, port.metrics().reserved), (1, 1));
    assert_eq!(mailbox.on_thread().try_next().unwrap().number(), 1);
    assert!(port.try_reserve_completion().is_some());
    drop(second);
    assert_eq!(port.metrics().reserved, 0);
}

/// Pitfall 18: control messages of one kind are queued once while the owner is wedged; the lane is bounded for the rest.
#[tokio::test]
async fn control_messages_of_one_kind_are_queued_once() {
    let (port, mailbox) = spec(1, Overflow::Wait)
        .control(NonZeroUsize::new(2).unwrap())
        .coalesce_control(|message: &Ask| (message.number() < 100).then(|| message.number()))
        .open();
    let (owner, mut reports, gate) = gated();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    port.try_send(Ask::Note(1)).unwrap();
    reports.recv().await.unwrap();
    assert_eq!(port.try_send_control(Ask::Note(7)).unwrap(), Admission::Queued);
    for _ in 0..1_000 {
        assert_eq!(port.try_send_control(Ask::Note(7)).unwrap(), Admission::Coalesced);
    }
    assert_eq!(port.metrics().control_depth, 1);
    port.try_send_control(Ask::Note(100)).unwrap();
    assert!(matches!(port.try_send_control(Ask::Note(100)), Err(SendError::Full(_))));
    gate.add_permits(8);
    assert_eq!((reports.recv().await, reports.recv().await), (Some(7), Some(100)));
    settle().await;
    assert_eq!(port.metrics().coalesced, 1_000);
    assert_accounted(&port.metrics());
}

static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// "A suspended port answers queued and new messages at once, outside its lock"; waiting senders too. A resumed one queues again.
#[tokio::test(start_paused = true)]
async fn a_suspended_port_answers_queued_waiting_and_new_messages_at_once() {
    let (port, mailbox) = open(1, Overflow::Wait);
    let mut place = {
        let (other, _other_box) = open::<Ask>(1, Overflow::Wait);
        drop(other);
        port.try_reserve(1).unwrap()
    };
    place.send(Ask::Note(1)).unwrap();
    let mut waiting = Box::pin(port.send(Ask::Note(2), soon()));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    mailbox.suspend(|message: Ask| {
        ANSWERED.fetch_add(message.number(), Ordering::SeqCst);
    });
    assert_eq!(waiting.await.unwrap(), Admission::Answered);
    assert_eq!(port.try_send(Ask::Note(4)).unwrap(), Admission::Answered);
    assert_eq!(port.try_send_control(Ask::Note(8)).unwrap(), Admission::Answered);
    assert_eq!(port.try_reserve(1).unwrap().send(Ask::Note(16)).unwrap(), Admission::Answered);
    assert_eq!(ANSWERED.load(Ordering::SeqCst), 31);
    assert!(matches!(port.availability(), Availability::Suspended(_)));
    let metrics = port.metrics();
    assert_eq!((metrics.answered, metrics.accepted, metrics.depth(), metrics.reserved), (5, 5, 0, 0));

    mailbox.resume();
    assert_eq!(port.try_send(Ask::Note(32)).unwrap(), Admission::Queued);
    mailbox.close();
    mailbox.resume();
    mailbox.suspend(|_| panic!("a closed port stays closed"));
    assert!(matches!(port.try_send(Ask::Note(64)), Err(SendError::Closed(_))));
    assert!(matches!(port.availability(), Availability::Closed));
    assert_accounted(&port.metrics());
}

/// "Waiting senders get `Closed`", and a dropped mailbox closes its port.
#[tokio::test(start_paused = true)]
async fn a_close_hands_waiting_messages_back() {
    let (port, mailbox) = open(1, Overflow::Wait);
    port.try_send(Ask::Note(1)).unwrap();
    let mut waiting = Box::pin(port.send(Ask::Note(2), soon()));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    drop(mailbox);
    assert!(matches!(waiting.await, Err(SendError::Closed(message)) if message.number() == 2));
    let metrics = port.metrics();
    assert_eq!((metrics.dropped_at_close, metrics.depth()), (1, 0));
    assert_accounted(&metrics);
}

/// The age of the oldest message is known.
#[tokio::test(start_paused = true)]
async fn the_age_of_the_oldest_message_is_known() {
    let (port, _mailbox) = open(4, Overflow::Wait);
    assert_eq!(port.metrics().oldest_age, None);
    port.try_send(Ask::Note(1)).unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    port.try_send(Ask::Note(2)).unwrap();
    assert_eq!(port.metrics().oldest_age, Some(Duration::from_secs(3)));
}

/// Pitfall 15: producers that are far faster than the owner: no more messages are alive than places, senders, and the one in hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_messages_are_alive_than_the_bound_allows() {
    const CAPACITY: usize = 16;
    const SENDERS: usize = 4;
    for overflow in [Overflow::Wait, Overflow::Reject, Overflow::DropNewest, Overflow::DropOldest] {
        let alive = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (port, mailbox) = open(CAPACITY, overflow);
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..SENDERS {
            let (port, alive, most) = (port.clone(), Arc::clone(&alive), Arc::clone(&most));
            senders.spawn(async move {
                for _ in 0..2_000 {
                    let refused = port.send(Alive::new(&alive), soon()).await.err();
                    most.fetch_max(alive.load(Ordering::SeqCst), Ordering::SeqCst);
                    drop(refused);
                }
            });
        }
        let mut thread = mailbox.on_thread();
        let reader = start(move || {
            let mut read = 0;
            while let Next::Message(message) = thread.next(Duration::from_secs(20)) {
                drop(message);
                std::thread::yield_now();
                read += 1;
            }
            read
        });
        while senders.join_next().await.transpose().unwrap().is_some() {}
        mailbox.drain();
        assert!(reader.join().unwrap() > 0);
        assert!(most.load(Ordering::SeqCst) <= CAPACITY + SENDERS + 1, "{overflow:?}: {most:?}");
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{overflow:?} leaks");
        assert_accounted(&port.metrics());
    }
}

/// Keeps the texts of events of one target.
struct Events(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tipstaff::port"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("no test panics with it held").push(text.0);
    }
}

/// Pitfall 22: a wait longer than a second is reported while it lasts, and names the port and the one who waits.
#[tokio::test(start_paused = true)]
async fn a_long_wait_names_both_its_ends() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let _guard = tracing::subscriber::set_default(Events(Arc::clone(&events)));
    let (port, _mailbox) = open(1, Overflow::Wait);
    port.try_send(Ask::Note(0)).unwrap();
    let _short = port.send(Ask::Note(1), after_ms(900)).await.unwrap_err();
    assert!(events.lock().unwrap().is_empty());
    let _long = port.send(Ask::Note(1), after_ms(5_000)).await.unwrap_err();
    let seen = events.lock().unwrap().clone();
    assert_eq!(seen.len(), 1, "{seen:?}");
    for part in ["long wait", "port=\"clerk\"", "waiter=\"outside the actors\"", "waited_ms=1000"] {
        assert!(seen[0].contains(part), "{part} in {}", seen[0]);
    }
}

/// A message is handled once, by a recorder, whatever lane and place it came through.
#[tokio::test]
async fn what_is_handled_is_what_was_accepted() {
    let (port, mailbox) = open(8, Overflow::Wait);
    let (owner, mut reports) = recorder();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    for number in 0..100 {
        port.send(Ask::Note(number), soon()).await.unwrap();
    }
    for number in 0..100 {
        assert_eq!(reports.recv().await, Some(number));
    }
}
