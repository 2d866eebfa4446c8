//! Processes that are not only ours to wait for: signals to them, the children they have, and a watcher that ends a server
//! when the test program cannot do it any more.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::installation::User;

/// How long it is waited before looking again.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Whoever was killed and is still there after this is not waited for.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads until the test program is gone, however it ended; then ends the server at once, which ends its children, and
/// removes its directory when the server has left it. One that has crashed never says so: the wait is limited.
const WATCH_SCRIPT: &str = r#"
read -r _
kill -s QUIT "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -e "$2/data/postmaster.pid" ] || break
    sleep 1
done
rm -rf "$2"
"#;

/// The process that outlives the test program for a moment.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Watches over a server and its directory. Its standard input is a pipe that only this program has open, and which the
    /// system closes with it.
    pub(crate) fn spawn(server: &Child, directory: &Path, user: &User) -> Self {
        let mut command = user.command(Path::new("/bin/sh"), Path::new("/"));
        command.args(["-c", WATCH_SCRIPT, "watcher"]).arg(server.id().to_string()).arg(directory).stdin(Stdio::piped());
        Self(command.spawn().expect("there is a shell"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Killed before its pipe is closed: whoever drops it has ended the server, and keeps the directory.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal, as far as there is still somebody to get it.
pub(crate) fn signal(name: &str, processes: &HashSet<u32>) {
    let ids = processes.iter().map(u32::to_string);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"kill -s "$@""#, "signal", name]).args(ids).stderr(Stdio::null());
    let _ = command.status();
}

/// Kills a process and its children, wherever those have gone: PostgreSQL's leave its group, each for one of its own, and
/// may answer a client for a while after their parent was killed.
pub(crate) fn kill_with_children(parent: &mut Child) {
    // Who is stopped has no more children.
    signal("STOP", &HashSet::from([parent.id()]));
    let mut family = list_alive(|process| process.parent == parent.id());
    family.insert(parent.id());
    signal("KILL", &family);
    let _ = parent.wait();
    let start = Instant::now();
    while start.elapsed() < KILL_TIMEOUT && !list_alive(|process| family.contains(&process.id)).is_empty() {
        thread::sleep(POLL_INTERVAL);
    }
}

struct Process {
    id: u32,
    parent: u32,
}

/// The processes of this kind that are not dead. Where `ps` is missing there are none: those that are not killed for it end
/// by themselves soon after their parent.
fn list_alive(kind: impl Fn(&Process) -> bool) -> HashSet<u32> {
    let list = Command::new("ps").args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "stat="]).output();
    let list = list.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    list.lines().filter_map(parse_alive).filter(kind).map(|process| process.id).collect()
}

/// One line of `ps`, unless the process is dead and only not yet buried.
fn parse_alive(line: &str) -> Option<Process> {
    let mut words = line.split_whitespace();
    let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (!words.next()?.starts_with('Z')).then_some(Process { id, parent })
}
