//! The action executor: the owner of tool calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Owner;
use crate::declare::{CanonicalError, Digest, digest_of};
use crate::interception::{Judged, ResultOn, StageSpec};
use crate::signal::Subject;

/// The owner of tool calls.
///
/// Its order: capacity -> *start* -> authorization -> intrinsic guard -> action policy -> user transform -> recheck of the guards ->
/// *pre-call evidence -> perform* -> post / error -> *terminal evidence -> projection*. The steps in italics are its own.
#[derive(Debug, Clone, Copy)]
pub struct ActionExecutor;

/// The stages of the action executor.
pub mod stage {
    /// Admission: quota and rate. Its answer is to come back later, never a denial (I-9).
    pub const CAPACITY: &str = "capacity";
    /// Own step: the attempt begins.
    pub const START: &str = "start";
    /// Guard: may this identity do this at all.
    pub const AUTHORIZATION: &str = "authorization";
    /// Guard: what the tool itself forbids.
    pub const INTRINSIC_GUARD: &str = "intrinsic_guard";
    /// Guard: the user's policy.
    pub const ACTION_POLICY: &str = "action_policy";
    /// Transform: may replace the call. The guards run again on what it made (I-5).
    pub const USER_TRANSFORM: &str = "user_transform";
    /// Own step: evidence before the call, under the governed profile.
    pub const PRE_CALL_EVIDENCE: &str = "pre_call_evidence";
    /// Own step: the call.
    pub const PERFORM: &str = "perform";
    /// Result: the call returned.
    pub const POST: &str = "post";
    /// Result: the call failed or timed out.
    pub const ERROR: &str = "error";
    /// Own step: the closing fact.
    pub const TERMINAL_EVIDENCE: &str = "terminal_evidence";
    /// Own step: what the caller sees.
    pub const PROJECTION: &str = "projection";
}

impl Owner for ActionExecutor {
    const NAME: &'static str = "action_executor";
    type Context = ToolCall;
    type Output = Value;

    fn stages() -> Vec<StageSpec> {
        vec![
            StageSpec::admission(stage::CAPACITY),
            StageSpec::own_step(stage::START),
            StageSpec::guard(stage::AUTHORIZATION),
            StageSpec::guard(stage::INTRINSIC_GUARD),
            StageSpec::guard(stage::ACTION_POLICY),
            StageSpec::transform(stage::USER_TRANSFORM),
            StageSpec::own_step(stage::PRE_CALL_EVIDENCE),
            StageSpec::own_step(stage::PERFORM),
            StageSpec::result(stage::POST, ResultOn::Returned),
            StageSpec::result(stage::ERROR, ResultOn::Error),
            StageSpec::own_step(stage::TERMINAL_EVIDENCE),
            StageSpec::own_step(stage::PROJECTION),
        ]
    }

    /// The tool, by name.
    fn subject(call: &ToolCall) -> Option<Subject> {
        Subject::new("tool", Arc::clone(&call.tool)).ok()
    }
}

/// A proposed call of a tool: what is judged, and exactly what will be performed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    tool: Arc<str>,
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "ExecutionScope::is_empty")]
    scope: ExecutionScope,
}

/// Where a call would run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionScope {
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Arc<str>>,
    /// The folder that the agent may work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
}

impl ExecutionScope {
    fn is_empty(&self) -> bool {
        self.cwd.is_none() && self.workspace.is_none()
    }
}

impl ToolCall {
    /// A call of a tool by name.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, identity: None, scope: ExecutionScope::default() }
    }

    /// Sets who calls, as the host has established it. Never taken from the model's own words.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets where it would run.
    #[must_use]
    pub fn scope(mut self, scope: ExecutionScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same call with other arguments: what a transform makes.
    #[must_use]
    pub fn with_arguments(&self, arguments: Value) -> Self {
        Self { arguments, ..self.clone() }
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Who calls, as the host has established it.
    #[must_use]
    pub fn caller(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Where it would run.
    #[must_use]
    pub fn execution_scope(&self) -> &ExecutionScope {
        &self.scope
    }
}

impl Judged for ToolCall {
    fn digest(&self) -> Result<Digest, CanonicalError> {
        digest_of(self)
    }
}
