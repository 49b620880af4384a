//! Is this path a place for a store? Everything that can be known before SQLite looks at the file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::state::{StoreError, StoreSize};

/// Checks the place, creates the file for its owner alone (P-15) if it is not there, and returns its absolute path.
pub(super) fn prepare(path: &Path) -> Result<PathBuf, StoreError> {
    let path = absolute(path)?;
    refuse_network(&path)?;
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => return Err(StoreError::NotAFile { path, what: "a folder" }),
        Ok(found) if !found.is_file() => return Err(StoreError::NotAFile { path, what: "a device, pipe or socket" }),
        // SQLite would open it all the same, for reading only or, as a privileged user, against its owner's mark.
        Ok(found) if found.permissions().readonly() => return Err(StoreError::ReadOnly { path }),
        Ok(_) => {}
        Err(refused) if refused.kind() == io::ErrorKind::NotFound => drop(create(&path)?),
        Err(source) => return Err(StoreError::Io { path, operation: "looking at the file", source }),
    }
    Ok(path)
}

/// What the files of a store occupy.
pub(super) fn size(path: &Path) -> Result<StoreSize, StoreError> {
    let bytes = |path: &Path| match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(refused) if refused.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(StoreError::Io { path: path.to_owned(), operation: "looking at the file", source }),
    };
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    Ok(StoreSize { file_bytes: bytes(path)?, wal_bytes: bytes(Path::new(&wal))? })
}

/// The folder resolved, the name as given: links in the folder would hide the file system that the file lies on.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let Some(name) = path.file_name() else {
        return Err(StoreError::NotAFile { path: path.to_owned(), what: "a folder" });
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match folder.canonicalize() {
        // A link at the end is followed too, or SQLite would keep its log beside the link of one name and the file of another.
        Ok(folder) => Ok(folder.join(name).canonicalize().unwrap_or_else(|_| folder.join(name))),
        Err(refused) if refused.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::MissingFolder { path: path.to_owned(), folder: folder.to_owned() })
        }
        Err(source) => Err(StoreError::Io { path: path.to_owned(), operation: "looking at its folder", source }),
    }
}

fn create(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    // Another process may create it at the same moment: that is no error, both find an empty file.
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path: path.to_owned() },
        _ => StoreError::Io { path: path.to_owned(), operation: "creating the file", source },
    })
}

/// SQLite's locks cannot be trusted on a network file system, and a shared write-ahead log needs shared memory (L-22).
fn refuse_network(path: &Path) -> Result<(), StoreError> {
    // Where mounts cannot be listed there is nothing to judge by.
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return Ok(()) };
    match file_system_of(&mounts, path) {
        Some(kind) if is_network(&kind) => Err(StoreError::NetworkFileSystem { path: path.to_owned(), file_system: kind }),
        _ => Ok(()),
    }
}

fn is_network(kind: &str) -> bool {
    const NETWORK: &[&str] = &[
        "nfs",
        "nfs4",
        "cifs",
        "smb2",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "coda",
        "ncpfs",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "orangefs",
        "pvfs2",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.davfs2",
        "fuse.juicefs",
        "fuse.gcsfuse",
        "fuse.smbnetfs",
        "fuse.nfs",
    ];
    NETWORK.contains(&kind)
}

/// The type of the file system that a path lies on: the deepest mount above it, and of several at one place the last.
fn file_system_of(mountinfo: &str, path: &Path) -> Option<String> {
    let mount = |line: &str| {
        // `id parent device root point options [optional...] - type source options`
        let (before, after) = line.split_once(" - ")?;
        let point = unescape(before.split(' ').nth(4)?);
        let kind = after.split(' ').next()?;
        path.starts_with(&point).then(|| (Path::new(&point).components().count(), kind.to_owned()))
    };
    mountinfo.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Blanks, tabs, line ends and backslashes of a mount point are written as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:40 / /home rw - nfs4 server:/home rw
41 40 0:41 / /home/my\\040disk rw shared:1 - xfs /dev/vdb rw
42 27 0:42 / /mnt rw - ext4 /dev/vdc rw
43 27 0:43 / /mnt rw - cifs //server/share rw";

    /// L-22: a network file system is refused, by the mount that the file really lies on.
    #[test]
    fn the_deepest_and_newest_mount_decides() {
        let kind = |path: &str| file_system_of(MOUNTS, Path::new(path)).unwrap();
        assert_eq!(kind("/var/x.db"), "ext4");
        assert_eq!(kind("/home/x.db"), "nfs4");
        assert_eq!(kind("/home/my disk/x.db"), "xfs");
        assert_eq!(kind("/homes/x.db"), "ext4");
        assert_eq!(kind("/mnt/x.db"), "cifs");
        assert!(is_network("nfs4") && is_network("fuse.sshfs") && !is_network("ext4") && !is_network("tmpfs"));
    }
}
