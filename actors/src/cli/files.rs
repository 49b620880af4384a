//! Which files a command line names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bookkeeping that a product keeps beside its transcripts; a walk passes over it.
const NO_TRANSCRIPTS: &[&str] = &["journal.jsonl"];

/// Files as they are named; a folder is walked for `*.jsonl`, sorted by path, not following links to folders.
///
/// # Errors
/// The path that cannot be looked at, and why.
pub(super) fn transcripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(|error| (path.clone(), error))?;
        if about.is_dir() {
            let mut below = walk(path)?;
            below.sort();
            if below.is_empty() {
                let nothing = io::Error::new(io::ErrorKind::NotFound, "the folder holds no *.jsonl file");
                return Err((path.clone(), nothing));
            }
            found.append(&mut below);
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        let named = |error| (next.clone(), error);
        for entry in fs::read_dir(&next).map_err(named)? {
            let entry = entry.map_err(|error| (next.clone(), error))?;
            let kind = entry.file_type().map_err(|error| (entry.path(), error))?;
            let path = entry.path();
            if kind.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl")
                && !path.file_name().is_some_and(|name| NO_TRANSCRIPTS.iter().any(|other| name == *other))
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}
