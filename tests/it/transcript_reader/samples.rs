//! The sample sessions of the repository show what they are there for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tipstaff_core::transcript::{Event, Product, Reader, ReaderOptions};

use super::{Told, tell};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
    found
}

/// Both products, both layouts, a sub-agent, damage and an interrupt are there to be seen by a newcomer.
#[test]
fn the_samples_hold_what_a_newcomer_should_see() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sessions");
    let told: BTreeMap<PathBuf, Told> = files(&folder)
        .into_iter()
        .map(|path| (path.clone(), tell(Reader::open(path, ReaderOptions::default()).unwrap())))
        .collect();
    let sum = |count: fn(&Told) -> u64| told.values().map(count).sum::<u64>();
    let has = |test: &dyn Fn(&Told) -> bool| assert!(told.values().any(test));
    has(&|told| told.thread.product == Product::Claude && told.thread.agent.is_some() && told.counts.sidechain_calls > 0);
    has(&|told| told.thread.layout.is_some_and(|layout| layout.as_str() == "bare"));
    has(&|told| told.thread.layout.is_some_and(|layout| layout.as_str() == "envelope"));
    assert_eq!(
        (sum(|told| told.counts.glued_lines), sum(|told| told.counts.broken_lines), sum(|told| told.counts.interrupts)),
        (1, 1, 1)
    );
    assert_eq!(sum(|told| told.counts.unknown_kinds.iter().count() as u64), 0);
    let input = |event: &Event| match event {
        Event::Call(call) => format!("{} {}\n", call.name, call.input),
        _ => String::new(),
    };
    let inputs: String = told.values().flat_map(|told| &told.events).map(input).collect();
    for shown in ["git push --force", "rm -rf", "npm install", "apply_patch", "*** Update File"] {
        assert!(inputs.contains(shown), "no sample shows {shown}");
    }
}
