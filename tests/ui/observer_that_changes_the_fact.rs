//@ error: E0596
//! A subscriber sees a shared, immutable fact: it cannot change the payload that others see (P-3).

use std::sync::Arc;

use tipstaff_core::dispatch::Subscriber;
use tipstaff_core::signal::Signal;

fn main() {
    let _watcher = Subscriber::declared_sync("watcher", |fact: &Arc<Signal>| {
        let _members = fact.payload().value().as_object_mut();
    });
}
