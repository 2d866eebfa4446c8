//! Files: private ones, reads and writes at an offset, identity, access, free space and syncing.

use std::fs::File;
use std::io;

pub use imp::{FileSystem, check_access, disk_space, file_id, private_dir, private_file, sync_dir, sync_file};

/// The space on a file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DiskSpace {
    /// The space that this process can use.
    pub free: u64,
    /// The size of the file system.
    pub total: u64,
}

/// Identifies a file independently of its name: device and inode. On Windows the time of its creation.
pub type FileId = (u64, u64);

/// What a process wants to do with a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read a file.
    Read,
    /// Write a file.
    Write,
    /// Read and write a file.
    ReadWrite,
    /// Create and remove files in a directory.
    ChangeDirectory,
    /// Also list a directory.
    ListAndChangeDirectory,
}

/// Reads and writes at an offset, independently of other users of the same file.
pub trait FileExt {
    /// Fills the buffer, or fails with [`io::ErrorKind::UnexpectedEof`].
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

/// Frees the space of a part of a file. Only Linux supports this.
#[cfg(target_os = "linux")]
pub fn punch_hole(file: &File, start: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length)?)
}

/// Frees the space of a part of a file. Only Linux supports this.
#[cfg(not(target_os = "linux"))]
pub fn punch_hole(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
mod imp {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
    use std::path::Path;

    use super::{Access, DiskSpace, FileExt, FileId};

    impl FileExt for File {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
        }

        fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
        }
    }

    /// Returns options for a file that only its owner can read if it is created. On Windows it inherits the permissions of
    /// its directory, which is private in the home directory of a user.
    pub fn private_file() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600);
        options
    }

    /// Creates directories that only their owner can read. See [`private_file`] for Windows.
    pub fn private_dir() -> DirBuilder {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder
    }

    /// Returns the identity of a file.
    pub fn file_id(metadata: &Metadata) -> FileId {
        (metadata.dev(), metadata.ino())
    }

    /// Checks whether this process has access to a file or a directory, without opening it. Windows can only find out that
    /// a file is read-only.
    pub fn check_access(path: &Path, access: Access) -> io::Result<()> {
        use rustix::fs::Access as Flags;
        let flags = match access {
            Access::Read => Flags::READ_OK,
            Access::Write => Flags::WRITE_OK,
            Access::ReadWrite => Flags::READ_OK | Flags::WRITE_OK,
            Access::ChangeDirectory => Flags::WRITE_OK | Flags::EXEC_OK,
            Access::ListAndChangeDirectory => Flags::READ_OK | Flags::WRITE_OK | Flags::EXEC_OK,
        };
        Ok(rustix::fs::access(path, flags)?)
    }

    /// Returns the space on the file system that contains the path.
    pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
        let space = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Ok(DiskSpace { free: bytes(space.f_bavail), total: bytes(space.f_blocks) })
    }

    /// Syncs the content of a file.
    pub fn sync_file(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_data()
    }

    /// Syncs the entries of a directory. Does nothing on Windows, which writes them with the journal of the file system.
    pub fn sync_dir(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// A file system that is synced as a whole.
    pub struct FileSystem(File);

    impl FileSystem {
        /// Opens the file system that contains the directory. Linux reports write errors that happen after this call.
        pub fn containing(directory: &Path) -> io::Result<Self> {
            File::open(directory).map(Self)
        }

        /// Syncs everything that was written.
        #[cfg(target_os = "linux")]
        pub fn sync(&self) -> io::Result<()> {
            Ok(rustix::fs::syncfs(&self.0)?)
        }

        /// Syncs everything that was written.
        #[cfg(not(target_os = "linux"))]
        pub fn sync(&self) -> io::Result<()> {
            rustix::fs::sync();
            self.0.sync_all()
        }
    }
}

#[cfg(windows)]
mod imp {
    use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::windows::fs::{FileExt as _, MetadataExt as _};
    use std::path::Path;

    use super::{Access, DiskSpace, FileExt, FileId};

    impl FileExt for File {
        fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
            while !buffer.is_empty() {
                match self.seek_read(buffer, offset) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(length) => {
                        buffer = &mut buffer[length..];
                        offset += length as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }

        fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
            while !bytes.is_empty() {
                match self.seek_write(bytes, offset) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(length) => {
                        bytes = &bytes[length..];
                        offset += length as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }

    /// Returns options for a file, which inherits the permissions of its directory.
    pub fn private_file() -> OpenOptions {
        OpenOptions::new()
    }

    /// Creates directories, which inherit the permissions of their parent.
    pub fn private_dir() -> DirBuilder {
        DirBuilder::new()
    }

    /// Returns the identity of a file: the time of its creation.
    pub fn file_id(metadata: &Metadata) -> FileId {
        (0, metadata.creation_time())
    }

    /// Checks whether a file is read-only.
    pub fn check_access(path: &Path, access: Access) -> io::Result<()> {
        let metadata = fs::metadata(path)?;
        let writes = matches!(access, Access::Write | Access::ReadWrite);
        // The attribute has no effect on directories.
        if writes && metadata.is_file() && metadata.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    /// Returns the space on the file system that contains the path.
    pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
        let space = fs4::statvfs(path)?;
        Ok(DiskSpace { free: space.available_space(), total: space.total_space() })
    }

    /// Syncs the content of a file, which must be open for writing.
    pub fn sync_file(path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.sync_data()
    }

    /// Does nothing: Windows writes the entries of a directory with the journal of the file system.
    pub fn sync_dir(_: &Path) -> io::Result<()> {
        Ok(())
    }

    /// A file system. Windows syncs only single files without the rights of an administrator.
    pub struct FileSystem(());

    impl FileSystem {
        /// Checks that the directory exists.
        pub fn containing(directory: &Path) -> io::Result<Self> {
            fs::metadata(directory).map(|_| Self(()))
        }

        /// Does nothing: files reach the disk when Windows writes its cache.
        pub fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_testdir::TestDir;

    use super::*;

    #[test]
    fn reads_and_writes_at_offsets() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let file = private_file().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all_at(b"world", 6).unwrap();
        file.write_all_at(b"hello ", 0).unwrap();
        let mut bytes = [0; 5];
        file.read_exact_at(&mut bytes, 6).unwrap();
        assert_eq!(&bytes, b"world");
        let past_end = file.read_exact_at(&mut bytes, 7).unwrap_err();
        assert_eq!(past_end.kind(), io::ErrorKind::UnexpectedEof);
        sync_file(&path).unwrap();
        sync_dir(dir.path()).unwrap();
        FileSystem::containing(dir.path()).unwrap().sync().unwrap();
    }

    #[test]
    fn free_space_is_part_of_the_file_system() {
        let dir = TestDir::new();
        let space = disk_space(dir.path()).unwrap();
        assert!(space.free > 0 && space.free <= space.total, "{space:?}");
        assert!(disk_space(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn access_to_own_files_is_granted() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        for access in [Access::Read, Access::Write, Access::ReadWrite] {
            check_access(&path, access).unwrap();
        }
        for access in [Access::ChangeDirectory, Access::ListAndChangeDirectory] {
            check_access(dir.path(), access).unwrap();
        }
        assert!(check_access(&dir.path().join("missing"), Access::Read).is_err());
    }
}
