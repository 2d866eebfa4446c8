//! `os.execute`. The one of the C library is not for a server: while it waits, the whole process is deaf to the interrupt
//! from the keyboard, and nothing ends a command that never does.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mlua::{Lua, LuaString};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::context::Context;

/// How long is waited until it is first looked whether a command is over; ever longer from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// How long is waited between two looks at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Runs a command in a shell; says 0 when it has succeeded and 1 when not, as scripts expect, and nothing when the call
/// has to be over first. Without a command, says 1 when there is a shell and 0 when there is none.
pub(super) fn execute(lua: &Lua, command: Option<&LuaString>) -> mlua::Result<Option<u8>> {
    let deadline = Context::of(lua)?.deadline;
    let child = match command {
        Some(command) => start(&command.as_bytes()),
        None => start(b"exit 0"),
    };
    let has_succeeded = match child {
        Ok(child) => wait(child, deadline),
        Err(_) => Some(false),
    };
    Ok(has_succeeded.map(|has_succeeded| u8::from(has_succeeded == command.is_none())))
}

fn start(line: &[u8]) -> std::io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(line)).stdin(Stdio::null());
    // Apart from the server, so that all that it has started can be ended with it.
    command.process_group(0).spawn()
}

/// Whether the command has succeeded; nothing when it had to be ended because it is late.
fn wait(mut child: Child, deadline: Instant) -> Option<bool> {
    let mut pause = FIRST_PAUSE;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => return Some(status.success()),
            Err(_) => return Some(false),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            end(&mut child);
            return None;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Ends the command and what it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = group.map(|group| kill_process_group(group, Signal::KILL));
    // When there is no way to end it, there is no sense in waiting for it either.
    if matches!(ended, Some(Ok(()))) {
        let _ = child.wait();
    }
}
