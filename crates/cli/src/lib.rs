//! The commands that talk to a server: they list, wait for, search and delete mail, and send some.
//!
//! Each command is one file in `commands`: its flags, and what it does. They know the server only through its REST API,
//! and sending only through SMTP, so they work with any server of either. What a mail says never reaches the terminal as
//! it is, see [`restante_mail::terminal_text`].

mod commands;
mod failure;
mod options;
mod screen;
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
pub use failure::Failure;
pub use options::VARIABLES;

use options::{Mailing, Options};
use screen::Screen;
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
pub struct Errand {
    task: Box<dyn Task>,
    options: Options,
}

impl Errand {
    /// What a command of [`commands()`] was given; none when the name is not among them.
    pub fn of(name: &str, matches: &ArgMatches) -> Option<Self> {
        let (task, options) = commands::parse(name, matches)?;
        Some(Self { task, options })
    }

    /// Does it. Says on standard error why not, and by the exit code.
    pub fn run(&self) -> ExitCode {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let screen = Screen::stdout(self.options.color);
        let done = self.perform(&mut out, screen).and_then(|()| Ok(out.flush()?));
        let Err(failure) = done else { return ExitCode::SUCCESS };
        // What was found before it went wrong belongs to the answer.
        let _ = out.flush();
        if let Some(sentence) = failure.sentence() {
            note(sentence);
        }
        ExitCode::from(self.task.code(&failure))
    }

    fn perform(&self, out: &mut dyn Write, screen: Screen) -> Result<(), Failure> {
        let server = self.options.server()?;
        let (mailing, json) = (self.options.mailing(), self.options.json);
        self.task.run(&mut Session { server, mailing, screen, json, out, now: Timestamp::now() })
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options may hold a token.
        f.debug_struct("Errand").finish_non_exhaustive()
    }
}

/// Acts as `sendmail` when the program is called by that name: the exit code, or none when it has another name.
pub fn sendmail(args: &[OsString]) -> Option<ExitCode> {
    let name = args.first().map(Path::new).and_then(Path::file_name);
    (name == Some(OsStr::new("sendmail"))).then(|| send::sendmail(args))
}

/// Tells the person something that is not the answer itself.
fn note(sentence: &str) {
    // Nobody has to listen.
    let _ = writeln!(io::stderr(), "restante: {}", terminal_text::escape_line(sentence));
}

/// What a command line asks for, ready to be done.
pub(crate) trait Task {
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure>;

    /// The exit code that a failure has here.
    fn code(&self, failure: &Failure) -> u8 {
        failure.code()
    }
}

/// What a command works with.
pub(crate) struct Session<'a> {
    pub(crate) server: Server,
    pub(crate) mailing: Mailing,
    pub(crate) screen: Screen,
    /// Whether the API's own answer is wanted.
    pub(crate) json: bool,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) now: Timestamp,
}
