//! The promises, each under many schedules.

use std::future::poll_fn;
use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::core::{Bell, Core, Grants, Lane, Limits, Manner, Offered, Overflow, Popped, Serve};

const SCHEDULES: usize = 1_500;
const NO_WAIT: Manner = Manner { waits: false, droppable: true };

/// Runs a check under random schedules, and under schedules with few but arbitrary preemptions.
fn under_many_schedules(check: fn()) {
    shuttle::check_random(check, SCHEDULES);
    shuttle::check_pct(check, SCHEDULES, 3);
}

struct Unpark(thread::Thread);

impl Bell for Unpark {
    fn ring(&self) {
        self.0.unpark();
    }
}

fn core(data: usize, overflow: Overflow) -> Arc<Core<u32>> {
    Arc::new(Core::new(Limits { overflow, control: 1, completions: 1, data }))
}

/// Sends one message, standing in line if need be.
fn send(core: &Core<u32>, message: u32) -> Offered<u32> {
    let mut line = None;
    let mut message = Some(message);
    block_on(poll_fn(|cx| core.poll_offer(&mut line, &mut message, None, cx)))
}

/// Reads until the port is closed; sleeps only where the core says that nothing is there.
fn consume(core: &Core<u32>) -> Vec<u32> {
    let consumer = core.attach(Box::new(Unpark(thread::current())));
    let mut seen = Vec::new();
    let mut finished = 0;
    loop {
        match core.look(consumer, finished, || Serve::All, Grants::AtPause) {
            Popped::Message(message) => {
                seen.push(message);
                finished = 1;
            }
            Popped::Empty => {
                finished = 0;
                thread::park();
            }
            Popped::Closed | Popped::Superseded => return seen,
            Popped::Expired(_) => unreachable!("nothing expires here"),
        }
    }
}

