//! The command line of the program.
//!
//! [`parse`] takes the arguments, the environment and a file reader as values and returns a [`Command`].

mod arguments;
mod completions;
mod hints;
mod server_flags;
mod tasks;

use std::ffi::OsString;

use restante_cli::ClientCommand;
use restante_settings::{self, Loaded, Problem, Purpose, ReadFile};

use arguments::ParsedArguments;

use crate::api_check::check_apis;
use crate::ca::CaRequest;
use crate::exit::Exit;

pub(crate) use arguments::{ALL_SETTINGS_NOTE, SETTINGS_NOTE, command};
pub use completions::{DocsPage, GeneratedDocs, Shell};
pub use tasks::{ProjectTask, ScriptTask, Task, TokenTask, UserTask};

/// What the process has to do.
#[derive(Debug)]
pub enum Command {
    /// Run a task with this configuration.
    Configured(Task, Box<Loaded>),
    /// Run a command that uses a server.
    Client(ClientCommand),
    /// Create a local CA and a server certificate.
    Ca(CaRequest),
    /// Print a generated text.
    Docs(GeneratedDocs),
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
        Ok(ParsedArguments::Ca(request)) => return Command::Ca(request),
        Ok(ParsedArguments::Docs(docs)) => return Command::Docs(docs),
        Err(exit) => return Command::Exit(exit),
    };
    let purpose = match &task {
        Some(Task::Export(_) | Task::Token(_) | Task::User(_)) => Purpose::Read,
        Some(Task::Import(_)) => Purpose::Write,
        Some(Task::Script(_) | Task::Project(_)) => Purpose::Script,
        Some(Task::Health { .. }) => Purpose::Check,
        Some(Task::Serve { .. }) | None => Purpose::Serve,
    };
    let loaded = restante_settings::load(&flags, env, restante_cli::ENVIRONMENT_VARIABLES, read_file, purpose);
    match (loaded, task) {
        (Ok(loaded), _)
            if purpose == Purpose::Serve
                && let Err(collision) = check_apis(&loaded.config.web) =>
        {
            let problem = Problem::new(format!("web.listeners: {collision}"));
            Command::Exit(Exit { text: restante_settings::report(&[problem]), code: 2 })
        }
        (Ok(loaded), Some(task)) => Command::Configured(task, Box::new(loaded)),
        (Ok(loaded), None) => Command::Exit(Exit { text: restante_settings::render_effective(&loaded), code: 0 }),
        (Err(problems), _) => Command::Exit(Exit { text: restante_settings::report(&problems), code: 2 }),
    }
}
