//! What the bodies of one scenario share: the event log, the latches, the payload, and the pace of time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

/// The longest that anything waits in real time; it is there to fail, not to be waited for.
const STUCK: Duration = Duration::from_secs(20);

/// Real time is this much slower than the recorded one: a thread that the machine starts late must not change a trace.
const SLOWER: u32 = 10;

/// Which clock a scenario runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// The runtime's clock is paused and goes on whenever everybody waits.
    Paused,
    /// Threads take part, which a paused clock does not wait for.
    Real,
}

impl Pace {
    /// A recorded span, at this pace.
    pub(super) fn span(self, ms: u64) -> Duration {
        match self {
            Self::Paused => Duration::from_millis(ms),
            Self::Real => Duration::from_millis(ms) * SLOWER,
        }
    }
}

/// A change of the registrations, asked for by a body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    Register(&'a str),
    Unregister(&'a str),
}

type Registrar = Box<dyn Fn(Change<'_>) + Send + Sync>;

/// One scenario's world.
pub(super) struct World {
    pub(super) pace: Pace,
    events: Mutex<Vec<String>>,
    latches: BTreeMap<String, Latch>,
    payload: Mutex<Value>,
    registrar: OnceLock<Registrar>,
    never_awaited: Mutex<BTreeSet<String>>,
    /// Plain bodies that are running.
    plain: watch::Sender<usize>,
}

impl World {
    pub(super) fn new(pace: Pace, latches: impl IntoIterator<Item = String>) -> Arc<Self> {
        Arc::new(Self {
            pace,
            events: Mutex::default(),
            latches: latches.into_iter().map(|name| (name, Latch::default())).collect(),
            payload: Mutex::new(json!({"v": 1})),
            registrar: OnceLock::new(),
            never_awaited: Mutex::default(),
            plain: watch::Sender::new(0),
        })
    }

    /// Who carries out the changes that bodies ask for.
    pub(super) fn registrar(&self, registrar: impl Fn(Change<'_>) + Send + Sync + 'static) {
        assert!(self.registrar.set(Box::new(registrar)).is_ok(), "a scenario has one registrar");
    }

    pub(super) fn change(&self, change: Change<'_>) {
        let registrar = self.registrar.get().unwrap_or_else(|| panic!("{change:?}: this profile changes no registrations"));
        registrar(change);
    }

    pub(super) fn log(&self, who: &str, what: &str) {
        self.events.lock().expect("nobody panics with it held").push(format!("{who}:{what}"));
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.events.lock().expect("nobody panics with it held").clone()
    }

    pub(super) fn latch(&self, name: &str) -> &Latch {
        self.latches.get(name).unwrap_or_else(|| panic!("latch {name} is named by no step"))
    }

    pub(super) fn mutate(&self, key: &str, value: &Value) {
        self.payload.lock().expect("nobody panics with it held")[key] = value.clone();
    }

    pub(super) fn read(&self, key: &str) -> Value {
        self.payload.lock().expect("nobody panics with it held")[key].clone()
    }

    pub(super) fn dropped_unawaited(&self, handler: &str) {
        self.never_awaited.lock().expect("nobody panics with it held").insert(handler.to_owned());
    }

    pub(super) fn never_awaited(&self) -> Vec<String> {
        self.never_awaited.lock().expect("nobody panics with it held").iter().cloned().collect()
    }

    /// Marks a plain body as running until the answer is dropped.
    pub(super) fn plain(&self) -> impl Drop + '_ {
        self.plain.send_modify(|running| *running += 1);
        Ended(&self.plain)
    }

    /// Waits as long as the recorder did for late events, or until no plain body runs any more: what else could be late was dropped.
    pub(super) async fn settle(&self, ms: u64) {
        let mut plain = self.plain.subscribe();
        let ended = async {
            // The sender stands in `self`.
            let _ended = plain.wait_for(|running| *running == 0).await;
            // What is awaited may be late as well, on the paused clock, where waiting costs nothing.
            if self.pace == Pace::Paused {
                tokio::time::sleep(self.pace.span(ms)).await;
            }
        };
        let _late = timeout(self.pace.span(ms), ended).await;
    }
}

struct Ended<'a>(&'a watch::Sender<usize>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

/// A latch that tasks and threads can wait for.
pub(super) struct Latch {
    open: watch::Sender<bool>,
    lock: Mutex<bool>,
    opened: Condvar,
}

impl Default for Latch {
    fn default() -> Self {
        Self { open: watch::Sender::new(false), lock: Mutex::default(), opened: Condvar::new() }
    }
}

impl Latch {
    pub(super) fn set(&self) {
        *self.lock.lock().expect("nobody panics with it held") = true;
        self.opened.notify_all();
        self.open.send_replace(true);
    }

    pub(super) async fn opened(&self) {
        // The sender stands in `self`.
        let mut open = self.open.subscribe();
        let _open = open.wait_for(|open| *open).await;
    }

    /// Blocks the thread; says whether the latch opened in time.
    pub(super) fn blocked(&self) -> bool {
        let closed = self.lock.lock().expect("nobody panics with it held");
        !self.opened.wait_timeout_while(closed, STUCK, |open| !*open).expect("nobody panics with it held").1.timed_out()
    }

    /// Blocks the thread for a span. Nobody opens this latch.
    pub(super) fn block_for(span: Duration) {
        let never = Self::default();
        let closed = never.lock.lock().expect("nobody else has it");
        let _timed_out = never.opened.wait_timeout_while(closed, span, |open| !*open);
    }
}
