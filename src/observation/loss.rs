//! What the journal lost: counted, never silent, and written as gap rows when it accepts again.
//!
//! | pending gap of (session, reason, exactness) | input | becomes |
//! |---|---|---|
//! | none | lost | a gap from then to then |
//! | one | lost | first and last stretched over both, counts added |
//! | any | taken | none; the taker holds it |
//! | none | put back | as it was taken |
//! | one | put back | as a loss over its whole span |
//!
//! Losses with a known and with an unknown count are two gaps, so that a known count stays exact.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::Timestamp;
use crate::id::SessionId;

/// The losses of all sessions of one runtime instance. Cheap to clone; all clones are one ledger.
///
/// # Durability
/// It is in memory. What is pending when the process ends is lost with it.
#[derive(Debug, Clone, Default)]
pub struct LossLedger(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    /// Only sessions that lost something have a page.
    sessions: HashMap<SessionId, Page>,
    totals: LossCounts,
}

#[derive(Debug, Default)]
struct Page {
    counts: LossCounts,
    /// At most one gap for each reason and exactness: bounded, whatever is lost.
    pending: BTreeMap<(LossReason, Exactness), GapRecord>,
    /// How many takings are open.
    taken: u32,
    ended: bool,
}

impl LossLedger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a loss, and adds it to the session's pending gaps.
    pub fn record(&self, session: &SessionId, reason: LossReason, at: Timestamp, lost: Lost) {
        let mut books = self.lock();
        books.totals.add(reason, lost);
        let page = books.page(session);
        page.counts.add(reason, lost);
        page.merge(GapRecord { reason, first_at: at, last_at: at, lost });
    }

    /// Takes the session's pending gaps, to be written to the journal as facts of the kind `capture_gap`.
    ///
    /// They come back to the ledger unless [`TakenGaps::written`] is called: a writer that fails, panics or is dropped loses none.
    #[must_use]
    pub fn take_pending(&self, session: &SessionId) -> Option<TakenGaps> {
        let mut books = self.lock();
        let page = books.sessions.get_mut(session).filter(|page| !page.pending.is_empty())?;
        page.taken += 1;
        let gaps = std::mem::take(&mut page.pending).into_values().collect();
        Some(TakenGaps { ledger: self.clone(), session: session.clone(), gaps })
    }

    /// The sessions that have pending gaps.
    #[must_use]
    pub fn pending(&self) -> Vec<SessionId> {
        let books = self.lock();
        books.sessions.iter().filter(|(_, page)| !page.pending.is_empty()).map(|(session, _)| session.clone()).collect()
    }

    /// What a session has lost in all, written as a gap or not. It never goes down while the session lasts.
    #[must_use]
    pub fn session(&self, session: &SessionId) -> LossCounts {
        self.lock().sessions.get(session).map(|page| page.counts).unwrap_or_default()
    }

    /// What all sessions have lost in all, those that ended included. It never goes down.
    #[must_use]
    pub fn totals(&self) -> LossCounts {
        self.lock().totals
    }

    /// Forgets a session that has ended, once its gaps are written. The totals keep its losses.
    pub fn end_session(&self, session: &SessionId) {
        let mut books = self.lock();
        if let Some(page) = books.sessions.get_mut(session) {
            page.ended = true;
        }
        books.forget_if_settled(session);
    }

    fn put_back(&self, session: &SessionId, gaps: Vec<GapRecord>) {
        let mut books = self.lock();
        let page = books.page(session);
        page.taken -= 1;
        gaps.into_iter().for_each(|gap| page.merge(gap));
        books.forget_if_settled(session);
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn page(&mut self, session: &SessionId) -> &mut Page {
        self.sessions.entry(session.clone()).or_default()
    }

    fn forget_if_settled(&mut self, session: &SessionId) {
        if self.sessions.get(session).is_some_and(|page| page.ended && page.taken == 0 && page.pending.is_empty()) {
            self.sessions.remove(session);
        }
    }
}

impl Page {
    fn merge(&mut self, gap: GapRecord) {
        self.pending
            .entry((gap.reason, gap.lost.exactness()))
            .and_modify(|pending| {
                pending.first_at = pending.first_at.min(gap.first_at);
                pending.last_at = pending.last_at.max(gap.last_at);
                pending.lost = pending.lost.plus(gap.lost);
            })
            .or_insert(gap);
    }
}

/// Gaps that a writer holds. Dropping them puts them back into the ledger.
#[derive(Debug)]
#[must_use = "dropping it puts the gaps back"]
pub struct TakenGaps {
    ledger: LossLedger,
    session: SessionId,
    gaps: Vec<GapRecord>,
}

impl TakenGaps {
    /// The session that the gaps belong to.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The gaps; never empty.
    #[must_use]
    pub fn records(&self) -> &[GapRecord] {
        &self.gaps
    }

    /// Their rows are committed: the ledger owes them no longer.
    pub fn written(mut self) {
        self.gaps.clear();
    }

    /// They could not be written: the ledger owes them again. The same as dropping them, for a reader's sake.
    pub fn put_back(self) {}
}

