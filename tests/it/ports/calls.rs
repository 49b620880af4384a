//! Calls: deadlines, who has the message, and no caller that hangs.

use std::time::Duration;

use tipstaff::port::{CallError, Context, Handler, HandlerError, Overflow, Port, Reply, spawn};

use super::support::{Ask, after_ms, assert_accounted, gated, open, recorder, settle, soon};

/// A call is answered.
#[tokio::test]
async fn a_call_is_answered() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let (owner, _reports) = recorder();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    assert_eq!(port.call(soon(), |reply| Ask::Echo(5, reply)).await.unwrap(), 5);
}

/// The message comes back wherever it was not admitted: a full port, a closed one, no room in time.
#[tokio::test(start_paused = true)]
async fn a_message_that_was_not_admitted_comes_back() {
    let (rejecting, _reject_box) = open(1, Overflow::Reject);
    rejecting.try_send(Ask::Note(0)).unwrap();
    assert!(matches!(rejecting.call(soon(), |reply| Ask::Echo(1, reply)).await, Err(CallError::Full(Ask::Echo(1, _)))));

    let (dropping, _drop_box) = open(1, Overflow::DropNewest);
    dropping.try_send(Ask::Note(0)).unwrap();
    assert!(matches!(dropping.call(soon(), |reply| Ask::Echo(1, reply)).await, Err(CallError::Full(_))));

    let (waiting, wait_box) = open(1, Overflow::Wait);
    waiting.try_send(Ask::Note(0)).unwrap();
    let late = waiting.call(after_ms(10), |reply| Ask::Echo(1, reply)).await.unwrap_err();
    assert!(matches!(&late, CallError::NotAdmitted(Ask::Echo(1, _))) && !late.may_have_happened());

    wait_box.close();
    assert!(matches!(waiting.call(soon(), |reply| Ask::Echo(1, reply)).await, Err(CallError::Closed(Ask::Echo(1, _)))));
}

/// A call whose deadline passes while it is queued is withdrawn: the message comes back, and its place is free at once.
#[tokio::test(start_paused = true)]
async fn a_queued_call_is_withdrawn_at_its_deadline() {
    let (port, mailbox) = open(1, Overflow::Reject);
    let late = port.call(after_ms(10), |reply| Ask::Echo(1, reply)).await.unwrap_err();
    assert!(matches!(late, CallError::NotAdmitted(Ask::Echo(1, _))));
    assert_eq!((port.metrics().expired, port.metrics().depth()), (1, 0));
    port.try_send(Ask::Note(2)).unwrap();
    assert_eq!(mailbox.on_thread().try_next().unwrap().number(), 2);
    assert_accounted(&port.metrics());
}

/// A call whose message is in hand at the deadline may still happen, and says so.
#[tokio::test(start_paused = true)]
async fn a_call_in_hand_at_its_deadline_says_that_it_was_admitted() {
    let (port, mailbox) = open(1, Overflow::Wait);
    let (owner, mut reports, gate) = gated();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    let late = port.call(after_ms(10), |reply| Ask::Echo(1, reply)).await.unwrap_err();
    assert!(matches!(late, CallError::Deadline { admitted: true }) && late.may_have_happened());
    assert_eq!(reports.recv().await, Some(1));
    gate.add_permits(1);
    settle().await;
    assert_eq!(port.metrics().handled, 1);
}

/// "The deadline travels with the message, so that expired work is skipped", and counted: here the caller has gone.
#[tokio::test(start_paused = true)]
async fn expired_work_is_skipped_and_counted() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let mut call = Box::pin(port.call(after_ms(10), |reply| Ask::Echo(1, reply)));
    assert!(futures::poll!(call.as_mut()).is_pending());
    drop(call);
    port.try_send(Ask::Note(2)).unwrap();
    tokio::time::advance(Duration::from_millis(20)).await;
    let (owner, mut reports) = recorder();
    let _owner = spawn(&mailbox, owner).await.unwrap();
    assert_eq!(reports.recv().await, Some(2));
    settle().await;
    let metrics = port.metrics();
    assert_eq!((metrics.expired, metrics.handled), (1, 1));
    assert_accounted(&metrics);
}

/// If the owner skipped the expired message before the caller looked, the caller learns that its work did not and will not happen.
#[tokio::test(start_paused = true)]
async fn a_call_that_the_owner_skipped_says_that_it_was_not_admitted() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let mut call = Box::pin(port.call(after_ms(10), |reply| Ask::Echo(1, reply)));
    assert!(futures::poll!(call.as_mut()).is_pending());
    tokio::time::advance(Duration::from_millis(20)).await;
    assert!(mailbox.on_thread().try_next().is_none());
    let late = call.await.unwrap_err();
    assert!(matches!(late, CallError::Deadline { admitted: false }) && !late.may_have_happened());
}

