//! Defaults, and what the library never does by itself.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tipstaff::OwnerBounds;
use tipstaff::clock::Clock as _;
use tipstaff::dispatch::profile::{OBSERVATION_BUDGET, TERMINAL_BUDGET};
use tipstaff::dispatch::{GRACE, MAX_DEPTH, OFFLOAD_THREADS};
use tipstaff::operation::harness::ProviderHarness;
use tipstaff::operation::service::ServiceCall;
use tipstaff::operation::{DEFAULT_RULING_BUDGET, TeardownBudget, TearsDown as _};
use tipstaff::state::{Here, MemoryStore, SqliteOptions, SqliteStore, Store};
use tipstaff::testing::ManualClock;

fn source(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the source is readable")
}

/// the one table of defaults says what the program does.
#[test]
fn the_table_of_defaults_is_true() {
    let tree = source("actors/src/tree.rs");
    let value = |name: &str| {
        let row = tree.lines().find(|line| line.starts_with("//! |") && line.contains(name));
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("no row for {name}")).split('|').map(str::trim).collect();
        cells[cells.len() - 2].to_owned()
    };
    let bounds = OwnerBounds::default();
    assert_eq!(value("ruling of a proposal"), format!("{} s", DEFAULT_RULING_BUDGET.as_secs()));
    assert_eq!(value("proposals decided at the same time"), bounds.deciding.to_string());
    assert_eq!(value("open permits"), bounds.permits.to_string());
    assert_eq!(value("deadline of an emission"), format!("{} s", OBSERVATION_BUDGET.as_secs()));
    assert_eq!(value("facts that an observing actor holds"), tipstaff::ACTOR_BOUND.to_string());
    let teardown = |budget: TeardownBudget| format!("{} s, and {} s to stop", budget.bound.as_secs(), budget.grace.as_secs());
    assert_eq!(value("teardown of a service call"), teardown(ServiceCall::TEARDOWN));
    assert_eq!(value("teardown of a launch"), teardown(ProviderHarness::TEARDOWN));
    assert_eq!(value("emissions inside one another"), MAX_DEPTH.to_string());
    assert_eq!(value("threads of a dispatcher for handlers that block"), OFFLOAD_THREADS.to_string());
    assert_eq!(value("budget of terminal callbacks"), format!("{} s", TERMINAL_BUDGET.as_secs()));
    assert_eq!(value("grace of a cancelled handler"), format!("{} s", GRACE.as_secs()));
    let role = |name: &str| tree.lines().find(|line| line.starts_with("//! |") && line.contains(name)).unwrap_or_default();
    assert!(role("action executor").contains(&format!("{} proposals", bounds.waiting)));
}

/// no library call opens a file or a global logger that its caller did not name. Files are opened where the caller's path arrives, and
/// nowhere else; the program alone sets a subscriber.
#[test]
fn the_library_opens_no_file_and_no_logger_of_its_own() {
    let allowed = |path: &Path, word: &str| match word {
        "File::" | "OpenOptions" | "fs::" => {
            ["src/state/sqlite", "src/state/process.rs", "src/transcript", "actors/src/cli"].iter().any(|at| path.starts_with(at))
        }
        _ => path.starts_with("actors/src/cli"),
    };
    let mut open = vec![PathBuf::from("src"), PathBuf::from("actors/src")];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(&next)).expect("the folder is readable") {
            let entry = entry.expect("its entries are readable");
            let path = next.join(entry.file_name());
            if entry.path().is_dir() {
                // Unit tests may stand in a folder of their own.
                open.extend((entry.file_name() != "tests").then_some(path));
                continue;
            }
            let text = source(&path.display().to_string());
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for word in ["File::", "OpenOptions", "fs::", "set_global_default", "try_init", "set_hook", "env::var"] {
                    assert!(!line.contains(word) || allowed(&path, word), "{}: {}", path.display(), line.trim());
                }
            }
        }
    }
}

/// L-1: the times by which an instance is judged are the store's, not its caller's.
#[test]
fn the_store_stamps_instances_by_its_own_clock() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = ManualClock::default();
    let sqlite = SqliteStore::open_with(folder.path().join("clock.db"), SqliteOptions::default().clock(Arc::new(clock.clone())));
    let memory = MemoryStore::with_clock(Arc::new(clock.clone()));
    let stores: [Box<dyn Store>; 2] = [Box::new(sqlite.expect("the store opens")), Box::new(memory)];
    for store in stores {
        let started = clock.now();
        let mut writer = store.open_writer(&Here::read().instance("test")).expect("a writer");
        clock.advance(Duration::from_secs(5));
        writer.touch().expect("the store takes it");
        let known = store.reader().and_then(|reader| reader.instances(None, NonZeroU32::MIN)).expect("the store answers");
        assert_eq!((known[0].started_at, known[0].last_seen_at), (started, clock.now()));
    }
}
