//! A program with its child processes, none of which outlives the test program: not if a test panics, and not if the test program
//! is killed. The test harness does not drop statics when it exits, so another process waits for the exit.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use restante_testdir::TestDir;
use rustix::process::{Pid, Signal, kill_process_group};

/// Becomes the program `$@` after a line was read. If the test program exits before, the program is not started.
const START: &str = "read -r _ && exec \"$@\" </dev/null";

/// Kills the process group whose id is the first line of the input when the input ends, and removes the directory `$1`. The input is a
/// pipe that ends when the test program exits. Processes that are being killed can still create files for a moment.
const GUARD: &str = "
    if read -r group; then
        read -r _
        kill -s KILL -- \"-$group\"
    fi
    rm -rf -- \"$1\" || { sleep 1; rm -rf -- \"$1\"; }";

/// A program and its child processes. They are killed when dropped.
pub(crate) struct ProcessGroup {
    program: Child,
    guard: Child,
    /// The lines that the processes have printed so far.
    output: Arc<Mutex<Vec<String>>>,
    /// Removed after the processes are killed.
    _scratch: TestDir,
}

impl ProcessGroup {
    /// Starts a program, and waits until it prints a line in which `find` finds a value. Returns `None` if it exits before. The
    /// program has these variables and its own directory for temporary files.
    pub(crate) fn start<T>(
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
        find: impl Fn(&str) -> Option<T>,
    ) -> Option<(Self, T)> {
        // Its path must be short: programs create sockets in it.
        let scratch = TestDir::new();
        let shell = |script: &str, name: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script, name]).process_group(0).stdin(Stdio::piped());
            command
        };
        let mut guard = shell(GUARD, "guard");
        let guard = guard.arg(scratch.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut command = shell(START, "start");
        command.arg(program).args(arguments).envs(variables.iter().copied()).env("TMPDIR", scratch.path());
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The guard knows the group before the program starts.
        guard.stdin.as_ref().unwrap().write_all(format!("{}\n", program.id()).as_bytes()).unwrap();
        program.stdin.take().unwrap().write_all(b"\n").unwrap();
        let lines = |pipe: Box<dyn Read + Send>| BufReader::new(pipe).lines().map_while(Result::ok);
        let mut printed = lines(Box::new(program.stdout.take().unwrap()));
        let errors = lines(Box::new(program.stderr.take().unwrap()));
        let group = Self { program, guard, output: Arc::default(), _scratch: scratch };
        let found = printed.find_map(|line| find(&line));
        // The pipes are drained, so that the processes do not block.
        for lines in [Box::new(printed) as Box<dyn Iterator<Item = String> + Send>, Box::new(errors)] {
            let output = Arc::clone(&group.output);
            std::thread::spawn(move || lines.for_each(|line| output.lock().unwrap().push(line)));
        }
        Some((group, found?))
    }

    /// Returns the id of the program, which is the id of the process group too.
    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }

    /// Returns the printed lines that contain a text.
    pub(crate) fn printed(&self, text: &str) -> Vec<String> {
        self.output.lock().unwrap().iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.program.id()).ok().and_then(Pid::from_raw) {
            // All processes may have exited already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // The guard ends before the id of the group becomes free for other processes.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.program.wait();
    }
}
