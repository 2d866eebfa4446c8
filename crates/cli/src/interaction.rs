//! Interaction with the user: questions on the terminal, and Ctrl-C.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::thread;

use restante_platform::interrupts;

/// The maximum length of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Asks the user whether to do something. Returns `None` if there is no terminal.
pub(crate) type Confirm = fn(&str) -> Option<bool>;

/// Asks a question on standard error, and reads the answer from standard input, if that is a terminal.
pub(crate) fn confirm_on_terminal(question: &str) -> Option<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    stdin.lock().take(MAX_ANSWER_BYTES).read_line(&mut answer).ok()?;
    Some(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Makes Ctrl-C end the program with exit code 0. Without this, the program would end by the signal. Output has to be
/// flushed at all times.
pub(crate) fn exit_on_interrupt() {
    // Without a handler, Ctrl-C still ends the program.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let guard = runtime.enter();
    let Ok(mut interrupts) = interrupts() else { return };
    drop(guard);
    let wait = move || {
        if runtime.block_on(interrupts.recv()).is_some() {
            std::process::exit(0);
        }
    };
    let _ = thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
}
