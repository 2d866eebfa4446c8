//! Replacement of files on Unix. New files are private to their owner. A replaced file keeps its mode and, if the command
//! runs as root, its owner and group.
//!
//! The commands often run as root in a directory of the service user, who can create any files there at any time. So
//! the directory is opened once, and every file is opened relative to it, without following symbolic links. Owner and
//! mode are set on open files, never by path, and only on files that were created here.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};

use super::{lock_name, read_limited, temporary_name};

/// The mode of new files: only the owner may read and write.
const PRIVATE_MODE: u32 = 0o600;
/// The permission bits that a replaced file keeps. Bits such as set-user-ID are dropped.
const PERMISSION_BITS: u32 = 0o777;

/// A file that no other command changes while this value exists.
pub(crate) struct LockedFile {
    directory: File,
    name: OsString,
    _lock: File,
}

/// The content of a file, and the metadata that its replacement keeps.
pub(crate) struct CurrentContent {
    /// The content; empty if the file does not exist.
    pub(crate) content: Vec<u8>,
    metadata: Option<Metadata>,
}

impl LockedFile {
    /// Waits for the lock of a file. Fails if the lock file is anything but a regular file with one link.
    pub(crate) fn lock(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(openat(CWD, parent, flags, Mode::empty())?);
        let lock = open_lock(&directory, &lock_name(&name))?;
        lock.lock()?;
        Ok(Self { directory, name, _lock: lock })
    }

    /// Reads the file. Fails if it is anything but a regular file with one link: the content of a file elsewhere must
    /// not end up in this directory.
    pub(crate) fn read(&self) -> io::Result<CurrentContent> {
        let file = match open(&self.directory, &self.name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(CurrentContent { content: Vec::new(), metadata: None });
            }
            Err(error) if is_symlink(&error) => {
                return Err(io::Error::other("is a symbolic link: give the path of the file that it points to"));
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        check_regular(&metadata).map_err(io::Error::other)?;
        Ok(CurrentContent { content: read_limited(file)?, metadata: Some(metadata) })
    }

    /// Replaces the file after the new content was synced to disk. `current` is the result of [`LockedFile::read`].
    pub(crate) fn write(&self, current: &CurrentContent, content: &[u8]) -> io::Result<()> {
        let name = temporary_name(&self.name)?;
        let written = self.write_new(&name, current, content);
        if written.is_err() {
            // The first error is reported.
            let _ = unlinkat(&self.directory, &name, AtFlags::empty());
        }
        written
    }

    fn write_new(&self, name: &OsStr, current: &CurrentContent, content: &[u8]) -> io::Result<()> {
        let mut file = create(&self.directory, name)?;
        match &current.metadata {
            Some(before) => {
                set_owner_like(&file, before)?;
                file.set_permissions(Permissions::from_mode(before.mode() & PERMISSION_BITS))?;
            }
            None => set_owner_like(&file, &self.directory.metadata()?)?,
        }
        file.write_all(content)?;
        file.sync_all()?;
        renameat(&self.directory, name, &self.directory, &self.name)?;
        self.directory.sync_all()
    }
}

/// Opens the lock file, or creates it. An existing one keeps its owner.
fn open_lock(directory: &File, name: &OsStr) -> io::Result<File> {
    let refused = |problem: &str| {
        io::Error::other(format!(
            "the lock file {} next to it {problem}: remove that file and try again",
            name.display()
        ))
    };
    match create(directory, name) {
        Ok(file) => {
            set_owner_like(&file, &directory.metadata()?)?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = open(directory, name, OFlags::WRONLY)
                .map_err(|error| if is_symlink(&error) { refused("is a symbolic link") } else { error })?;
            check_regular(&file.metadata()?).map_err(refused)?;
            Ok(file)
        }
        Err(error) => Err(error),
    }
}

/// Creates a new file, private to the caller.
fn create(directory: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::from_raw_mode(PRIVATE_MODE))?.into())
}

/// Opens an existing file. Fails for a symbolic link, and does not wait for the other end of a pipe.
fn open(directory: &File, name: &OsStr, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?.into())
}

/// Returns true if opening failed because of `O_NOFOLLOW`.
fn is_symlink(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Checks that this is a regular file without further hard links.
fn check_regular(metadata: &Metadata) -> Result<(), &'static str> {
    if !metadata.is_file() {
        return Err("is not a regular file");
    }
    // A hard link could be a file of another user, from another directory.
    if metadata.nlink() != 1 {
        return Err("has more than one hard link");
    }
    Ok(())
}

