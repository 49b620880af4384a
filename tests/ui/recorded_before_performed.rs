//@ error: E0599
//! What is only permitted has no end to record.

#[path = "common/fakes.rs"]
mod fakes;

async fn way(permit: fakes::TextPermit) {
    let _answer = permit.record().await;
}

fn main() {
    let _way = way;
}
