//! What a reader says depends on the bytes of the file and on nothing else.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::num::NonZeroUsize;

use proptest::prelude::*;
use serde_json::{Value, json};
use tipstaff_core::transcript::{Event, Reader, ReaderOptions};

use super::{claude_call, claude_result, claude_says, codex, codex_call, codex_result, lines, tell};

/// Hands out its bytes in pieces of the given sizes, with interruptions between.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
    interrupted: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.sizes.next().unwrap_or(1).min(buffer.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(size);
        buffer[..size].copy_from_slice(now);
        self.rest = rest;
        Ok(size)
    }
}

fn record() -> impl Strategy<Value = Value> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d/e", "é"]);
    let text = || {
        prop::sample::select(vec!["x", "Exit code 2", "[Request interrupted by user]", "<tool_use_error>no", "\u{1f600}\u{2028}"])
    };
    prop_oneof![
        (id(), text()).prop_map(|(id, text)| claude_call(id, "Bash", json!({ "command": text }))),
        (id(), text(), any::<bool>()).prop_map(|(id, text, bad)| claude_result(id, text, bad)),
        (id(), text()).prop_map(|(id, text)| claude_says(id, text)),
        Just(json!({ "type": "system", "subtype": "turn_duration", "sessionId": "s" })),
        (id(), text()).prop_map(|(id, text)| codex_call(id, "exec_command", &json!({ "cmd": text }))),
        (id(), text()).prop_map(|(id, text)| codex_result(id, text)),
        (id(), text()).prop_map(|(id, text)| codex(
            "event_msg",
            json!({ "type": "item_completed", "item": { "type": "FileChange", "id": id, "changes": text } })
        )),
        id().prop_map(|id| codex("event_msg", json!({ "type": "turn_aborted", "turn_id": id }))),
        id().prop_map(|id| codex("event_msg", json!({ "type": "task_started", "turn_id": id }))),
        Just(codex("event_msg", json!({ "type": "context_compacted" }))),
    ]
}

/// Records of both products, glued, cut, blank and damaged now and then. The first one tells the product and the thread.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let line = (record(), prop::sample::select(vec!["\n", "\n", "\n", "\n", "", "\r\n", "\n \n", "x\n", ",\n"]), 0..20_usize);
    (any::<bool>(), prop::collection::vec(line, 1..40)).prop_map(|(is_claude, parts)| {
        let first = if is_claude { claude_says("first", "x") } else { codex("session_meta", json!({ "id": "t" })) };
        let mut bytes = lines(&[first]).into_bytes();
        for (record, end, damage) in parts {
            let text = record.to_string().into_bytes();
            let kept = if damage == 0 { text.len() / 2 } else { text.len() };
            bytes.extend_from_slice(&text[..kept]);
            bytes.extend_from_slice(if damage == 1 { b"\xff\n" } else { end.as_bytes() });
        }
        bytes
    })
}

fn options(line_bytes: usize) -> ReaderOptions {
    let size = |n| NonZeroUsize::new(n).unwrap();
    ReaderOptions { line_bytes: size(line_bytes), remembered: size(16), open_calls: size(4) }
}

/// The identity of each event that has one.
fn identities(events: &[Event]) -> Vec<&str> {
    fn identity(event: &Event) -> Option<&str> {
        match event {
            Event::Call(call) => Some(call.key.as_str()),
            Event::Lifecycle(moment) => Some(moment.id.as_str()),
            Event::Result(_) | Event::Unmatched(_) | Event::End(_) => None,
        }
    }
    events.iter().filter_map(identity).collect()
}

proptest! {
    /// Nothing from outside makes a reader panic, or hand out a call without exactly one outcome.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), mut file in file(), at in any::<prop::sample::Index>()) {
        if let Ok(reader) = Reader::from_read("s", bytes.as_slice(), options(100)) {
            tell(reader);
        }
        // Bytes inside an otherwise sound file get further than bytes alone.
        let at = at.index(file.len());
        file.splice(at..at, bytes.into_iter().take(8));
        if let Ok(reader) = Reader::from_read("s", file.as_slice(), options(400)) {
            let told = tell(reader);
            let count = |is: fn(&Event) -> bool| told.events.iter().filter(|event| is(event)).count();
            prop_assert_eq!(count(|event| matches!(event, Event::Call(_))), count(|event| matches!(event, Event::Result(_))));
        }
    }

    /// In which pieces the bytes arrive changes nothing.
    #[test]
    fn how_the_bytes_arrive_changes_nothing(file in file(), sizes in prop::collection::vec(1..300_usize, 1..8)) {
        let at_once = tell(Reader::from_read("s", file.as_slice(), options(400)).unwrap());
        let pieces = Pieces { rest: &file, sizes: sizes.into_iter().cycle(), interrupted: false };
        prop_assert_eq!(at_once, tell(Reader::from_read("s", pieces, options(400)).unwrap()));
    }

    /// A file that grew yields the identities that it had, in the same order, and then the new ones.
    #[test]
    fn a_grown_file_yields_the_same_keys_for_its_old_part(file in file(), more in file()) {
        // What is appended comes after a whole line, as a client that writes on does it.
        let mut grown = file.clone();
        grown.push(b'\n');
        let old_length = grown.len();
        grown.extend_from_slice(&more);
        let old = tell(Reader::from_read("s", &grown[..old_length], ReaderOptions::default()).unwrap());
        let new = tell(Reader::from_read("s", grown.as_slice(), ReaderOptions::default()).unwrap());
        let (old, new) = (identities(&old.events), identities(&new.events));
        let distinct: BTreeSet<_> = new.iter().collect();
        prop_assert_eq!(distinct.len(), new.len(), "two events share an identity: {:?}", new);
        prop_assert!(new.starts_with(&old), "{:?} is not the beginning of {:?}", old, new);
    }
}
