//! The moments of a session's life: told once, in file order, under stable identities.

use serde_json::{Value, json};
use tipstaff_core::transcript::{Event, LifecycleName};

use super::{claude_call, claude_says, codex, codex_call, lines, outline, read};

fn names(records: &[Value]) -> Vec<&'static str> {
    let told = read(lines(records));
    let name = |event: &Event| match event {
        Event::Lifecycle(moment) => Some(moment.name.as_str()),
        _ => None,
    };
    told.events.iter().filter_map(name).collect()
}

fn system(subtype: &str) -> Value {
    json!({ "type": "system", "subtype": subtype, "sessionId": "s" })
}

fn event(payload: Value) -> Value {
    codex("event_msg", payload)
}

/// Every row of the table of Claude Code's records.
#[test]
fn the_records_of_claude_code_are_told() {
    let attachment = |kind: &str| json!({ "type": "attachment", "sessionId": "s", "attachment": { "type": kind } });
    let queue = |operation: &str, content: &str| json!({ "type": "queue-operation", "sessionId": "s", "operation": operation, "content": content });
    let remote = json!({ "type": "server_tool_use", "id": "x", "name": "web_search" });
    let table: [(Value, &[&str]); 20] = [
        (claude_says("a", "do it"), &["prompt_submitted"]),
        (claude_says("a", "[Request interrupted by user]"), &["turn_interrupted"]),
        (json!({ "type": "user", "sessionId": "s", "isMeta": true, "message": { "content": "x" } }), &[]),
        (json!({ "type": "user", "sessionId": "s", "isCompactSummary": true, "message": { "content": "x" } }), &[]),
        (
            json!({ "type": "assistant", "sessionId": "s", "message": { "content": [remote, remote] } }),
            &["tool_ran_remotely", "tool_ran_remotely"],
        ),
        (
            json!({ "type": "assistant", "sessionId": "s", "isApiErrorMessage": true, "message": { "content": [] } }),
            &["api_failed"],
        ),
        (system("compact_boundary"), &["context_compacted"]),
        (system("microcompact_boundary"), &["context_compacted"]),
        (system("api_error"), &["api_retry"]),
        (system("turn_duration"), &["turn_ended"]),
        (system("stop_hook_summary"), &["hooks_ran", "turn_ended"]),
        (system("away_summary"), &[]),
        (attachment("hook_success"), &["hooks_ran"]),
        (attachment("queued_command"), &[]),
        (queue("enqueue", "<task-notification>x"), &["background_done"]),
        (queue("remove", "<task-notification>x"), &[]),
        (queue("enqueue", "x"), &[]),
        (json!({ "type": "progress", "sessionId": "s", "data": { "type": "hook_progress" } }), &[]),
        (json!({ "type": "summary", "leafUuid": "x" }), &[]),
        (json!({ "type": "novelty", "sessionId": "s" }), &[]),
    ];
    for (record, expected) in table {
        assert_eq!(names(std::slice::from_ref(&record)), expected, "{record}");
    }
}

/// Every row of the table of Codex's records.
#[test]
fn the_records_of_codex_are_told() {
    let item = |kind: &str| codex("response_item", json!({ "type": kind, "id": "x", "status": "completed" }));
    let end = |kind: &str| event(json!({ "type": kind, "call_id": "x" }));
    let plain = |kind: &str| event(json!({ "type": kind }));
    let table: [(Value, &[&str]); 32] = [
        (codex("session_meta", json!({ "id": "t" })), &["session_started"]),
        (codex("turn_context", json!({ "cwd": "/w" })), &["turn_context"]),
        (item("web_search_call"), &["tool_ran_remotely"]),
        (item("image_generation_call"), &["tool_ran_remotely"]),
        (item("message"), &[]),
        (item("reasoning"), &[]),
        (end("exec_command_end"), &["tool_ended"]),
        (end("patch_apply_end"), &["tool_ended"]),
        (end("mcp_tool_call_end"), &["tool_ended"]),
        (end("web_search_end"), &["tool_ran_remotely"]),
        (end("image_generation_end"), &["tool_ran_remotely"]),
        (plain("task_started"), &["turn_started"]),
        (plain("turn_started"), &["turn_started"]),
        (plain("task_complete"), &["turn_ended"]),
        (plain("turn_complete"), &["turn_ended"]),
        (plain("turn_aborted"), &["turn_interrupted"]),
        (codex("compacted", json!({})), &["context_compacted"]),
        (plain("context_compacted"), &["context_compacted"]),
        (plain("thread_rolled_back"), &["history_rolled_back"]),
        (plain("undo_completed"), &["history_rolled_back"]),
        (plain("token_count"), &["budget_reading"]),
        (codex("token_usage_record", json!({})), &["budget_reading"]),
        (plain("error"), &["error"]),
        (plain("guardian_assessment"), &["guardian_assessment"]),
        (plain("entered_review_mode"), &["entered_review_mode"]),
        (plain("exited_review_mode"), &["exited_review_mode"]),
        (plain("sub_agent_activity"), &["sub_agent_activity"]),
        (plain("collab_agent_spawn_end"), &["collaboration"]),
        (plain("user_message"), &["prompt_submitted"]),
        (event(json!({ "type": "item_completed", "item": { "type": "AgentMessage", "id": "x" } })), &[]),
        (plain("thread_name_updated"), &[]),
        (codex("world_state", json!({})), &[]),
    ];
    for (record, expected) in table {
        assert_eq!(names(std::slice::from_ref(&record)), expected, "{record}");
    }
}

