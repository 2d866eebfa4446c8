//! Files that are changed as a whole: one who changes them at a time, and others see the old content or the new one, never
//! a part. Only their owner may read them, unless somebody has decided otherwise.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

/// What only the owner may read and write.
const PRIVATE: u32 = 0o600;

/// A file that nobody else changes as long as this is there, by agreement of all who take this lock.
pub(crate) struct Locked {
    path: PathBuf,
    _lock: File,
}

impl Locked {
    /// Waits for the turn to change a file. The lock is a file beside it, which stays: the file itself is replaced.
    pub(crate) fn take(path: &Path) -> io::Result<Self> {
        let lock = beside(path, ".lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(PRIVATE).open(&lock)?;
        own(&lock, path)?;
        file.lock()?;
        Ok(Self { path: path.to_owned(), _lock: file })
    }
}

/// Writes the content, which is the file's as soon as it is safely on the disk.
pub(crate) fn write(locked: &Locked, content: &[u8]) -> io::Result<()> {
    let path = &locked.path;
    let new = beside(path, ".new");
    // One that was left by somebody who did not come to the end.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&new)?;
    file.write_all(content)?;
    own(&new, path)?;
    // Whoever may read the file that it stands for could read it for a reason.
    if let Ok(before) = fs::metadata(path) {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory(path))?.sync_all()
}

/// Gives a new file to the owner of the one that it stands for or, where there is none, of the directory: whoever changes
/// the file may be root, and the server is not.
fn own(new: &Path, path: &Path) -> io::Result<()> {
    let model = fs::metadata(path).or_else(|_| fs::metadata(directory(path)))?;
    let made = fs::metadata(new)?;
    if (made.uid(), made.gid()) == (model.uid(), model.gid()) || made.uid() != 0 {
        return Ok(());
    }
    chown(new, Some(model.uid()), Some(model.gid()))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use restante_testdir::TestDir;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_private_until_somebody_decides_otherwise() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let replace = |content: &[u8]| write(&Locked::take(&path).unwrap(), content).unwrap();
        replace(b"one");
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"one".to_vec(), 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(beside(&path, ".new"), "left behind").unwrap();
        replace(b"two");
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
        assert!(!beside(&path, ".new").exists());
    }
}
