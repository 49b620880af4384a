//! A guardrail around a tool call, in plain tokio: a force push is denied and never runs.

use serde_json::json;
use tipstaff::declare::CallableRef;
use tipstaff::interception::{Decision, DenialCode, Registration};
use tipstaff::operation::{ToolCall, stage};
use tipstaff::{Runtime, action_plan};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what happened")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FORCE_PUSH: DenialCode = DenialCode::from_static("git.force_push");
    let guard = Registration::decide(
        "no-force-push",
        stage::ACTION_POLICY,
        CallableRef::from_static("example::no_force_push@1"),
        |call: &ToolCall, _turn| match call.arguments()["command"].as_str() {
            Some(line) if line.contains("push --force") => Decision::deny(FORCE_PUSH, "force pushes are not allowed"),
            Some(_) => Decision::proceed(),
            None => Decision::deny(FORCE_PUSH, "the command cannot be read"),
        },
    );
    let runtime = Runtime::builder().actions(action_plan("example").register(guard).build()?).spawn().await?;

    for command in ["git status", "git push --force origin main"] {
        let call = ToolCall::new("Bash", json!({ "command": command }));
        let answer = runtime.perform(call, |granted| async move { run(granted.context()) }).await?;
        println!("{command}: {}", answer.denial().map_or("ran".to_owned(), ToString::to_string));
        assert_eq!(answer.denial().is_some(), command.contains("--force"));
    }
    runtime.shutdown(tipstaff::clock::Deadline::after(std::time::Duration::from_secs(5))).await?;
    Ok(())
}

/// The host's own tool: here it only says that it ran.
fn run(call: &ToolCall) -> Result<serde_json::Value, std::convert::Infallible> {
    Ok(json!({ "ran": call.arguments() }))
}
