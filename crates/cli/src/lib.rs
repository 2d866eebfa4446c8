//! The commands that use a server: they list, watch, wait for, search, tag, delete and send messages.
//!
//! Each command is one file in `commands`. The commands use only the REST API and SMTP, so they work with every server
//! that has these. Texts of messages are escaped before they are written to a terminal, see
//! [`restante_mail::terminal_text`].

mod commands;
mod error;
mod event_stream;
mod interaction;
mod options;
mod output;
mod send;
mod server;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use jiff::Timestamp;
use restante_mail::terminal_text;
use restante_platform::program_name;

pub use commands::inbucket::with_two_dashes;
pub use commands::{EXIT_CODES, all as commands};
pub use error::CommandError;
pub use options::ENVIRONMENT_VARIABLES;
pub use send::mailpit::run as run_as_mailpit_sendmail;

use interaction::{Confirm, confirm_on_terminal, exit_on_interrupt};
use options::Options;
use output::OutputStyle;
use server::Server;

/// A command for a server, with its arguments.
pub struct ClientCommand {
    task: Box<dyn Task>,
    options: Options,
}

impl ClientCommand {
    /// Creates a command of [`commands()`] from its arguments. Returns `None` if there is no command of this name.
    pub fn parse(name: &str, matches: &ArgMatches) -> Option<Self> {
        let (task, options) = commands::parse(name, matches)?;
        Some(Self { task, options })
    }

    /// Runs the command. Prints an error to standard error, and returns the exit code.
    pub fn run(&self) -> ExitCode {
        if self.task.runs_until_interrupt() {
            exit_on_interrupt();
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        let style = OutputStyle::for_stdout(self.options.color.unwrap_or_default());
        let done = self.execute(&mut out, style, confirm_on_terminal).and_then(|()| Ok(out.flush()?));
        let Err(error) = done else { return ExitCode::SUCCESS };
        // Results that were found before the error are printed too.
        let _ = out.flush();
        if let Some(message) = error.message() {
            print_note(message);
        }
        ExitCode::from(self.task.exit_code(&error))
    }

    fn execute(&self, out: &mut dyn Write, style: OutputStyle, confirm: Confirm) -> Result<(), CommandError> {
        let server = Arc::new(self.options.server()?);
        let (options, json, now) = (&self.options, self.options.json, Timestamp::now());
        self.task.run(&mut CommandContext { server, options, style, json, out, confirm, now })
    }
}

impl fmt::Debug for ClientCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options may contain a token.
        f.debug_struct("ClientCommand").finish_non_exhaustive()
    }
}

/// Acts as `sendmail` if the program is called by that name. Returns the exit code, or `None` if it has another name.
pub fn run_as_sendmail(args: &[OsString]) -> Option<ExitCode> {
    (program_name(args) == "sendmail").then(|| send::sendmail::run(args))
}

/// Prints a note for the user to standard error.
fn print_note(message: &str) {
    // There may be no reader.
    let _ = writeln!(io::stderr(), "restante: {}", terminal_text::escape_line(message));
}

/// A command with its arguments, ready to run.
pub(crate) trait Task {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError>;

    /// Returns the exit code for an error of this command.
    fn exit_code(&self, error: &CommandError) -> u8 {
        error.exit_code()
    }

    /// Returns true if the command usually runs until the user interrupts it, which is then a success.
    fn runs_until_interrupt(&self) -> bool {
        false
    }
}

/// What a command has access to.
pub(crate) struct CommandContext<'a> {
    pub(crate) server: Arc<Server>,
    pub(crate) options: &'a Options,
    pub(crate) style: OutputStyle,
    /// True if the response of the API is printed as JSON.
    pub(crate) json: bool,
    pub(crate) out: &'a mut dyn Write,
    /// Asks the user a question.
    pub(crate) confirm: Confirm,
    pub(crate) now: Timestamp,
}
