//! The records of Codex, in all their layouts.
//!
//! | record | told as |
//! |---|---|
//! | the first `session_meta`, or the bare header | `session_started` |
//! | `turn_context` | `turn_context`, when it changed |
//! | `function_call`, `custom_tool_call`, `local_shell_call`, `tool_search_call` | a call |
//! | `web_search_call`, `image_generation_call` | `tool_ran_remotely`; counted as a call that settled itself |
//! | `function_call_output`, `custom_tool_call_output`, `tool_search_output` | the outcome of a call |
//! | `exec_command_end`, `patch_apply_end`, `mcp_tool_call_end`, `dynamic_tool_call_response` | `outcome_detail` of a known call, else `tool_ended` |
//! | `web_search_end`, `image_generation_end` | `outcome_detail` of a known call, else `tool_ran_remotely` |
//! | `item_completed` | see [`items`](super::items): `outcome_detail` of a known call, else a call that already ran |
//! | `task_started`, `turn_started`; `task_complete`, `turn_complete` | `turn_started`; `turn_ended` |
//! | `turn_aborted` | `turn_interrupted` |
//! | `compacted`, `context_compacted` | `context_compacted`, one for the pair; the history inside is never read |
//! | `thread_rolled_back`, `undo_completed` | `history_rolled_back` |
//! | `token_count`, `token_usage_record` | `budget_reading` |
//! | `user_message` | `prompt_submitted` |
//! | `error`, `guardian_assessment`, `entered_review_mode`, `exited_review_mode`, `sub_agent_activity`, `collab_*` | themselves |
//! | anything else | nothing; a kind that is not known is named |

use std::sync::Arc;

use serde_json::{Map, Value};

use super::detail::{keep, size_of};
use super::event::{LifecycleName, Place};
use super::identity::{born_at_ms, is_bare_header};
use super::items::{self, Item};
use super::ledger::{Ledger, Origin, Proposed, share};
use super::outcome;
use super::record;

type Record = Map<String, Value>;

/// The tool whose input is a program that calls other tools.
const PROGRAM: &str = "exec";
/// How many running programs are remembered as parents.
const MAX_PROGRAMS: usize = 256;

/// What the grammar remembers from record to record.
#[derive(Debug)]
pub(super) struct Codex {
    cwd: Option<Arc<str>>,
    turn: Option<Arc<str>>,
    /// The settings told last.
    context: Record,
    /// The birth of the thread, while what is read is inherited from the thread that it was forked from.
    inherited_before_ms: Option<u64>,
    started: bool,
    programs: Vec<Arc<str>>,
    /// Compactions told once of twice in this turn: by their record, and by their event.
    half_told: (u64, u64),
    kind: String,
}

impl Codex {
    pub(super) fn new(ledger: &Ledger) -> Self {
        let thread = &ledger.thread;
        Self {
            cwd: None,
            turn: None,
            context: Record::new(),
            inherited_before_ms: thread.forked_from.as_ref().and_then(|_| born_at_ms(&thread.session)),
            started: false,
            programs: Vec::new(),
            half_told: (0, 0),
            kind: String::new(),
        }
    }

    pub(super) fn read(&mut self, ledger: &mut Ledger, mut record: Record, place: Place) {
        let stamp = text(&record, "timestamp").map(Into::into);
        let envelope = match record.get_mut("payload") {
            Some(Value::Object(payload)) => Some(std::mem::take(payload)),
            _ => None,
        };
        let (outer, payload) = match envelope {
            Some(payload) => (text(&record, "type").unwrap_or("(no type)"), payload),
            None if is_bare_header(&record) => ("session_meta", record),
            None if record.contains_key("record_type") => {
                let kind = format!("record_type/{}", text(&record, "record_type").unwrap_or_default());
                ledger.counts.record_kinds.add(&kind);
                if kind != "record_type/state" {
                    ledger.counts.unknown_kinds.add(&kind);
                }
                return;
            }
            // A token usage record carries its values beside its type in some builds.
            None if text(&record, "type") == Some("token_usage_record") => ("token_usage_record", record),
            None => ("response_item", record),
        };
        self.count_kind(ledger, outer, text(&payload, "type"));
        self.follow_turn(outer, &payload);
        let mut origin = Origin::new(place);
        origin.stamp = stamp;
        origin.cwd = self.cwd.clone();
        origin.turn = self.turn.clone();
        origin.sidechain = ledger.thread.sidechain;
        origin.inherited = self.inherited_before_ms.is_some();
        match outer {
            "session_meta" => self.session_meta(ledger, &mut origin, &payload),
            "turn_context" => self.turn_context(ledger, &mut origin, &payload),
            "response_item" => self.item(ledger, &mut origin, payload),
            "event_msg" => self.event(ledger, &mut origin, &payload),
            "compacted" => self.compacted(ledger, &mut origin, true),
            "token_usage_record" => ledger.signal(&mut origin, LifecycleName::BudgetReading, None, Map::new()),
            _ => {}
        }
    }

