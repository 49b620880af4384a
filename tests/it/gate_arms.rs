//! P-2: audit survives authorization.

use serde_json::json;
use tipstaff::declare::CallableRef;
use tipstaff::interception::{Decision, DenialCode, Registration};
use tipstaff::operation::{ToolCall, stage};
use tipstaff::state::{SqliteStore, PageLimit, ReadFilter};
use tipstaff::{Runtime, action_plan};
use tipstaff::clock::Deadline;
use std::time::Duration;
use std::num::NonZeroU32;

#[tokio::test(flavor = "multi_thread")]
async fn slice() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("x.db")).unwrap();
    let plan = action_plan("p").register(Registration::decide(
        "no", stage::ACTION_POLICY, CallableRef::new("t::no@1").unwrap(),
        |call: &ToolCall, _turn| if call.tool() == "rm" { Decision::deny(DenialCode::from_static("t.no"), "no") } else { Decision::proceed() })).build().unwrap();
    let runtime = Runtime::builder().store(store).actions(plan).spawn().await.unwrap();
    let session = runtime.session(tipstaff::id::SessionId::new("s").unwrap()).open().await.unwrap();
    let answer = session.perform(ToolCall::new("ls", json!({"a": 1})), |g| async move { Ok::<_, std::io::Error>(json!(g.context().tool())) }).await;
    println!("{answer:?}");
    let answer = session.perform(ToolCall::new("rm", json!({"a": 1})), |_| async move { Ok::<_, std::io::Error>(json!(1)) }).await;
    println!("{answer:?}");
    session.settled(Deadline::after(Duration::from_secs(5))).await.unwrap();
    let page = runtime.reader().unwrap().read(session.id(), tipstaff::signal::SignalSeq::START, &ReadFilter::default(), PageLimit::default()).unwrap();
    for r in &page.facts { println!("{} {} {}", r.seq, r.signal.kind(), r.signal.payload().wire()); }
    runtime.shutdown(Deadline::after(Duration::from_secs(5))).await.unwrap();
    panic!();
}
