//! A data directory on a disk with injected faults. `disk.c` is the library that injects them and documents the plans. This module
//! builds it, preloads it into the real program, and writes the plans.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use restante_testdir::TestDir;

use super::{Server, command};

/// Steps of any kind.
pub(crate) const ANY: &str = "wgstcur";
/// Steps that need disk space.
pub(crate) const SPACE: &str = "gc";
/// A power loss that loses everything that was not synced.
pub(crate) const STRICT: u64 = 0;

/// A planned fault: it affects `count` steps of these `kinds`, starting with step number `at`, counted from 1.
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

    /// A fault that lasts until `clear_faults` is called.
    pub(crate) fn lasting(fault: &'static str, kinds: &'static str) -> Self {
        Self { at: 1, fault, count: 1_000_000, kinds, seed: STRICT }
    }
}

/// A directory for a data directory. It is removed when the test ends, unless the test fails.
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

    /// Uses this path for the data directory. Its parent directories need not exist.
    pub(crate) fn with_data(name: &str, data: &str) -> Self {
        let dir = TestDir::kept_on_failure(name);
        // The library compares paths as they are spelled.
        let scratch = dir.path().canonicalize().unwrap();
        fs::create_dir(scratch.join("files")).unwrap();
        let data = scratch.join("files").join(data);
        Self { _dir: dir, scratch, data }
    }

    /// The data directory. The server creates it.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the names of the segment files.
    pub(crate) fn segments(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data().join("segments")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Starts a server without faults.
    pub(crate) fn server(&self, arguments: &[&str]) -> Server {
        Server::spawn(self.command().args(arguments))
    }

    /// Starts a server on which planned faults take effect.
    pub(crate) fn server_with_faults(&self, arguments: &[&str]) -> Server {
        self.try_server_with_faults(arguments)
            .unwrap_or_else(|(status, log)| panic!("the server exited with {status}: {log}"))
    }

    /// Like `server_with_faults`, but the server may exit before it listens.
    pub(crate) fn try_server_with_faults(&self, arguments: &[&str]) -> Result<Server, (ExitStatus, String)> {
        let _ = fs::remove_file(self.scratch.join("log"));
        let server = Server::try_spawn(self.with_library(self.command().args(arguments)));
        assert_eq!(self.log().first().map(String::as_str), Some("loaded"), "the library was not loaded");
        server
    }

    /// Plans a fault. It takes effect at once.
    pub(crate) fn plan(&self, plan: Plan) {
        let Plan { at, fault, count, kinds, seed } = plan;
        let new = self.scratch.join("plan.new");
        fs::write(&new, format!("{at} {fault} {count} {kinds} {seed}")).unwrap();
        fs::rename(new, self.scratch.join("plan")).unwrap();
    }

    /// Removes the plan, if there is one.
    pub(crate) fn clear_faults(&self) {
        let _ = fs::remove_file(self.scratch.join("plan"));
    }

    /// Returns the steps since the start of the server, and the faults that they had.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.scratch.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Returns whether a fault of this name has occurred.
    pub(crate) fn has_fault_occurred(&self, fault: &str) -> bool {
        self.log().iter().any(|line| line == fault)
    }

    /// Waits until the server has finished its background work, so that the next step belongs to the test.
    pub(crate) fn wait_until_quiet(&self) {
        let mut before = 0;
        while before != self.log().len() {
            before = self.log().len();
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = command();
        // Transcripts are written by another thread, whose steps would be counted too.
        command.args(["--smtp-transcriptkb", "0"]);
        command.args(["--storage-mailboxmsgcap", "0", "--data"]).arg(&self.data);
        command
    }

    /// Preloads the library into the program.
    fn with_library<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            // The search index is written at unpredictable times, and its content need not be durable.
            .arg("--search-enabled=false")
            .env("LD_PRELOAD", library())
            .env("FAULTS_DIR", self.scratch.join("files"))
            .env("FAULTS_LOG", self.scratch.join("log"))
            .env("FAULTS_PLAN", self.scratch.join("plan"))
    }
}

/// Returns the library. It is built once per test program, by the C compiler that the program itself needs too.
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
        // Another test program may use the library of this name. It keeps the one that it has loaded.
        let path = built.with_file_name("disk.so");
        fs::rename(&built, &path).unwrap();
        path
    })
}
