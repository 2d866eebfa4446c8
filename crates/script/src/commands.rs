//! The running commands of scripts. They are killed at shutdown. How a script waits for a command is in
//! `engine/execute.rs`.

use std::io;
use std::process::{Child, Command, ExitStatus};

use parking_lot::Mutex;
use restante_platform::ProcessGroup;

/// The running commands. Shared by all Lua states.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether no more commands are started.
    is_closed: bool,
    /// The process group of each command. While it is in this list, the process has not been waited for, so its id
    /// cannot have been reused.
    process_groups: Vec<ProcessGroup>,
}

/// A running command.
pub(crate) struct RunningCommand<'a> {
    commands: &'a Commands,
    child: Child,
    group: ProcessGroup,
}

impl Commands {
    /// Starts a command in its own process group, so that its child processes can be killed with it.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<RunningCommand<'_>> {
        // The lock is held until the group is in the list, so that `kill_all` cannot miss it.
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(io::Error::other("the server is shutting down"));
        }
        let (child, group) = ProcessGroup::start(command)?;
        state.process_groups.push(group);
        Ok(RunningCommand { commands: self, child, group })
    }

    /// Kills all running commands with their child processes. No more commands can be started.
    pub(crate) fn kill_all(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for group in state.process_groups.drain(..) {
            // An error means that the group has ended already.
            let _ = group.kill();
        }
    }
}

impl State {
    fn remove(&mut self, group: ProcessGroup) {
        self.process_groups.retain(|other| *other != group);
    }
}

impl RunningCommand<'_> {
    /// Returns the exit status, or `None` while the command is running.
    pub(crate) fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.commands.state.lock();
        let status = self.child.try_wait();
        if !matches!(status, Ok(None)) {
            state.remove(self.group);
        }
        status
    }

    /// Kills the command with its child processes.
    pub(crate) fn kill(mut self) {
        let mut state = self.commands.state.lock();
        state.remove(self.group);
        let killed = self.group.kill();
        drop(state);
        // If it cannot be killed, waiting for it could take forever.
        if killed.is_ok() {
            let _ = self.child.wait();
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
