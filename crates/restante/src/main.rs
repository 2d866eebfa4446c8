//! The `restante` program: parses the command line and runs the command.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use restante::command_line::{self, Command};
use restante::{completions, health, script, serve, token, transfer, user};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = restante_cli::run_as_sendmail(&args) {
        return code;
    }
    match command_line::parse(args, std::env::vars_os(), &|path| std::fs::read(path)) {
        Command::Exit(exit) => exit.print(),
        Command::Health(loaded) => health::run(&loaded),
        Command::Export(loaded, request) => transfer::export(&loaded.config, &request),
        Command::Import(loaded, request) => transfer::import(&loaded.config, &request),
        Command::Script(loaded, request) => script::run(&loaded.config, &request),
        Command::Client(command) => command.run(),
        Command::Docs(docs) => completions::run(&docs),
        Command::Token(loaded, task) => token::run(&loaded.config, &task),
        Command::User(loaded, task) => user::run(&loaded.config, &task),
        Command::Serve(loaded) => match serve::run(&loaded) {
            Ok(code) => code,
            Err(error) => {
                // The exit code reports the error too.
                let _ = writeln!(std::io::stderr(), "restante: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
