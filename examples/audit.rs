//! An audit that no denial can suppress: whatever ends a call, its record is in the journal, and the record says why.

use std::time::Duration;

use serde_json::{Value, json};
use tipstaff::clock::Deadline;
use tipstaff::declare::CallableRef;
use tipstaff::dispatch::Subscriber;
use tipstaff::id::SessionId;
use tipstaff::interception::{Decision, DenialCode, Registration};
use tipstaff::operation::{AuditMode, ToolCall, stage};
use tipstaff::signal::{Signal, SignalSeq};
use tipstaff::state::{PageLimit, ReadFilter, SqliteStore};
use tipstaff::{Runtime, Session, action_plan};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what happened")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .store(SqliteStore::open(folder.path().join("audit.db"))?)
        .actions(action_plan("example").register(guard()).build()?)
        .spawn()
        .await?;
    // A subscriber that always panics changes nothing: not the decisions, not the record.
    let broken = Subscriber::<Signal>::declared_sync("broken", |_fact| -> () { panic!("a subscriber's own fault") });
    let session = runtime.session(SessionId::new("example")?).observe(broken).audit(AuditMode::Required).open().await?;

    call(&session, "list", Ok(json!("a b c"))).await;
    call(&session, "denied", Ok(json!("never returned"))).await;
    call(&session, "guard panics", Ok(json!("never returned"))).await;
    call(&session, "fails", Err("the disk is full")).await;
    session.settled(Deadline::after(Duration::from_secs(5))).await?;

    let journal = runtime.reader().expect("the runtime has a store");
    let page = journal.read(session.id(), SignalSeq::START, &ReadFilter::all(), PageLimit::default())?;
    let mut closed = Vec::new();
    for recorded in &page.facts {
        let payload = recorded.signal.payload().value();
        println!("{:>2} {:<20} {}", recorded.seq, recorded.signal.kind().as_str(), why(payload));
        closed.extend(payload["status"].as_str().map(str::to_owned));
    }
    assert_eq!(closed, ["completed", "denied", "denied", "failed"]);
    assert!(session.losses().is_none());
    runtime.shutdown(Deadline::after(Duration::from_secs(5))).await?;
    Ok(())
}

fn guard() -> Registration<ToolCall, tipstaff::operation::ResultOf<tipstaff::operation::ActionExecutor>> {
    const NO: DenialCode = DenialCode::from_static("example.no");
    let callable = CallableRef::from_static("example::guard@1");
    Registration::decide("guard", stage::ACTION_POLICY, callable, |call: &ToolCall, _turn| match call.tool() {
        "denied" => Decision::deny(NO, "not on a Friday"),
        // It fails closed: the call is denied, and the record says that the guard panicked.
        "guard panics" => panic!("a guard's own fault"),
        _ => Decision::proceed(),
    })
}

async fn call(session: &Session, tool: &str, result: Result<Value, &'static str>) {
    let answer = session.perform(ToolCall::new(tool, json!({})), |_granted| async { result }).await;
    assert_eq!(answer.may_have_run(), !tool.contains("denied") && !tool.contains("panics"));
}

fn why(payload: &Value) -> String {
    let member = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let denied = member("/denial/reason").map(|reason| format!("{reason} ({})", member("/denial/cause").unwrap_or_default()));
    denied.or_else(|| member("/failure/message")).or_else(|| member("/context/tool")).unwrap_or_default()
}
