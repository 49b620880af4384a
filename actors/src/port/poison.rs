//! Which messages are poison: the verdict is pure, the port performs it.
//!
//! | event                 | suspects                                        | condemned                     |
//! |-----------------------|-------------------------------------------------|-------------------------------|
//! | a key handled well    | the key is cleared                              | as before                     |
//! | a crash, keys in hand | these keys: one crash more; all others: cleared | keys that reached the measure |

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::spec::PoisonRule;

/// A port's poison rule and what it knows so far.
pub(super) struct Poison<M> {
    pub(super) rule: PoisonRule<M>,
    // Held for a lookup among a few numbers; consumers only.
    record: Mutex<Record>,
}

impl<M> Poison<M> {
    pub(super) fn new(rule: PoisonRule<M>) -> Self {
        Self { rule, record: Mutex::new(Record::default()) }
    }

    pub(super) fn is_condemned(&self, key: u64) -> bool {
        self.record().condemned.contains(&key)
    }

    pub(super) fn handled(&self, key: u64) {
        self.record().suspects.retain(|suspect| suspect.key != key);
    }

    /// The keys that this crash condemns.
    pub(super) fn crashed(&self, in_hand: &[u64]) -> Vec<u64> {
        self.record().crashed(in_hand, self.rule.crashes)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Record {
    suspects: Vec<Suspect>,
    condemned: VecDeque<u64>,
}

struct Suspect {
    key: u64,
    crashes: u32,
}

impl Record {
    /// A port remembers this many condemned keys; beyond it the oldest is forgotten, and would have to crash its owner anew.
    const MEMORY: usize = 64;

    fn crashed(&mut self, in_hand: &[u64], measure: NonZeroU32) -> Vec<u64> {
        let before = std::mem::take(&mut self.suspects);
        let mut newly = Vec::new();
        for &key in in_hand {
            if self.suspects.iter().any(|suspect| suspect.key == key) || newly.contains(&key) {
                continue;
            }
            let crashes = before.iter().find(|suspect| suspect.key == key).map_or(1, |suspect| suspect.crashes + 1);
            if crashes < measure.get() {
                self.suspects.push(Suspect { key, crashes });
                continue;
            }
            if self.condemned.len() == Self::MEMORY {
                self.condemned.pop_front();
            }
            self.condemned.push_back(key);
            newly.push(key);
        }
        newly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: NonZeroU32 = NonZeroU32::new(2).unwrap();

    /// 0-architecture "Supervision": a message that crashes its actor N times in a row is set aside.
    #[test]
    fn a_key_is_condemned_at_its_nth_consecutive_crash() {
        let mut record = Record::default();
        assert!(record.crashed(&[7], TWICE).is_empty());
        assert_eq!(record.crashed(&[7], TWICE), [7]);
        assert!(record.condemned.contains(&7));
    }

    /// "In a row": a crash over another message ends the row.
    #[test]
    fn a_crash_over_another_key_clears_the_first() {
        let mut record = Record::default();
        record.crashed(&[7], TWICE);
        record.crashed(&[8], TWICE);
        assert!(record.crashed(&[7], TWICE).is_empty());
    }

    /// A batch in hand counts each of its keys once.
    #[test]
    fn a_key_that_is_in_hand_twice_counts_once() {
        let mut record = Record::default();
        assert!(record.crashed(&[7, 7], TWICE).is_empty());
    }

    /// Bounded everything: the memory of condemned keys too.
    #[test]
    fn the_memory_of_condemned_keys_is_bounded() {
        let mut record = Record::default();
        let once = NonZeroU32::MIN;
        for key in 0..1000 {
            assert_eq!(record.crashed(&[key], once), [key]);
        }
        assert_eq!(record.condemned.len(), Record::MEMORY);
        assert!(record.condemned.contains(&999));
    }
}
