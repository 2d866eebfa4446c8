//! The data directory: where its files are, the lock that keeps a second server out, and why it cannot be opened.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use restante_sqlite::{ErrorKind, create_file, wal_path};

use super::segment::{Segments, sync_dir};

/// The files of a store.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

/// Held for as long as a server uses the directory. The system lets it go when the process ends, however it ends.
pub(super) struct Lock {
    _file: File,
}

/// Which file it is, whatever its name.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(found: &fs::Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) free: u64,
    pub(super) whole: u64,
}

impl Room {
    /// What is kept free, because deletions need some room too: they go through the log of the database.
    pub(super) fn reserve(self) -> u64 {
        (self.whole / 16).clamp(1 << 20, 64 << 20)
    }
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join("restante.db")
    }

    /// How long the log of the database is. It goes when the database is closed.
    pub(super) fn log_bytes(&self) -> u64 {
        fs::metadata(wal_path(&self.database())).map_or(0, |log| log.len())
    }

    pub(super) fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Makes the directory where there is none, and makes sure that it lasts. Mail is nobody else's business.
    pub(super) fn make(&self) -> Result<(), OpenError> {
        let segments = self.segments();
        let absolute = std::path::absolute(&segments).map_err(|error| self.error("cannot find", &error))?;
        // Whatever is not there yet is made from the outside in, each in a directory that lasts.
        let missing: Vec<&Path> = absolute.ancestors().take_while(|dir| !dir.exists()).collect();
        for dir in missing.into_iter().rev() {
            let parent = dir.parent().unwrap_or(dir);
            let made = DirBuilder::new().mode(0o700).create(dir).and_then(|()| sync_dir(parent));
            // Somebody else may be at it too; the lock decides.
            if let Err(error) = made
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(self.error("cannot make", &error));
            }
        }
        if segments.is_dir() { Ok(()) } else { Err(self.error("cannot make", &io::ErrorKind::NotADirectory.into())) }
    }

    /// Makes an empty database where there is none, readable by nobody else. Mail without a database is nobody's to throw
    /// away: somebody has moved the one that belongs to it.
    pub(super) fn make_database(&self, segments: &Segments) -> Result<(), OpenError> {
        let path = self.database();
        if fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
            return Ok(());
        }
        let found = segments.ids().map_err(|error| self.error("cannot read", &error))?;
        if !found.is_empty() {
            return Err(OpenError::Orphaned(self.path.clone()));
        }
        create_file(&path).map_err(|error| self.error("cannot write to", &error))
    }

    /// How much room the file system has.
    pub(super) fn room(&self) -> io::Result<Room> {
        let found = rustix::fs::statvfs(&self.path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Room { free: bytes(found.f_bavail), whole: bytes(found.f_blocks) })
    }

    /// Which file the database is; another one when somebody has put another one there.
    pub(super) fn database_identity(&self) -> io::Result<Identity> {
        fs::metadata(self.database()).map(|found| identity(&found))
    }

    /// Whether a store was ever made here.
    pub(super) fn check_exists(&self) -> Result<(), OpenError> {
        match fs::metadata(self.database()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::Missing(self.path.clone())),
            Err(error) => Err(self.error("cannot read", &error)),
        }
    }

    /// Keeps other servers out.
    pub(super) fn lock(&self) -> Result<Lock, OpenError> {
        let path = self.path.join("lock");
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let mut file = opened.map_err(|error| self.error("cannot write to", &error))?;
        let owner = file.metadata().map_err(|error| self.error("cannot read", &error))?.uid();
        let us = rustix::process::geteuid().as_raw();
        if owner != us {
            return Err(OpenError::Owner { dir: self.path.clone(), owner, us });
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Only for the message; a file that cannot be read has no name in it.
                let _ = (&file).take(20).read_to_string(&mut owner);
                return Err(OpenError::Locked { dir: self.path.clone(), owner: owner.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(self.error("cannot lock", &error)),
        }
        // The process id helps the operator and nobody else; the lock holds without it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }

    fn error(&self, what: &'static str, error: &io::Error) -> OpenError {
        let error = io::Error::new(error.kind(), error.to_string());
        OpenError::Directory { what, dir: self.path.clone(), error }
    }
}

/// Why a data directory cannot be used. The text is a sentence for the operator.
#[derive(Debug)]
pub enum OpenError {
    /// The system does not let us make, read or write it.
    Directory {
        /// What was tried.
        what: &'static str,
        /// The data directory.
        dir: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is no store to read.
    Missing(PathBuf),
    /// There is mail, but no database that says whose it is.
    Orphaned(PathBuf),
    /// It belongs to another user, whom files that we make would shut out.
    Owner {
        /// The data directory.
        dir: PathBuf,
        /// The user it belongs to.
        owner: u32,
        /// The user of this process.
        us: u32,
    },
    /// Another process uses it.
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The other process.
        owner: Option<u32>,
    },
    /// A later version of the program has made it.
    TooNew {
        /// The version of the schema that was found.
        found: i64,
        /// The latest version that is known.
        known: i64,
    },
    /// The database is another program's.
    Foreign,
    /// The database is damaged.
    Damaged(String),
    /// The database cannot be opened now.
    Database(String),
}

impl OpenError {
    /// Whether it stays like this until somebody does something about it: trying again by itself does not help.
    pub fn is_permanent(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::Directory { error, .. } => {
                matches!(error.kind(), NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
            }
            Self::Locked { .. } | Self::Database(_) => false,
            Self::Missing(_)
            | Self::Orphaned(_)
            | Self::Owner { .. }
            | Self::TooNew { .. }
            | Self::Foreign
            | Self::Damaged(_) => true,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { what, dir, error } => write!(f, "{what} the data directory {}: {error}", dir.display()),
            Self::Missing(dir) => write!(f, "there is no store in {}", dir.display()),
            Self::Orphaned(dir) => write!(
                f,
                "{} holds mail, but its database restante.db is missing or empty; put it back, or move the data \
                 directory away to start with an empty one",
                dir.display()
            ),
            Self::Owner { dir, owner, us } => write!(
                f,
                "the data directory {} belongs to user {owner}, whom files made by user {us} would shut out; run this \
                 as user {owner}",
                dir.display()
            ),
            Self::Locked { dir, owner } => {
                write!(f, "the data directory {} is in use by another server", dir.display())?;
                owner.map_or(Ok(()), |pid| write!(f, " (process {pid})"))
            }
            Self::TooNew { found, known } => write!(
                f,
                "the database was made by a later version of Restante: its schema is {found}, this version knows {known}"
            ),
            Self::Foreign => f.write_str("the file restante.db is a database of another program"),
            Self::Damaged(cause) => write!(
                f,
                "the database restante.db is damaged ({cause}); restore it from a backup, or move the data directory \
                 away to start with an empty one"
            ),
            Self::Database(cause) => write!(f, "the database restante.db cannot be opened: {cause}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match ErrorKind::of(&error) {
            ErrorKind::Damaged => Self::Damaged(error.to_string()),
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<restante_sqlite::OpenError> for OpenError {
    fn from(error: restante_sqlite::OpenError) -> Self {
        use restante_sqlite::OpenError as Sqlite;
        match error {
            Sqlite::Newer { found, known } => Self::TooNew { found, known },
            Sqlite::Foreign => Self::Foreign,
            other => rusqlite::Error::from(other).into(),
        }
    }
}
