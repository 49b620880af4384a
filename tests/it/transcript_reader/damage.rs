//! Damage in a file is counted and named by its place; nothing of it stops a reading, and nothing panics.

use std::io::{self, Read};
use std::num::NonZeroUsize;

use serde_json::{Value, json};
use tipstaff_core::transcript::{Damage, DamageKind, Event, Reader, ReaderOptions, TranscriptError};

use super::{claude_call, claude_result, claude_says, codex, codex_call, codex_result, lines, outline, read, tell};

fn small_lines(bytes: usize) -> ReaderOptions {
    ReaderOptions { line_bytes: NonZeroUsize::new(bytes).unwrap(), ..ReaderOptions::default() }
}

/// A crash cuts the last line: what is whole before it stands, the half is named with its offset.
#[test]
fn a_truncated_last_line_is_named_and_the_rest_stands() {
    let whole = lines(&[claude_call("a", "Bash", json!({})), claude_result("a", "x", false)]);
    let half = claude_call("b", "Bash", json!({ "command": "rm -rf /" })).to_string();
    for cut in 1..half.len() {
        let told = read(format!("{whole}{}", &half[..cut]));
        let place = Damage { line: 3, offset: whole.len() as u64, kind: told.damage[0].kind };
        assert_eq!(told.damage, [place]);
        assert!(matches!(place.kind, DamageKind::Broken { records: 0, .. }));
        assert_eq!((told.counts.calls, told.counts.broken_lines, told.counts.malformed_lines), (1, 1, 1));
        assert!(!told.details.ends_with_newline);
    }
    // Whole, though without a line feed.
    assert_eq!(read(format!("{whole}{half}")).counts.calls, 2);
}

/// Two records on one line are two records, each with a place of its own.
#[test]
fn glued_records_are_all_taken() {
    let glued =
        [claude_call("a", "Bash", json!({})), claude_call("b", "Read", json!({})), claude_says("u", "x"), claude_says("v", "y")];
    let told = read(glued.iter().map(Value::to_string).collect::<String>());
    assert_eq!(&outline(&told)[..4], ["call a", "call b", "prompt_submitted", "prompt_submitted"]);
    assert_eq!((told.counts.records, told.counts.glued_lines, told.counts.physical_lines), (4, 1, 1));
    assert_eq!(told.damage[0].kind, DamageKind::Glued { records: 4 });
    let Event::Call(second) = &told.events[1] else { panic!() };
    assert_eq!((second.place.line, second.place.part), (1, 1));
}

/// A record that follows its own half is taken, on the same line and on the next.
#[test]
fn half_a_record_may_be_followed_by_the_whole_one() {
    let whole = codex_call("a", "exec_command", &json!({ "cmd": "ls" })).to_string();
    for cut in 2..whole.len() {
        for between in ["", "\n"] {
            let told = read(format!("{}{between}{whole}\n", &whole[..cut]));
            assert_eq!(
                (told.counts.calls, told.counts.broken_lines, told.counts.records),
                (1, 1, 1),
                "cut at {cut}, {between:?}"
            );
        }
    }
}

/// Bytes that are no text are replaced, and the line counts as one that was mended.
#[test]
fn what_is_no_utf_8_is_replaced_and_counted() {
    let mut bytes = lines(&[claude_call("a", "Bash", json!({ "command": "ls #" }))]).into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'#').unwrap();
    bytes[at] = 0xff;
    let told = read(bytes);
    assert_eq!((told.counts.replaced_lines, told.counts.malformed_lines), (1, 0));
    let Event::Call(call) = &told.events[0] else { panic!() };
    assert_eq!(call.input, json!({ "command": "ls \u{fffd}" }));
    // A call with half of a surrogate pair in its text, as clients write it that cut texts by code units, is still a call.
    let half = lines(&[claude_call("a", "Bash", json!({ "command": "#" }))]).replace('#', "\\ud83d");
    let told = read(half);
    assert_eq!((told.counts.calls, told.counts.replaced_lines, told.counts.broken_lines), (1, 1, 0));
}

/// A line over the limit is skipped, named and counted; the calls around it are read.
#[test]
fn a_line_over_the_limit_is_skipped_and_named() {
    let before = lines(&[claude_call("a", "Bash", json!({}))]);
    let long = claude_call("b", "Write", json!({ "content": "x".repeat(5000) })).to_string();
    let text = format!("{before}{long}\n{}", lines(&[claude_result("a", "x", false)]));
    let told = tell(Reader::from_read("s.jsonl", text.as_bytes(), small_lines(1000)).unwrap());
    assert_eq!(outline(&told), ["call a", "result a Succeeded", "end 0 open, left open"]);
    let place = Damage { line: 2, offset: before.len() as u64, kind: DamageKind::TooLong { bytes: long.len() as u64 } };
    assert_eq!((told.damage.as_slice(), told.counts.skipped_lines, told.counts.malformed_lines), (&[place][..], 1, 0));
    assert_eq!((told.counts.physical_lines, told.details.longest_line_bytes), (3, long.len() as u64));
}

