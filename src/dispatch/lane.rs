//! The queue of an ordered registration (F-18): one emission at a time, in the order of admission.
//!
//! An emission gets its place when it is admitted, before it is known whether the registration wants its fact, for conditions are user code and run with the
//! emission. A place is therefore one of:
//!
//! | place     | becomes                                   | at the front                                        |
//! |-----------|-------------------------------------------|-----------------------------------------------------|
//! | reserved  | ready, with the fact; void, without       | those behind it wait: its emission came before them |
//! | ready     |                                           | its handler is called, to its end                   |
//! | void      |                                           | goes                                                |
//!
//! An emission that is dropped voids what it has reserved, so that no place stays reserved. A full queue gives up the newest or the oldest, as declared; each
//! is counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::background::Ended;
use super::counts::{Counters, count};
use super::handler::{HandlerError, Returned, ReturnedFuture};
use super::report::{NotStarted, warn_isolated};
use super::snapshot::{Entry, Resources, Snapshot};
use super::subscriber::{OrderedQueue, QueueOverflow};

pub(super) struct Lane<F> {
    queue: OrderedQueue,
    state: Mutex<State<F>>,
    counters: Arc<Counters>,
}

struct State<F> {
    places: VecDeque<SharedPlace<F>>,
    /// Whether somebody calls the handler for those in front.
    served: bool,
}

#[derive(Default)]
enum Place<F> {
    // What is taken from a place that is reserved leaves it so.
    #[default]
    Reserved,
    Ready(Arc<F>),
    Void,
}

impl<F: Send + Sync + 'static> Lane<F> {
    fn reserve(&self) -> Option<SharedPlace<F>> {
        let place = Arc::new(Mutex::new(Place::Reserved));
        let mut given_up = None;
        {
            let mut state = lock(&self.state);
            if state.places.len() >= self.queue.capacity.get() {
                count(&self.counters.ordered_dropped);
                match self.queue.overflow {
                    QueueOverflow::DropNewest => return None,
                    QueueOverflow::DropOldest => given_up = state.places.pop_front(),
                }
            }
            state.places.push_back(Arc::clone(&place));
        }
        drop(given_up);
        Some(place)
    }

    /// The next fact in front, if it is known; voids go.
    fn next(&self) -> Option<Arc<F>> {
        let mut state = lock(&self.state);
        loop {
            let front = match state.places.front() {
                None => break,
                Some(front) => std::mem::take(&mut *lock(front)),
            };
            match front {
                Place::Reserved => break,
                Place::Void => drop(state.places.pop_front()),
                Place::Ready(fact) => {
                    state.places.pop_front();
                    return Some(fact);
                }
            }
        }
        state.served = false;
        None
    }
}

impl<F> Lane<F> {
    pub(super) fn new(queue: OrderedQueue, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { queue, state: Mutex::new(State { places: VecDeque::new(), served: false }), counters })
    }
}

/// A place, as its emission and its queue hold it.
type SharedPlace<F> = Arc<Mutex<Place<F>>>;

/// The places that one emission has in the queues of a snapshot. What is not filled is void when this is dropped.
pub(super) struct Places<F: Send + Sync + 'static, V: Send + 'static> {
    snapshot: Snapshot<F, V>,
    /// By position in the snapshot; `None` where the queue was full.
    reserved: Vec<(usize, Option<SharedPlace<F>>)>,
}

impl<F: Send + Sync + 'static, V: Send + 'static> Places<F, V> {
    pub(super) fn reserve(snapshot: &Snapshot<F, V>) -> Self {
        let lanes = snapshot.0.entries.iter().enumerate();
        let reserved = lanes.filter_map(|(at, entry)| entry.lane.as_ref().map(|lane| (at, lane.reserve()))).collect();
        Self { snapshot: snapshot.clone(), reserved }
    }

    /// Puts the fact where the emission has its place.
    pub(super) fn fill(&mut self, at: usize, entry: &Arc<Entry<F, V>>, fact: &Arc<F>) -> Result<(), NotStarted> {
        let place = match self.reserved.iter().position(|(of, _)| *of == at) {
            Some(found) => self.reserved.swap_remove(found).1,
            // A registration that joined the emission has no place from its admission.
            None => entry.lane.as_ref().and_then(|lane| lane.reserve()),
        };
        let place = place.ok_or(NotStarted::QueueFull)?;
        *lock(&place) = Place::Ready(Arc::clone(fact));
        self.serve(entry)
    }

    /// Gives up the place of one that does not want the fact.
    pub(super) fn give_up(&mut self, at: usize) {
        let Some(found) = self.reserved.iter().position(|(of, _)| *of == at) else { return };
        if let (_, Some(place)) = self.reserved.swap_remove(found) {
            *lock(&place) = Place::Void;
            // Those behind it may have waited for it.
            let _stopped = self.serve(&self.snapshot.0.entries[at]);
        }
    }

    /// Sees to it that somebody calls the handler for what is in front.
    fn serve(&self, entry: &Arc<Entry<F, V>>) -> Result<(), NotStarted> {
        let Some(lane) = &entry.lane else { return Ok(()) };
        if std::mem::replace(&mut lock(&lane.state).served, true) {
            return Ok(());
        }
        if tokio::runtime::Handle::try_current().is_err() {
            // An emission that was dropped outside its runtime: nothing can be called here. The next one does it.
            lock(&lane.state).served = false;
            return Ok(());
        }
        let Resources { background, .. } = &*self.snapshot.0.resources;
        background.spawn(call_in_order(Arc::clone(entry), self.snapshot.0.build.budget)).map_err(|_closed| {
            let stopped = std::mem::take(&mut lock(&lane.state).places);
            stopped.iter().for_each(|_| count(&lane.counters.ordered_stopped));
            NotStarted::Stopped
        })
    }
}

impl<F: Send + Sync + 'static, V: Send + 'static> Drop for Places<F, V> {
    fn drop(&mut self) {
        while let Some((at, _)) = self.reserved.last() {
            self.give_up(*at);
        }
    }
}

/// Calls a handler for one fact after another, until the front is not known. Each call has the policy's budget.
async fn call_in_order<F: Send + Sync + 'static, V: Send + 'static>(entry: Arc<Entry<F, V>>, budget: Option<Duration>) {
    let Some(lane) = entry.lane.clone() else { return };
    while let Some(fact) = lane.next() {
        let mut end = Ended::stopped(&lane.counters, |counters| &counters.ordered_stopped);
        let result = match entry.handler.call(&fact, None) {
            Ok(Returned::Value(_)) => Ok(()),
            Ok(Returned::Coroutine(body) | Returned::Awaitable(body)) => within(budget, body).await,
            Err(error) => Err(error),
        };
        if let Err(HandlerError::Failed(failure)) = result {
            warn_isolated(&entry.name, &failure);
            count(&lane.counters.ordered_failed);
        }
        end.as_counted(|counters| &counters.ordered_called);
    }
}

async fn within<V>(budget: Option<Duration>, body: ReturnedFuture<V>) -> Result<(), HandlerError> {
    let Some(budget) = budget else { return body.await.map(drop) };
    match timeout(budget, body).await {
        Ok(result) => result.map(drop),
        Err(_elapsed) => Err(HandlerError::failed("timed_out", "the budget of its call was spent")),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
