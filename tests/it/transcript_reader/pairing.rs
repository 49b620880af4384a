//! Calls and results: paired by identifier only, each call with exactly one outcome.

use std::num::NonZeroUsize;

use serde_json::{Value, json};
use tipstaff_core::transcript::{Call, Event, Reader, ReaderOptions};

use super::{Told, claude_call, claude_result, claude_says, codex, codex_call, codex_result, lines, outline, read, tell};

fn calls(told: &Told) -> Vec<&Call> {
    fn call(event: &Event) -> Option<&Call> {
        match event {
            Event::Call(call) => Some(call),
            _ => None,
        }
    }
    told.events.iter().filter_map(call).collect()
}

/// Results come in any order, and one without a call is an orphan that opens nothing.
#[test]
fn results_are_paired_by_identifier_and_not_by_order() {
    let told = read(lines(&[
        claude_result("z", "x", false),
        claude_call("a", "Bash", json!({})),
        claude_call("b", "Read", json!({})),
        claude_result("b", "x", false),
        claude_result("a", "Exit code 3", true),
        claude_result("a", "again, and different", false),
    ]));
    let expected = [
        "unmatched z Orphan",
        "call a",
        "call b",
        "result b Succeeded",
        "result a Failed { class: NonzeroExit, exit_code: Some(3) }",
        "unmatched a AlreadySettled",
        "end 0 open, left open",
    ];
    assert_eq!(outline(&told), expected);
    assert_eq!((told.counts.results, told.counts.orphan_results, told.details.extra_results), (4, 1, 1));
}

/// The same block written again is a repeat; another block under the same identifier is another call with another key.
#[test]
fn a_repeat_is_dropped_and_a_reused_identifier_is_another_call() {
    let first = claude_call("a", "Bash", json!({ "command": "ls" }));
    let other = claude_call("a", "Bash", json!({ "command": "rm -rf x" }));
    let told = read(lines(&[
        first.clone(),
        first.clone(),
        other.clone(),
        claude_result("a", "one", false),
        claude_result("a", "one", false),
        claude_result("a", "two", false),
        first,
        other,
    ]));
    assert_eq!(outline(&told), ["call a", "call a", "result a Succeeded", "result a Succeeded", "end 0 open, left open"]);
    let keys: Vec<_> = calls(&told).iter().map(|call| (call.key.as_str(), call.occurrence)).collect();
    assert_eq!(keys, [("claude/s/a", 0), ("claude/s/a#1", 1)]);
    assert_eq!(
        (told.details.duplicate_call_records, told.details.duplicate_result_records, told.details.call_id_reused),
        (3, 1, 1)
    );
}

/// A call without an identifier is a call all the same: a policy must see it.
#[test]
fn a_call_without_an_identifier_is_named_after_its_place() {
    let mut nameless = claude_call("a", "Bash", json!({ "command": "ls" }));
    nameless["message"]["content"][0].as_object_mut().unwrap().remove("id");
    let told = read(lines(&[nameless.clone(), nameless]));
    let keys: std::collections::BTreeSet<_> = calls(&told).iter().map(|call| &call.key).collect();
    assert_eq!((keys.len(), told.counts.calls_without_result), (2, 2));
}

/// Messages that the client embeds in progress records, or copies at a compaction, hold no calls of this file.
#[test]
fn embedded_copies_are_never_calls() {
    let inner = claude_call("n", "Bash", json!({}));
    let progress = json!({ "type": "progress", "sessionId": "s", "data": { "type": "agent_progress", "message": inner } });
    assert_eq!(read(lines(&[progress])).counts.calls, 0);
    let mut notice = claude_call("n", "Bash", json!({}));
    notice["isApiErrorMessage"] = json!(true);
    assert_eq!(outline(&read(lines(&[notice]))), ["api_failed", "end 0 open, left open"]);
    let history =
        json!({ "replacement_history": [{ "type": "function_call", "call_id": "n", "name": "shell", "arguments": "{}" }] });
    assert_eq!(outline(&read(lines(&[codex("compacted", history)]))), ["context_compacted", "end 0 open, left open"]);
}

