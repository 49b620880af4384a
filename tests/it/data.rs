//! Folders of recorded data, which are not part of the repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder that a variable names, else a default one relative to the package.
///
/// An absent folder is nothing, and a notice on standard error says which test saw no data; a variable that names an absent folder, or
/// `TIPSTAFF_REQUIRE_DATA=1`, makes it a failure.
pub(crate) fn folder(variable: &str, default: &str) -> Option<PathBuf> {
    let named = setting(variable);
    let folder = named.as_ref().map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(default), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let required = setting("TIPSTAFF_REQUIRE_DATA").is_some_and(|value| value == "1");
    assert!(named.is_none() && !required, "no folder {}: set {variable} to the folder of the data", folder.display());
    // Past the capture of the test's output: a skipped test has to be seen.
    writeln!(std::io::stderr(), "SKIPPED: no folder {} (set {variable})", folder.display()).expect("standard error is open");
    None
}

#[expect(clippy::disallowed_methods, reason = "where the data is depends on the machine that runs the tests")]
fn setting(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

//! Folders of recorded data, which live beside the repository and not in it.

use std::io::Write as _;
use std::path::PathBuf;

/// The folder that `variable` names, else `default` relative to the repository. When it is not there, the caller's test has nothing to
/// show: that is said on standard error, and is a failure under `TIPSTAFF_REQUIRE_DATA=1`.
#[expect(clippy::disallowed_methods, reason = "which folder a test reads is the tester's setting")]
pub(crate) fn folder(variable: &str, default: &str) -> Option<PathBuf> {
    let path = match std::env::var(variable) {
        Ok(path) => PathBuf::from(path),
        Err(_) => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(default),
    };
    if path.is_dir() {
        return Some(path);
    }
    let required = std::env::var("TIPSTAFF_REQUIRE_DATA").is_ok_and(|value| value == "1");
    assert!(!required, "{} is no folder: set {variable} to where the data is", path.display());
    // Straight to the stream: the test harness would swallow what a passing test prints.
    writeln!(std::io::stderr(), "skipped: {} is not there (set {variable})", path.display()).expect("standard error takes text");
    None
}
