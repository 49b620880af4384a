//@ error: E0382
//! A permit is consumed by performing (I-12).

#[path = "common/fakes.rs"]
mod fakes;

async fn way(permit: fakes::TextPermit) {
    let _first = permit.perform(fakes::body).await;
    let _second = permit.perform(fakes::body).await;
}

fn main() {
    let _way = way;
}
