//! Which result belongs to which call: by identifier only, never by order or nearness.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::event::Place;
use super::key::Short;
use crate::id::OperationId;

/// What is remembered of blocks that were seen: two generations, of which the older is dropped as a whole.
///
/// The alternative, a queue that forgets one by one, would need the digests twice.
#[derive(Debug)]
pub(super) struct Memory<V> {
    young: HashMap<Short, V>,
    old: HashMap<Short, V>,
    generation: usize,
    forgotten: u64,
}

impl<V> Memory<V> {
    /// Remembers at least the last half of `limit` entries, and at most `limit`.
    pub(super) fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation: (limit / 2).max(1), forgotten: 0 }
    }

    pub(super) fn get_mut(&mut self, key: &Short) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.insert(*key, value);
        }
        self.young.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: Short, value: V) {
        if self.young.len() >= self.generation && !self.young.contains_key(&key) {
            self.forgotten += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

impl Memory<()> {
    /// Whether this is the first time, as far as is remembered.
    pub(super) fn is_first(&mut self, key: Short) -> bool {
        let first = self.get_mut(&key).is_none();
        if first {
            self.insert(key, ());
        }
        first
    }
}

/// A call without a result so far.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) key: OperationId,
    pub(super) call_id: Arc<str>,
    pub(super) name: Box<str>,
    pub(super) turn: Option<Arc<str>>,
    pub(super) inherited: bool,
    pub(super) place: Place,
    /// Whether its end was told already, as unknown.
    pub(super) told: bool,
}

/// The calls without a result so far, in file order.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<u64, OpenCall>,
    by_id: HashMap<Arc<str>, VecDeque<u64>>,
    /// The running ones by turn, so that an interrupt touches no other.
    running: HashMap<Option<Arc<str>>, BTreeSet<u64>>,
    interrupted: BTreeSet<u64>,
    next: u64,
}

impl OpenCalls {
    pub(super) fn open(&mut self, call: OpenCall) {
        self.by_id.entry(call.call_id.clone()).or_default().push_back(self.next);
        self.running.entry(call.turn.clone()).or_default().insert(self.next);
        self.calls.insert(self.next, call);
        self.next += 1;
    }

    /// Takes the earliest open call with this identifier.
    pub(super) fn take(&mut self, call_id: &str) -> Option<OpenCall> {
        let at = *self.by_id.get(call_id)?.front()?;
        self.remove(at)
    }

    /// Takes the earliest open call of all.
    pub(super) fn take_oldest(&mut self) -> Option<OpenCall> {
        let at = *self.calls.first_key_value()?.0;
        self.remove(at)
    }

    fn remove(&mut self, at: u64) -> Option<OpenCall> {
        let call = self.calls.remove(&at)?;
        if let Some(same_id) = self.by_id.get_mut(&call.call_id) {
            // The earliest of its identifier stands first, and only such a one is ever taken.
            same_id.pop_front();
            if same_id.is_empty() {
                self.by_id.remove(&call.call_id);
            }
        }
        self.stop_running(at, &call.turn);
        self.interrupted.remove(&at);
        Some(call)
    }

    fn stop_running(&mut self, at: u64, turn: &Option<Arc<str>>) {
        if let Some(same_turn) = self.running.get_mut(turn) {
            same_turn.remove(&at);
            if same_turn.is_empty() {
                self.running.remove(turn);
            }
        }
    }

    /// The earliest open call with this identifier.
    pub(super) fn earliest(&self, call_id: &str) -> Option<&OpenCall> {
        self.calls.get(self.by_id.get(call_id)?.front()?)
    }

    /// The running calls of a turn are interrupted: each ends as unknown, unless the same turn still brings its result.
    pub(super) fn interrupt(&mut self, turn: &Option<Arc<str>>) {
        self.interrupted.extend(self.running.remove(turn).unwrap_or_default());
    }

    /// Calls `tell` for each interrupted call whose turn is over. They stay open, for their late result to find them.
    pub(super) fn tell_interrupted(&mut self, mut tell: impl FnMut(&OpenCall)) {
        for at in std::mem::take(&mut self.interrupted) {
            if let Some(call) = self.calls.get_mut(&at) {
                call.told = true;
                tell(call);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, key: &str) -> OpenCall {
        OpenCall {
            key: OperationId::new(key).unwrap(),
            call_id: id.into(),
            name: "Bash".into(),
            turn: None,
            inherited: false,
            place: Place { line: 1, offset: 0, part: 0 },
            told: false,
        }
    }

    #[test]
    fn the_earliest_open_call_takes_the_result() {
        let mut open = OpenCalls::default();
        for (id, key) in [("a", "1"), ("b", "2"), ("a", "3")] {
            open.open(call(id, key));
        }
        assert_eq!(open.take("a").unwrap().key.as_str(), "1");
        assert_eq!(open.take_oldest().unwrap().key.as_str(), "2");
        assert!(open.take("b").is_none());
        assert_eq!(open.take("a").unwrap().key.as_str(), "3");
        assert!(open.take("a").is_none() && open.take_oldest().is_none() && open.by_id.is_empty() && open.running.is_empty());
    }

    #[test]
    fn memory_holds_the_latest_half_and_never_more_than_its_limit() {
        let mut memory = Memory::new(8);
        let key = |n: u8| [n; 16];
        assert!((0..100).all(|n| memory.is_first(key(n))));
        assert!(memory.young.len() + memory.old.len() <= 8);
        assert!((96..100).all(|n| !memory.is_first(key(n))), "the last half is remembered");
        assert!(memory.is_first(key(0)) && memory.forgotten() > 0);
    }
}
