//! The commands that talk to a server: they list, wait for, search and delete mail, and send some.
//!
//! Each command is one file in `commands`: its flags, and what it does. They know the server only through its REST API,
//! and sending only through SMTP, so they work with any server of either. What a mail says never reaches the terminal as
//! it is, see [`restante_mail::terminal_text`].

mod commands;
mod error;
mod options;
mod output;
mod send;
mod server;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use jiff::Timestamp;
use restante_mail::terminal_text;

pub use commands::EXIT_CODES;
pub use error::CommandError;
pub use options::ENVIRONMENT_VARIABLES;

use options::{Options, SmtpOptions};
use output::OutputStyle;
use server::Server;

/// The commands, in the order in which help lists them.
pub fn commands() -> impl Iterator<Item = Command> {
    commands::all()
}

/// Turns `-output` into `--output` and so on behind the commands that Inbucket's client has, so that a script written for
/// that one works unchanged.
pub fn with_two_dashes(args: Vec<OsString>) -> Vec<OsString> {
    commands::inbucket::with_two_dashes(args)
}

/// What the command line asks of a server.
pub struct ClientCommand {
    task: Box<dyn Task>,
    options: Options,
}

impl ClientCommand {
    /// What a command of [`commands()`] was given; none when the name is not among them.
    pub fn parse(name: &str, matches: &ArgMatches) -> Option<Self> {
        let (task, options) = commands::parse(name, matches)?;
        Some(Self { task, options })
    }

    /// Does it. Says on standard error why not, and by the exit code.
    pub fn run(&self) -> ExitCode {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let screen = OutputStyle::for_stdout(self.options.color);
        let done = self.execute(&mut out, screen).and_then(|()| Ok(out.flush()?));
        let Err(failure) = done else { return ExitCode::SUCCESS };
        // What was found before it went wrong belongs to the answer.
        let _ = out.flush();
        if let Some(sentence) = failure.message() {
            print_note(sentence);
        }
        ExitCode::from(self.task.exit_code(&failure))
    }

    fn execute(&self, out: &mut dyn Write, screen: OutputStyle) -> Result<(), CommandError> {
        let server = self.options.server()?;
        let (mailing, json) = (self.options.smtp_options(), self.options.json);
        self.task.run(&mut CommandContext {
            server,
            smtp_options: mailing,
            style: screen,
            json,
            out,
            now: Timestamp::now(),
        })
    }
}

impl fmt::Debug for ClientCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options may hold a token.
        f.debug_struct("Errand").finish_non_exhaustive()
    }
}

/// Acts as `sendmail` when the program is called by that name: the exit code, or none when it has another name.
pub fn run_as_sendmail(args: &[OsString]) -> Option<ExitCode> {
    let name = args.first().map(Path::new).and_then(Path::file_name);
    (name == Some(OsStr::new("sendmail"))).then(|| send::sendmail(args))
}

/// Tells the person something that is not the answer itself.
fn print_note(sentence: &str) {
    // Nobody has to listen.
    let _ = writeln!(io::stderr(), "restante: {}", terminal_text::escape_line(sentence));
}

/// What a command line asks for, ready to be done.
pub(crate) trait Task {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError>;

    /// The exit code that a failure has here.
    fn exit_code(&self, failure: &CommandError) -> u8 {
        failure.exit_code()
    }
}

/// What a command works with.
pub(crate) struct CommandContext<'a> {
    pub(crate) server: Server,
    pub(crate) smtp_options: SmtpOptions,
    pub(crate) style: OutputStyle,
    /// Whether the API's own answer is wanted.
    pub(crate) json: bool,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) now: Timestamp,
}
