//! What tests of all crates share: directories of their own, and the notice of a test that cannot run on this machine.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

/// An empty directory that is removed, with everything in it, when this is dropped.
pub struct TestDir {
    path: PathBuf,
    keep_on_failure: bool,
}

impl TestDir {
    /// Creates a directory that no other test has.
    #[expect(clippy::new_without_default, reason = "what touches the disk is no default value")]
    pub fn new() -> Self {
        Self { path: create(""), keep_on_failure: false }
    }

    /// Creates a directory that no other test has, with this text in its name. It stays on disk if the test fails.
    pub fn kept_on_failure(name: &str) -> Self {
        Self { path: create(&format!("-{name}")), keep_on_failure: true }
    }

    /// Returns the absolute path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        if self.keep_on_failure && thread::panicking() {
            eprintln!("the files of the failed test are in {}", self.path.display());
            return;
        }
        // If something cannot be removed, the system cleans up its temporary files. The test has its result.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Reports that the current test is skipped. Panics if the environment has the variable `required_by`, which CI sets.
///
/// The notice goes to standard error directly: the test harness captures `eprintln!`, and shows it for failed tests only.
pub fn skip(reason: &str, required_by: &str) {
    assert!(env::var_os(required_by).is_none(), "{reason}, and {required_by} is set");
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "skipped {test}: {reason}");
}

/// Creates a directory whose name ends like this. An existing directory is never used and never removed: another process with
/// the same id, in another container or before a restart, may have made it.
fn create(end: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("restante-test-{}-{number}{end}", process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return path,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => panic!("cannot create {}: {error}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_is_new_and_goes_with_its_value() {
        let (one, other) = (TestDir::new(), TestDir::new());
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("file"), "text").unwrap();
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn the_files_of_a_failed_test_can_be_looked_at() {
        let failed = |make: fn() -> TestDir| {
            let test = move || {
                let dir = make();
                // Not a panic that is printed: nothing has failed here.
                std::panic::resume_unwind(Box::new(dir.path().to_owned()))
            };
            let cause = thread::spawn(test).join().unwrap_err();
            cause.downcast::<PathBuf>().unwrap()
        };
        assert!(!failed(TestDir::new).exists());
        let kept = failed(|| TestDir::kept_on_failure("sample"));
        assert!(kept.exists() && kept.to_str().unwrap().ends_with("-sample"), "{}", kept.display());
        fs::remove_dir(*kept).unwrap();
    }

    #[test]
    fn a_test_that_is_required_fails_instead_of_being_skipped() {
        // Every environment has this variable.
        let failed = thread::spawn(|| skip("there is no such program", "PATH")).join().unwrap_err();
        assert_eq!(failed.downcast_ref::<String>().unwrap(), "there is no such program, and PATH is set");
    }
}
