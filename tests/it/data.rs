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
