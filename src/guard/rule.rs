//! The guards of a policy, as they were declared.

use std::sync::Arc;

use serde_json::{Value, json};

use super::paths::Place;

/// One guard.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) name: Arc<str>,
    /// The tools it is for; nothing: every tool of its kind.
    pub(super) tools: Option<Vec<String>>,
    pub(super) rule: Rule,
    pub(super) action: Action,
    pub(super) reason: Option<Arc<str>>,
}

/// What a guard looks at.
#[derive(Debug)]
pub(super) enum Rule {
    /// Simple commands.
    Command(CommandRule),
    /// Text that moves from one program into another.
    Flow { from: Vec<String>, to: Vec<String> },
    /// Paths that are in none of some places.
    Path(Vec<Place>),
}

/// A command matches when all members that are given match.
#[derive(Debug)]
pub(super) struct CommandRule {
    pub(super) program: String,
    /// Any of these is the subcommand.
    pub(super) subcommand: Vec<String>,
    /// Any of these, or of `words`, is given.
    pub(super) options: Vec<String>,
    /// Of each group, any is given.
    pub(super) options_all: Vec<Vec<String>>,
    /// Any word matches any of these patterns (or any of `options` is given).
    pub(super) words: Vec<String>,
    /// An operand is in none of these places.
    pub(super) outside: Option<Vec<Place>>,
}

/// What a match means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Ask,
    Allow,
    Record,
    /// The program word is replaced.
    Rewrite {
        program: String,
    },
}

/// The meaning of a policy, independent of layout, comments and the order of keys. Members are named in the order of their names.
pub(super) fn meaning(temporary: &[String], guards: &[Guard]) -> Value {
    json!({
        "guards": guards.iter().map(Guard::meaning).collect::<Vec<_>>(),
        "schema": "tipstaff.policy/1",
        "temporary_folders": temporary,
    })
}

impl Guard {
    fn meaning(&self) -> Value {
        let action = match &self.action {
            Action::Deny => json!("deny"),
            Action::Ask => json!("ask"),
            Action::Allow => json!("allow"),
            Action::Record => json!("record"),
            Action::Rewrite { program } => json!({ "rewrite": { "program": program } }),
        };
        let rule = match &self.rule {
            Rule::Command(rule) => json!({ "command": {
                "operands_outside": rule.outside.as_deref().map(places),
                "options": rule.options,
                "options_all": rule.options_all,
                "program": rule.program,
                "subcommand": rule.subcommand,
                "words": rule.words,
            } }),
            Rule::Flow { from, to } => json!({ "flow": { "from": from, "to": to } }),
            Rule::Path(outside) => json!({ "path": { "outside": places(outside) } }),
        };
        json!({ "action": action, "name": &*self.name, "reason": self.reason.as_deref(), "rule": rule, "tools": self.tools })
    }
}

fn places(places: &[Place]) -> Value {
    let place = |place: &Place| match place {
        Place::Workspace => json!("workspace"),
        Place::Temporary => json!("temporary"),
        Place::Folder(folder) => json!({ "folder": folder }),
    };
    places.iter().map(place).collect()
}
