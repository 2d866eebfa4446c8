//! The data directory: the paths of its files, and the lock that excludes a second server.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use restante_platform::{
    DiskSpace, FileId, current_user, disk_space, file_id, file_owner, private_dir, private_file, sync_dir,
};
use restante_sqlite::{create_file, wal_path};

use super::error::OpenError;
use super::segment::Segments;

/// The files of a store.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

/// The lock of a data directory. The system releases it when the process ends, even after a crash.
pub(super) struct Lock {
    _file: File,
}

/// Returns the space that new messages must leave free. Deletions need it, because they are written to the log of the
/// database.
pub(super) fn reserved_bytes(space: DiskSpace) -> u64 {
    (space.total / 16).clamp(2 << 20, 64 << 20)
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn database_path(&self) -> PathBuf {
        self.path.join("restante.db")
    }

    /// Returns the length of the write-ahead log. It is removed when the database is closed.
    pub(super) fn wal_bytes(&self) -> u64 {
        fs::metadata(wal_path(&self.database_path())).map_or(0, |log| log.len())
    }

    pub(super) fn segments_path(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Creates the directory if it does not exist, and syncs its entry. Only its owner can read it.
    pub(super) fn create(&self) -> Result<(), OpenError> {
        let segments = self.segments_path();
        let absolute = std::path::absolute(&segments).map_err(|error| self.error("cannot find", &error))?;
        // Missing parents are created first, and each entry is synced.
        let missing: Vec<&Path> = absolute.ancestors().take_while(|dir| !dir.exists()).collect();
        for dir in missing.into_iter().rev() {
            let parent = dir.parent().unwrap_or(dir);
            let created = private_dir().create(dir).and_then(|()| sync_dir(parent));
            // Another process may create it at the same time; the lock decides which one continues.
            if let Err(error) = created
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(self.error("cannot create", &error));
            }
        }
        if segments.is_dir() { Ok(()) } else { Err(self.error("cannot create", &io::ErrorKind::NotADirectory.into())) }
    }

    /// Creates an empty database if there is none. Only its owner can read it. Fails if there are segments without a
    /// database: the database was probably moved, and the messages must not be deleted.
    pub(super) fn create_database(&self, segments: &Segments) -> Result<(), OpenError> {
        let path = self.database_path();
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0) {
            return Ok(());
        }
        let ids = segments.ids().map_err(|error| self.error("cannot read", &error))?;
        if !ids.is_empty() {
            return Err(OpenError::Orphaned(self.path.clone()));
        }
        create_file(&path).map_err(|error| self.error("cannot write to", &error))
    }

    /// Syncs the entries of the directory, such as that of a new write-ahead log.
    pub(super) fn sync_entries(&self) -> io::Result<()> {
        sync_dir(&self.path)
    }

    /// Returns the space on the file system.
    pub(super) fn disk_space(&self) -> io::Result<DiskSpace> {
        disk_space(&self.path)
    }

    /// Returns the identity of the database file. It changes if the file is replaced.
    pub(super) fn database_file_id(&self) -> io::Result<FileId> {
        fs::metadata(self.database_path()).map(|metadata| file_id(&metadata))
    }

    /// Fails if there is no store in the directory.
    pub(super) fn check_exists(&self) -> Result<(), OpenError> {
        match fs::metadata(self.database_path()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::Missing(self.path.clone())),
            Err(error) => Err(self.error("cannot read", &error)),
        }
    }

    /// Locks the directory, which excludes other servers. Fails if it belongs to another user or is in use.
    pub(super) fn lock(&self) -> Result<Lock, OpenError> {
        let path = self.path.join("lock");
        let opened = private_file().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(|error| self.error("cannot write to", &error))?;
        let metadata = file.metadata().map_err(|error| self.error("cannot read", &error))?;
        if let (Some(owner), Some(user)) = (file_owner(&metadata), current_user())
            && owner != user
        {
            return Err(OpenError::WrongOwner { dir: self.path.clone(), owner, user });
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Only for the error message. The file may have no content.
                let _ = (&file).take(20).read_to_string(&mut pid);
                return Err(OpenError::Locked { dir: self.path.clone(), pid: pid.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(self.error("cannot lock", &error)),
        }
        // The process id is information for the operator. The lock does not depend on it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }

    fn error(&self, action: &'static str, error: &io::Error) -> OpenError {
        let error = io::Error::new(error.kind(), error.to_string());
        OpenError::Directory { action, dir: self.path.clone(), error }
    }
}
