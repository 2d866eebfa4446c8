//! The configuration from command line, environment and files: the result is a configuration or an error text.

mod combinations;
mod errors;
mod output;
mod sources;
mod storage;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use restante::command_line::{Command, Task, parse};
use restante::exit::Exit;
use restante_settings::{Config, Loaded, StoreKind};

/// The input of the process: arguments, environment variables and files.
#[derive(Default)]
struct ProcessInput<'a> {
    args: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
    files: &'a [(&'a str, &'a str)],
}

impl ProcessInput<'_> {
    fn parse(&self) -> Command {
        let read_file = |path: &Path| {
            let file = self.files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        let args = ["restante"].iter().chain(self.args).map(OsString::from);
        let env = self.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        parse(args, env, &read_file)
    }

    #[track_caller]
    fn serve(&self) -> Loaded {
        match self.parse() {
            Command::Configured(Task::Serve { .. }, loaded) => *loaded,
            other => panic!("does not start: {other:?}"),
        }
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.serve().config
    }

    #[track_caller]
    fn exit(&self) -> Exit {
        match self.parse() {
            Command::Exit(exit) => exit,
            other => panic!("starts: {other:?}"),
        }
    }

    /// Returns the error text of a start that fails because of its configuration.
    #[track_caller]
    fn error_text(&self) -> String {
        let exit = self.exit();
        assert_eq!(exit.code, 2, "{}", exit.text);
        exit.text
    }
}

fn flags<'a>(args: &'a [&'a str]) -> ProcessInput<'a> {
    ProcessInput { args, ..ProcessInput::default() }
}

fn env<'a>(env: &'a [(&'a str, &'a str)]) -> ProcessInput<'a> {
    ProcessInput { env, ..ProcessInput::default() }
}

fn file<'a>(files: &'a [(&'a str, &'a str)]) -> ProcessInput<'a> {
    ProcessInput { args: &["--config", "r.toml"], files, ..ProcessInput::default() }
}

/// Returns where messages are stored: the data directory or database, or `None` for memory.
fn storage_location(input: &ProcessInput<'_>) -> Option<String> {
    let storage = input.config().storage;
    let (kind, storage_location) = match (storage.path, storage.database) {
        (None, None) => (StoreKind::Memory, None),
        (Some(path), None) => (StoreKind::File, Some(path.to_string_lossy().into_owned())),
        (None, Some(database)) => (StoreKind::Postgres, Some(database.to_string())),
        both => panic!("two storage locations: {both:?}"),
    };
    assert_eq!(storage.kind, kind);
    storage_location
}
