//! Random commands over the whole handle API.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use tipstaff::port::{Mailbox, Overflow, Port, Reply, Reservation, ThreadMailbox};

use super::support::{soon, spec};

type Message = Option<Reply<()>>;
type Wait = Pin<Box<dyn Future<Output = Option<Reservation<Message>>>>>;

#[derive(Debug, Clone)]
enum Command {
    Send,
    TrySend,
    Control,
    Call,
    TryReserve(usize),
    Reserve(usize),
    ReserveCompletion,
    Fill(usize),
    Split(usize),
    DropReservation(usize),
    PollWaiting(usize),
    DropWaiting(usize),
    Pop,
    Finish,
    Suspend,
    Resume,
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => Just(Command::Send),
        4 => Just(Command::TrySend),
        2 => Just(Command::Control),
        4 => Just(Command::Call),
        2 => (0_usize..5).prop_map(Command::TryReserve),
        2 => (0_usize..5).prop_map(Command::Reserve),
        2 => Just(Command::ReserveCompletion),
        4 => (0_usize..4).prop_map(Command::Fill),
        1 => (0_usize..4).prop_map(Command::Split),
        2 => (0_usize..4).prop_map(Command::DropReservation),
        3 => (0_usize..4).prop_map(Command::PollWaiting),
        2 => (0_usize..4).prop_map(Command::DropWaiting),
        6 => Just(Command::Pop),
        1 => Just(Command::Finish),
        1 => Just(Command::Suspend),
        1 => Just(Command::Resume),
    ]
}

/// One port, everything that is held of it, and everything that waits for it.
struct World {
    port: Port<Message>,
    mailbox: Mailbox<Message>,
    reader: ThreadMailbox<Message>,
    held: Vec<Reservation<Message>>,
    waiting: Vec<Wait>,
}

impl World {
    fn run(&mut self, command: Command) {
        let port = self.port.clone();
        match command {
            Command::Send => self.wait(Box::pin(async move {
                let _any = port.send(None, soon()).await;
                None
            })),
            Command::Call => self.wait(Box::pin(async move {
                let _any = port.call::<()>(soon(), Some).await;
                None
            })),
            Command::Reserve(places) => self.wait(Box::pin(async move { port.reserve(places, soon()).await.ok() })),
            Command::TrySend => drop(port.try_send(None)),
            Command::Control => drop(port.try_send_control(None)),
            Command::TryReserve(places) => self.held.extend(port.try_reserve(places)),
            Command::ReserveCompletion => self.held.extend(port.try_reserve_completion()),
            Command::Fill(at) => {
                if let Some(held) = self.held.get_mut(at) {
                    drop(held.send(None));
                }
            }
            Command::Split(at) => {
                let split = self.held.get_mut(at).and_then(|held| held.split(1));
                self.held.extend(split);
            }
            Command::DropReservation(at) => {
                if at < self.held.len() {
                    drop(self.held.swap_remove(at));
                }
            }
            Command::PollWaiting(at) => {
                if at < self.waiting.len() {
                    let waiting = self.waiting.remove(at);
                    self.wait(waiting);
                }
            }
            Command::DropWaiting(at) => {
                if at < self.waiting.len() {
                    drop(self.waiting.remove(at));
                }
            }
            Command::Pop => drop(self.reader.try_next()),
            Command::Finish => self.reader.finish(),
            Command::Suspend => self.mailbox.suspend(drop),
            Command::Resume => self.mailbox.resume(),
        }
    }

    fn wait(&mut self, mut waiting: Wait) {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reservation) => self.held.extend(reservation),
            Poll::Pending => self.waiting.push(waiting),
        }
    }
}

fn overflow() -> impl Strategy<Value = Overflow> {
    prop_oneof![Just(Overflow::Wait), Just(Overflow::Reject), Just(Overflow::DropNewest), Just(Overflow::DropOldest)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Pitfall 21: whatever the order of calls, every lane stays within its bound, every accepted message is accounted for, and when
    /// everything is let go every place is free again.
    #[test]
    fn no_public_method_enqueues_past_the_bound(
        capacity in 1_usize..5,
        overflow in overflow(),
        commands in prop::collection::vec(command(), 0..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let two = NonZeroUsize::new(2).unwrap();
        let (port, mailbox) = spec(capacity, overflow).control(two).completions(two).open();
        let reader = mailbox.on_thread();
        let mut world = World { port, mailbox, reader, held: Vec::new(), waiting: Vec::new() };
        for command in commands {
            world.run(command);
            let metrics = world.port.metrics();
            prop_assert!(metrics.data_depth <= capacity && metrics.control_depth <= 2 && metrics.completion_depth <= 2);
            let held: usize = world.held.iter().map(Reservation::places).sum();
            prop_assert!(metrics.data_depth + metrics.completion_depth + held <= capacity + 2);
            prop_assert_eq!(metrics.reserved, held);
            prop_assert_eq!(metrics.accepted, metrics.accounted());
        }
        world.held.clear();
        world.waiting.clear();
        world.mailbox.resume();
        while world.reader.try_next().is_some() {}
        let metrics = world.port.metrics();
        prop_assert_eq!((metrics.depth(), metrics.reserved, metrics.waiting), (0, 0, 0));
        prop_assert!(world.port.try_reserve(capacity).is_some());
        prop_assert!(world.port.try_reserve_completion().is_some() && world.port.metrics().refused >= metrics.refused);
    }
}