impl Drop for TakenGaps {
    fn drop(&mut self) {
        self.ledger.put_back(&self.session, std::mem::take(&mut self.gaps));
    }
}

/// Why facts are not known to be in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The journal had no room before the fact's deadline.
    NoRoom,
    /// The store cannot be reached or is not open.
    StoreAbsent,
    /// The fact was submitted, and whether it was committed is not known.
    Unconfirmed,
    /// The store refused the row.
    Refused,
}

impl LossReason {
    /// Every reason.
    pub const ALL: &'static [Self] = &[Self::NoRoom, Self::StoreAbsent, Self::Unconfirmed, Self::Refused];

    /// The reason's code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::StoreAbsent => "store_absent",
            Self::Unconfirmed => "unconfirmed",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many facts a loss is. It is never none: nothing lost is no loss (P-10).
///
/// It serialises as a number or as `"unknown"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// So many.
    Known(NonZeroU64),
    /// At least one; how many is not known.
    Unknown,
}

impl Lost {
    /// One fact.
    pub const ONE: Self = Self::Known(NonZeroU64::MIN);

    /// So many facts; `None` when that is none.
    #[must_use]
    pub fn known(facts: u64) -> Option<Self> {
        NonZeroU64::new(facts).map(Self::Known)
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(one), Self::Known(two)) => Self::Known(one.saturating_add(two.get())),
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }

    fn exactness(self) -> Exactness {
        match self {
            Self::Known(_) => Exactness::Exact,
            Self::Unknown => Exactness::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exactness {
    Exact,
    Unknown,
}

/// Facts are missing between two moments: the payload of a `capture_gap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GapRecord {
    /// Why.
    pub reason: LossReason,
    /// When the first of them was lost.
    #[serde(rename = "first_at_us")]
    pub first_at: Timestamp,
    /// When the last of them was lost.
    #[serde(rename = "last_at_us")]
    pub last_at: Timestamp,
    /// How many.
    pub lost: Lost,
}

/// Losses by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossCounts([LossCount; LossReason::ALL.len()]);

/// The losses of one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossCount {
    /// Facts whose number is known.
    pub facts: u64,
    /// How often facts of an unknown number were lost.
    pub unknown: u64,
}

impl LossCounts {
    /// The losses of one reason.
    #[must_use]
    pub const fn of(&self, reason: LossReason) -> LossCount {
        self.0[reason as usize]
    }

