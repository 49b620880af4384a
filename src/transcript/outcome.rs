//! How a call ended, read from the first words of its result.
//!
//! | Claude Code, `is_error: true` and text | class | effect |
//! |---|---|---|
//! | `The user doesn't want to ...` | `rejected_by_user` | none |
//! | `Permission to use ... denied ...` | `denied_by_permission` | none |
//! | `PreToolUse:...` | `denied_by_hook` | none |
//! | `<tool_use_error>Sibling tool call errored` | `sibling_failed` | none |
//! | `<tool_use_error>...` | `tool_use_error` | none |
//! | `Exit code N` | `nonzero_exit` | perhaps |
//! | anything else | `other` | perhaps |
//!
//! | Codex, text | class |
//! |---|---|
//! | JSON with `metadata.exit_code` other than 0 | `nonzero_exit` |
//! | header line `Process exited with code N` or `Exit code: N`, N other than 0 | `nonzero_exit` |
//! | `aborted by user after ...` | `aborted_by_user` |
//! | `tool call error: ...`, `failed in sandbox ...`, an object with `success: false` | `tool_or_sandbox_failure` |
//! | a command's text without an exit code | none: unknown, for its process may still run |

use serde_json::Value;

use super::record;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It ran and returned.
    Succeeded,
    /// It ran, perhaps in part, and failed.
    Failed {
        /// In which way.
        class: ErrorClass,
        /// The exit code of its process, where one is told.
        exit_code: Option<i64>,
    },
    /// It was refused before it had an effect. This is the original's refusal, never one of a replayed policy.
    Refused {
        /// By whom.
        class: ErrorClass,
    },
    /// It is not known whether, or how far, it ran.
    Unknown(UnknownBecause),
}

impl Outcome {
    /// The class of an error, if it is one.
    #[must_use]
    pub const fn class(&self) -> Option<ErrorClass> {
        match self {
            Self::Failed { class, .. } | Self::Refused { class } => Some(*class),
            Self::Succeeded | Self::Unknown(_) => None,
        }
    }

    pub(super) const fn error(class: ErrorClass) -> Self {
        if class.had_no_effect() { Self::Refused { class } } else { Self::Failed { class, exit_code: None } }
    }

    pub(super) const fn exit(code: i64) -> Self {
        if code == 0 { Self::Succeeded } else { Self::Failed { class: ErrorClass::NonzeroExit, exit_code: Some(code) } }
    }
}

/// Why an outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnknownBecause {
    /// A result is there, but does not say: a command returned without an exit code, or its text was removed.
    NotTold,
    /// The turn was interrupted and no result followed in it.
    Interrupted,
    /// The file ended. A later reading of the grown file may know more.
    EndOfFile,
    /// More calls were open than the reader keeps.
    TooManyOpen,
}

impl UnknownBecause {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotTold => "not_told",
            Self::Interrupted => "interrupted",
            Self::EndOfFile => "end_of_file",
            Self::TooManyOpen => "too_many_open",
        }
    }
}

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The user said no.
    RejectedByUser,
    /// A rule or a mode said no.
    DeniedByPermission,
    /// A hook said no.
    DeniedByHook,
    /// Another call of the same message failed first.
    SiblingFailed,
    /// The tool refused its input.
    ToolUseError,
    /// A process ended with another code than 0.
    NonzeroExit,
    /// The user stopped it while it ran.
    AbortedByUser,
    /// The tool, or the sandbox around it, failed.
    ToolOrSandboxFailure,
    /// Any other error.
    Other,
}

impl ErrorClass {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RejectedByUser => "rejected_by_user",
            Self::DeniedByPermission => "denied_by_permission",
            Self::DeniedByHook => "denied_by_hook",
            Self::SiblingFailed => "sibling_failed",
            Self::ToolUseError => "tool_use_error",
            Self::NonzeroExit => "nonzero_exit",
            Self::AbortedByUser => "aborted_by_user",
            Self::ToolOrSandboxFailure => "tool_or_sandbox_failure",
            Self::Other => "other",
        }
    }

    /// Whether the call was refused before it had an effect.
    #[must_use]
    pub const fn had_no_effect(self) -> bool {
        match self {
            Self::RejectedByUser | Self::DeniedByPermission | Self::DeniedByHook | Self::SiblingFailed | Self::ToolUseError => {
                true
            }
            Self::NonzeroExit | Self::AbortedByUser | Self::ToolOrSandboxFailure | Self::Other => false,
        }
    }
}

/// The outcome that a Claude Code `tool_result` block tells.
pub(super) fn of_claude(is_error: bool, content: Option<&Value>) -> Outcome {
    if !is_error {
        return Outcome::Succeeded;
    }
    let text = content.and_then(first_text).unwrap_or_default();
    if let Some(code) = text.strip_prefix("Exit code ").and_then(leading_number) {
        return Outcome::Failed { class: ErrorClass::NonzeroExit, exit_code: Some(code) };
    }
    let class = if text.starts_with("The user doesn't want to") {
        ErrorClass::RejectedByUser
    } else if text.starts_with("Permission to use ") && text.contains("denied") {
        ErrorClass::DeniedByPermission
    } else if text.starts_with("PreToolUse:") {
        ErrorClass::DeniedByHook
    } else if let Some(error) = text.strip_prefix("<tool_use_error>") {
        if error.starts_with("Sibling tool call errored") { ErrorClass::SiblingFailed } else { ErrorClass::ToolUseError }
    } else {
        ErrorClass::Other
    };
    Outcome::error(class)
}

