//! The commands that scripts have started and that are still running, so that none of them outlives the server. How a script
//! waits for one is in `engine/execute.rs`.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// See the file's documentation. Shared by all states of a script.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether no more are started.
    is_closed: bool,
    /// One for each command. As long as it is here, nobody has asked the system how the command has ended, so the number
    /// belongs to no other.
    process_groups: Vec<Pid>,
}

/// A command that was started.
pub(crate) struct RunningCommand<'a> {
    commands: &'a Commands,
    child: Child,
    group: Pid,
}

impl Commands {
    /// Starts a command, apart from the server, so that all that it starts can be ended with it.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<RunningCommand<'_>> {
        // Who ends all of them meanwhile waits until this one is known.
        let mut state = self.lock();
        if state.is_closed {
            return Err(io::Error::other("the server ends"));
        }
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        state.process_groups.push(group);
        Ok(RunningCommand { commands: self, child, group })
    }

    /// Ends all that are running, with what they have started, and starts no more.
    pub(crate) fn kill_all(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        for group in state.process_groups.drain(..) {
            // One that is over already is what was wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, group: Pid) {
        self.process_groups.retain(|other| *other != group);
    }
}

impl RunningCommand<'_> {
    /// How it has ended; none while it has not.
    pub(crate) fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.commands.lock();
        let status = self.child.try_wait();
        if !matches!(status, Ok(None)) {
            state.remove(self.group);
        }
        status
    }

    /// Ends it, with what it has started.
    pub(crate) fn kill(mut self) {
        let mut state = self.commands.lock();
        state.remove(self.group);
        let ended = kill_process_group(self.group, Signal::KILL);
        drop(state);
        // When there is no way to end it, there is no sense in waiting for it either.
        if ended.is_ok() {
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line);
        command
    }

    #[test]
    fn none_is_running_after_the_end_and_none_is_started() {
        let commands = Commands::default();
        let mut all: Vec<_> =
            ["exec sleep 3600", "sleep 3600 & wait"].map(|line| commands.start(&mut shell(line)).unwrap()).into();
        commands.kill_all();
        for running in &mut all {
            assert_eq!(running.child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        }
        assert!(commands.start(&mut shell("exit 0")).is_err());
    }

    #[test]
    fn those_that_are_over_are_not_remembered() {
        let commands = Commands::default();
        let mut short = commands.start(&mut shell("exit 3")).unwrap();
        let status = loop {
            if let Some(status) = short.status().unwrap() {
                break status;
            }
            std::thread::yield_now();
        };
        assert_eq!(status.code(), Some(3));
        commands.start(&mut shell("exec sleep 3600")).unwrap().kill();
        assert!(commands.lock().process_groups.is_empty());
    }
}