    /// The losses of all reasons.
    #[must_use]
    pub fn all(&self) -> LossCount {
        self.0.iter().fold(LossCount::default(), |sum, one| LossCount {
            facts: sum.facts.saturating_add(one.facts),
            unknown: sum.unknown.saturating_add(one.unknown),
        })
    }

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, reason: LossReason, lost: Lost) {
        let count = &mut self.0[reason as usize];
        match lost {
            Lost::Known(facts) => count.facts = count.facts.saturating_add(facts.get()),
            Lost::Unknown => count.unknown = count.unknown.saturating_add(1),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WireLost<'a> {
    Known(NonZeroU64),
    Word(std::borrow::Cow<'a, str>),
}

const UNKNOWN: &str = "unknown";

impl Serialize for Lost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(facts) => WireLost::Known(*facts),
            Self::Unknown => WireLost::Word(UNKNOWN.into()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Lost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WireLost::deserialize(deserializer)? {
            WireLost::Known(facts) => Ok(Self::Known(facts)),
            WireLost::Word(word) if word == UNKNOWN => Ok(Self::Unknown),
            WireLost::Word(word) => {
                Err(serde::de::Error::custom(format_args!("{word:?} is no count of facts: expected a number or {UNKNOWN:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    /// P-10: a counted gap has reason, first, last, and a count or "unknown", never 0.
    #[test]
    fn losses_of_one_reason_become_one_gap() {
        let ledger = LossLedger::new();
        let one = session("one");
        ledger.record(&one, LossReason::NoRoom, at(30), Lost::known(2).unwrap());
        ledger.record(&one, LossReason::NoRoom, at(10), Lost::ONE);
        ledger.record(&one, LossReason::NoRoom, at(20), Lost::Unknown);
        let taken = ledger.take_pending(&one).unwrap();
        assert_eq!(
            serde_json::to_value(taken.records()).unwrap(),
            json!([
                {"reason": "no_room", "first_at_us": 10, "last_at_us": 30, "lost": 3},
                {"reason": "no_room", "first_at_us": 20, "last_at_us": 20, "lost": "unknown"},
            ])
        );
        taken.written();
        assert!(ledger.pending().is_empty());
        assert_eq!(ledger.session(&one).of(LossReason::NoRoom), LossCount { facts: 3, unknown: 1 });
    }

    /// P-10: "never 0". There is no such count to be made or read.
    #[test]
    fn a_loss_of_nothing_cannot_be_said() {
        assert_eq!(Lost::known(0), None);
        for bad in [json!(0), json!("none"), json!(-1), json!(null)] {
            assert!(serde_json::from_value::<Lost>(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_value::<Lost>(json!("unknown")).unwrap(), Lost::Unknown);
    }

    /// P-2: no arm may make the loss counter lie; a writer that goes away without a commit keeps nothing.
    #[test]
    fn gaps_come_back_unless_they_are_written() {
        let ledger = LossLedger::new();
        let one = session("one");
        ledger.record(&one, LossReason::StoreAbsent, at(1), Lost::ONE);
        let taken = ledger.take_pending(&one).unwrap();
        ledger.record(&one, LossReason::StoreAbsent, at(2), Lost::ONE);
        drop(taken);
        let again = ledger.take_pending(&one).unwrap();
        let expected =
            GapRecord { reason: LossReason::StoreAbsent, first_at: at(1), last_at: at(2), lost: Lost::known(2).unwrap() };
        assert_eq!(again.records(), [expected]);
        again.put_back();
        assert_eq!(ledger.pending(), [one]);
    }

    /// P-10: a session that has ended is forgotten only once its gaps are written; the totals keep them.
    #[test]
    fn an_ended_session_is_owed_its_gaps() {
        let ledger = LossLedger::new();
        let one = session("one");
        ledger.record(&one, LossReason::Refused, at(1), Lost::ONE);
        ledger.end_session(&one);
        let taken = ledger.take_pending(&one).expect("ended, but its gap is not written");
        ledger.end_session(&one);
        assert!(!ledger.session(&one).is_none(), "a writer still holds its gap");
        taken.written();
        assert!(ledger.session(&one).is_none());
        assert_eq!(ledger.totals().all(), LossCount { facts: 1, unknown: 0 });
    }

    #[derive(Debug, Clone)]
    enum Act {
        Lose { session: bool, reason: LossReason, facts: Option<u64>, at: i64 },
        Take { session: bool, written: bool },
    }

    fn acts() -> impl Strategy<Value = Act> {
        let reason = prop::sample::select(LossReason::ALL);
        prop_oneof![
            (any::<bool>(), reason, prop::option::of(1u64..1000), 0i64..1000)
                .prop_map(|(session, reason, facts, at)| Act::Lose { session, reason, facts, at }),
            (any::<bool>(), any::<bool>()).prop_map(|(session, written)| Act::Take { session, written }),
        ]
    }

    proptest! {
        /// P-10: lost facts = counted facts = written gaps + pending gaps, for each session and reason.
        #[test]
        fn the_counter_never_lies(acts in prop::collection::vec(acts(), 0..60)) {
            let ledger = LossLedger::new();
            let sessions = [session("a"), session("b")];
            let mut lost = BTreeMap::<(bool, LossReason), u64>::new();
            let mut lost_unknown = BTreeMap::<(bool, LossReason), u64>::new();
            let mut found = BTreeMap::<(bool, LossReason), u64>::new();
            let mut owed_since = BTreeMap::<(bool, LossReason, bool), (i64, i64)>::new();
            let mut tally = |which: bool, gaps: &[GapRecord]| {
                for gap in gaps {
                    if let Lost::Known(facts) = gap.lost {
                        *found.entry((which, gap.reason)).or_default() += facts.get();
                    }
                }
            };
            for act in acts {
                match act {
                    Act::Lose { session, reason, facts, at: micros } => {
                        match facts {
                            Some(facts) => *lost.entry((session, reason)).or_default() += facts,
                            None => *lost_unknown.entry((session, reason)).or_default() += 1,
                        }
                        let span = owed_since.entry((session, reason, facts.is_some())).or_insert((micros, micros));
                        *span = (span.0.min(micros), span.1.max(micros));
                        let lost = facts.map_or(Lost::Unknown, |facts| Lost::known(facts).unwrap());
                        ledger.record(&sessions[usize::from(session)], reason, at(micros), lost);
                    }
                    Act::Take { session, written } => {
                        let Some(taken) = ledger.take_pending(&sessions[usize::from(session)]) else { continue };
                        for gap in taken.records() {
                            let span = owed_since[&(session, gap.reason, gap.lost != Lost::Unknown)];
                            prop_assert_eq!((gap.first_at, gap.last_at), (at(span.0), at(span.1)));
                        }
                        if written {
                            tally(session, taken.records());
                            owed_since.retain(|&(of, ..), _| of != session);
                            taken.written();
                        }
                    }
                }
            }
            for which in [false, true] {
                if let Some(taken) = ledger.take_pending(&sessions[usize::from(which)]) {
                    tally(which, taken.records());
                }
                for &reason in LossReason::ALL {
                    let count = ledger.session(&sessions[usize::from(which)]).of(reason);
                    prop_assert_eq!(count.facts, lost.get(&(which, reason)).copied().unwrap_or(0));
                    prop_assert_eq!(count.unknown, lost_unknown.get(&(which, reason)).copied().unwrap_or(0));
                }
            }
            prop_assert_eq!(found, lost.clone());
            prop_assert_eq!(ledger.totals().all().facts, lost.values().sum::<u64>());
        }
    }
}
