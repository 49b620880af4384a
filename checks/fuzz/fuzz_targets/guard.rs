//! Bytes through the guards. In `checks/fuzz`:
//!
//! ```sh
//! mkdir -p corpus/guard
//! cargo +nightly fuzz run --fuzz-dir . guard corpus/guard seeds/guard -- -dict=shell.dict -max_len=4096 -timeout=10
//! ```
//!
//! Each input is judged on a thread with the stack that a runtime's thread has, so that an overflow is found. What is checked of an answer stands in
//! the entry, which the tests drive as well (`tests/it/shell_lines/any_bytes.rs`). Inputs that the fuzzer found interesting go to `corpus`, which is not
//! kept; one that broke something becomes a test.

#![no_main]

#[path = "../../../tests/it/shell_lines/entry.rs"]
mod entry;

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock};

use libfuzzer_sys::fuzz_target;

/// The stack of the threads that the runtime starts.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The one thread that judges, and what it is asked and answers through. A panic in it ends the process, as libFuzzer's hook wants.
static JUDGE: OnceLock<Mutex<(SyncSender<Vec<u8>>, std::sync::mpsc::Receiver<()>)>> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let judge = JUDGE.get_or_init(|| {
        let (ask, asked) = sync_channel::<Vec<u8>>(0);
        let (answer, answered) = sync_channel(0);
        let work = move || {
            let policy = entry::policy();
            while let Ok(bytes) = asked.recv() {
                entry::judge(&policy, &bytes);
                answer.send(()).expect("the fuzzer waits");
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread starts");
        Mutex::new((ask, answered))
    });
    let judge = judge.lock().expect("one input at a time");
    judge.0.send(bytes.to_vec()).expect("the thread waits");
    judge.1.recv().expect("the thread answers");
});
