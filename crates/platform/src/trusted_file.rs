//! Opening files that no other user can have written. Windows has no modes, and no file is trusted there.

pub use imp::open_trusted;

/// The reason why a file is not trusted. It is the inner error of an [`std::io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UntrustedFile(String);

impl From<UntrustedFile> for std::io::Error {
    fn from(reason: UntrustedFile) -> Self {
        Self::new(std::io::ErrorKind::PermissionDenied, reason)
    }
}

#[cfg(unix)]
mod imp {
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
    use std::path::Path;

    use rustix::fs::OFlags;

    use super::UntrustedFile;
    use crate::{current_user, file_id};

    /// The permission to write, for the group and for others.
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    /// The permission bits, with those of sticky directories.
    const MODE_BITS: u32 = 0o7777;

    /// Opens a regular file for reading if it belongs to this user or root, and so does its directory, and only the
    /// owners can write them. For a symbolic link, this applies to the directory of the link and to that of the file.
    /// Fails with [`UntrustedFile`] otherwise, and for a directory with [`io::ErrorKind::IsADirectory`].
    pub fn open_trusted(path: &Path) -> io::Result<File> {
        // The opened file is checked, not the path, which could lead to another file in the meantime.
        // Without the flag, opening a FIFO would wait for a writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(UntrustedFile("it is not a regular file".to_owned()).into());
        }
        check("the file", &metadata)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        check("its directory", &fs::metadata(directory)?)?;
        let real_path = fs::canonicalize(path)?;
        if file_id(&fs::metadata(&real_path)?) != file_id(&metadata) {
            return Err(UntrustedFile("the file was replaced while it was opened".to_owned()).into());
        }
        if let Some(directory) = real_path.parent() {
            // This path contains no symbolic links, unless it has changed since then.
            check("its directory", &fs::symlink_metadata(directory)?)?;
        }
        Ok(file)
    }

    fn check(name: &str, metadata: &Metadata) -> Result<(), UntrustedFile> {
        let (owner, mode) = (metadata.uid(), metadata.permissions().mode() & MODE_BITS);
        if owner != 0 && Some(owner) != current_user() {
            return Err(UntrustedFile(format!("{name} belongs to another user, number {owner}")));
        }
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(UntrustedFile(format!("{name} has the mode {mode:04o}, so other users may write it")));
        }
        Ok(())
    }
}

#[cfg(windows)]
mod imp {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::UntrustedFile;

    /// Fails with [`UntrustedFile`].
    pub fn open_trusted(_: &Path) -> io::Result<File> {
        Err(UntrustedFile("on Windows it is not known which users may write it".to_owned()).into())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use restante_testdir::TestDir;

    use super::*;

    /// Creates a directory with a file, both with these modes. Returns the path of the file.
    fn create(parent: &Path, name: &str, directory_mode: u32, file_mode: u32) -> PathBuf {
        let directory = parent.join(name);
        fs::create_dir(&directory).unwrap();
        let file = directory.join("file");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(directory_mode)).unwrap();
        file
    }

    /// Returns why the file is not trusted; empty if it is.
    fn reason(path: &Path) -> String {
        match open_trusted(path) {
            Ok(_) => String::new(),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                error.get_ref().and_then(|inner| inner.downcast_ref::<UntrustedFile>()).unwrap().to_string()
            }
        }
    }

    #[test]
    fn files_that_other_users_may_write_are_not_trusted() {
        let dir = TestDir::new();
        let table = [
            (0o755, 0o644, ""),
            (0o700, 0o600, ""),
            (0o755, 0o664, "the file has the mode 0664, so other users may write it"),
            (0o755, 0o646, "the file has the mode 0646, so other users may write it"),
            (0o775, 0o644, "its directory has the mode 0775, so other users may write it"),
            (0o757, 0o644, "its directory has the mode 0757, so other users may write it"),
            (0o1777, 0o644, "its directory has the mode 1777, so other users may write it"),
        ];
        for (index, (directory_mode, file_mode, expected)) in table.into_iter().enumerate() {
            let file = create(dir.path(), &index.to_string(), directory_mode, file_mode);
            assert_eq!(reason(&file), expected, "{directory_mode:o} {file_mode:o}");
        }
        let missing = open_trusted(&dir.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn fifo_is_refused_without_waiting_for_a_writer() {
        let dir = TestDir::new();
        let file = create(dir.path(), "a", 0o755, 0o644);
        let fifo = file.with_file_name("fifo");
        assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap().success());
        assert_eq!(reason(&fifo), "it is not a regular file");
        let directory = open_trusted(file.parent().unwrap()).unwrap_err();
        assert_eq!(directory.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn both_directories_of_a_symbolic_link_are_checked() {
        let dir = TestDir::new();
        let (private, shared) = (create(dir.path(), "a", 0o755, 0o644), create(dir.path(), "b", 0o777, 0o644));
        let link = |directory: &str, target: &Path| {
            let link = dir.path().join(directory).join("link");
            symlink(target, &link).unwrap();
            link
        };
        assert_eq!(reason(&link("b", &private)), "its directory has the mode 0777, so other users may write it");
        let link = link("a", &shared);
        assert_eq!(reason(&link), "its directory has the mode 0777, so other users may write it");
        fs::remove_file(&link).unwrap();
        symlink(create(dir.path(), "c", 0o755, 0o644), &link).unwrap();
        assert_eq!(reason(&link), "");
    }

    #[test]
    fn files_of_other_users_are_not_trusted() {
        let dir = TestDir::new();
        let file = create(dir.path(), "a", 0o755, 0o644);
        if chown(&file, Some(12345), None).is_err() {
            return restante_testdir::skip("only root can give files away", "REQUIRE_ROOT");
        }
        assert_eq!(reason(&file), "the file belongs to another user, number 12345");
        chown(&file, Some(0), None).unwrap();
        chown(file.parent().unwrap(), Some(12345), None).unwrap();
        assert_eq!(reason(&file), "its directory belongs to another user, number 12345");
    }
}
