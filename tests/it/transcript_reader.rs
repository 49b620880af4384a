//! The readers find in every recorded transcript what an independent script found in it.

mod damage;
mod moments;
mod pairing;
mod samples;
mod stability;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value, json};
use tipstaff_core::id::OperationId;
use tipstaff_core::transcript::{
    Counts, Damage, Details, Event, Names, Outcome, Product, Reader, ReaderOptions, Thread, UnknownBecause,
};

use crate::data;

/// Everything that a reader says about one file.
#[derive(Debug, PartialEq)]
struct Told {
    events: Vec<Event>,
    counts: Counts,
    details: Details,
    damage: Vec<Damage>,
    thread: Thread,
}

fn tell<R: Read>(mut reader: Reader<R>) -> Told {
    let events = reader.by_ref().collect::<Result<_, _>>().unwrap();
    Told {
        events,
        counts: reader.counts().clone(),
        details: reader.details().clone(),
        damage: reader.damage().to_vec(),
        thread: reader.thread().clone(),
    }
}

/// Reads a text under the default limits.
fn read(text: impl AsRef<[u8]>) -> Told {
    tell(Reader::from_read("session.jsonl", text.as_ref(), ReaderOptions::default()).unwrap())
}

/// Records, one a line.
fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn claude_call(id: &str, name: &str, input: Value) -> Value {
    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    json!({ "type": "assistant", "sessionId": "s", "uuid": format!("call-{id}"), "cwd": "/w", "message": { "content": [block] } })
}

fn claude_result(id: &str, text: &str, is_error: bool) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error });
    json!({ "type": "user", "sessionId": "s", "uuid": format!("result-{id}"), "message": { "content": [block] } })
}

fn claude_says(uuid: &str, text: &str) -> Value {
    json!({ "type": "user", "sessionId": "s", "uuid": uuid, "message": { "content": text } })
}

fn codex(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload })
}

fn codex_call(id: &str, name: &str, arguments: &Value) -> Value {
    codex("response_item", json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string() }))
}

fn codex_result(id: &str, output: &str) -> Value {
    codex("response_item", json!({ "type": "function_call_output", "call_id": id, "output": output }))
}

/// What happened, in short: the kind of each event with what matters about it.
fn outline(told: &Told) -> Vec<String> {
    let short = |event: &Event| match event {
        Event::Call(call) => format!("call {}{}", call.call_id, if call.already_ran { " already ran" } else { "" }),
        Event::Result(result) => format!("result {} {:?}", result.call_id, result.outcome),
        Event::Unmatched(result) => format!("unmatched {} {:?}", result.call_id, result.reason),
        Event::Lifecycle(moment) => moment.name.as_str().to_owned(),
        Event::End(end) => format!("end {} open, {}", end.open.len(), if end.clean { "clean" } else { "left open" }),
    };
    told.events.iter().map(short).collect()
}

fn names(names: &Names) -> Value {
    assert_eq!(names.other(), 0);
    names.iter().map(|(name, count)| (name.to_owned(), json!(count))).collect::<Map<_, _>>().into()
}

