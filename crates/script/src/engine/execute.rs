//! `os.execute`. The function of the C library is unsuitable for a server: while it waits, the process ignores SIGINT,
//! and it never ends if the command does not.

use std::io;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use mlua::{Lua, LuaString};
use restante_platform::shell;

use crate::commands::{Commands, RunningCommand};
use crate::event::CallContext;

/// The delay before the first check whether the command has ended. It doubles with each check.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The maximum delay between two checks.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command in a shell. Returns 0 if it succeeds and 1 if it fails, as scripts expect, or `None` if the deadline
/// of the call passes first. Without a command, returns 1 if there is a shell and 0 if not.
pub(super) fn execute(lua: &Lua, commands: &Commands, command: Option<&LuaString>) -> mlua::Result<Option<u8>> {
    let deadline = CallContext::current(lua)?.deadline;
    let running = match command {
        Some(command) => start(commands, &command.as_bytes()),
        None => start(commands, b"exit 0"),
    };
    let is_success = match running {
        Ok(running) => wait(running, deadline),
        Err(_) => Some(false),
    };
    Ok(is_success.map(|is_success| u8::from(is_success == command.is_none())))
}

fn start<'a>(commands: &'a Commands, script: &[u8]) -> io::Result<RunningCommand<'a>> {
    commands.start(shell(script)?.stdin(Stdio::null()))
}

/// Returns whether the command succeeded, or `None` if it was killed at the deadline.
fn wait(mut running: RunningCommand<'_>, deadline: Instant) -> Option<bool> {
    let mut interval = MIN_POLL_INTERVAL;
    loop {
        match running.status() {
            Ok(None) => {}
            Ok(Some(status)) => return Some(status.success()),
            Err(_) => return Some(false),
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            running.kill();
            return None;
        }
        thread::sleep(interval.min(remaining));
        interval = (interval * 2).min(MAX_POLL_INTERVAL);
    }
}
