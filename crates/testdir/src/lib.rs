//! Support for the tests of all crates: test directories, the report of a test that cannot run on this machine, and the
//! imports between the modules of a crate.

mod imports;

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

pub use imports::{find_import_cycle, module_imports};

/// The environment variable with the path of the list of skipped tests, which must exist.
const SKIPPED_TESTS: &str = "SKIPPED_TESTS";

/// An empty directory that is removed, with everything in it, when this is dropped.
pub struct TestDir {
    path: PathBuf,
    keep_on_failure: bool,
}

impl TestDir {
    /// Creates a directory that no other test has.
    #[expect(clippy::new_without_default, reason = "creating a directory is not a default value")]
    pub fn new() -> Self {
        Self { path: create_dir(""), keep_on_failure: false }
    }

    /// Creates a directory that no other test has, with this text in its name. It stays on disk if the test fails.
    pub fn kept_on_failure(name: &str) -> Self {
        Self { path: create_dir(&format!("-{name}")), keep_on_failure: true }
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
        // Errors are ignored: the test has passed or failed already, and the system cleans its temporary directory.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Reports that the current test is skipped. Panics if the environment has the variable `required_by`, which CI sets.
///
/// The notice goes to standard error directly: the test harness captures `eprintln!`, and shows it for failed tests only. If the
/// environment has the variable `SKIPPED_TESTS`, the notice is also appended to the file of that name, from which `./check` makes
/// its list.
pub fn skip(reason: &str, required_by: &str) {
    assert!(env::var_os(required_by).is_none(), "{reason}, and {required_by} is set");
    let thread = thread::current();
    let notice = format!("{} {}: {reason}\n", program_name(), thread.name().unwrap_or("a test"));
    // A closed standard error is not a reason to fail.
    let _ = io::stderr().write_all(format!("skipped {notice}").as_bytes());
    if let Some(list) = env::var_os(SKIPPED_TESTS) {
        // Programs may append at the same time. One write keeps the line intact.
        let written = File::options().append(true).open(&list).and_then(|mut list| list.write_all(notice.as_bytes()));
        written.unwrap_or_else(|error| panic!("{SKIPPED_TESTS}: cannot write to {}: {error}", list.display()));
    }
}

/// Returns the name of the test program, without the hash that Cargo appends.
fn program_name() -> String {
    let path = env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or(&*name, |(name, _)| name).to_owned()
}

/// Creates a directory whose name ends with `end`. An existing directory is never used or removed: another process with
/// the same id, in another container or before a restart, may have created it.
fn create_dir(end: &str) -> PathBuf {
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
    use std::process::{Command, Output};

    use super::*;

    const REQUIRED: &str = "REQUIRE_SAMPLE";
    const NOTICE: &str = "restante_testdir tests::missing_program: there is no such program\n";

    #[test]
    fn directory_is_new_and_removed_on_drop() {
        let (one, other) = (TestDir::new(), TestDir::new());
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("file"), "text").unwrap();
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn directory_of_failed_test_can_be_kept() {
        let failed = |make: fn() -> TestDir| {
            let test = move || {
                let dir = make();
                // A panic that is not printed, because nothing has failed here.
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

    /// Runs `missing_program` below as a separate test, with these variables.
    fn run_skipped_test(variables: &[(&str, &Path)]) -> Output {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "tests::missing_program", "--ignored"]);
        // With one thread, tests run on the main thread, which has another name.
        command.env("RUST_TEST_THREADS", "2").env_remove(SKIPPED_TESTS).env_remove(REQUIRED);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    #[test]
    #[ignore = "other tests run it in a separate process"]
    fn missing_program() {
        skip("there is no such program", REQUIRED);
    }

    #[test]
    fn skipped_test_is_reported_although_it_passes() {
        let Output { status, stdout, stderr } = run_skipped_test(&[]);
        assert!(status.success() && String::from_utf8_lossy(&stdout).contains("1 passed"));
        assert_eq!(String::from_utf8_lossy(&stderr), format!("skipped {NOTICE}"));
    }

    #[test]
    fn skipped_test_is_appended_to_the_list() {
        let dir = TestDir::new();
        let list = dir.path().join("list");
        fs::write(&list, "another test\n").unwrap();
        let output = run_skipped_test(&[(SKIPPED_TESTS, &list)]);
        assert!(output.status.success());
        assert_eq!(fs::read_to_string(&list).unwrap(), format!("another test\n{NOTICE}"));
    }

    #[test]
    fn required_test_fails_instead_of_being_skipped() {
        let dir = TestDir::new();
        let list = dir.path().join("list");
        fs::write(&list, "").unwrap();
        let Output { status, stdout, .. } = run_skipped_test(&[(SKIPPED_TESTS, &list), (REQUIRED, Path::new("1"))]);
        let stdout = String::from_utf8_lossy(&stdout);
        assert!(
            !status.success() && stdout.contains("there is no such program, and REQUIRE_SAMPLE is set"),
            "{stdout}"
        );
        assert_eq!(fs::read_to_string(&list).unwrap(), "");
    }
}
