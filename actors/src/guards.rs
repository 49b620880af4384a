//! A policy file over tool calls.

use std::sync::Arc;

use tipstaff_core::guard::{GuardedCall, Policy};
use tipstaff_core::interception::{PlanError, Registration};
use tipstaff_core::operation::{ActionExecutor, OwnerPlan, ResultOf, ToolCall, stage};

use crate::runtime::action_plan;

/// The name of a policy's guard in plans and reports.
pub const GUARD: &str = "policy";
/// The name of a policy's transform in plans and reports.
pub const REWRITER: &str = "policy_rewrite";

/// The plan of tool calls that a policy file makes: its guard in the action policy stage, its rewrites in the user transform stage.
///
/// # Errors
/// [`PlanError`] is not expected: the names are this function's own.
pub fn policy_plan(name: impl Into<Arc<str>>, policy: &Arc<Policy>) -> Result<OwnerPlan<ActionExecutor>, PlanError> {
    let [guard, rewriter] = policy_registrations(policy);
    action_plan(name).register(guard).register(rewriter).build()
}

/// The guard and the transform of a policy, for a plan that holds other registrations too.
#[must_use]
pub fn policy_registrations(policy: &Arc<Policy>) -> [Registration<ToolCall, ResultOf<ActionExecutor>>; 2] {
    [
        policy.guard(GUARD, stage::ACTION_POLICY, view),
        policy.rewriter(REWRITER, stage::USER_TRANSFORM, view, |call, input| call.with_arguments(input)),
    ]
}

fn view(call: &ToolCall) -> GuardedCall<'_> {
    let scope = call.execution_scope();
    GuardedCall { tool: call.tool(), input: call.arguments(), cwd: scope.cwd.as_deref(), workspace: scope.workspace.as_deref() }
}
