//@ compiles
//! The right order of an operation, step by step, and a subscriber that only looks.

#[path = "common/fakes.rs"]
mod fakes;

use std::sync::Arc;

use fakes::{Desk, NoJournal, TextProposed, Texts, body};
use tipstaff_core::dispatch::Subscriber;
use tipstaff_core::id::SessionId;
use tipstaff_core::interception::{Decision, PlanBuilder};
use tipstaff_core::operation::{Answer, Operation, Owner as _};
use tipstaff_core::signal::Signal;

async fn way(audit: NoJournal, desk: &Desk) -> Result<Answer<Texts>, Answer<Texts>> {
    let proposed: TextProposed = TextProposed::submit(Operation::new("hello".to_owned()), audit).await?;
    let permit = proposed.authorize(desk).await?.record_evidence().await?;
    Ok(permit.perform(body).await.review().await.record().await)
}

fn main() {
    let _decision: Decision<String> = Decision::proceed();
    let _watcher = Subscriber::declared_sync("watcher", |fact: &Arc<Signal>| assert!(!fact.kind().as_str().is_empty()));
    let desk = Desk(PlanBuilder::new("texts", &Texts::stages()).build().expect("the plan is right"));
    let session = SessionId::new("s").expect("the literal is an identifier");
    drop(way(NoJournal(session), &desk));
}
