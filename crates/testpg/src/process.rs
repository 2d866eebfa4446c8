//! Processes: signals, child processes, and a watcher that ends a server after the test program was killed.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::installation::User;

/// The interval between two checks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for processes that were killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until the test program has ended, for any reason. Then ends the server, which ends its children, and removes
/// its directory after the server has left it. A server that has crashed leaves its pid file, so the wait is limited.
const WATCH_SCRIPT: &str = r#"
read -r _
kill -s QUIT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -e "$2/data/postmaster.pid" ] || break
    sleep 1
done
rm -rf "$2"
"#;

/// A process that outlives the test program for a moment.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Starts a watcher for a server and its directory. Its standard input is a pipe that only this program has open,
    /// and which the system closes when the program ends.
    pub(crate) fn spawn(server: &Child, directory: &Path, user: &User) -> Self {
        let mut command = user.command(Path::new("/bin/sh"), Path::new("/"));
        command.args(["-c", WATCH_SCRIPT, "watcher"]).arg(server.id().to_string()).arg(directory).stdin(Stdio::piped());
        Self(command.spawn().expect("the shell starts"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Killed before its pipe is closed: the caller has ended the server already, and keeps the directory.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to processes. Ignores those that have ended.
pub(crate) fn signal(name: &str, processes: &HashSet<u32>) {
    let ids = processes.iter().map(u32::to_string);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"kill -s "$@""#, "signal", name]).args(ids).stderr(Stdio::null());
    let _ = command.status();
}

/// Kills a process and its children, even if they have left its process group. Each child of PostgreSQL has its own
/// group and may serve a client for a while after its parent was killed.
pub(crate) fn kill_with_children(parent: &mut Child) {
    // A stopped process starts no more children.
    signal("STOP", &HashSet::from([parent.id()]));
    let mut targets = list_alive(|process| process.parent == parent.id());
    targets.insert(parent.id());
    signal("KILL", &targets);
    let _ = parent.wait();
    let start = Instant::now();
    while start.elapsed() < KILL_TIMEOUT && !list_alive(|process| targets.contains(&process.id)).is_empty() {
        thread::sleep(POLL_INTERVAL);
    }
}

struct Process {
    id: u32,
    parent: u32,
}

/// Returns the living processes that match. Without `ps` there are none: the children then end by themselves soon after
/// their parent.
fn list_alive(matches: impl Fn(&Process) -> bool) -> HashSet<u32> {
    let list = Command::new("ps").args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "stat="]).output();
    let list = list.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    list.lines().filter_map(parse_alive).filter(matches).map(|process| process.id).collect()
}

/// Parses a line of `ps`. Returns `None` for a zombie.
fn parse_alive(line: &str) -> Option<Process> {
    let mut words = line.split_whitespace();
    let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (!words.next()?.starts_with('Z')).then_some(Process { id, parent })
}
