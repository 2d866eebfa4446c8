//! Programs of others that tests need and a machine may lack. Without one, its tests say that they were skipped, and pass;
//! where a variable requires it, as CI does, they fail.

use std::process::{Command, Output};

pub(crate) use restante_testdir::skip;

/// Whether a program is there and, when asked, says what is wanted of it.
pub(crate) fn is_there(program: &str, question: &[&str], wanted: &str, required_by: &str) -> bool {
    let answer = Command::new(program).args(question).output();
    let usable = answer.is_ok_and(|Output { stdout, .. }| String::from_utf8_lossy(&stdout).contains(wanted));
    if !usable {
        skip(&format!("{program} is not there, or has no {wanted}"), required_by);
    }
    usable
}
