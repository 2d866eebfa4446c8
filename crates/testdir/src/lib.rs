//! Directories for tests: each its own, below the system's place for temporary files, gone with its value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// An empty directory that is removed, with everything in it, when this is dropped.
pub struct TestDir(PathBuf);

impl TestDir {
    /// A directory that no other test has.
    #[expect(clippy::new_without_default, reason = "what touches the disk is no default value")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("restante-test-{}-{number}", process::id()));
        // An earlier process with the same id may have been killed before it could tidy up.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("temporary files can be made");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // Whatever is left is the system's to remove; the test has its result.
        let _ = fs::remove_dir_all(&self.0);
    }
}
