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
    let required = is_set("TIPSTAFF_REQUIRE_DATA");
    assert!(named.is_none() && !required, "no folder {}: set {variable} to the folder of the data", folder.display());
    // Past the capture of the test's output: a skipped test has to be seen.
    writeln!(std::io::stderr(), "SKIPPED: no folder {} (set {variable})", folder.display()).expect("standard error is open");
    None
}

/// The folder that a variable names, else a default one where it is there, else the copy that the repository carries.
pub(crate) fn folder_or_copy(variable: &str, default: &str, copy: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = setting(variable).map(PathBuf::from).unwrap_or_else(|| {
        let default = root.join(default);
        if default.is_dir() { default } else { root.join(copy) }
    });
    assert!(folder.is_dir(), "no folder {}: set {variable} to the folder of the data", folder.display());
    folder
}

/// Whether a variable is `1`.
pub(crate) fn is_set(variable: &str) -> bool {
    setting(variable).is_some_and(|value| value == "1")
}

#[expect(clippy::disallowed_methods, reason = "where the data is depends on the machine that runs the tests")]
fn setting(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
