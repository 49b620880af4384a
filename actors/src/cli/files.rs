//! Which files a command line names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bookkeeping that a product keeps beside its transcripts; a walk passes over it.
const NO_TRANSCRIPTS: &[&str] = &["journal.jsonl"];

/// Files as they are named; a folder is walked for `*.jsonl`, sorted by path, not following links to folders.
///
/// # Errors
/// [`NoTranscripts`].
pub(super) fn transcripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, NoTranscripts> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(unreadable(path))?;
        if about.is_dir() {
            let mut below = walk(path)?;
            below.sort();
            if below.is_empty() {
                return Err(NoTranscripts::Empty { folder: path.clone() });
            }
            found.append(&mut below);
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path) -> Result<Vec<PathBuf>, NoTranscripts> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).map_err(unreadable(&next))? {
            let entry = entry.map_err(unreadable(&next))?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable(&path))?.is_dir() {
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

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> NoTranscripts {
    let path = path.to_owned();
    |source| NoTranscripts::Unreadable { path, source }
}

/// Why a command line names no transcripts.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoTranscripts {
    #[error("{} cannot be read: name a transcript, or a folder of transcripts", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} holds no *.jsonl file: name a transcript, or a folder of transcripts", folder.display())]
    Empty { folder: PathBuf },
}
