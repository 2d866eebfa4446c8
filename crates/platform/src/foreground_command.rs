//! Commands that run in the place of this process: it waits for them, passes signals on, and ends with their exit code.

use std::io;
use std::process::{Command, ExitStatus};

use tokio::runtime::Builder;

/// Runs a command until it ends. Requests to end this process are passed on to the command, and do not end this process.
pub fn run_in_foreground(command: Command) -> io::Result<ExitStatus> {
    Builder::new_current_thread().enable_io().build()?.block_on(async {
        let mut signals = imp::ForwardedSignals::listen()?;
        let mut child = tokio::process::Command::from(command).spawn()?;
        loop {
            tokio::select! {
                status = child.wait() => return status,
                signal = signals.next() => imp::forward(signal, &child),
            }
        }
    })
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
    use std::process::ExitStatus;

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::process::Child;
    use tokio::signal::unix::{self, SignalKind, signal};

    /// The exit code of a command that was ended by a signal is this plus the number of the signal.
    const SIGNAL_BASE: i32 = 128;

    pub(super) struct ForwardedSignals {
        terminate: unix::Signal,
        interrupt: unix::Signal,
        hangup: unix::Signal,
        /// A terminal sends these two to the command as well.
        has_terminal: bool,
    }

    impl ForwardedSignals {
        pub(super) fn listen() -> io::Result<Self> {
            let has_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
                has_terminal,
            })
        }

        /// Waits for the next signal. Returns `None` if the command gets it from the terminal.
        pub(super) async fn next(&mut self) -> Option<Signal> {
            let from_terminal = |signal| (!self.has_terminal).then_some(signal);
            tokio::select! {
                _ = self.terminate.recv() => Some(Signal::TERM),
                _ = self.interrupt.recv() => from_terminal(Signal::INT),
                _ = self.hangup.recv() => from_terminal(Signal::HUP),
            }
        }
    }

    pub(super) fn forward(signal: Option<Signal>, child: &Child) {
        // The command has an id until it was waited for.
        let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
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
    use std::process::ExitStatus;

    use tokio::process::Child;

    use crate::signals::SystemSignals;

    pub(super) struct ForwardedSignals(SystemSignals);

    impl ForwardedSignals {
        pub(super) fn listen() -> io::Result<Self> {
            SystemSignals::listen().map(Self)
        }

        pub(super) async fn next(&mut self) {
            self.0.wait_for_shutdown().await;
        }
    }

    /// The command shares the console, which sends it the same event.
    pub(super) fn forward((): (), _: &Child) {}

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