/// Gives a file that was created by root to the owner of another one: the server that reads it does not run as root.
fn set_owner_like(file: &File, like: &Metadata) -> io::Result<()> {
    let created = file.metadata()?;
    if created.uid() != 0 || (created.uid(), created.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(file, Some(like.uid()), Some(like.gid()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;
    use restante_testdir::TestDir;

    /// A user id other than root's. The tests change owners only if they run as root.
    const SERVICE: u32 = 12_345;

    fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
        let locked = LockedFile::lock(path)?;
        let current = locked.read()?;
        locked.write(&current, content)
    }

    fn refusal(path: &Path) -> String {
        replace(path, b"new").unwrap_err().to_string()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn owner(path: &Path) -> (u32, u32) {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    }

    /// The names in a directory, sorted.
    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn is_root() -> bool {
        let dir = TestDir::new();
        fs::metadata(dir.path()).unwrap().uid() == 0
    }

    #[test]
    fn new_files_are_private_and_replaced_files_keep_their_mode() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        replace(&path, b"one").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"one".to_vec(), 0o600));
        fs::set_permissions(&path, Permissions::from_mode(0o4640)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
        assert_eq!(names(dir.path()), ["file", "file.lock"]);
    }

    #[test]
    fn a_lock_file_that_is_a_link_is_refused_and_its_target_stays_as_it_is() {
        let (dir, elsewhere) = (TestDir::new(), TestDir::new());
        let (path, lock) = (dir.path().join("file"), dir.path().join("file.lock"));
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        if is_root() {
            chown(dir.path(), Some(SERVICE), Some(SERVICE)).unwrap();
        }
        let before = (owner(&secret), mode(&secret));

        symlink(&secret, &lock).unwrap();
        assert!(refusal(&path).contains("file.lock next to it is a symbolic link: remove"), "{}", refusal(&path));
        fs::remove_file(&lock).unwrap();
        // A dangling link must not create its target.
        symlink(elsewhere.path().join("absent"), &lock).unwrap();
        assert!(refusal(&path).contains("is a symbolic link"));
        fs::remove_file(&lock).unwrap();
        fs::hard_link(&secret, &lock).unwrap();
        assert!(refusal(&path).contains("file.lock next to it has more than one hard link"));

        assert_eq!(((owner(&secret), mode(&secret)), fs::read(&secret).unwrap()), (before, b"secret".to_vec()));
        assert_eq!(names(elsewhere.path()), ["secret"]);
        assert_eq!(names(dir.path()), ["file.lock"]);
    }

    #[test]
    fn the_content_of_a_linked_file_is_not_copied() {
        let (dir, elsewhere) = (TestDir::new(), TestDir::new());
        let path = dir.path().join("file");
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, &path).unwrap();
        assert!(refusal(&path).contains("give the path of the file that it points to"), "{}", refusal(&path));
        assert!(path.is_symlink());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&secret, &path).unwrap();
        assert!(refusal(&path).contains("has more than one hard link"));
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
        assert_eq!(names(dir.path()), ["file", "file.lock"]);
    }

    #[test]
    fn pipes_and_directories_are_refused_at_once() {
        for name in ["file", "file.lock"] {
            let dir = TestDir::new();
            let path = dir.path().join("file");
            mknodat(CWD, dir.path().join(name), FileType::Fifo, Mode::from_raw_mode(PRIVATE_MODE), 0).unwrap();
            assert!(replace(&path, b"new").is_err(), "{name}");
            fs::remove_file(dir.path().join(name)).unwrap();
            fs::create_dir(dir.path().join(name)).unwrap();
            assert!(replace(&path, b"new").is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_at_a_predictable_temporary_name_is_not_touched() {
        let (dir, elsewhere) = (TestDir::new(), TestDir::new());
        let (path, planted) = (dir.path().join("file"), dir.path().join("file.new"));
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, &planted).unwrap();
        replace(&path, b"new").unwrap();
        assert!(planted.is_symlink());
        assert_eq!((fs::read(&secret).unwrap(), fs::read(&path).unwrap()), (b"secret".to_vec(), b"new".to_vec()));
    }

    #[test]
    fn files_that_root_creates_belong_to_the_owner_of_the_directory() {
        if !is_root() {
            return restante_testdir::skip("only root can give files away", "REQUIRE_ROOT");
        }
        let dir = TestDir::new();
        let (path, lock) = (dir.path().join("file"), dir.path().join("file.lock"));
        chown(dir.path(), Some(SERVICE), Some(SERVICE)).unwrap();
        replace(&path, b"one").unwrap();
        assert_eq!((owner(&path), owner(&lock)), ((SERVICE, SERVICE), (SERVICE, SERVICE)));
        // A replaced file keeps its owner. An existing lock file is not given away: it may be any file of root that was
        // renamed.
        chown(&path, Some(SERVICE + 1), Some(SERVICE + 2)).unwrap();
        chown(&lock, Some(0), Some(0)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((owner(&path), owner(&lock)), ((SERVICE + 1, SERVICE + 2), (0, 0)));
    }
}
