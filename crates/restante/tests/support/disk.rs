//! A data directory on a disk that fails on demand. The library that does it is `disk.c`, which says what a plan
//! can ask for; here it is built, loaded into the real program, and told what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use restante_testdir::TestDir;

use super::{Server, command};

/// Steps of any kind.
pub(crate) const ANY: &str = "wgstcur";
/// Steps that take space.
pub(crate) const SPACE: &str = "gc";
/// A loss of power that keeps nothing that was not synced.
pub(crate) const STRICT: u64 = 0;

/// What shall go wrong: `count` steps of some `kinds`, from the one numbered `at`, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) at: usize,
    pub(crate) fault: &'static str,
    pub(crate) count: usize,
    pub(crate) kinds: &'static str,
    pub(crate) seed: u64,
}

impl Plan {
    /// One fault.
    pub(crate) fn once(fault: &'static str, at: usize) -> Self {
        Self { at, fault, count: 1, kinds: ANY, seed: STRICT }
    }

    /// A fault that lasts until the disk heals.
    pub(crate) fn lasting(fault: &'static str, kinds: &'static str) -> Self {
        Self { at: 1, fault, count: 1_000_000, kinds, seed: STRICT }
    }
}

/// A place for a data directory. It is removed when the test ends, unless the test fails.
pub(crate) struct Disk {
    /// Removes the directory when dropped.
    _dir: TestDir,
    scratch: PathBuf,
    data: PathBuf,
}

impl Disk {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_data(name, "data")
    }

    /// With a name for the data directory, which may lie in directories that are not there either.
    pub(crate) fn with_data(name: &str, data: &str) -> Self {
        let dir = TestDir::kept_on_failure(name);
        // The library compares paths as they are spelled.
        let scratch = dir.path().canonicalize().unwrap();
        fs::create_dir(scratch.join("files")).unwrap();
        let data = scratch.join("files").join(data);
        Self { _dir: dir, scratch, data }
    }

    /// The data directory, which the server has to make.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The names of the segment files.
    pub(crate) fn segments(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data().join("segments")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// A server on the disk as it is, and as good as disks are.
    pub(crate) fn server(&self, arguments: &[&str]) -> Server {
        Server::spawn(self.command().args(arguments))
    }

    /// A server on the disk that may fail.
    pub(crate) fn faulty(&self, arguments: &[&str]) -> Server {
        self.try_faulty(arguments).unwrap_or_else(|(status, log)| panic!("the server ended with {status}: {log}"))
    }

    /// The same, when it may fail before the server listens.
    pub(crate) fn try_faulty(&self, arguments: &[&str]) -> Result<Server, (ExitStatus, String)> {
        let _ = fs::remove_file(self.scratch.join("log"));
        let server = Server::try_spawn(self.load(self.command().args(arguments)));
        assert_eq!(self.log().first().map(String::as_str), Some("loaded"), "the library was not loaded");
        server
    }

    /// From now on, this goes wrong.
    pub(crate) fn plan(&self, plan: Plan) {
        let Plan { at, fault, count, kinds, seed } = plan;
        let new = self.scratch.join("plan.new");
        fs::write(&new, format!("{at} {fault} {count} {kinds} {seed}")).unwrap();
        fs::rename(new, self.scratch.join("plan")).unwrap();
    }

    /// From now on, nothing goes wrong. There need not be a plan.
    pub(crate) fn heal(&self) {
        let _ = fs::remove_file(self.scratch.join("plan"));
    }

    /// The steps that were taken since the server has started, and the faults that they suffered.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.scratch.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Whether a fault of this name has happened.
    pub(crate) fn suffered(&self, fault: &str) -> bool {
        self.log().iter().any(|line| line == fault)
    }

    /// Waits until the server has done what it does in the background, so that the next step is the test's.
    pub(crate) fn wait_until_quiet(&self) {
        let mut before = 0;
        while before != self.log().len() {
            before = self.log().len();
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn command(&self) -> Command {
        let mut command = command();
        // Steps are counted, and what is written beside the mail by a thread of its own would come in between.
        command.args(["--smtp-transcriptkb", "0"]);
        command.args(["--storage-mailboxmsgcap", "0", "--data"]).arg(&self.data);
        command
    }

    fn load<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            // The index takes steps of its own, at times of its own, and nothing of it is worth keeping.
            .arg("--search-enabled=false")
            .env("LD_PRELOAD", library())
            .env("FAULTS_DIR", self.scratch.join("files"))
            .env("FAULTS_LOG", self.scratch.join("log"))
            .env("FAULTS_PLAN", self.scratch.join("plan"))
    }
}

/// The library, built once per test program by the C compiler that building the program takes anyway.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/disk.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("disk-{}.so", std::process::id()));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
            .args([&built, &source])
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Another test program may be using the library of this name; it keeps the one that it has loaded.
        let path = built.with_file_name("disk.so");
        fs::rename(&built, &path).unwrap();
        path
    })
}
