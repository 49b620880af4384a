//! The records of Claude Code.
//!
//! | record | told as |
//! |---|---|
//! | `assistant` with `tool_use` | a call |
//! | `assistant` with `server_tool_use` | `tool_ran_remotely` |
//! | `assistant` with `isApiErrorMessage` | `api_failed`; nothing in it is a call |
//! | `user` with `tool_result` | the outcome of a call |
//! | `user`, text `[Request interrupted by user...` | `turn_interrupted` |
//! | `user`, other text, unless `isMeta` or `isCompactSummary` | `prompt_submitted` |
//! | `system`: `compact_boundary`, `microcompact_boundary` | `context_compacted` |
//! | `system`: `api_error` | `api_retry` |
//! | `system`: `turn_duration`, `stop_hook_summary` | `turn_ended`, once a turn; the latter also `hooks_ran` |
//! | `attachment`: `hook_*` | `hooks_ran` |
//! | `queue-operation` `enqueue` of a `<task-notification>` | `background_done` |
//! | `progress`, whatever messages it embeds | nothing |
//! | anything else | nothing; a kind that is not known is named |

use std::sync::Arc;

use serde_json::{Map, Value};

use super::detail::{keep, size_of};
use super::event::{LifecycleName, Place};
use super::ledger::{Ledger, Origin, Proposed, share};
use super::outcome;

type Record = Map<String, Value>;

/// What the grammar remembers from record to record.
#[derive(Debug, Default)]
pub(super) struct Claude {
    cwd: Option<Arc<str>>,
    agent: Option<Arc<str>>,
    kind: String,
    /// Whether the end of the current turn was told.
    turn_ended: bool,
}

impl Claude {
    pub(super) fn read(&mut self, ledger: &mut Ledger, mut record: Record, place: Place) {
        let mut origin = self.origin(&record, place);
        ledger.details.sidechain_records += u64::from(origin.sidechain);
        self.count_kind(ledger, &record);
        match text(&record, "type").unwrap_or_default() {
            "assistant" => {
                self.turn_ended = false;
                assistant(ledger, &mut origin, &mut record);
            }
            "user" => {
                self.turn_ended = false;
                user(ledger, &mut origin, &record);
            }
            "system" => self.system(ledger, &mut origin, &record),
            "attachment" => attachment(ledger, &mut origin, &record),
            "queue-operation" => queue_operation(ledger, &mut origin, &record),
            _ => {}
        }
    }

    fn origin(&mut self, record: &Record, place: Place) -> Origin {
        let mut origin = Origin::new(place);
        origin.stamp = text(record, "timestamp").map(Into::into);
        origin.record_id = text(record, "uuid").map(Into::into);
        origin.cwd = share(&mut self.cwd, text(record, "cwd"));
        origin.agent = share(&mut self.agent, text(record, "agentId"));
        origin.sidechain = origin.agent.is_some() || flag(record, "isSidechain");
        origin
    }

    fn count_kind(&mut self, ledger: &mut Ledger, record: &Record) {
        let kind = text(record, "type").unwrap_or("(no type)");
        let (object, member) = match kind {
            "system" => (Some(record), "subtype"),
            "progress" => (record.get("data").and_then(Value::as_object), "type"),
            "attachment" => (record.get("attachment").and_then(Value::as_object), "type"),
            _ => (None, ""),
        };
        self.kind.clear();
        self.kind.push_str(kind);
        if let Some(member) = object.and_then(|object| text(object, member)) {
            self.kind.push('/');
            self.kind.push_str(member);
        }
        ledger.counts.record_kinds.add(&self.kind);
        if !is_known(kind) {
            ledger.counts.unknown_kinds.add(kind);
        }
    }

    fn system(&mut self, ledger: &mut Ledger, origin: &mut Origin, record: &Record) {
        match text(record, "subtype") {
            Some("compact_boundary") => {
                ledger.counts.compactions += 1;
                let detail = record.get("compactMetadata").and_then(Value::as_object);
                let detail = detail.map(|detail| keep(detail, &["trigger", "preTokens"])).unwrap_or_default();
                ledger.signal(origin, LifecycleName::ContextCompacted, None, detail);
            }
            Some("microcompact_boundary") => {
                ledger.details.micro_compactions += 1;
                let detail = Map::from_iter([("minor".to_owned(), Value::Bool(true))]);
                ledger.signal(origin, LifecycleName::ContextCompacted, None, detail);
            }
            Some("api_error") => {
                ledger.details.api_error_records += 1;
                ledger.signal(origin, LifecycleName::ApiRetry, None, keep(record, &["retryAttempt", "maxRetries", "retryInMs"]));
            }
            Some("stop_hook_summary") => {
                ledger.signal(
                    origin,
                    LifecycleName::HooksRan,
                    None,
                    keep(record, &["hookCount", "preventedContinuation", "stopReason"]),
                );
                self.turn_ended(ledger, origin, Map::new());
            }
            Some("turn_duration") => self.turn_ended(ledger, origin, keep(record, &["durationMs"])),
            _ => {}
        }
    }

