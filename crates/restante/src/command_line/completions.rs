//! The commands that print generated texts: completions, man pages and reference pages.

use std::path::PathBuf;

use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Command, value_parser};
pub use clap_complete::Shell;

/// A generated text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GeneratedDocs {
    /// `restante completions`: the completions for a shell.
    Completions(Shell),
    /// `restante man`: the man page of a command, or of the program.
    ManPage(Vec<String>),
    /// `restante man --out`: all man pages, written to a directory.
    AllManPages(PathBuf),
    /// `restante docs`: the reference page of all commands.
    Reference,
    /// `restante docs openapi`: the OpenAPI description of the HTTP API.
    Openapi,
}

pub(super) fn commands() -> impl Iterator<Item = Command> {
    let completions = Command::new("completions").about("Prints the completions for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(EnumValueParser::<Shell>::new())
            .help("The shell"),
    );
    let man = Command::new("man")
        .about("Prints the man page of a command, or writes all man pages to a directory")
        .arg(Arg::new("command").value_name("COMMAND").num_args(0..).help("A command, such as send or config check"))
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("command")
                .help("Writes all pages to this directory, which must exist"),
        );
    let openapi = Command::new("openapi").about("Prints the OpenAPI 3.1 description of the HTTP API");
    let docs = Command::new("docs")
        .about("Prints the reference page of all commands in Markdown")
        .hide(true)
        .subcommand(openapi);
    [completions, man, docs].into_iter()
}

/// Parses the arguments of these commands. Returns `None` for any other command.
pub(super) fn parse(name: &str, matches: &ArgMatches) -> Option<GeneratedDocs> {
    match name {
        "completions" => matches.get_one("shell").copied().map(GeneratedDocs::Completions),
        "man" => Some(match matches.get_one::<PathBuf>("out") {
            Some(directory) => GeneratedDocs::AllManPages(directory.clone()),
            None => {
                GeneratedDocs::ManPage(matches.get_many::<String>("command").into_iter().flatten().cloned().collect())
            }
        }),
        "docs" if matches.subcommand_name() == Some("openapi") => Some(GeneratedDocs::Openapi),
        "docs" => Some(GeneratedDocs::Reference),
        _ => None,
    }
}