/// A call that an interrupt stopped is unknown, unless its turn still brings the result; a later one finds no open call.
#[test]
fn an_interrupted_call_ends_once() {
    let interrupt = claude_says("i", "[Request interrupted by user for tool use]");
    let (call_a, call_b) = (claude_call("a", "Bash", json!({})), claude_call("b", "Bash", json!({})));
    let told = read(lines(&[
        call_a.clone(),
        call_b.clone(),
        interrupt.clone(),
        claude_result("a", "Exit code 1", true),
        claude_says("p", "go on"),
        claude_result("b", "late", false),
    ]));
    let expected = [
        "call a",
        "call b",
        "turn_interrupted",
        "result a Failed { class: NonzeroExit, exit_code: Some(1) }",
        "result b Unknown(Interrupted)",
        "prompt_submitted",
        "unmatched b TooLate",
        "end 0 open, left open",
    ];
    assert_eq!(outline(&told), expected);
    assert_eq!((told.details.paired_results, told.counts.calls_without_result), (2, 0));
    let told = read(lines(&[call_a, interrupt, call_b]));
    let ends = ["result a Unknown(Interrupted)", "result b Unknown(EndOfFile)", "end 2 open, left open"];
    assert_eq!(&outline(&told)[3..], ends);
}

/// An aborted turn ends the calls of that turn only; without a turn's name it is the active one.
#[test]
fn an_aborted_turn_ends_its_own_calls() {
    let turn = |id: &str| codex("event_msg", json!({ "type": "task_started", "turn_id": id }));
    let aborted =
        |id: Option<&str>| codex("event_msg", json!({ "type": "turn_aborted", "turn_id": id, "reason": "interrupted" }));
    let call = |id: &str| codex_call(id, "exec_command", &json!({ "cmd": "sleep 9" }));
    let ended = |told: &Told| outline(told).into_iter().filter(|line| line.starts_with("result")).collect::<Vec<_>>();
    let told = read(lines(&[turn("1"), call("a"), turn("2"), call("b"), aborted(None), turn("3")]));
    assert_eq!(ended(&told), ["result b Unknown(Interrupted)", "result a Unknown(EndOfFile)"]);
    let told = read(lines(&[
        turn("1"),
        call("a"),
        turn("2"),
        call("b"),
        aborted(Some("1")),
        turn("3"),
        codex_result("b", "Exit code: 0"),
    ]));
    assert_eq!(ended(&told), ["result a Unknown(Interrupted)", "result b Succeeded"]);
}

/// Arguments are JSON text; what is not stays text. Custom input is text by nature.
#[test]
fn arguments_are_read_as_json_and_kept_as_text_where_they_are_none() {
    let call = |kind: &str, member: &str, value: Value| {
        codex("response_item", json!({ "type": kind, "call_id": "a", "name": "n", member: value }))
    };
    let table = [
        (call("function_call", "arguments", json!("{\"cmd\":\"ls\"}")), json!({ "cmd": "ls" })),
        (call("function_call", "arguments", json!("{\"cmd\":")), json!("{\"cmd\":")),
        (call("function_call", "arguments", json!("{} {}")), json!("{} {}")),
        (call("function_call", "arguments", Value::Null), Value::Null),
        (call("custom_tool_call", "input", json!("{\"cmd\":\"ls\"}")), json!("{\"cmd\":\"ls\"}")),
        (call("local_shell_call", "action", json!({ "command": ["ls"] })), json!({ "command": ["ls"] })),
        (call("tool_search_call", "arguments", json!({ "query": "x" })), json!({ "query": "x" })),
    ];
    for (record, input) in table {
        assert_eq!(calls(&read(lines(std::slice::from_ref(&record))))[0].input, input, "{record}");
    }
    // The same items stand bare in the oldest layout, with the thread in the first line.
    let bare = [
        json!({ "id": "t", "timestamp": "x", "instructions": null, "cwd": "/w" }),
        json!({ "record_type": "state" }),
        json!({ "type": "function_call", "call_id": "a", "name": "shell", "arguments": "{\"command\":[\"ls\"]}" }),
    ];
    let told = read(lines(&bare));
    let call = calls(&told)[0];
    assert_eq!((call.key.as_str(), &call.input, call.cwd.as_deref()), ("codex/t/a", &json!({ "command": ["ls"] }), Some("/w")));
}