    fn count_kind(&mut self, ledger: &mut Ledger, outer: &str, inner: Option<&str>) {
        self.kind.clear();
        self.kind.push_str(outer);
        if let ("response_item" | "event_msg", inner) = (outer, inner) {
            self.kind.push('/');
            self.kind.push_str(inner.unwrap_or("(no type)"));
        }
        ledger.counts.record_kinds.add(&self.kind);
        let known = match outer {
            "response_item" => inner.is_some_and(is_known_item),
            "event_msg" => inner.is_some_and(is_known_event),
            _ => is_known_outer(outer),
        };
        if !known {
            ledger.counts.unknown_kinds.add(&self.kind);
        }
    }

    /// The first turn that is not older than the thread ends what a fork inherited, and belongs to the thread itself.
    fn follow_turn(&mut self, outer: &str, payload: &Record) {
        let begins = outer == "turn_context"
            || matches!((outer, text(payload, "type")), ("event_msg", Some("task_started" | "turn_started")));
        let Some(turn) = text(payload, "turn_id").filter(|_| begins) else { return };
        share(&mut self.turn, Some(turn));
        if let (Some(born), Some(turn_born)) = (self.inherited_before_ms, born_at_ms(turn))
            && turn_born >= born
        {
            self.inherited_before_ms = None;
        }
    }

    fn session_meta(&mut self, ledger: &mut Ledger, origin: &mut Origin, meta: &Record) {
        ledger.details.session_meta_records += 1;
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        share(&mut self.cwd, text(meta, "cwd"));
        origin.inherited = false;
        let detail = keep(meta, &["id", "cwd", "originator", "cli_version", "forked_from_id", "model_provider"]);
        ledger.signal(origin, LifecycleName::SessionStarted, None, detail);
    }

    fn turn_context(&mut self, ledger: &mut Ledger, origin: &mut Origin, context: &Record) {
        share(&mut self.cwd, text(context, "cwd"));
        let mut detail = keep(context, &["turn_id", "cwd", "approval_policy", "model"]);
        let sandbox =
            context.get("sandbox_policy").map(|policy| policy.get("type").or_else(|| policy.get("mode")).unwrap_or(policy));
        if let Some(sandbox) = sandbox.and_then(Value::as_str) {
            detail.insert("sandbox_policy".to_owned(), sandbox.into());
        }
        if detail != self.context {
            self.context.clone_from(&detail);
            ledger.signal(origin, LifecycleName::TurnContext, None, detail);
        }
    }

