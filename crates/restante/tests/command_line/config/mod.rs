//! The configuration as an operator meets it: command line, environment and file in, a configuration or a text out.

mod combinations;
mod errors;
mod output;
mod sources;
mod storage;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use restante::command_line::{Command, Exit, parse};
use restante_settings::{Config, Loaded, StoreKind};

/// What the process would see: arguments, environment, files.
#[derive(Default)]
struct World<'a> {
    args: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
    files: &'a [(&'a str, &'a str)],
}

impl World<'_> {
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
            Command::Serve(loaded) => *loaded,
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

    /// The text of a start that fails for its configuration.
    #[track_caller]
    fn refused(&self) -> String {
        let exit = self.exit();
        assert_eq!(exit.code, 2, "{}", exit.text);
        exit.text
    }
}

fn flags<'a>(args: &'a [&'a str]) -> World<'a> {
    World { args, ..World::default() }
}

fn env<'a>(env: &'a [(&'a str, &'a str)]) -> World<'a> {
    World { env, ..World::default() }
}

fn file<'a>(files: &'a [(&'a str, &'a str)]) -> World<'a> {
    World { args: &["--config", "r.toml"], files, ..World::default() }
}

/// Where mail is kept: a data directory, a database, or memory.
fn place(world: &World<'_>) -> Option<String> {
    let storage = world.config().storage;
    let (kind, place) = match (storage.path, storage.database) {
        (None, None) => (StoreKind::Memory, None),
        (Some(path), None) => (StoreKind::File, Some(path.to_string_lossy().into_owned())),
        (None, Some(database)) => (StoreKind::Postgres, Some(database.to_string())),
        both => panic!("mail cannot be kept twice: {both:?}"),
    };
    assert_eq!(storage.kind, kind);
    place
}