/// A caller is told of a crash at once, and of an owner that lets a reply fall.
#[tokio::test]
async fn a_dropped_reply_ends_the_call_at_once() {
    struct Forgetful;
    impl Handler for Forgetful {
        type Message = Option<Reply<()>>;
        async fn handle(&mut self, reply: Option<Reply<()>>, _: &Context<Self::Message>) -> Result<(), HandlerError> {
            assert!(reply.is_some(), "crash");
            Ok(())
        }
    }
    let (port, mailbox) = open(4, Overflow::Wait);
    let _owner = spawn(&mailbox, Forgetful).await.unwrap();
    assert!(matches!(port.call(soon(), Some).await, Err(CallError::Crashed)));
}

/// Pitfall 5: final death with queued calls: every caller gets `Crashed` or `Closed`, none hangs until its deadline.
#[tokio::test(start_paused = true)]
async fn a_final_close_ends_every_queued_call() {
    let (port, mailbox) = open(4, Overflow::Wait);
    let mut calls: Vec<_> = (0..8)
        .map(|number| {
            let port = port.clone();
            Box::pin(async move { port.call(soon(), |reply| Ask::Echo(number, reply)).await })
        })
        .collect();
    for call in &mut calls {
        assert!(futures::poll!(call.as_mut()).is_pending());
    }
    mailbox.close();
    for (number, call) in calls.into_iter().enumerate() {
        let answer = tokio::time::timeout(Duration::from_millis(100), call).await.expect("no caller hangs").unwrap_err();
        match number {
            0..4 => assert!(matches!(answer, CallError::Crashed), "queued: {answer:?}"),
            _ => assert!(matches!(answer, CallError::Closed(_)), "in line: {answer:?}"),
        }
    }
    assert_accounted(&port.metrics());
}

/// A suspended port answers a call through its answer function.
#[tokio::test]
async fn a_suspended_port_answers_calls() {
    let (port, mailbox) = open(4, Overflow::Wait);
    mailbox.suspend(|message: Ask| {
        if let Ask::Echo(_, reply) = message {
            let _gone = reply.send(503);
        }
    });
    assert_eq!(port.call(soon(), |reply| Ask::Echo(1, reply)).await.unwrap(), 503);
}

/// Calls its peer, or itself, and reports what it heard.
struct Caller {
    peer: Option<Port<Reply<bool>>>,
    wait_ms: u64,
}

impl Handler for Caller {
    type Message = Reply<bool>;

    async fn handle(&mut self, reply: Reply<bool>, context: &Context<Reply<bool>>) -> Result<(), HandlerError> {
        let peer = self.peer.clone().unwrap_or_else(|| context.port());
        let heard = peer.call(after_ms(self.wait_ms), |reply| reply).await;
        let _gone = reply.send(heard.is_ok());
        Ok(())
    }
}

/// Pitfall 6: a call to oneself cannot be answered; it ends at once instead of at its deadline.
#[tokio::test(start_paused = true)]
async fn a_call_to_oneself_ends_at_once() {
    let (port, mailbox) = open(1, Overflow::Wait);
    let _owner = spawn(&mailbox, Caller { peer: None, wait_ms: 3_600_000 }).await.unwrap();
    let began = tokio::time::Instant::now();
    assert!(!port.call(after_ms(7_200_000), |reply| reply).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// Pitfall 6: capacity 1, A calls B while B calls A: both return by the deadline.
#[tokio::test(start_paused = true)]
async fn mutual_calls_end_by_their_deadline() {
    let (a, a_box) = open(1, Overflow::Wait);
    let (b, b_box) = open(1, Overflow::Wait);
    let _one = spawn(&a_box, Caller { peer: Some(b.clone()), wait_ms: 100 }).await.unwrap();
    let _other = spawn(&b_box, Caller { peer: Some(a.clone()), wait_ms: 100 }).await.unwrap();
    let (from_a, from_b) = tokio::join!(a.call(after_ms(10_000), |reply| reply), b.call(after_ms(10_000), |reply| reply));
    // Neither peer could answer in time; both owners live on.
    assert!(!from_a.unwrap() && !from_b.unwrap());
    assert_eq!(a.metrics().crashed_in_hand + b.metrics().crashed_in_hand, 0);
}

/// An owner sees that nobody waits for an answer any more.
#[tokio::test]
async fn a_reply_knows_that_its_caller_has_gone() {
    let (port, mailbox) = open(1, Overflow::Wait);
    let mut call = Box::pin(port.call(soon(), |reply| Ask::Echo(1, reply)));
    assert!(futures::poll!(call.as_mut()).is_pending());
    drop(call);
    let Some(Ask::Echo(_, reply)) = mailbox.on_thread().try_next() else { panic!("the message is queued") };
    assert!(reply.is_closed());
    assert_eq!(reply.send(3), Err(3));
}