/// What ran inside a program is an operation that already ran, child of the program; what repeats a known call is only more about it.
#[test]
fn completed_items_are_calls_only_where_nobody_else_tells_them() {
    let item = |id: &str| {
        let item = json!({ "type": "CommandExecution", "id": id, "command": ["ls"], "cwd": "/elsewhere", "exit_code": 0 });
        codex("event_msg", json!({ "type": "item_completed", "item": item }))
    };
    let program =
        codex("response_item", json!({ "type": "custom_tool_call", "call_id": "p", "name": "exec", "input": "tools.ls()" }));
    let ended = codex("response_item", json!({ "type": "custom_tool_call_output", "call_id": "p", "output": "done" }));
    let report = |id: &str| codex("event_msg", json!({ "type": "exec_command_end", "call_id": id, "exit_code": 0 }));
    let told = read(lines(&[
        codex("event_msg", json!({ "type": "task_started", "turn_id": "1" })),
        codex_call("a", "exec_command", &json!({ "cmd": "ls" })),
        item("a"),
        codex_result("a", "Process exited with code 0\nOutput:\n"),
        report("a"),
        program,
        item("x"),
        item("x"),
        ended,
        item("y"),
        report("z"),
    ]));
    let expected = [
        "turn_started",
        "call a",
        "outcome_detail",
        "result a Succeeded",
        "outcome_detail",
        "call p",
        "call x already ran",
        "result x Succeeded",
        "outcome_detail",
        "result p Succeeded",
        "call y already ran",
        "result y Succeeded",
        "tool_ended",
        "end 0 open, left open",
    ];
    assert_eq!(outline(&told), expected);
    let parents: Vec<_> = calls(&told).iter().map(|call| call.parent.as_ref().map(|parent| parent.as_str().to_owned())).collect();
    assert_eq!(parents, [None, None, Some("codex/session/p".to_owned()), None]);
    assert_eq!((told.counts.calls, told.counts.already_ran_calls), (2, 2));
    assert_eq!(calls(&told)[2].cwd.as_deref(), Some("/elsewhere"));
}

/// A fork opens with its parent's history: counted, but marked until the first turn of its own.
#[test]
fn inherited_calls_are_marked() {
    const OLD: &str = "01990000-0000-7000-8000-000000000000";
    const FORK: &str = "01990000-1000-7000-8000-000000000000";
    const OWN: &str = "01990000-1000-7fff-8000-000000000000";
    let turn = |id: &str| codex("turn_context", json!({ "turn_id": id, "cwd": "/w" }));
    let told = read(lines(&[
        codex("session_meta", json!({ "id": FORK, "forked_from_id": OLD })),
        codex("session_meta", json!({ "id": OLD })),
        turn(OLD),
        codex_call("a", "exec_command", &json!({})),
        codex_result("a", "Exit code: 0"),
        turn(OWN),
        codex_call("b", "exec_command", &json!({})),
    ]));
    let inherited: Vec<_> = calls(&told).iter().map(|call| (&*call.call_id, call.inherited)).collect();
    assert_eq!(inherited, [("a", true), ("b", false)]);
    assert_eq!((told.counts.inherited_calls, told.counts.calls, told.details.session_meta_records), (1, 2, 2));
    assert_eq!(&*told.thread.session, FORK);
    // Without a fork, nothing is inherited, whatever the turns' identifiers are.
    let told =
        read(lines(&[codex("session_meta", json!({ "id": FORK })), turn(OLD), codex_call("a", "exec_command", &json!({}))]));
    assert!(!calls(&told)[0].inherited);
}

/// A sub-agent's calls say so, and the parent's result names the sub-agent that it started.
#[test]
fn calls_of_sub_agents_are_told_apart() {
    let mut call = claude_call("a", "Bash", json!({}));
    call["isSidechain"] = json!(true);
    call["agentId"] = json!("f1");
    let text = lines(&[call]);
    let told = tell(Reader::from_read("x/subagents/agent-f1.jsonl", text.as_bytes(), ReaderOptions::default()).unwrap());
    let [call] = calls(&told)[..] else { panic!() };
    assert_eq!((call.sidechain, call.agent.as_deref(), call.key.as_str()), (true, Some("f1"), "claude/s/f1/a"));
    assert_eq!((told.counts.sidechain_calls, &*told.thread.parent.unwrap().session), (1, "s"));

    let mut result = claude_result("t", "done", false);
    result["toolUseResult"] = json!({ "agentId": "f1" });
    let told = read(lines(&[claude_call("t", "Task", json!({})), result]));
    let Event::Result(result) = &told.events[1] else { panic!() };
    assert_eq!(result.started_agent.as_deref(), Some("f1"));

    let meta = json!({ "id": "child", "parent_thread_id": "up", "source": { "subagent": { "other": "x" } } });
    let told = read(lines(&[codex("session_meta", meta), codex_call("a", "exec_command", &json!({}))]));
    assert_eq!((calls(&told)[0].sidechain, &*told.thread.parent.unwrap().session), (true, "up"));
}

/// More open calls than the reader keeps: the oldest ends as unknown, and is counted as left without a result.
#[test]
fn open_calls_are_bounded() {
    let options = ReaderOptions { open_calls: NonZeroUsize::new(2).unwrap(), ..ReaderOptions::default() };
    let text = lines(&["a", "b", "c"].map(|id| claude_call(id, "Bash", json!({}))));
    let told = tell(Reader::from_read("s.jsonl", text.as_bytes(), options).unwrap());
    assert_eq!(&outline(&told)[2..4], ["result a Unknown(TooManyOpen)", "call c"]);
    assert_eq!(told.counts.calls_without_result, 3);
}
