//! Commands that can be killed with their child processes.

pub use imp::{ProcessGroup, shell};

#[cfg(unix)]
mod imp {
    use std::ffi::OsStr;
    use std::io;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    /// A command and its child processes. It can be killed until the command has been waited for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProcessGroup(Pid);

    impl ProcessGroup {
        /// Starts a command in its own process group. It does not get the Ctrl-C of the terminal.
        pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
            let child = command.process_group(0).spawn()?;
            let group = Self(Pid::from_child(&child));
            Ok((child, group))
        }

        /// Kills the command with its child processes. An error means that it has already ended.
        pub fn kill(self) -> io::Result<()> {
            Ok(kill_process_group(self.0, Signal::KILL)?)
        }
    }

    /// Returns a command that runs a script in the shell of the system.
    pub fn shell(script: &[u8]) -> io::Result<Command> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(OsStr::from_bytes(script));
        Ok(command)
    }
}

#[cfg(windows)]
mod imp {
    use std::io;
    use std::os::windows::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    /// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C in the console is not sent to the command.
    const NEW_PROCESS_GROUP: u32 = 0x200;

    /// A command and its child processes. It can be killed until the command has been waited for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProcessGroup(u32);

    impl ProcessGroup {
        /// Starts a command in its own process group. It does not get the Ctrl-C of the console.
        pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
            let child = command.creation_flags(NEW_PROCESS_GROUP).spawn()?;
            let group = Self(child.id());
            Ok((child, group))
        }

        /// Kills the command with its child processes, which `taskkill` finds by their parents. An error means that it has
        /// already ended.
        pub fn kill(self) -> io::Result<()> {
            let mut command = Command::new("taskkill");
            command.args(["/T", "/F", "/PID", &self.0.to_string()]);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
            if status.success() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        }
    }

    /// Returns a command that runs a script in the shell of the system.
    pub fn shell(script: &[u8]) -> io::Result<Command> {
        let script = str::from_utf8(script).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut command = Command::new("cmd");
        // The shell has its own rules for quotes. It removes the outer ones.
        command.raw_arg("/S /C").raw_arg(format!("\"{script}\""));
        Ok(command)
    }
}
