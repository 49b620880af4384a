//! The books of one reading: what both grammars do with a call, a result and a moment.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::counts::{Counts, Damage, DamageKind, Details};
use super::event::{Call, CallResult, End, Event, Lifecycle, LifecycleName, Place, UnmatchedReason, UnmatchedResult};
use super::identity::Thread;
use super::key::{Keys, Source, digest_block, digest_text};
use super::outcome::{Outcome, UnknownBecause};
use super::pairing::{Memory, OpenCall, OpenCalls};
use super::reader::ReaderOptions;
use crate::id::OperationId;

const CALL: u8 = b'c';
const RESULT: u8 = b'r';
const IDENTIFIER: u8 = b'i';
const RECORD: u8 = b'u';

const MAX_DAMAGE: usize = 64;
const MAX_OPEN_LISTED: usize = 64;

/// What a record says about everything in it.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) place: Place,
    pub(super) stamp: Option<Box<str>>,
    /// The record's own identifier.
    pub(super) record_id: Option<Box<str>>,
    pub(super) cwd: Option<Arc<str>>,
    pub(super) turn: Option<Arc<str>>,
    pub(super) agent: Option<Arc<str>>,
    pub(super) sidechain: bool,
    pub(super) inherited: bool,
    /// Whether the record was seen before under the same identifier; looked up when it is first needed.
    repeated: Option<bool>,
    told: Vec<LifecycleName>,
    unnamed: u32,
}

impl Origin {
    pub(super) const fn new(place: Place) -> Self {
        Self {
            place,
            stamp: None,
            record_id: None,
            cwd: None,
            turn: None,
            agent: None,
            sidechain: false,
            inherited: false,
            repeated: None,
            told: Vec::new(),
            unnamed: 0,
        }
    }
}

/// The text, shared with the record before when it is the same.
pub(super) fn share(last: &mut Option<Arc<str>>, text: Option<&str>) -> Option<Arc<str>> {
    let text = text?;
    if last.as_deref() != Some(text) {
        *last = Some(text.into());
    }
    last.clone()
}

/// What a call record tells.
#[derive(Debug)]
pub(super) struct Proposed<'a> {
    pub(super) call_id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    /// The whole block, for the comparison with earlier ones.
    pub(super) block: &'a Value,
}

/// The books.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) thread: Thread,
    pub(super) counts: Counts,
    pub(super) details: Details,
    pub(super) damage: Vec<Damage>,
    pub(super) out: VecDeque<Event>,
    /// Whether a turn began, or went on, since the last one ended.
    pub(super) in_turn: bool,
    keys: Keys,
    open: OpenCalls,
    open_limit: usize,
    blocks: Memory<()>,
    records: Memory<()>,
    uses: Memory<u32>,
    ran: Memory<()>,
}

impl Ledger {
    pub(super) fn new(thread: Thread, options: &ReaderOptions) -> Self {
        Self {
            keys: Keys::new(&thread),
            thread,
            counts: Counts::default(),
            details: Details::default(),
            damage: Vec::new(),
            out: VecDeque::new(),
            in_turn: true,
            open: OpenCalls::default(),
            open_limit: options.open_calls.get(),
            blocks: Memory::new(options.remembered.get()),
            records: Memory::new(options.remembered.get()),
            uses: Memory::new(options.remembered.get()),
            ran: Memory::new(options.remembered.get()),
        }
    }

