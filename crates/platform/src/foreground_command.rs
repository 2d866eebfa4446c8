//! Commands that run in the place of this process: it waits for them, passes signals on, and ends with their exit code.
//! `tokio::process` is not used: its feature adds work to every wait of a driver, also in the server.

use std::io;
use std::process::{Command, ExitStatus};

use tokio::runtime::Builder;

/// Runs a command until it ends. Requests to end this process are passed on to the command, and do not end this process.
pub fn run_in_foreground(command: Command) -> io::Result<ExitStatus> {
    Builder::new_current_thread().enable_io().build()?.block_on(imp::run(command))
}

/// Returns the exit code of a command as a shell reports it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| imp::code_of_signal(status));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(unix)]
mod imp {
    use std::io::{self, IsTerminal as _};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command, ExitStatus};

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    /// The exit code of a command that was ended by a signal is this plus the number of the signal.
    const SIGNAL_BASE: i32 = 128;

    pub(super) async fn run(mut command: Command) -> io::Result<ExitStatus> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut child_ended = signal(SignalKind::child())?;
        // A terminal sends these two to the command as well.
        let has_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
        let from_terminal = |signal| (!has_terminal).then_some(signal);
        let mut child = command.spawn()?;
        loop {
            let signal = tokio::select! {
                _ = child_ended.recv() => match child.try_wait()? {
                    Some(status) => return Ok(status),
                    None => None,
                },
                _ = terminate.recv() => Some(Signal::TERM),
                _ = interrupt.recv() => from_terminal(Signal::INT),
                _ = hangup.recv() => from_terminal(Signal::HUP),
            };
            forward(signal, &child);
        }
    }

    /// Sends a signal to the command. Its id is valid until its exit status was read.
    fn forward(signal: Option<Signal>, child: &Child) {
        let pid = child.id().try_into().ok().and_then(Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, signal) {
            // It fails if the command has just ended.
            let _ = kill_process(pid, signal);
        }
    }

    pub(super) fn code_of_signal(status: ExitStatus) -> Option<i32> {
        status.signal().map(|signal| SIGNAL_BASE + signal)
    }
}

#[cfg(windows)]
mod imp {
    use std::io;
    use std::process::{Command, ExitStatus};

    use tokio::task::spawn_blocking;

    use crate::signals::SystemSignals;

    pub(super) async fn run(mut command: Command) -> io::Result<ExitStatus> {
        let mut signals = SystemSignals::listen()?;
        let mut child = command.spawn()?;
        let mut ended = spawn_blocking(move || child.wait());
        loop {
            tokio::select! {
                status = &mut ended => return status?,
                // The command shares the console, which sends it the same event.
                () = signals.wait_for_shutdown() => {}
            }
        }
    }

    pub(super) fn code_of_signal(_: ExitStatus) -> Option<i32> {
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn exit_code_is_that_of_the_command() {
        for (script, expected) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("exit 255", 255)] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]);
            assert_eq!(exit_code(run_in_foreground(command).unwrap()), expected, "{script}");
        }
        assert!(run_in_foreground(Command::new("/nonexistent")).is_err());
    }
}