/// 100 MiB without a line feed are read past.
#[test]
fn a_line_of_100_mib_does_not_stop_a_reading() {
    let call = lines(&[claude_call("a", "Bash", json!({}))]);
    let long = io::repeat(b'x').take(100 * 1024 * 1024);
    let input = call.as_bytes().chain(long).chain(&b"\n"[..]);
    let told = tell(Reader::from_read("s.jsonl", input, ReaderOptions::default()).unwrap());
    assert_eq!((told.counts.calls, told.counts.skipped_lines, told.counts.physical_lines), (1, 1, 2));
}

/// Line ends of another system, blank lines and a byte order mark change nothing.
#[test]
fn line_ends_and_blank_lines_change_nothing() {
    let records = [claude_call("a", "Bash", json!({})), claude_result("a", "x", false)];
    let plain = read(lines(&records));
    let dressed = read(format!("\u{feff}{}", lines(&records).replace('\n', "\r\n\r\n \n")));
    assert_eq!(outline(&plain), outline(&dressed));
    assert_eq!((dressed.counts.malformed_lines, dressed.details.blank_lines, dressed.counts.physical_lines), (0, 4, 6));
    // Neither a line separator nor any other space inside a text ends a line.
    let told = read(lines(&[claude_call("a", "Bash", json!({ "command": "a\u{2028}b\u{85}c" }))]));
    assert_eq!((told.counts.physical_lines, told.counts.calls), (1, 1));
}

/// JSON that is no object is damage; a record without anything known in it is only counted.
#[test]
fn what_is_no_record_is_told_apart_from_what_is_not_known() {
    let call = lines(&[claude_call("a", "Bash", json!({}))]);
    let told = read(format!("{call}[1,2]\n\"text\"\nnull\n{{}}\n{{\"type\":\"novelty\",\"message\":[7]}}\n{{\"type\":7}}\n"));
    assert_eq!((told.counts.broken_lines, told.counts.records), (3, 4));
    assert_eq!(told.counts.unknown_kinds.iter().collect::<Vec<_>>(), [("(no type)", 2), ("novelty", 1)]);
    let told =
        read(lines(&[codex("event_msg", json!({ "type": "novelty" })), codex("novelty", json!({ "type": "function_call" }))]));
    assert_eq!(told.counts.unknown_kinds.iter().collect::<Vec<_>>(), [("event_msg/novelty", 1), ("novelty", 1)]);
    assert_eq!(told.counts.calls, 0);
}

fn refusal(text: &str) -> TranscriptError {
    Reader::from_read("notes.jsonl", text.as_bytes(), ReaderOptions::default()).unwrap_err()
}

/// An empty file and another grammar are errors that name the file, the place and what to give instead.
#[test]
fn an_empty_file_and_an_unknown_product_are_refused_with_their_place() {
    for empty in ["", "\n", " \n\r\n"] {
        assert!(matches!(refusal(empty), TranscriptError::Empty { bytes, .. } if bytes == empty.len() as u64), "{empty:?}");
        assert!(refusal(empty).to_string().starts_with("notes.jsonl is empty"));
    }
    for (other, found) in [
        ("{\"type\":\"thread.started\",\"thread_id\":\"x\"}\n", "\"thread.started\""),
        ("{\"level\":\"info\"}\n", "[\"level\"]"),
        ("# notes\n\nnothing\n", "no whole JSON object"),
        ("{\"type\":\"assistant\"", "no whole JSON object"),
    ] {
        let error = refusal(&format!("\n{other}"));
        assert!(matches!(error, TranscriptError::UnknownProduct { line: 2, offset: 1, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("notes.jsonl is no known transcript: line 2 (byte 1)") && text.contains(found), "{text}");
    }
    // The first lines need not be whole, or tell the product.
    let told = read(format!("{{\"half\n{{}}\n{}", lines(&[claude_call("a", "Bash", json!({}))])));
    assert_eq!((told.counts.calls, told.counts.broken_lines), (1, 1));
    let many_blank = format!("{}{}", "\n".repeat(5000), lines(&[codex_result("a", "x")]));
    assert_eq!((read(&many_blank).counts.orphan_results, read(&many_blank).details.blank_lines), (1, 5000));
}

/// A reader that fails after some bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            some => Ok(some),
        }
    }
}

/// A failed read is the one error of the iteration: it tells the place, and what came before it stands.
#[test]
fn a_failed_read_ends_the_iteration_with_its_place() {
    let text = lines(&[claude_call("a", "Bash", json!({}))]);
    let half = format!("{text}{{\"type\"");
    let mut reader = Reader::from_read("s.jsonl", Failing(half.as_bytes()), ReaderOptions::default()).unwrap();
    assert!(matches!(reader.next(), Some(Ok(Event::Call(_)))));
    let error = reader.next().unwrap().unwrap_err();
    assert!(matches!(error, TranscriptError::Read { line: 2, offset, .. } if offset == text.len() as u64), "{error:?}");
    assert!(reader.next().is_none());
    assert!(matches!(
        Reader::from_read("s", Failing(b"{"), ReaderOptions::default()),
        Err(TranscriptError::Read { line: 1, .. })
    ));
    assert!(matches!(Reader::open("/nowhere/s.jsonl", ReaderOptions::default()), Err(TranscriptError::Open { .. })));
}