    pub(super) fn damaged(&mut self, line: u64, offset: u64, kind: DamageKind) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { line, offset, kind });
        }
    }

    /// Books a call. `None` when it repeats an earlier block byte for byte; else the call, to be handed out by [`Self::propose`] or dropped
    /// when it is no operation.
    pub(super) fn call(&mut self, origin: &mut Origin, proposed: &Proposed<'_>) -> Option<Call> {
        let unnamed_at = proposed.call_id.is_none().then_some(origin.place);
        let call_id: Arc<str> = match proposed.call_id {
            Some(id) => id.into(),
            None => {
                origin.unnamed += 1;
                format!("@{}.{}.{}", origin.place.offset, origin.place.part, origin.unnamed).into()
            }
        };
        if !self.blocks.is_first(digest_block(CALL, proposed.block, unnamed_at)) {
            self.details.duplicate_call_records += 1;
            return None;
        }
        let identifier = digest_text(IDENTIFIER, &call_id);
        let occurrence = match self.uses.get_mut(&identifier) {
            Some(uses) => {
                *uses += 1;
                *uses
            }
            None => {
                // A call under the identifier of one that already ran is judged on its own, so its key must be another.
                let first = u32::from(self.ran.get_mut(&identifier).is_some());
                self.uses.insert(identifier, first);
                first
            }
        };
        self.details.call_id_reused += u64::from(occurrence > 0);
        self.counts.calls += 1;
        self.counts.calls_by_name.add(proposed.name);
        self.counts.sidechain_calls += u64::from(origin.sidechain);
        self.counts.inherited_calls += u64::from(origin.inherited);
        Some(Call {
            key: self.keys.operation(origin.agent.as_deref(), &call_id, occurrence),
            call_id,
            occurrence,
            name: proposed.name.into(),
            namespace: proposed.namespace.map(Into::into),
            input: Value::Null,
            cwd: origin.cwd.clone(),
            sidechain: origin.sidechain,
            agent: origin.agent.clone(),
            parent: None,
            already_ran: false,
            inherited: origin.inherited,
            place: origin.place,
            stamp: origin.stamp.clone(),
        })
    }

    /// Hands out a call that waits for its result.
    pub(super) fn propose(&mut self, origin: &Origin, call: Call) {
        if self.open.len() >= self.open_limit
            && let Some(oldest) = self.open.take_oldest()
        {
            self.left_open(&oldest, UnknownBecause::TooManyOpen);
        }
        self.open.open(OpenCall {
            key: call.key.clone(),
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            turn: origin.turn.clone(),
            inherited: call.inherited,
            place: call.place,
            told: false,
        });
        self.out.push_back(Event::Call(call));
    }

    /// Hands out a call that is known only because it already ran, with its outcome. Its identifier is known from here on.
    pub(super) fn already_ran(
        &mut self,
        origin: &Origin,
        call_id: &str,
        name: &str,
        input: Value,
        parent: Option<OperationId>,
        outcome: Outcome,
    ) {
        self.ran.insert(digest_text(IDENTIFIER, call_id), ());
        self.counts.already_ran_calls += 1;
        let key = self.keys.operation(origin.agent.as_deref(), call_id, 0);
        let call_id: Arc<str> = call_id.into();
        self.out.push_back(Event::Call(Call {
            key: key.clone(),
            call_id: call_id.clone(),
            occurrence: 0,
            name: name.into(),
            namespace: None,
            input,
            cwd: origin.cwd.clone(),
            sidechain: origin.sidechain,
            agent: origin.agent.clone(),
            parent,
            already_ran: true,
            inherited: origin.inherited,
            place: origin.place,
            stamp: origin.stamp.clone(),
        }));
        self.out.push_back(Event::Result(CallResult {
            key,
            call_id,
            outcome,
            started_agent: None,
            inherited: origin.inherited,
            place: origin.place,
            stamp: origin.stamp.clone(),
        }));
    }

    /// Books a result and hands it out: to the earliest open call with its identifier, or as unmatched.
    pub(super) fn result(
        &mut self,
        origin: &Origin,
        call_id: &str,
        block: &Value,
        outcome: Outcome,
        started_agent: Option<Box<str>>,
    ) {
        if !self.blocks.is_first(digest_block(RESULT, block, None)) {
            self.details.duplicate_result_records += 1;
            return;
        }
        self.counts.results += 1;
        if let Some(class) = outcome.class() {
            self.counts.error_results += 1;
            *self.counts.error_classes.entry(class).or_default() += 1;
        }
        let reason = match self.open.take(call_id) {
            Some(call) => {
                self.details.paired_results += 1;
                if !call.told {
                    self.out.push_back(Event::Result(CallResult {
                        key: call.key,
                        call_id: call.call_id,
                        outcome,
                        started_agent,
                        inherited: call.inherited,
                        place: origin.place,
                        stamp: origin.stamp.clone(),
                    }));
                    return;
                }
                UnmatchedReason::TooLate
            }
            None if self.knows(call_id) => {
                self.details.extra_results += 1;
                UnmatchedReason::AlreadySettled
            }
            None => {
                self.counts.orphan_results += 1;
                UnmatchedReason::Orphan
            }
        };
        self.out.push_back(Event::Unmatched(UnmatchedResult {
            call_id: call_id.into(),
            reason,
            outcome,
            inherited: origin.inherited,
            place: origin.place,
            stamp: origin.stamp.clone(),
        }));
    }

    /// Hands out a moment. A record that repeats an earlier one's identifier tells nothing again.
    pub(super) fn signal(
        &mut self,
        origin: &mut Origin,
        name: LifecycleName,
        about: Option<OperationId>,
        detail: Map<String, Value>,
    ) {
        if let Some(id) = &origin.record_id {
            let repeated = *origin.repeated.get_or_insert_with(|| !self.records.is_first(digest_text(RECORD, id)));
            if repeated {
                return;
            }
        }
        let nth = origin.told.iter().filter(|told| **told == name).count();
        origin.told.push(name);
        let source = origin.record_id.as_deref().map_or(Source::Place(origin.place), Source::Record);
        self.out.push_back(Event::Lifecycle(Lifecycle {
            id: self.keys.signal(source, name, u32::try_from(nth).unwrap_or(u32::MAX)),
            name,
            about,
            detail: Value::Object(detail),
            inherited: origin.inherited,
            sidechain: origin.sidechain,
            place: origin.place,
            stamp: origin.stamp.clone(),
        }));
    }

    /// The key of the latest call with this identifier, when the file holds one.
    pub(super) fn key_of(&mut self, origin: &Origin, call_id: &str) -> Option<OperationId> {
        if let Some(call) = self.open.earliest(call_id) {
            return Some(call.key.clone());
        }
        let identifier = digest_text(IDENTIFIER, call_id);
        let occurrence = match self.uses.get_mut(&identifier) {
            Some(uses) => *uses,
            None => self.ran.get_mut(&identifier).map(|()| 0)?,
        };
        Some(self.keys.operation(origin.agent.as_deref(), call_id, occurrence))
    }

    fn knows(&mut self, call_id: &str) -> bool {
        let identifier = digest_text(IDENTIFIER, call_id);
        self.uses.get_mut(&identifier).is_some() || self.ran.get_mut(&identifier).is_some()
    }

    /// The tool that an open call uses.
    pub(super) fn tool_of(&self, call_id: &str) -> Option<&str> {
        self.open.earliest(call_id).map(|call| &*call.name)
    }

    /// The turn was interrupted.
    pub(super) fn interrupt(&mut self, turn: &Option<Arc<str>>) {
        self.open.interrupt(turn);
        self.in_turn = false;
    }

    /// A turn begins: what an interrupt stopped before it brings no result any more.
    pub(super) fn turn_begins(&mut self) {
        let out = &mut self.out;
        self.open.tell_interrupted(|call| out.push_back(unknown(call, UnknownBecause::Interrupted)));
        self.in_turn = true;
    }

    /// The file ended.
    pub(super) fn finish(&mut self) {
        let in_turn = self.in_turn;
        self.turn_begins();
        let clean = !in_turn && self.open.len() == 0;
        let mut open = Vec::new();
        while let Some(call) = self.open.take_oldest() {
            self.left_open(&call, UnknownBecause::EndOfFile);
            if open.len() < MAX_OPEN_LISTED {
                open.push(call.key);
            }
        }
        self.details.forgotten =
            self.blocks.forgotten() + self.records.forgotten() + self.uses.forgotten() + self.ran.forgotten();
        self.out.push_back(Event::End(End { clean: clean && self.counts.calls_without_result == 0, open }));
    }

    fn left_open(&mut self, call: &OpenCall, because: UnknownBecause) {
        self.counts.calls_without_result += 1;
        self.counts.calls_without_result_by_name.add(&call.name);
        if !call.told {
            self.out.push_back(unknown(call, because));
        }
    }
}

fn unknown(call: &OpenCall, because: UnknownBecause) -> Event {
    Event::Result(CallResult {
        key: call.key.clone(),
        call_id: call.call_id.clone(),
        outcome: Outcome::Unknown(because),
        started_agent: None,
        inherited: call.inherited,
        place: call.place,
        stamp: None,
    })
}
