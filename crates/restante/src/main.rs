//! The `restante` program: parses the command line and runs the command.

use std::ffi::OsString;
use std::process::ExitCode;

use restante::command_line::{self, Command, Task};
use restante::exit::Exit;
use restante::mailpit::{self, MailpitCommand};
use restante::serve::{self, EmulatedProgram, ServeOptions};
use restante::{ca, completions, health, project, script, token, transfer, user};
use restante_settings::Loaded;

/// The allocator of static programs, which is faster than that of musl with several threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = restante_cli::run_as_sendmail(&args) {
        return code;
    }
    if let Some(args) = mailpit::arguments(&args) {
        return run_as_mailpit(args);
    }
    match command_line::parse(args, std::env::vars_os(), &|path| std::fs::read(path)) {
        Command::Exit(exit) => exit.print(),
        Command::Client(command) => command.run(),
        Command::Ca(request) => ca::run(&request),
        Command::Docs(docs) => completions::run(&docs),
        Command::Configured(task, loaded) => run_task(task, &loaded),
    }
}

fn run_task(task: Task, loaded: &Loaded) -> ExitCode {
    let config = &loaded.config;
    match task {
        Task::Health { wait } => health::run(config, wait),
        Task::Export(request) => transfer::export(config, &request),
        Task::Import(request) => transfer::import(config, &request),
        Task::Script(task) => script::run(config, &task),
        Task::Token(task) => token::run(config, &task),
        Task::User(task) => user::run(config, &task),
        Task::Project(task) => project::run(config, &task),
        Task::Serve { open_page } => run_server(loaded, ServeOptions { emulated: None, open_page }),
    }
}

/// Runs the program as a replacement for Mailpit, with these arguments after the program name.
fn run_as_mailpit(args: Result<Vec<OsString>, Exit>) -> ExitCode {
    let args = match args {
        Ok(args) => args,
        Err(exit) => return exit.print(),
    };
    match mailpit::parse(args, std::env::vars_os(), &|path| std::fs::read(path)) {
        MailpitCommand::Serve(loaded) => {
            run_server(&loaded, ServeOptions { emulated: Some(EmulatedProgram::Mailpit), open_page: false })
        }
        MailpitCommand::Readyz(readyz) => readyz.run(),
        MailpitCommand::Sendmail(args) => restante_cli::run_as_mailpit_sendmail(&args),
        MailpitCommand::Exit(exit) => exit.print(),
    }
}

fn run_server(loaded: &Loaded, options: ServeOptions) -> ExitCode {
    serve::run(loaded, options).unwrap_or_else(|error| Exit::error(&error, 1).print())
}