    /// The end of a turn is told by the first of the records that say so.
    fn turn_ended(&mut self, ledger: &mut Ledger, origin: &mut Origin, detail: Map<String, Value>) {
        if std::mem::replace(&mut self.turn_ended, true) {
            return;
        }
        ledger.details.turn_ends += 1;
        ledger.in_turn = false;
        ledger.signal(origin, LifecycleName::TurnEnded, None, detail);
    }
}

fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "assistant"
            | "user"
            | "system"
            | "attachment"
            | "queue-operation"
            | "progress"
            | "summary"
            | "ai-title"
            | "custom-title"
            | "agent-name"
            | "last-prompt"
            | "mode"
            | "permission-mode"
            | "file-history-snapshot"
            | "file-history-delta"
            | "pr-link"
            | "worktree-state"
            | "relocated"
            | "bridge-session"
            | "atis-latch"
            | "started"
            | "result"
    )
}

fn assistant(ledger: &mut Ledger, origin: &mut Origin, record: &mut Record) {
    if flag(record, "isApiErrorMessage") {
        ledger.details.api_error_messages += 1;
        ledger.signal(origin, LifecycleName::ApiFailed, None, keep(record, &["error", "requestId"]));
        return;
    }
    // A message that the model ended by itself ends the turn too, in builds that write no record of it.
    ledger.in_turn =
        record.get("message").and_then(|message| message.get("stop_reason")).and_then(Value::as_str) != Some("end_turn");
    let Some(Value::Array(blocks)) = record.get_mut("message").and_then(|message| message.get_mut("content")) else { return };
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => {
                let proposed = Proposed {
                    call_id: block.get("id").and_then(Value::as_str),
                    name: block.get("name").and_then(Value::as_str).unwrap_or("(no name)"),
                    namespace: None,
                    block,
                };
                if let Some(mut call) = ledger.call(origin, &proposed) {
                    call.input = block.get_mut("input").map(Value::take).unwrap_or_default();
                    ledger.propose(origin, call);
                }
            }
            Some("server_tool_use") => {
                ledger.details.server_tool_uses += 1;
                let detail = block.as_object().map(|block| keep(block, &["id", "name"])).unwrap_or_default();
                ledger.signal(origin, LifecycleName::ToolRanRemotely, None, detail);
            }
            _ => {}
        }
    }
}

fn user(ledger: &mut Ledger, origin: &mut Origin, record: &Record) {
    let started_agent = record.get("toolUseResult").and_then(|result| result.get("agentId")).and_then(Value::as_str);
    let mut spoken: Option<&str> = None;
    let mut answers = false;
    match record.get("message").and_then(|message| message.get("content")) {
        Some(Value::String(text)) => spoken = Some(text),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match block.get("type").and_then(Value::as_str) {
                    Some("tool_result") => {
                        answers = true;
                        let is_error = block.get("is_error") == Some(&Value::Bool(true));
                        let outcome = outcome::of_claude(is_error, block.get("content"));
                        let call_id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
                        ledger.result(origin, call_id, block, outcome, started_agent.map(Into::into));
                    }
                    Some("text") => spoken = spoken.or_else(|| block.get("text").and_then(Value::as_str)),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    if answers {
        ledger.in_turn = true;
    }
    let Some(spoken) = spoken else { return };
    if spoken.starts_with("[Request interrupted by user") {
        ledger.counts.interrupts += 1;
        ledger.interrupt(&origin.turn);
        ledger.signal(origin, LifecycleName::TurnInterrupted, None, Map::new());
    } else if !answers && !flag(record, "isMeta") && !flag(record, "isCompactSummary") {
        ledger.turn_begins();
        ledger.signal(origin, LifecycleName::PromptSubmitted, None, size_of(spoken));
    }
}

fn attachment(ledger: &mut Ledger, origin: &mut Origin, record: &Record) {
    let Some(attachment) = record.get("attachment").and_then(Value::as_object) else { return };
    if text(attachment, "type").is_some_and(|kind| kind.starts_with("hook_")) {
        let detail = keep(attachment, &["type", "hookEvent", "hookName", "toolUseID", "exitCode", "durationMs"]);
        ledger.signal(origin, LifecycleName::HooksRan, None, detail);
    }
}

fn queue_operation(ledger: &mut Ledger, origin: &mut Origin, record: &Record) {
    let notified = text(record, "content").is_some_and(|content| content.trim_start().starts_with("<task-notification>"));
    if notified && text(record, "operation") == Some("enqueue") {
        ledger.signal(origin, LifecycleName::BackgroundDone, None, Map::new());
    }
}

fn text<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    record.get(key).and_then(Value::as_str)
}

fn flag(record: &Record, key: &str) -> bool {
    record.get(key) == Some(&Value::Bool(true))
}