/// No message is left behind a sleeping consumer: with the second look deleted, this deadlocks.
#[test]
fn consumer_never_sleeps_on_a_message() {
    under_many_schedules(|| {
        let core = core(4, Overflow::Reject);
        let senders: Vec<_> = (0..2)
            .map(|number| {
                let core = Arc::clone(&core);
                thread::spawn(move || assert!(matches!(core.offer(number, None, NO_WAIT), Offered::Queued(_))))
            })
            .collect();
        let consumer = core.attach(Box::new(Unpark(thread::current())));
        let mut seen = 0;
        while seen < 2 {
            match core.look(consumer, 0, || Serve::All, Grants::AtOnce) {
                Popped::Message(_) => seen += 1,
                _ => thread::park(),
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// One place, several senders in line: each gets its turn, and the places come back.
#[test]
fn every_waiting_sender_gets_its_turn() {
    under_many_schedules(|| {
        let core = core(1, Overflow::Wait);
        let reader = {
            let core = Arc::clone(&core);
            thread::spawn(move || consume(&core))
        };
        let senders: Vec<_> = (0..3)
            .map(|number| {
                let core = Arc::clone(&core);
                thread::spawn(move || assert!(matches!(send(&core, number), Offered::Queued(_))))
            })
            .collect();
        for sender in senders {
            sender.join().unwrap();
        }
        core.drain();
        let mut seen = reader.join().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(core.snapshot().counts.handled, 3);
        assert_eq!((core.snapshot().reserved, core.snapshot().waiting), (0, 0));
    });
}

/// A sender that leaves the line takes no place with it, even if it was granted one at that moment.
#[test]
fn a_sender_that_leaves_the_line_returns_its_place() {
    under_many_schedules(|| {
        let core = core(1, Overflow::Wait);
        assert!(matches!(core.offer(0, None, NO_WAIT), Offered::Queued(_)));
        let leaver = {
            let core = Arc::clone(&core);
            thread::spawn(move || {
                let mut line = None;
                let mut message = Some(1);
                let mut polls = 0;
                // Polls once or twice, then gives up.
                block_on(poll_fn(|cx| {
                    polls += 1;
                    match core.poll_offer(&mut line, &mut message, None, cx) {
                        std::task::Poll::Pending if polls == 1 => {
                            cx.waker().wake_by_ref();
                            std::task::Poll::Pending
                        }
                        _ => std::task::Poll::Ready(()),
                    }
                }));
                if let Some(line) = line {
                    core.leave(line);
                }
            })
        };
        let sender = {
            let core = Arc::clone(&core);
            thread::spawn(move || assert!(matches!(send(&core, 2), Offered::Queued(_))))
        };
        let reader = {
            let core = Arc::clone(&core);
            thread::spawn(move || consume(&core))
        };
        leaver.join().unwrap();
        sender.join().unwrap();
        core.drain();
        let seen = reader.join().unwrap();
        assert!(seen.contains(&0) && seen.contains(&2));
        assert_eq!(core.snapshot().reserved, 0);
    });
}

/// Pitfall 23: a close amid sends strands nothing. Each message is read, returned by the close, or handed back to its sender.
#[test]
fn a_close_amid_sends_strands_nothing() {
    under_many_schedules(|| {
        let core = core(1, Overflow::Wait);
        let handed_back = Arc::new(AtomicUsize::new(0));
        let reader = {
            let core = Arc::clone(&core);
            thread::spawn(move || consume(&core).len())
        };
        let senders: Vec<_> = (0..3)
            .map(|number| {
                let (core, handed_back) = (Arc::clone(&core), Arc::clone(&handed_back));
                thread::spawn(move || match send(&core, number) {
                    Offered::Queued(_) => {}
                    Offered::Closed(_) => {
                        handed_back.fetch_add(1, Ordering::SeqCst);
                    }
                    _ => unreachable!("neither full, dropped nor answered"),
                })
            })
            .collect();
        let removed = core.close().len();
        for sender in senders {
            sender.join().unwrap();
        }
        let read = reader.join().unwrap();
        assert_eq!(read + removed + handed_back.load(Ordering::SeqCst), 3);
        let counts = core.snapshot().counts;
        assert_eq!((counts.accepted, counts.in_hand), (counts.handled + counts.dropped_at_close, 0));
    });
}

/// A reservation of many is not overtaken for ever, and a suspension answers whoever waits.
#[test]
fn a_suspension_answers_whoever_waits() {
    under_many_schedules(|| {
        fn answer(_message: u32) {}
        let core = core(1, Overflow::Wait);
        assert!(matches!(core.offer(0, None, NO_WAIT), Offered::Queued(_)));
        let sender = {
            let core = Arc::clone(&core);
            thread::spawn(move || assert!(matches!(send(&core, 1), Offered::Answer(..) | Offered::Queued(_))))
        };
        let removed = core.suspend(answer).len();
        sender.join().unwrap();
        core.resume();
        assert!(removed >= 1);
        assert_eq!(core.snapshot().reserved, 0);
        assert_eq!(core.snapshot().waiting, 0);
    });
}

/// Places of several are taken together and in order, and all come back.
#[test]
fn a_reservation_of_several_places_is_served_in_its_turn() {
    under_many_schedules(|| {
        let core = core(2, Overflow::Wait);
        assert!(matches!(core.offer(0, None, NO_WAIT), Offered::Queued(_)));
        let holder = {
            let core = Arc::clone(&core);
            thread::spawn(move || {
                let mut line = None;
                assert!(block_on(poll_fn(|cx| core.poll_reserve(&mut line, 2, cx))));
                assert!(matches!(core.fill(Lane::Data, 7), Offered::Queued(_)));
                core.release(Lane::Data, 1);
            })
        };
        let sender = {
            let core = Arc::clone(&core);
            thread::spawn(move || assert!(matches!(send(&core, 8), Offered::Queued(_))))
        };
        let reader = {
            let core = Arc::clone(&core);
            thread::spawn(move || consume(&core))
        };
        holder.join().unwrap();
        sender.join().unwrap();
        core.drain();
        let mut seen = reader.join().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [0, 7, 8]);
        assert_eq!(core.snapshot().reserved, 0);
    });
}

/// An owner without a free place is told when one becomes free, even if that happens while it looks.
#[test]
fn a_place_that_becomes_free_is_noticed() {
    under_many_schedules(|| {
        let core = core(2, Overflow::Reject);
        let free = Arc::new(AtomicUsize::new(0));
        assert!(matches!(core.offer(0, None, NO_WAIT), Offered::Queued(_)));
        let worker = {
            let (core, free) = (Arc::clone(&core), Arc::clone(&free));
            thread::spawn(move || {
                free.store(1, Ordering::SeqCst);
                core.ring();
            })
        };
        let sender = {
            let core = Arc::clone(&core);
            thread::spawn(move || assert!(matches!(core.offer(1, None, NO_WAIT), Offered::Queued(_))))
        };
        let consumer = core.attach(Box::new(Unpark(thread::current())));
        let serve = || if free.load(Ordering::SeqCst) == 1 { Serve::All } else { Serve::Urgent };
        let mut seen = 0;
        while seen < 2 {
            match core.look(consumer, 0, serve, Grants::AtOnce) {
                Popped::Message(_) => seen += 1,
                _ => thread::park(),
            }
        }
        worker.join().unwrap();
        sender.join().unwrap();
    });
}
