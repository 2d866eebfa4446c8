//! Servers of other projects as child processes. They end when their values are dropped, also if the test program is killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::installed::skip;

/// The environment variable that makes a missing Postfix an error.
const REQUIRED: &str = "REQUIRE_POSTFIX";

/// Starts a server, and ends it when standard input is closed, which the system does if the test program ends. The server has its own
/// standard input, because it is not an interactive program.
const GUARD_SCRIPT: &str = r#"
"$@" < /dev/null &
read -r _
kill "$!" 2> /dev/null
wait "$!"
"#;

/// A running server.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server. It must not detach itself.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD_SCRIPT, "guard"]).arg(program).args(arguments).stdin(Stdio::piped());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Returns whether the server is running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Closes standard input, and waits until the server has ended.
        let _ = self.0.wait();
    }
}

/// Returns the path of a program of Postfix, which not every user has in `PATH`. Skips the test if it is not installed.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.push("/usr/sbin".into());
    let found = directories.iter().map(|directory| directory.join(name)).find(|program| program.is_file());
    if found.is_none() {
        skip(&format!("{name} of Postfix is not installed"), REQUIRED);
    }
    found
}

/// Returns whether this is the user root. Skips the test if not.
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can start Postfix", "REQUIRE_ROOT");
    }
    is_root
}
