//@ error: E0451
//! Only the proposing handle builds a proposal (P-9).

#[path = "common/fakes.rs"]
mod fakes;

use std::sync::Arc;

use tipstaff_core::clock::Deadline;
use tipstaff_core::declare::Digest;
use tipstaff_core::id::{AttemptId, OperationId};
use tipstaff_core::interception::Progress;
use tipstaff_core::operation::Proposal;

fn way(deadline: Deadline) -> Proposal<fakes::Texts> {
    Proposal {
        operation: OperationId::generate(),
        attempt: AttemptId::generate(),
        context: Arc::new(String::new()),
        digest: Digest::of(b"anything"),
        deadline,
        progress: Progress::default(),
    }
}

fn main() {
    let _way = way;
}
