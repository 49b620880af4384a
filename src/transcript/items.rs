//! Completed items of Codex: what ran, told after the fact.
//!
//! | `item.type` | operation | input |
//! |---|---|---|
//! | `CommandExecution` | `shell`, or `exec_command` when the command is text | `command` (argv) or `cmd` |
//! | `FileChange` | `apply_patch` | `changes` |
//! | `McpToolCall` | `mcp__server__tool` | the arguments |
//! | `Extension` | its `kind` | the item without its results |
//! | `SubAgentActivity`, `CollabAgentToolCall` | its `tool` or `kind` | the item without its results |
//! | `UserMessage`, `AgentMessage`, `Reasoning`, `Plan` | none | |

use serde_json::{Map, Value};

use super::outcome::{ErrorClass, Outcome, UnknownBecause};

/// What a completed item is.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// Something that ran.
    Ran {
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// Prose.
    Prose,
    /// A type that this version does not know.
    Unknown,
}

/// Reads an item.
pub(super) fn read(item: &Map<String, Value>) -> Item {
    let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let whole = || {
        Value::Object(item.iter().filter(|(key, _)| !is_outcome(key)).map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    let one = |key: &str, value: Value| Value::Object(Map::from_iter([(key.to_owned(), value)]));
    let kind = text("type").unwrap_or_default();
    let (name, input) = match kind {
        "CommandExecution" => match item.get("command") {
            Some(Value::String(line)) => ("exec_command".to_owned(), one("cmd", line.as_str().into())),
            command => ("shell".to_owned(), one("command", command.cloned().unwrap_or_default())),
        },
        "FileChange" => ("apply_patch".to_owned(), one("changes", item.get("changes").cloned().unwrap_or_default())),
        "McpToolCall" => {
            let name = format!("mcp__{}__{}", text("server").unwrap_or_default(), text("tool").unwrap_or_default());
            (name, item.get("arguments").cloned().unwrap_or_default())
        }
        "Extension" | "SubAgentActivity" | "CollabAgentToolCall" => {
            (text("tool").or_else(|| text("kind")).unwrap_or(kind).to_owned(), whole())
        }
        "UserMessage" | "AgentMessage" | "Reasoning" | "Plan" => return Item::Prose,
        _ => return Item::Unknown,
    };
    Item::Ran { name, input }
}

fn is_outcome(key: &str) -> bool {
    matches!(key, "result" | "results" | "error" | "stdout" | "stderr" | "aggregated_output" | "formatted_output" | "duration")
}

/// The outcome that an item tells about itself.
pub(super) fn outcome(item: &Map<String, Value>) -> Outcome {
    let failed = Outcome::error(ErrorClass::ToolOrSandboxFailure);
    let status = item.get("status").and_then(Value::as_str);
    if status == Some("declined") {
        return Outcome::error(ErrorClass::DeniedByPermission);
    }
    if let Some(code) = item.get("exit_code").and_then(Value::as_i64) {
        return Outcome::exit(code);
    }
    let result_failed = item.get("result").is_some_and(|result| result.get("isError") == Some(&Value::Bool(true)));
    if result_failed || item.get("error").is_some_and(|error| !error.is_null()) {
        return failed;
    }
    match status {
        Some("completed") => Outcome::Succeeded,
        Some("failed") => failed,
        _ => Outcome::Unknown(UnknownBecause::NotTold),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_tells_what_ran_and_how_it_ended() {
        let exit = |code| Outcome::Failed { class: ErrorClass::NonzeroExit, exit_code: Some(code) };
        let broken = Outcome::error(ErrorClass::ToolOrSandboxFailure);
        let unknown = Outcome::Unknown(UnknownBecause::NotTold);
        let table = [
            (
                json!({"type": "CommandExecution", "command": ["ls"], "exit_code": 0}),
                Some(("shell", json!({"command": ["ls"]}))),
                Outcome::Succeeded,
            ),
            (
                json!({"type": "CommandExecution", "command": "ls", "exit_code": 2}),
                Some(("exec_command", json!({"cmd": "ls"}))),
                exit(2),
            ),
            (
                json!({"type": "CommandExecution", "command": "ls", "status": "declined"}),
                Some(("exec_command", json!({"cmd": "ls"}))),
                Outcome::Refused { class: ErrorClass::DeniedByPermission },
            ),
            (
                json!({"type": "FileChange", "changes": {"/a": {}}}),
                Some(("apply_patch", json!({"changes": {"/a": {}}}))),
                unknown,
            ),
            (
                json!({"type": "McpToolCall", "server": "s", "tool": "t", "arguments": {"x": 1}, "result": {"isError": true}}),
                Some(("mcp__s__t", json!({"x": 1}))),
                broken,
            ),
            (
                json!({"type": "Extension", "kind": "web", "results": [1], "status": "completed"}),
                Some(("web", json!({"type": "Extension", "kind": "web", "status": "completed"}))),
                Outcome::Succeeded,
            ),
            (json!({"type": "Plan"}), None, unknown),
        ];
        for (item, expected, told) in table {
            let item = item.as_object().unwrap();
            let expected = expected.map_or(Item::Prose, |(name, input)| Item::Ran { name: name.into(), input });
            assert_eq!((read(item), outcome(item)), (expected, told));
        }
        assert_eq!(read(&Map::new()), Item::Unknown);
    }
}
