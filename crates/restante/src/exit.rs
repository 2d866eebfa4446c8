//! How a command ends: with a text and an exit code.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// A text to print, and an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The text, with its final line end.
    pub text: String,
    /// 0, 1 for an error, or 2 for an invalid command line or configuration.
    pub code: u8,
}

impl Exit {
    /// Returns the exit after an error, which is a sentence for the operator.
    pub fn error(error: &impl Display, code: u8) -> Self {
        Self { text: format!("restante: {error}\n"), code }
    }

    /// Prints the text, to standard error if the code is not 0, and returns the exit code.
    pub fn print(&self) -> ExitCode {
        // A failed write does not matter: the reader has closed the pipe, and the exit code reports an error too.
        let _ = if self.code == 0 {
            io::stdout().write_all(self.text.as_bytes())
        } else {
            io::stderr().write_all(self.text.as_bytes())
        };
        ExitCode::from(self.code)
    }
}

/// Prints the result of a command for programs to standard output, and a note for people to standard error. The error is a
/// sentence for the operator.
pub fn print_output(output: Result<(String, String), String>) -> ExitCode {
    match output {
        Ok((result, note)) => {
            // A failed write does not matter: the reader has closed the pipe.
            let _ = io::stdout().write_all(result.as_bytes());
            let _ = io::stderr().write_all(note.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => Exit::error(&error, 1).print(),
    }
}
