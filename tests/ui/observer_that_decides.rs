//@ error: E0277
//! A subscriber has no vote: it cannot return a decision (P-3).

use std::sync::Arc;

use tipstaff_core::dispatch::Subscriber;
use tipstaff_core::interception::Decision;
use tipstaff_core::signal::Signal;

fn main() {
    let _watcher = Subscriber::declared_sync("watcher", |_: &Arc<Signal>| Decision::<String>::proceed());
}
