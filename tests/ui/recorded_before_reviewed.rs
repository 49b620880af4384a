//@ error: E0599
//! The result stages cannot be left out (I-16).

#[path = "common/fakes.rs"]
mod fakes;

async fn way(permit: fakes::TextPermit) {
    let _answer = permit.perform(fakes::body).await.record().await;
}

fn main() {
    let _way = way;
}
