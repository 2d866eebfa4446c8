//! External programs that tests need. If one is missing, its tests are skipped with a message and pass; if an environment variable
//! requires it, as in CI, they fail.

use std::process::{Command, Output};

pub(crate) use restante_testdir::skip;

/// Returns whether a program is installed and its output for these arguments contains `wanted`. Skips the test if not.
pub(crate) fn is_installed(program: &str, arguments: &[&str], wanted: &str, required_by: &str) -> bool {
    let output = Command::new(program).args(arguments).output();
    let usable = output.is_ok_and(|Output { stdout, .. }| String::from_utf8_lossy(&stdout).contains(wanted));
    if !usable {
        skip(&format!("{program} is not installed, or does not support {wanted}"), required_by);
    }
    usable
}