    fn item(&mut self, ledger: &mut Ledger, origin: &mut Origin, item: Record) {
        let block = Value::Object(item);
        let member = |key: &str| block.get(key).and_then(Value::as_str);
        let kind = member("type").unwrap_or_default();
        let default_name = kind.strip_suffix("_call").unwrap_or(kind);
        let proposed = Proposed {
            call_id: member("call_id").or_else(|| member("id")),
            name: member("name").unwrap_or(default_name),
            namespace: member("namespace"),
            block: &block,
        };
        match kind {
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
                let Some(mut call) = ledger.call(origin, &proposed) else { return };
                call.input = input_of(block);
                if &*call.name == PROGRAM && self.programs.len() < MAX_PROGRAMS {
                    self.programs.push(call.call_id.clone());
                }
                ledger.in_turn = true;
                ledger.propose(origin, call);
            }
            "web_search_call" | "image_generation_call" => {
                let Some(call) = ledger.call(origin, &proposed) else { return };
                ledger.details.self_settled_calls += 1;
                let mut detail = block.as_object().map(|block| keep(block, &["status"])).unwrap_or_default();
                detail.insert("name".to_owned(), default_name.into());
                ledger.signal(origin, LifecycleName::ToolRanRemotely, Some(call.key), detail);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                let call_id = member("call_id").unwrap_or_default();
                let outcome = outcome::of_codex(ledger.tool_of(call_id), block.get("output"));
                ledger.result(origin, call_id, &block, outcome, None);
                self.programs.retain(|program| &**program != call_id);
            }
            _ => {}
        }
    }

    fn event(&mut self, ledger: &mut Ledger, origin: &mut Origin, event: &Record) {
        use LifecycleName as Name;
        let kind = text(event, "type").unwrap_or_default();
        match kind {
            "task_started" | "turn_started" => {
                ledger.details.turn_starts += 1;
                ledger.turn_begins();
                self.half_told = (0, 0);
                self.programs.clear();
                ledger.signal(origin, Name::TurnStarted, None, keep(event, &["turn_id"]));
            }
            "task_complete" | "turn_complete" => {
                ledger.details.turn_ends += 1;
                ledger.in_turn = false;
                ledger.signal(origin, Name::TurnEnded, None, keep(event, &["turn_id", "duration_ms"]));
            }
            "turn_aborted" => {
                ledger.counts.interrupts += 1;
                let turn = text(event, "turn_id").map(Into::into).or_else(|| self.turn.clone());
                ledger.interrupt(&turn);
                ledger.signal(origin, Name::TurnInterrupted, None, keep(event, &["turn_id", "reason"]));
            }
            "user_message" => {
                ledger.turn_begins();
                ledger.signal(origin, Name::PromptSubmitted, None, size_of(text(event, "message").unwrap_or_default()));
            }
            "context_compacted" => self.compacted(ledger, origin, false),
            "thread_rolled_back" | "undo_completed" => {
                ledger.signal(origin, Name::HistoryRolledBack, None, keep(event, &["type", "num_turns", "success"]));
            }
            "token_count" => ledger.signal(origin, Name::BudgetReading, None, budget(event)),
            "error" => {
                ledger.details.error_events += 1;
                ledger.signal(origin, Name::Error, None, keep(event, &["message", "codex_error_info"]));
            }
            "guardian_assessment" => {
                let about = text(event, "target_item_id").and_then(|id| ledger.key_of(origin, id));
                ledger.signal(origin, Name::GuardianAssessment, about, keep(event, &["status", "target_item_id", "risk_level"]));
            }
            "entered_review_mode" => ledger.signal(origin, Name::EnteredReviewMode, None, Map::new()),
            "exited_review_mode" => {
                let output = event.get("review_output").and_then(Value::as_object);
                let detail =
                    output.map(|output| keep(output, &["overall_correctness", "overall_confidence_score"])).unwrap_or_default();
                ledger.signal(origin, Name::ExitedReviewMode, None, detail);
            }
            "sub_agent_activity" => {
                ledger.signal(origin, Name::SubAgentActivity, None, keep(event, &["agent_thread_id", "agent_path", "kind"]));
            }
            "item_completed" => self.item_completed(ledger, origin, event),
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" | "dynamic_tool_call_response" => {
                ledger.details.exec_ends += u64::from(kind == "exec_command_end");
                ended(ledger, origin, event, Name::ToolEnded);
            }
            "web_search_end" | "image_generation_end" => ended(ledger, origin, event, Name::ToolRanRemotely),
            _ if kind.starts_with("collab_") => {
                let detail = keep(event, &["type", "call_id", "new_thread_id", "receiver_thread_id"]);
                ledger.signal(origin, Name::Collaboration, None, detail);
            }
            _ => {}
        }
    }

    /// The record and the event of one compaction are one: whichever comes second in a turn is not told again.
    fn compacted(&mut self, ledger: &mut Ledger, origin: &mut Origin, by_record: bool) {
        let (mine, other) = match by_record {
            true => (&mut self.half_told.0, &mut self.half_told.1),
            false => (&mut self.half_told.1, &mut self.half_told.0),
        };
        if *other > 0 {
            *other -= 1;
            return;
        }
        *mine += 1;
        ledger.counts.compactions += 1;
        ledger.signal(origin, LifecycleName::ContextCompacted, None, Map::new());
    }

    fn item_completed(&mut self, ledger: &mut Ledger, origin: &mut Origin, event: &Record) {
        let Some(item) = event.get("item").and_then(Value::as_object) else { return };
        let kind = text(item, "type").unwrap_or("(no type)");
        ledger.details.items_completed.add(kind);
        let (name, input) = match items::read(item) {
            Item::Ran { name, input } => (name, input),
            Item::Prose => return,
            Item::Unknown => {
                ledger.counts.unknown_kinds.add(&format!("event_msg/item_completed/{kind}"));
                return;
            }
        };
        let named = text(item, "call_id").or_else(|| text(item, "id"));
        if let Some(about) = named.and_then(|id| ledger.key_of(origin, id)) {
            ledger.signal(origin, LifecycleName::OutcomeDetail, Some(about), keep(item, &["type", "status", "exit_code"]));
            return;
        }
        let at_place;
        let call_id = match named {
            Some(id) => id,
            None => {
                at_place = format!("@{}.{}", origin.place.offset, origin.place.part);
                &at_place
            }
        };
        let parent = self.programs.last().and_then(|program| ledger.key_of(origin, program));
        if let Some(cwd) = text(item, "cwd") {
            origin.cwd = Some(cwd.into());
        }
        ledger.already_ran(origin, call_id, &name, input, parent, items::outcome(item));
    }
}

