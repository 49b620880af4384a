//@ error: E0599
//! What is only proposed cannot be performed.

#[path = "common/fakes.rs"]
mod fakes;

async fn way(proposed: fakes::TextProposed) {
    let _performed = proposed.perform(fakes::body).await;
}

fn main() {
    let _way = way;
}
