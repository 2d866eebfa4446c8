//! The command line of the program.
//!
//! [`parse`] takes the arguments, the environment and a file reader as values and returns a [`Command`].

mod arguments;
mod completions;
mod hints;
mod tasks;

use std::ffi::OsString;
use std::time::Duration;

use restante_cli::ClientCommand;
use restante_settings::{self, Loaded, Purpose, ReadFile};
use restante_transfer::{ExportRequest, ImportRequest};

use arguments::{ParsedArguments, Task};

use crate::exit::Exit;

pub(crate) use arguments::{ALL_SETTINGS_NOTE, SETTINGS_NOTE, command};
pub use completions::{GeneratedDocs, Shell};
pub use tasks::{ScriptTask, TokenTask, UserTask};

/// What the process has to do.
#[derive(Debug)]
pub enum Command {
    /// Run the server.
    Serve {
        /// The configuration.
        loaded: Box<Loaded>,
        /// True to open the web interface in a browser.
        open_page: bool,
    },
    /// Check the health of the running server with this configuration.
    Health {
        /// The configuration.
        loaded: Box<Loaded>,
        /// The maximum time to wait until the server is ready. `None` means that it is checked once.
        wait: Option<Duration>,
    },
    /// Export messages to files.
    Export(Box<Loaded>, ExportRequest),
    /// Import messages from files.
    Import(Box<Loaded>, ImportRequest),
    /// Check or test a script.
    Script(Box<Loaded>, ScriptTask),
    /// Run a command that uses a server.
    Client(ClientCommand),
    /// Print a generated text.
    Docs(GeneratedDocs),
    /// Create, list or revoke tokens.
    Token(Box<Loaded>, TokenTask),
    /// Add users or change passwords.
    User(Box<Loaded>, UserTask),
    /// Print a text and exit: help, version, `config check`, `config docs`, `config example`, or errors of the configuration.
    Exit(Exit),
}

/// Parses the command line (with the program name), the environment, and the configuration file that they name.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    read_file: ReadFile<'_>,
) -> Command {
    let (task, flags) = match arguments::parse(args) {
        Ok(ParsedArguments::Configured(task, flags)) => (task, flags),
        Ok(ParsedArguments::Client(command)) => return Command::Client(command),
        Ok(ParsedArguments::Docs(docs)) => return Command::Docs(docs),
        Ok(ParsedArguments::ConfigDocs) => {
            return Command::Exit(Exit { text: restante_settings::render_docs(), code: 0 });
        }
        Ok(ParsedArguments::ConfigExample(flags)) => {
            return Command::Exit(match restante_settings::render_example(&flags.given) {
                Ok(text) => Exit { text, code: 0 },
                Err(problems) => Exit { text: restante_settings::report(&problems), code: 2 },
            });
        }
        Err(exit) => return Command::Exit(exit),
    };
    let purpose = match task {
        Task::Export(_) | Task::Token(_) | Task::User(_) => Purpose::Read,
        Task::Import(_) => Purpose::Write,
        Task::Script(_) => Purpose::Script,
        Task::Health { .. } => Purpose::Check,
        Task::Serve { .. } | Task::ConfigCheck => Purpose::Serve,
    };
    let loaded = match restante_settings::load(&flags, env, restante_cli::ENVIRONMENT_VARIABLES, read_file, purpose) {
        Ok(loaded) => Box::new(loaded),
        Err(problems) => return Command::Exit(Exit { text: restante_settings::report(&problems), code: 2 }),
    };
    match task {
        Task::Serve { open_page } => Command::Serve { loaded, open_page },
        Task::Health { wait } => Command::Health { loaded, wait },
        Task::Export(request) => Command::Export(loaded, request),
        Task::Import(request) => Command::Import(loaded, request),
        Task::Script(task) => Command::Script(loaded, task),
        Task::Token(task) => Command::Token(loaded, task),
        Task::User(task) => Command::User(loaded, task),
        Task::ConfigCheck => Command::Exit(Exit { text: restante_settings::render_effective(&loaded), code: 0 }),
    }
}