/// A tool's own report of its end: more about a known call, and never a second operation.
fn ended(ledger: &mut Ledger, origin: &mut Origin, event: &Record, else_told_as: LifecycleName) {
    let about = text(event, "call_id").and_then(|id| ledger.key_of(origin, id));
    let name = if about.is_some() { LifecycleName::OutcomeDetail } else { else_told_as };
    ledger.signal(origin, name, about, keep(event, &["type", "call_id", "exit_code", "status", "success"]));
}

/// The input of a call: arguments are JSON text, all else stands as it is.
fn input_of(mut block: Value) -> Value {
    let (member, is_json_text) = match block.get("type").and_then(Value::as_str) {
        Some("custom_tool_call") => ("input", false),
        Some("local_shell_call") => ("action", true),
        _ => ("arguments", true),
    };
    match block.get_mut(member).map(Value::take).unwrap_or_default() {
        Value::String(text) if is_json_text => record::inner(&text).unwrap_or(Value::String(text)),
        input => input,
    }
}

fn budget(event: &Record) -> Record {
    let total = |key: &str| event.get("info").and_then(|info| info.pointer(&format!("/total_token_usage/{key}"))).cloned();
    let used = |key: &str| event.get("rate_limits").and_then(|limits| limits.pointer(&format!("/{key}/used_percent"))).cloned();
    let members = [
        ("total_tokens", total("total_tokens")),
        ("output_tokens", total("output_tokens")),
        ("model_context_window", event.get("info").and_then(|info| info.get("model_context_window")).cloned()),
        ("primary_used_percent", used("primary")),
        ("secondary_used_percent", used("secondary")),
    ];
    let numbers = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.filter(Value::is_number)?)));
    numbers.collect()
}

fn is_known_outer(kind: &str) -> bool {
    matches!(
        kind,
        "session_meta"
            | "turn_context"
            | "compacted"
            | "world_state"
            | "inter_agent_communication"
            | "inter_agent_communication_metadata"
            | "token_usage_record"
    )
}

fn is_known_item(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "agent_message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "tool_search_call"
            | "tool_search_output"
            | "web_search_call"
            | "image_generation_call"
            | "compaction"
            | "compaction_summary"
            | "ghost_snapshot"
    )
}

fn is_known_event(kind: &str) -> bool {
    const PREFIXES: [&str; 4] = ["agent_", "collab_", "thread_", "mcp_"];
    const SUFFIXES: [&str; 4] = ["_begin", "_end", "_delta", "_request"];
    matches!(
        kind,
        "task_started"
            | "task_complete"
            | "turn_started"
            | "turn_complete"
            | "turn_aborted"
            | "turn_diff"
            | "user_message"
            | "context_compacted"
            | "undo_started"
            | "undo_completed"
            | "token_count"
            | "error"
            | "warning"
            | "stream_error"
            | "background_event"
            | "guardian_assessment"
            | "entered_review_mode"
            | "exited_review_mode"
            | "sub_agent_activity"
            | "item_started"
            | "item_completed"
            | "plan_update"
            | "view_image_tool_call"
            | "dynamic_tool_call_response"
            | "session_configured"
            | "shutdown_complete"
    ) || PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| kind.ends_with(suffix))
}

fn text<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    record.get(key).and_then(Value::as_str)
}
