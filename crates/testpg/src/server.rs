//! One PostgreSQL, with a directory and a port of its own, that can be stopped, killed and started again.

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
/// How many of the last lines of its log are shown when a server fails.
const LAST_LINES: usize = 20;

/// A server on loopback. Everybody on this machine may log in, as `restante`, without a password. It ends when dropped, and
/// when the test program ends in any other way; its directory goes with it.
pub struct Postgres {
    pub(crate) installation: Installation,
    user: User,
    directory: TestDir,
    is_durable: bool,
    /// Settings beyond the usual.
    extra_settings: Vec<String>,
    port: ReservedPort,
    running: Option<Running>,
}

struct Running {
    server: Child,
    /// Held for its end, after that of the server.
    _watcher: Watcher,
}

impl Postgres {
    /// A fast server: what was committed outlives the server, but not a loss of power. `None` when PostgreSQL is not
    /// installed, which is said; with `REQUIRE_POSTGRES` in the environment, as in CI, it is a panic.
    pub fn start() -> Option<Self> {
        Self::launch(false, &[], &[])
    }

    /// Like [`start`](Self::start), but it syncs what it commits to the disk, as servers do in earnest.
    pub fn start_durable() -> Option<Self> {
        Self::launch(true, &[], &[])
    }

    /// Like [`start`](Self::start), but with files of these names and contents in its data directory, such as `pg_hba.conf`, which
    /// says who may log in and how, and with these settings, such as `ssl=on`.
    pub fn start_with_files(files: &[(&str, &str)], settings: &[&str]) -> Option<Self> {
        Self::launch(false, files, settings)
    }

    /// A fast server for all tests of a program, which runs until the program ends. As it is shared, it cannot be killed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        // Every test reports that it is skipped, not only the first one.
        Installation::find()?;
        Some(SHARED.get_or_init(|| Self::start().expect("PostgreSQL is installed")))
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("postgres://restante@127.0.0.1:{}/postgres", self.port.get())
    }

    /// Its port on 127.0.0.1, the same for all its life.
    pub fn port(&self) -> u16 {
        self.port.get()
    }

    /// Where its data and its log are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills it and all its processes, as if the machine had lost them. They are gone when this returns.
    pub fn kill(&mut self) {
        if let Some(Running { mut server, _watcher }) = self.running.take() {
            kill_with_children(&mut server);
            self.remove_shared_memory();
        }
    }

    /// Ends it in good order: clients are disconnected, what they have not committed is undone.
    pub fn stop(&mut self) {
        let Some(running) = &self.running else { return };
        signal("INT", &HashSet::from([running.server.id()]));
        let start = Instant::now();
        while !self.has_ended() {
            assert!(start.elapsed() < SERVER_TIMEOUT, "PostgreSQL does not stop:\n{}", self.log_tail());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts it after [`stop`](Self::stop) or [`kill`](Self::kill), with the same data and on the same port.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "PostgreSQL is not stopped");
        let start = Instant::now();
        // It refuses to start while anything is left of its predecessor.
        while !self.try_start() {
            assert!(start.elapsed() < SERVER_TIMEOUT, "PostgreSQL does not start again:\n{}", self.log_tail());
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn launch(durable: bool, files: &[(&str, &str)], settings: &[&str]) -> Option<Self> {
        let installed = Installation::find()?;
        let directory = TestDir::new();
        let user = User::for_server_in(directory.path());
        let more = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = ReservedPort::new();
        let mut postgres = Self {
            installation: installed,
            user,
            directory,
            is_durable: durable,
            extra_settings: more,
            port,
            running: None,
        };
        postgres.create_cluster();
        for (name, content) in files {
            let path = postgres.data_dir().join(name);
            fs::write(&path, content).expect("the data directory can be written");
            postgres.user.take_ownership(&path);
        }
        let started = (0..MAX_PORT_ATTEMPTS).any(|_| {
            // Not every system keeps other programs off a reserved port.
            postgres.port = ReservedPort::new();
            postgres.try_start()
        });
        assert!(started, "PostgreSQL does not start:\n{}", postgres.log_tail());
        Some(postgres)
    }

    fn create_cluster(&self) {
        let mut command = self.user.command(&self.installation.program("initdb"), self.directory.path());
        command.args(["--no-sync", "--auth=trust", "--username=restante", "--encoding=UTF8", "--locale=C"]);
        let output = command.arg("--pgdata").arg(self.data_dir()).stderr(Stdio::piped()).output().expect("initdb runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "initdb fails in {}: {complaint}", self.directory.path().display());
    }

    /// Whether it came to accept connections; another program may have been faster at its port.
    fn try_start(&mut self) -> bool {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the log can be written");
        let mut command = self.user.command(&self.installation.program("postgres"), self.directory.path());
        command.arg("-D").arg(self.data_dir()).stderr(log);
        for setting in self.settings().iter().chain(&self.extra_settings) {
            command.args(["-c", setting]);
        }
        let server = command.spawn().expect("postgres runs");
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

    /// Whether it accepts connections. What a predecessor has left in the notes is not taken for its word.
    fn is_ready(&self) -> bool {
        let Some(running) = &self.running else { return false };
        let notes = self.pid_file_lines();
        notes.first() == Some(&running.server.id().to_string()) && notes.get(7).is_some_and(|status| status == "ready")
    }

    /// Removes the shared memory of a server that was killed, which the system would keep until it is booted again, and it
    /// keeps only so many. It stands in the notes as a key and an id.
    fn remove_shared_memory(&self) {
        let notes = self.pid_file_lines();
        if let Some((_, id)) = notes.get(6).and_then(|segment| segment.rsplit_once(' ')) {
            // Without it, a few bytes are left.
            let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
        }
    }

    /// What a running server writes down for those who have started it, line by line: first its id, last how far it is.
    fn pid_file_lines(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.data_dir().join("postmaster.pid")).unwrap_or_default();
        notes.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Whether it does not run any more.
    fn has_ended(&mut self) -> bool {
        self.running.take_if(|running| running.server.try_wait().expect("it is our process").is_some());
        self.running.is_none()
    }

    fn settings(&self) -> [String; 9] {
        let sync = if self.is_durable { "on" } else { "off" };
        [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port.get()),
            // The path of a socket would have to be short, and nobody needs it.
            "unix_socket_directories=".to_owned(),
            "max_connections=100".to_owned(),
            "shared_buffers=64MB".to_owned(),
            // In the directory, and gone with it, also after a kill.
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