/// A turn ends once, however many records say so; a record written twice tells nothing twice.
#[test]
fn nothing_is_told_twice() {
    let turn = [claude_says("p", "x"), system("stop_hook_summary"), system("turn_duration")];
    let twice: Vec<_> = turn.iter().cloned().chain([claude_says("q", "y")]).chain(turn[1..].to_vec()).collect();
    let expected = ["prompt_submitted", "hooks_ran", "turn_ended", "prompt_submitted", "hooks_ran", "turn_ended"];
    assert_eq!(names(&twice), expected);
    assert_eq!(names(&[claude_says("p", "x"), claude_says("p", "x")]), ["prompt_submitted"]);

    let (record, marker) = (codex("compacted", json!({})), event(json!({ "type": "context_compacted" })));
    for pair in [[record.clone(), marker.clone()], [marker, record]] {
        let told = read(lines(&[pair.clone(), pair].concat()));
        assert_eq!((told.counts.compactions, outline(&told).len()), (2, 3));
    }
    let meta = codex("session_meta", json!({ "id": "t" }));
    let context = codex("turn_context", json!({ "cwd": "/w", "model": "m" }));
    assert_eq!(names(&[meta.clone(), meta, context.clone(), context]), ["session_started", "turn_context"]);
}

/// A file ends clean when its last turn ended and every call has its result.
#[test]
fn the_end_says_whether_anything_was_left_open() {
    let last = |records: &[Value]| outline(&read(lines(records))).pop().unwrap();
    let (call, ended) = (claude_call("a", "Bash", json!({})), system("turn_duration"));
    assert_eq!(last(&[claude_says("p", "x"), ended.clone()]), "end 0 open, clean");
    assert_eq!(last(&[call.clone(), ended.clone()]), "end 1 open, left open");
    assert_eq!(last(&[ended, claude_says("p", "x")]), "end 0 open, left open");
    let mut answer = call;
    answer["message"] = json!({ "content": [{ "type": "text", "text": "done" }], "stop_reason": "end_turn" });
    assert_eq!(last(&[claude_says("p", "x"), answer]), "end 0 open, clean");
    let complete = event(json!({ "type": "task_complete" }));
    assert_eq!(last(&[codex_call("a", "exec_command", &json!({})), complete.clone()]), "end 1 open, left open");
    assert_eq!(last(&[complete]), "end 0 open, clean");
}

/// Prompts and outputs are not in what a moment tells, and no text in it is long.
#[test]
fn what_a_moment_tells_is_small() {
    let secret = "the password is swordfish ".repeat(40);
    let told = read(lines(&[
        claude_says("p", &secret),
        json!({ "type": "attachment", "sessionId": "s", "attachment": { "type": "hook_success", "hookName": secret, "stdout": secret } }),
    ]));
    for moment in &told.events {
        if let Event::Lifecycle(moment) = moment {
            assert!(moment.detail.to_string().len() < 400, "{}", moment.detail);
            assert!(moment.name != LifecycleName::PromptSubmitted || moment.detail == json!({ "bytes": secret.len() }));
        }
    }
}