/// The outcome that a Codex output tells about a call of the tool `name`.
pub(super) fn of_codex(name: Option<&str>, output: Option<&Value>) -> Outcome {
    let Some(output) = output else { return Outcome::Succeeded };
    if output.get("success").and_then(Value::as_bool) == Some(false) {
        return Outcome::error(ErrorClass::ToolOrSandboxFailure);
    }
    if let Some(code) = output.pointer("/metadata/exit_code").and_then(Value::as_i64) {
        return Outcome::exit(code);
    }
    let text = first_text(output).unwrap_or_default();
    if let Some(code) = exit_code_of_text(text) {
        return Outcome::exit(code);
    }
    if text.starts_with("tool call error:") || text.starts_with("failed in sandbox") {
        return Outcome::error(ErrorClass::ToolOrSandboxFailure);
    }
    if text.starts_with("aborted by user after") {
        return Outcome::error(ErrorClass::AbortedByUser);
    }
    if name.is_some_and(runs_a_process) { Outcome::Unknown(UnknownBecause::NotTold) } else { Outcome::Succeeded }
}

/// Tools of Codex whose success is an exit code.
fn runs_a_process(name: &str) -> bool {
    matches!(name, "shell" | "shell_command" | "exec_command" | "write_stdin" | "local_shell" | "container.exec" | "unified_exec")
}

/// How many lines of an output may be its header: the known ones have four, and a line `Output:` ends them.
const HEADER_LINES: usize = 8;

fn exit_code_of_text(text: &str) -> Option<i64> {
    if text.starts_with('{') && text.contains("exit_code") {
        return record::inner(text)?.pointer("/metadata/exit_code").and_then(Value::as_i64);
    }
    let header = text.lines().take(HEADER_LINES).take_while(|line| *line != "Output:");
    header
        .filter_map(|line| line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: ")))
        .find_map(leading_number)
}

fn leading_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    text[..text.len() - digits.len() + end].parse().ok()
}

/// The text of a result: itself, its first text block, or the text inside the object.
fn first_text(content: &Value) -> Option<&str> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(blocks) => blocks.iter().find_map(|block| block.get("text").and_then(Value::as_str)),
        Value::Object(object) => object.get("text").or_else(|| object.get("content")).and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(exit_code: i64) -> Outcome {
        Outcome::Failed { class: ErrorClass::NonzeroExit, exit_code: Some(exit_code) }
    }

    #[test]
    fn the_first_words_of_an_error_class_it() {
        let table = [
            ("The user doesn't want to proceed with this tool use.", Outcome::Refused { class: ErrorClass::RejectedByUser }),
            (
                "Permission to use Bash with command x has been denied.",
                Outcome::Refused { class: ErrorClass::DeniedByPermission },
            ),
            ("PreToolUse:Bash hook said no", Outcome::Refused { class: ErrorClass::DeniedByHook }),
            ("<tool_use_error>Sibling tool call errored</tool_use_error>", Outcome::Refused { class: ErrorClass::SiblingFailed }),
            ("<tool_use_error>InputValidationError: x</tool_use_error>", Outcome::Refused { class: ErrorClass::ToolUseError }),
            ("Exit code 128\nfatal", failed(128)),
            ("Exit code of nothing", Outcome::Failed { class: ErrorClass::Other, exit_code: None }),
            ("", Outcome::Failed { class: ErrorClass::Other, exit_code: None }),
        ];
        for (text, expected) in table {
            assert_eq!(of_claude(true, Some(&json!(text))), expected, "{text}");
            assert_eq!(of_claude(true, Some(&json!([{ "type": "text", "text": text }]))), expected, "{text}, as a block");
            assert_eq!(of_claude(false, Some(&json!(text))), Outcome::Succeeded, "{text}, no error");
        }
    }

    #[test]
    fn a_command_without_an_exit_code_is_unknown() {
        let unknown = Outcome::Unknown(UnknownBecause::NotTold);
        let broken = Outcome::Failed { class: ErrorClass::ToolOrSandboxFailure, exit_code: None };
        let table = [
            ("exec_command", json!("Chunk ID: a\nWall time: 1\nProcess exited with code 0\nOutput:\nx"), Outcome::Succeeded),
            ("exec_command", json!("Chunk ID: a\nProcess exited with code 127\nOutput:\nx"), failed(127)),
            (
                "exec_command",
                json!("Chunk ID: a\nProcess running with session ID 7\nOutput:\nProcess exited with code 1"),
                unknown,
            ),
            ("shell", json!("{\"output\":\"\",\"metadata\":{\"exit_code\":2}}"), failed(2)),
            ("shell", json!("{\"output\":\"\",\"metadata\":{\"exit_code\":0}}"), Outcome::Succeeded),
            ("shell", json!("{\"output\":\"exit_code"), unknown),
            ("shell", json!("failed in sandbox x"), broken),
            ("shell", json!("aborted by user after 3 s"), Outcome::Failed { class: ErrorClass::AbortedByUser, exit_code: None }),
            ("memory__add", json!("tool call error: x"), broken),
            ("memory__add", json!({ "content": "x", "success": false }), broken),
            ("memory__add", json!([{ "type": "input_text", "text": "Exit code: -1" }]), failed(-1)),
            ("memory__add", json!(null), Outcome::Succeeded),
        ];
        for (name, output, expected) in table {
            assert_eq!(of_codex(Some(name), Some(&output)), expected, "{name} {output}");
        }
    }
}
