//! Consumers on threads, and ports under real concurrency.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tipstaff::port::{Next, Overflow, PoisonRule, SendError};

use super::support::{Alive, assert_accounted, open, soon, spec, start};

/// A thread gets messages, then a time-out, then the close; it is woken for each.
#[test]
fn a_thread_is_woken_for_messages_and_for_the_close() {
    let (port, mailbox) = open(4, Overflow::Reject);
    let mut reader = mailbox.on_thread();
    assert_eq!(reader.next(Duration::ZERO), Next::TimedOut);
    let consumer = start(move || {
        let mut seen = Vec::new();
        loop {
            match reader.next(Duration::from_secs(20)) {
                Next::Message(number) => seen.push(number),
                Next::TimedOut => panic!("not woken"),
                Next::Closed => return seen,
            }
        }
    });
    for number in 0..3 {
        port.try_send(number).unwrap();
        while port.metrics().handled + port.metrics().in_hand <= number {
            thread::yield_now();
        }
    }
    mailbox.close();
    assert_eq!(consumer.join().unwrap(), [0, 1, 2]);
    assert_eq!(port.metrics().handled, 3);
}

/// A thread may take a batch and finish it together: until then all of it is in hand, and a crash counts all of it.
#[test]
fn a_batch_is_in_hand_until_it_is_finished() {
    let (port, mailbox) = open(8, Overflow::Reject);
    for number in 0..6 {
        port.try_send(number).unwrap();
    }
    let mut reader = mailbox.on_thread();
    assert_eq!(reader.next(Duration::ZERO), Next::Message(0));
    assert_eq!((reader.try_next(), reader.try_next()), (Some(1), Some(2)));
    assert_eq!((port.metrics().in_hand, port.metrics().handled), (3, 0));
    reader.finish();
    assert_eq!((port.metrics().in_hand, port.metrics().handled), (0, 3));
    let crashed = start(move || {
        let _taken = (reader.try_next(), reader.try_next());
        panic!("the writer crashes");
    });
    assert!(crashed.join().is_err());
    let metrics = port.metrics();
    assert_eq!((metrics.crashed_in_hand, metrics.handled, metrics.data_depth), (2, 3, 1));
    assert_accounted(&metrics);
    assert_eq!(mailbox.on_thread().try_next(), Some(5));
}

static ASIDE: AtomicU64 = AtomicU64::new(0);

/// The poison rule holds for threads as for actors.
#[test]
fn a_thread_sets_poison_aside_too() {
    let rule = PoisonRule {
        key: |number: &u64| (*number > 100).then_some(*number),
        crashes: NonZeroU32::MIN,
        set_aside: |number| {
            ASIDE.fetch_add(number, Ordering::SeqCst);
        },
    };
    let (port, mailbox) = spec(8, Overflow::Reject).poison(rule).open();
    for number in [666, 666, 1] {
        port.try_send(number).unwrap();
    }
    let mut reader = mailbox.on_thread();
    let crashed = start(move || {
        assert_eq!(reader.next(Duration::ZERO), Next::Message(666));
        panic!("poisoned");
    });
    assert!(crashed.join().is_err());
    let mut reader = mailbox.on_thread();
    assert_eq!(reader.next(Duration::ZERO), Next::Message(1));
    drop(reader);
    assert_eq!((port.metrics().set_aside, port.metrics().handled, ASIDE.load(Ordering::SeqCst)), (1, 1, 666));
    assert_accounted(&port.metrics());
}

/// A second consumer takes over; the first learns that it can end.
#[test]
fn a_superseded_thread_is_told_to_end() {
    let (port, mailbox) = open(4, Overflow::Reject);
    let mut old = mailbox.on_thread();
    assert_eq!(old.next(Duration::ZERO), Next::TimedOut);
    let mut new = mailbox.on_thread();
    assert_eq!(new.next(Duration::ZERO), Next::TimedOut);
    port.try_send(1).unwrap();
    assert_eq!(old.next(Duration::ZERO), Next::Closed);
    assert_eq!(new.next(Duration::ZERO), Next::Message(1));
}

/// Pitfall 23: a push after the close strands nothing. Senders, a reader and a close race; each message is read, dropped by the close and
/// counted, or handed back.
#[test]
fn nothing_is_stranded_by_a_close_amid_sends() {
    for round in 0..200 {
        let (port, mailbox) = open(4, Overflow::Wait);
        let alive = Arc::new(AtomicUsize::new(0));
        let handed_back = Arc::new(AtomicU64::new(0));
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let (port, alive, handed_back) = (port.clone(), Arc::clone(&alive), Arc::clone(&handed_back));
                start(move || {
                    for _ in 0..20 {
                        match port.try_send(Alive::new(&alive)) {
                            Ok(_) => {}
                            Err(SendError::Closed(_) | SendError::Full(_)) => {
                                handed_back.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        let mut reader = mailbox.on_thread();
        let consumer = start(move || while let Next::Message(_) = reader.next(Duration::from_secs(20)) {});
        for _ in 0..round {
            thread::yield_now();
        }
        mailbox.close();
        for sender in senders {
            sender.join().unwrap();
        }
        consumer.join().unwrap();
        let metrics = port.metrics();
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(metrics.accepted + handed_back.load(Ordering::SeqCst), 60);
        assert_eq!((metrics.refused, metrics.depth()), (handed_back.load(Ordering::SeqCst), 0));
        assert_accounted(&metrics);
    }
}

/// Async senders in line and a thread that reads: all arrive, per sender in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_sender_arrive_in_order() {
    const SENDERS: u64 = 4;
    const EACH: u64 = 2_000;
    let (port, mailbox) = open(8, Overflow::Wait);
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..SENDERS {
        let port = port.clone();
        senders.spawn(async move {
            for number in 0..EACH {
                port.send((sender, number), soon()).await.unwrap();
            }
        });
    }
    let reader = start(move || {
        let mut reader = mailbox.on_thread();
        let mut next = [0; SENDERS as usize];
        for _ in 0..SENDERS * EACH {
            let Next::Message((sender, number)) = reader.next(Duration::from_secs(20)) else { panic!("a message is missing") };
            assert_eq!(next[sender as usize], number);
            next[sender as usize] += 1;
        }
    });
    while senders.join_next().await.transpose().unwrap().is_some() {}
    reader.join().unwrap();
    assert_eq!(port.metrics().handled, SENDERS * EACH);
}
