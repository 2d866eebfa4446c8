//! `os.execute`. The one of the C library is not for a server: while it waits, the whole process is deaf to the interrupt
//! from the keyboard, and nothing ends a command that never does.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mlua::{Lua, LuaString};

use crate::commands::{Commands, RunningCommand};
use crate::event::CallContext;

/// How long is waited until it is first looked whether a command is over; ever longer from then on.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How long is waited between two looks at most.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command in a shell; says 0 when it has succeeded and 1 when not, as scripts expect, and nothing when the call
/// has to be over first. Without a command, says 1 when there is a shell and 0 when there is none.
pub(super) fn execute(lua: &Lua, commands: &Commands, command: Option<&LuaString>) -> mlua::Result<Option<u8>> {
    let deadline = CallContext::current(lua)?.deadline;
    let running = match command {
        Some(command) => start(commands, &command.as_bytes()),
        None => start(commands, b"exit 0"),
    };
    let has_succeeded = match running {
        Ok(running) => wait(running, deadline),
        Err(_) => Some(false),
    };
    Ok(has_succeeded.map(|has_succeeded| u8::from(has_succeeded == command.is_none())))
}

fn start<'a>(commands: &'a Commands, line: &[u8]) -> io::Result<RunningCommand<'a>> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(line)).stdin(Stdio::null());
    commands.start(&mut command)
}

/// Whether the command has succeeded; nothing when it had to be ended because it is late.
fn wait(mut running: RunningCommand<'_>, deadline: Instant) -> Option<bool> {
    let mut pause = MIN_POLL_INTERVAL;
    loop {
        match running.status() {
            Ok(None) => {}
            Ok(Some(status)) => return Some(status.success()),
            Err(_) => return Some(false),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            running.kill();
            return None;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(MAX_POLL_INTERVAL);
    }
}
