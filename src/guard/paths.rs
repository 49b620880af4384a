//! Paths by their text alone: no file system is asked, so a symbolic link stays what its name says.

use super::options::Holds;

/// The folders that paths are judged against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folders<'a> {
    /// Where relative paths start, if it is known.
    pub(super) current: Option<&'a str>,
    /// The folder that the work belongs to, if it is known.
    pub(super) workspace: Option<&'a str>,
    /// Folders for temporary files.
    pub(super) temporary: &'a [String],
}

/// A place that a path may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The workspace, its own folder included.
    Workspace,
    /// Below a temporary folder; the folder itself is not meant.
    Temporary,
    /// A folder, itself included; a relative one starts at the workspace.
    Folder(String),
}

/// Some places, resolved for one call.
#[derive(Debug)]
pub(super) struct Inside {
    /// Each folder, and whether it counts as inside itself.
    folders: Vec<(String, bool)>,
    /// Every place is known.
    complete: bool,
}

impl Inside {
    /// Resolves places.
    pub(super) fn new(places: &[Place], known: Folders<'_>) -> Self {
        let mut inside = Self { folders: Vec::with_capacity(places.len()), complete: true };
        for place in places {
            let folder = match place {
                Place::Temporary => {
                    inside.folders.extend(known.temporary.iter().filter_map(|folder| Some((resolve(None, folder)?, false))));
                    continue;
                }
                Place::Workspace => known.workspace.and_then(|workspace| resolve(None, workspace)),
                Place::Folder(folder) => resolve(known.workspace, folder),
            };
            inside.complete &= folder.is_some();
            inside.folders.extend(folder.map(|folder| (folder, true)));
        }
        inside
    }

    /// Whether a path, relative to a folder, is in none of the places.
    pub(super) fn excludes(&self, current: Option<&str>, path: &str) -> Holds {
        let Some(path) = resolve(current, path) else { return Holds::Maybe };
        if self.folders.iter().any(|(folder, itself)| within(&path, folder, *itself)) {
            Holds::No
        } else if self.complete {
            Holds::Yes
        } else {
            Holds::Maybe
        }
    }
}

/// The absolute path without `.`, `..` and repeated slashes; nothing when it is relative to an unknown folder.
pub(super) fn resolve(current: Option<&str>, path: &str) -> Option<String> {
    let base = match path.starts_with('/') {
        true => "",
        false => current.filter(|current| current.starts_with('/'))?,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Whether a resolved path is below a resolved folder, or is the folder itself where that counts.
fn within(path: &str, folder: &str, itself: bool) -> bool {
    match path.strip_prefix(folder.trim_end_matches('/')) {
        Some("") | Some("/") => itself,
        Some(rest) => rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, current: Option<&str>, workspace: Option<&str>) -> Holds {
        let temporary = ["/tmp".to_owned()];
        let places = [Place::Folder("build".to_owned()), Place::Folder("/var/cache/x".to_owned()), Place::Temporary];
        Inside::new(&places, Folders { current, workspace, temporary: &temporary }).excludes(current, path)
    }

    #[test]
    fn a_path_is_inside_by_its_resolved_text() {
        for (path, expected) in [
            ("build", Holds::No),
            ("./build/", Holds::No),
            ("build/../build/x", Holds::No),
            ("build/../src", Holds::Yes),
            ("builds", Holds::Yes),
            ("../build", Holds::Yes),
            ("../../../../ws/build/x", Holds::No),
            ("/ws//build/x", Holds::No),
            ("/build", Holds::Yes),
            ("/", Holds::Yes),
            ("/tmp", Holds::Yes),
            ("/tmp/", Holds::Yes),
            ("/tmp/x", Holds::No),
            ("/tmp/../ws/src", Holds::Yes),
            ("/tmpx", Holds::Yes),
            ("/var/cache/x", Holds::No),
            ("", Holds::Yes),
        ] {
            assert_eq!(judged(path, Some("/ws"), Some("/ws")), expected, "{path}");
        }
        assert_eq!(judged("x", Some("/ws/build/a"), Some("/ws")), Holds::No);
    }

    #[test]
    fn an_unknown_folder_leaves_the_question_open() {
        assert_eq!(judged("build", None, Some("/ws")), Holds::Maybe);
        assert_eq!(judged("build", Some("ws"), Some("/ws")), Holds::Maybe);
        assert_eq!(judged("build", Some("/ws"), None), Holds::Maybe);
        assert_eq!(judged("/tmp/x", None, None), Holds::No);
    }

    #[test]
    fn the_root_as_workspace_holds_everything() {
        let folders = Folders { current: None, workspace: Some("/"), temporary: &[] };
        assert_eq!(Inside::new(&[Place::Workspace], folders).excludes(None, "/etc"), Holds::No);
    }
}
