//@ error: E0423
//! A decision is built by its constructors only, so that no impossible mixture exists.

use tipstaff_core::interception::Decision;

fn way() -> Decision<String> {
    Decision(None)
}

fn main() {
    let _way = way;
}
