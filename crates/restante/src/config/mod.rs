//! The configuration: one table of settings, and everything that is made from it.
//!
//! [`SETTINGS`] is the only place that knows a setting's name, default, help and parser. The command line, the
//! environment, the TOML file, `--help` and `docs/config.md` are generated from it, so they cannot drift apart.
//! [`parse`] is the way in: it takes arguments, environment and a file reader as values and returns what the process has
//! to do. Beside that it asks the file system only whether log, pid file and data directory can be written, and whether a
//! greeting is there. Nothing here opens a socket, writes a file or starts the log.

mod access;
mod check;
mod cli;
mod credential;
mod duration;
mod file;
mod load;
mod manual;
mod problem;
mod render;
mod script;
mod setting;
mod sources;
mod table;
mod transfer;
mod types;
mod values;
mod webhook;

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use restante_client::Errand;

pub use access::{TokenTask, UserTask};
pub(crate) use cli::command;
pub use credential::{Credential, Key};
pub(crate) use duration::{parse as parse_duration, text as duration_text};
pub use load::{Effective, Loaded};
pub use manual::{Manual, Shell};
pub use problem::{Origin, Problem};
pub use restante_logging::{Level, Output as LogOutput};
pub use script::{Script, ScriptTask};
pub use setting::{Apply, Setting, Status, Value};
pub use table::SETTINGS;
pub use transfer::{Export, ExportFormat, Import, ImportFormat};
pub use types::{
    Auth, CertSource, Config, Durability, Hosts, Lmtp, Origins, Pop3, Scripting, Search, Smtp, Storage, StoreKind, Tls,
    Web, Webhooks,
};

use self::check::Purpose;

/// How files are read: `std::fs::read` in the program, a table of texts in a test.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// What the command line asks the process to do.
#[derive(Debug)]
pub enum Command {
    /// Run the server with this configuration.
    Serve(Box<Loaded>),
    /// Ask the server that runs with this configuration whether it is well.
    Health(Box<Loaded>),
    /// Write mail of the data directory to files.
    Export(Box<Loaded>, Export),
    /// Take mail from files into the data directory.
    Import(Box<Loaded>, Import),
    /// Try a script without serving.
    Script(Box<Loaded>, Script),
    /// Ask something of a server, or send it a mail.
    Client(Errand),
    /// Tell what is known about the command line.
    Manual(Manual),
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
    let (task, flags) = match cli::read(args) {
        Ok(cli::Request::Configured(task, flags)) => (task, flags),
        Ok(cli::Request::Client(errand)) => return Command::Client(errand),
        Ok(cli::Request::Manual(manual)) => return Command::Manual(manual),
        Ok(cli::Request::ConfigDocs) => return Command::Exit(Exit { text: docs(), code: 0 }),
        Err(exit) => return Command::Exit(exit),
    };
    let purpose = match task {
        cli::Task::Export(_) | cli::Task::Token(_) | cli::Task::User(_) => Purpose::Read,
        cli::Task::Import(_) => Purpose::Write,
        cli::Task::Script(_) => Purpose::Script,
        _ => Purpose::Serve,
    };
    let loaded = match load::load(&flags, env, read_file, purpose) {
        Ok(loaded) => Box::new(loaded),
        Err(problems) => return Command::Exit(Exit { text: problem::report(&problems), code: 2 }),
    };
    match task {
        cli::Task::Serve => Command::Serve(loaded),
        cli::Task::Health => Command::Health(loaded),
        cli::Task::Export(request) => Command::Export(loaded, request),
        cli::Task::Import(request) => Command::Import(loaded, request),
        cli::Task::Script(request) => Command::Script(loaded, request),
        cli::Task::Token(task) => Command::Token(loaded, task),
        cli::Task::User(task) => Command::User(loaded, task),
        cli::Task::ConfigCheck => Command::Exit(Exit { text: render::effective(&loaded), code: 0 }),
    }
}

/// The reference page of all settings, in Markdown: `docs/config.md` is this text.
pub fn docs() -> String {
    render::docs()
}
