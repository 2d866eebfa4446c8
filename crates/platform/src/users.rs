//! The user of the process, and the owners of files. Windows has no numbers for them.

pub use imp::{current_user, file_owner};

#[cfg(unix)]
mod imp {
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt as _;

    /// Returns the number of the user that this process runs as; `None` on Windows.
    pub fn current_user() -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    /// Returns the number of the owner of a file; `None` on Windows.
    pub fn file_owner(metadata: &Metadata) -> Option<u32> {
        Some(metadata.uid())
    }
}

#[cfg(windows)]
mod imp {
    use std::fs::Metadata;

    /// Returns `None`.
    pub fn current_user() -> Option<u32> {
        None
    }

    /// Returns `None`.
    pub fn file_owner(_: &Metadata) -> Option<u32> {
        None
    }
}
