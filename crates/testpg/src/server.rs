//! A PostgreSQL server with its own directory and port, which can be stopped, killed and started again.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;

use super::ReservedPort;
use super::installation::{Installation, User};
use super::process::{POLL_INTERVAL, Watcher, kill_with_children, signal};

/// How long a server may take to start or to stop.
const SERVER_TIMEOUT: Duration = Duration::from_mins(1);
/// How many ports are tried.
const MAX_PORT_ATTEMPTS: usize = 5;
/// The number of log lines that are shown if a server fails.
const LAST_LINES: usize = 20;

/// A server on loopback. Every user of this machine may log in as `restante`, without a password. The server ends when
/// this is dropped or the test program ends for any other reason. Its directory is removed then.
pub struct Postgres {
    pub(crate) installation: Installation,
    user: User,
    directory: TestDir,
    is_durable: bool,
    /// Additional settings.
    extra_settings: Vec<String>,
    port: ReservedPort,
    running: Option<Running>,
}

struct Running {
    server: Child,
    /// Dropped after the server has ended.
    _watcher: Watcher,
}

impl Postgres {
    /// Starts a fast server. Commits survive a crash of the server, but not a power failure. Returns `None` if
    /// PostgreSQL is not installed, and reports that the test is skipped. Panics instead if `REQUIRE_POSTGRES` is set,
    /// as in CI.
    pub fn start() -> Option<Self> {
        Self::launch(false, &[], &[])
    }

    /// Like [`start`](Self::start), but the server syncs commits to disk, as in production.
    pub fn start_durable() -> Option<Self> {
        Self::launch(true, &[], &[])
    }

    /// Like [`start`](Self::start), but with additional files in its data directory, such as `pg_hba.conf`, which says
    /// who may log in and how, and with additional settings, such as `ssl=on`.
    pub fn start_with_files(files: &[(&str, &str)], settings: &[&str]) -> Option<Self> {
        Self::launch(false, files, settings)
    }

    /// Returns a fast server for all tests of a program, which runs until the program ends. It is shared, so it cannot
    /// be killed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        // Every test reports that it is skipped, not only the first one.
        Installation::find()?;
        Some(SHARED.get_or_init(|| Self::start().expect("PostgreSQL is installed")))
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("postgres://restante@127.0.0.1:{}/postgres", self.port.get())
    }

    /// Returns the port on 127.0.0.1. It never changes.
    pub fn port(&self) -> u16 {
        self.port.get()
    }

    /// Returns the directory of its data and log.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills all its processes, as in a crash of the machine. They have ended when this returns.
    pub fn kill(&mut self) {
        if let Some(Running { mut server, _watcher }) = self.running.take() {
            kill_with_children(&mut server);
            self.remove_shared_memory();
        }
    }

    /// Stops the server. Clients are disconnected, and their open transactions are rolled back.
    pub fn stop(&mut self) {
        let Some(running) = &self.running else { return };
        signal("INT", &HashSet::from([running.server.id()]));
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < SERVER_TIMEOUT, "PostgreSQL does not stop:\n{}", self.log_tail());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts the server after [`stop`](Self::stop) or [`kill`](Self::kill), with the same data and on the same port.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "PostgreSQL is not stopped");
        let start = Instant::now();
        // It refuses to start while processes of the previous server are left.
        while !self.try_start() {
            assert!(start.elapsed() < SERVER_TIMEOUT, "PostgreSQL does not start again:\n{}", self.log_tail());
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn launch(is_durable: bool, files: &[(&str, &str)], settings: &[&str]) -> Option<Self> {
        let installation = Installation::find()?;
        let directory = TestDir::new();
        let user = User::for_server_in(directory.path());
        let extra_settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = ReservedPort::new();
        let mut postgres = Self { installation, user, directory, is_durable, extra_settings, port, running: None };
        postgres.create_cluster();
        for (name, content) in files {
            let path = postgres.data_dir().join(name);
            fs::write(&path, content).expect("the data directory can be written");
            postgres.user.take_ownership(&path);
        }
        let started = (0..MAX_PORT_ATTEMPTS).any(|_| {
            // Not every system prevents other programs from using a reserved port.
            postgres.port = ReservedPort::new();
            postgres.try_start()
        });
        assert!(started, "PostgreSQL does not start:\n{}", postgres.log_tail());
        Some(postgres)
    }

    fn create_cluster(&self) {
        let mut command = self.user.command(&self.installation.program("initdb"), self.directory.path());
        command.args(["--no-sync", "--auth=trust", "--username=restante", "--encoding=UTF8", "--locale=C"]);
        let output =
            command.arg("--pgdata").arg(self.data_dir()).stderr(Stdio::piped()).output().expect("initdb starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "initdb fails in {}: {stderr}", self.directory.path().display());
    }

    /// Starts the server. Returns false if it ended, for example because another program has its port.
    fn try_start(&mut self) -> bool {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the log can be written");
        let mut command = self.user.command(&self.installation.program("postgres"), self.directory.path());
        command.arg("-D").arg(self.data_dir()).stderr(log);
        for setting in self.settings().iter().chain(&self.extra_settings) {
            command.args(["-c", setting]);
        }
        let server = command.spawn().expect("postgres starts");
        let watcher = Watcher::spawn(&server, self.directory.path(), &self.user);
        self.running = Some(Running { server, _watcher: watcher });
        let start = Instant::now();
        while !self.has_ended() {
            if self.is_ready() {
                return true;
            }
            assert!(start.elapsed() < SERVER_TIMEOUT, "PostgreSQL is never ready:\n{}", self.log_tail());
            thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Returns whether the server accepts connections. A pid file of a previous server does not count.
    fn is_ready(&self) -> bool {
        let Some(running) = &self.running else { return false };
        let lines = self.pid_file_lines();
        lines.first() == Some(&running.server.id().to_string()) && lines.get(7).is_some_and(|status| status == "ready")
    }

    /// Removes the shared memory of a killed server. The system would keep it until the next boot, and its number is
    /// limited. The pid file contains it as a key and an id.
    fn remove_shared_memory(&self) {
        let lines = self.pid_file_lines();
        if let Some((_, id)) = lines.get(6).and_then(|segment| segment.rsplit_once(' ')) {
            // If this fails, a few bytes are left.
            let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
        }
    }

    /// Returns the lines of the pid file of a running server: its process id first, its status last.
    fn pid_file_lines(&self) -> Vec<String> {
        let lines = fs::read_to_string(self.data_dir().join("postmaster.pid")).unwrap_or_default();
        lines.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Returns whether the server is not running.
    fn has_ended(&mut self) -> bool {
        self.running.take_if(|running| running.server.try_wait().expect("it is a child of this process").is_some());
        self.running.is_none()
    }

    fn settings(&self) -> [String; 9] {
        let sync = if self.is_durable { "on" } else { "off" };
        [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port.get()),
            // The path of a socket would have to be short, and it is not needed.
            "unix_socket_directories=".to_owned(),
            "max_connections=100".to_owned(),
            "shared_buffers=64MB".to_owned(),
            // In the directory, so that it is removed with it, even after a kill.
            "dynamic_shared_memory_type=mmap".to_owned(),
            format!("fsync={sync}"),
            format!("full_page_writes={sync}"),
            "logging_collector=off".to_owned(),
        ]
    }

    fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}