/// Every member of the expectations that the reader's counts give.
fn given(told: &Told) -> Map<String, Value> {
    let Told { counts, details, thread, .. } = told;
    let classes: Map<_, _> =
        counts.error_classes.iter().map(|(class, count)| (class.as_str().to_owned(), json!(count))).collect();
    let mut given = json!({
        "product": thread.product.as_str(),
        "physical_lines": counts.physical_lines,
        "records": counts.records,
        "record_kinds": names(&counts.record_kinds),
        "calls": counts.calls,
        "calls_by_name": names(&counts.calls_by_name),
        "results": counts.results,
        "error_results": counts.error_results,
        "error_classes": classes,
        "calls_without_result": counts.calls_without_result,
        "calls_without_result_by_name": names(&counts.calls_without_result_by_name),
        "orphan_results": counts.orphan_results,
        "sidechain_calls": counts.sidechain_calls,
        "malformed_lines": counts.malformed_lines,
        "glued_lines": counts.glued_lines,
        "broken_lines": counts.broken_lines,
        "interrupts": counts.interrupts,
        "compactions": counts.compactions,
        "blank_lines": details.blank_lines,
        "longest_line_bytes": details.longest_line_bytes,
        "ends_with_newline": details.ends_with_newline,
        "records_in_glued_lines": details.records_in_glued_lines,
        "duplicate_call_records": details.duplicate_call_records,
        "duplicate_result_records": details.duplicate_result_records,
        "call_id_reused": details.call_id_reused,
        "paired_results": details.paired_results,
        "extra_results": details.extra_results,
        "self_settled_calls": details.self_settled_calls,
        "turn_ends": details.turn_ends,
    });
    let own = match thread.product {
        Product::Claude => json!({
            "micro_compactions": details.micro_compactions,
            "api_error_messages": details.api_error_messages,
            "api_error_records": details.api_error_records,
            "server_tool_uses": details.server_tool_uses,
            "sidechain_records": details.sidechain_records,
        }),
        Product::Codex => json!({
            "layout": thread.layout.expect("Codex files have a layout").as_str(),
            "inherited_calls": counts.inherited_calls,
            "turn_starts": details.turn_starts,
            "session_meta_records": details.session_meta_records,
            "error_events": details.error_events,
            "exec_ends": details.exec_ends,
            "items_completed": names(&details.items_completed),
        }),
    };
    let given = given.as_object_mut().unwrap();
    given.extend(own.as_object().unwrap().clone());
    std::mem::take(given)
}

/// What the events alone say, against what was counted: each call has exactly one outcome, and nothing is handed out twice.
fn check_events(events: &[Event], given: &Map<String, Value>) {
    let mut open: BTreeSet<&OperationId> = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let mut calls = BTreeMap::new();
    for event in events {
        match event {
            Event::Call(call) => {
                assert!(open.insert(&call.key), "{} is handed out twice", call.key);
                assert!(ids.insert(call.key.as_str()));
                *calls.entry(&*call.name).or_insert(0_u64) += u64::from(!call.already_ran);
            }
            Event::Result(result) => assert!(open.remove(&result.key), "{} has two outcomes", result.key),
            Event::Lifecycle(moment) => assert!(ids.insert(moment.id.as_str()), "{} is told twice", moment.id),
            Event::Unmatched(_) | Event::End(_) => {}
        }
    }
    assert!(open.is_empty(), "without an outcome: {open:?}");
    assert!(matches!(events.last(), Some(Event::End(_))));
    let total = |given: &Value| given.as_u64().unwrap();
    assert_eq!(calls.values().sum::<u64>() + total(&given["self_settled_calls"]), total(&given["calls"]));
    let unknown = events.iter().filter(|event| matches!(event, Event::Result(result) if matches!(result.outcome, Outcome::Unknown(because) if because != UnknownBecause::NotTold)));
    assert_eq!(unknown.count() as u64, total(&given["calls_without_result"]));
}

/// The transcripts below a folder, named as the expectations name them.
fn transcripts_below(folder: &Path, root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(transcripts_below(&path, root));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
    found
}

fn check(path: &Path, expected: &Map<String, Value>) -> Vec<String> {
    let told = tell(Reader::open(path, ReaderOptions::default()).unwrap());
    let given = given(&told);
    check_events(&told.events, &given);
    let differs = |(member, value): (&String, &Value)| {
        let expected = expected.get(member).unwrap_or_else(|| panic!("{member} is not expected of any reader"));
        (value != expected).then(|| format!("{}: {member} is {value}, expected {expected}", path.display()))
    };
    given.iter().filter_map(differs).collect()
}

/// Every file of the folder, compared in every member that the reader gives.
#[test]
fn every_recorded_transcript_is_read_as_expected() {
    let Some(folder) = data::folder("TIPSTAFF_TRANSCRIPTS_DIR", "../shared/transcripts") else { return };
    let expected: Map<String, Value> = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let files = transcripts_below(&folder, &folder);
    assert!(!files.is_empty(), "{} holds no transcript", folder.display());
    assert_eq!(files, expected.keys().cloned().collect(), "each file is expected, and each expected file is there");
    let differences: Vec<_> =
        expected.iter().flat_map(|(file, members)| check(&folder.join(file), members.as_object().unwrap())).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
