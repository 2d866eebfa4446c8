//! The command line of the program: from the arguments to the task to carry out.
//!
//! [`parse`] takes the arguments, the environment and a file reader as values and returns a [`Command`].

mod arguments;
mod completions;
mod tasks;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use restante_cli::ClientCommand;
use restante_settings::{self, Loaded, Purpose, ReadFile};
use restante_transfer::{ExportRequest, ImportRequest};

use arguments::{ParsedArguments, Task};

pub(crate) use arguments::command;
pub use completions::{GeneratedDocs, Shell};
pub use tasks::{ScriptRequest, ScriptTask, TokenTask, UserTask};

/// What the command line asks the process to do.
#[derive(Debug)]
pub enum Command {
    /// Run the server with this configuration.
    Serve(Box<Loaded>),
    /// Ask the server that runs with this configuration whether it is well.
    Health(Box<Loaded>),
    /// Write mail of the data directory to files.
    Export(Box<Loaded>, ExportRequest),
    /// Take mail from files into the data directory.
    Import(Box<Loaded>, ImportRequest),
    /// Try a script without serving.
    Script(Box<Loaded>, ScriptRequest),
    /// Ask something of a server, or send it a mail.
    Client(ClientCommand),
    /// Tell what is known about the command line.
    Docs(GeneratedDocs),
    /// Make, list or revoke tokens.
    Token(Box<Loaded>, TokenTask),
    /// Write users.
    User(Box<Loaded>, UserTask),
    /// Print a text and end: help, version, `config check`, `config docs`, or what is wrong with the configuration.
    Exit(Exit),
}

/// A text to print, and the exit code to end with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// What to print, complete with its last line end.
    pub text: String,
    /// 0, or 2 for a command line or configuration that cannot be used.
    pub code: u8,
}

impl Exit {
    /// Prints the text, on standard error when the code says failure, and gives the code to end `main` with.
    pub fn print(&self) -> ExitCode {
        // Whoever closed the pipe early has seen enough: a failed write changes nothing about the outcome.
        let _ = if self.code == 0 {
            io::stdout().write_all(self.text.as_bytes())
        } else {
            io::stderr().write_all(self.text.as_bytes())
        };
        ExitCode::from(self.code)
    }
}

/// Reads the command line (program name first), the environment and the configuration file they may name.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    read_file: ReadFile<'_>,
) -> Command {
    let (task, flags) = match arguments::parse(args) {
        Ok(ParsedArguments::Configured(task, flags)) => (task, flags),
        Ok(ParsedArguments::Client(errand)) => return Command::Client(errand),
        Ok(ParsedArguments::Docs(manual)) => return Command::Docs(manual),
        Ok(ParsedArguments::ConfigDocs) => {
            return Command::Exit(Exit { text: restante_settings::render_docs(), code: 0 });
        }
        Err(exit) => return Command::Exit(exit),
    };
    let purpose = match task {
        Task::Export(_) | Task::Token(_) | Task::User(_) => Purpose::Read,
        Task::Import(_) => Purpose::Write,
        Task::Script(_) => Purpose::Script,
        _ => Purpose::Serve,
    };
    let loaded = match restante_settings::load(&flags, env, restante_cli::ENVIRONMENT_VARIABLES, read_file, purpose) {
        Ok(loaded) => Box::new(loaded),
        Err(problems) => return Command::Exit(Exit { text: restante_settings::report(&problems), code: 2 }),
    };
    match task {
        Task::Serve => Command::Serve(loaded),
        Task::Health => Command::Health(loaded),
        Task::Export(request) => Command::Export(loaded, request),
        Task::Import(request) => Command::Import(loaded, request),
        Task::Script(request) => Command::Script(loaded, request),
        Task::Token(task) => Command::Token(loaded, task),
        Task::User(task) => Command::User(loaded, task),
        Task::ConfigCheck => Command::Exit(Exit { text: restante_settings::render_effective(&loaded), code: 0 }),
    }
}
