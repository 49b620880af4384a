//@ error: E0599
//! A permit is not `Clone` (P-14).

#[path = "common/fakes.rs"]
mod fakes;

fn way(permit: fakes::TextPermit) -> (fakes::TextPermit, fakes::TextPermit) {
    (permit.clone(), permit)
}

fn main() {
    let _way = way;
}
