//! The commands: one file for each, and the table of all commands.

mod entry;
mod extract;
mod html_check;
pub(crate) mod inbucket;
mod list;
mod mailboxes;
mod message;
mod read;
mod relay;
mod release;
mod remove;
mod scope;
mod search;
mod tag;
mod wait;
mod wait_requests;
mod watch;

use clap::{Arg, ArgMatches, Command};

use crate::options::Options;
use crate::{Task, send};

/// A command: its definition, and the parser of its arguments.
type CommandEntry = (fn() -> Command, fn(&ArgMatches) -> Box<dyn Task>);

/// In the order of the help text.
const COMMANDS: &[CommandEntry] = &[
    (list::command, list::parse),
    (mailboxes::command, mailboxes::parse),
    (read::get_command, read::parse_get),
    (read::source_command, read::parse_source),
    (wait::command, wait::parse),
    (watch::command, watch::parse),
    (search::command, search::parse),
    (extract::codes_command, extract::parse_codes),
    (extract::links_command, extract::parse_links),
    (html_check::command, html_check::parse),
    (send::command, send::parse),
    (send::demo::command, send::demo::parse),
    (release::command, release::parse),
    (tag::command, tag::parse),
    (remove::delete_command, remove::parse_delete),
    (remove::purge_command, remove::parse_purge),
    (inbucket::match_command, inbucket::parse_match),
    (inbucket::mbox_command, inbucket::parse_mbox),
];

/// The exit codes, for the help of every command that has no others.
pub const EXIT_CODES: &str = "Exit codes: 0 success, 1 nothing found or no message in time, 2 wrong usage, 3 server \
 not reachable, 4 credentials missing or refused, 5 error of the server or of this machine.";

pub(crate) fn all() -> impl Iterator<Item = Command> {
    let ours = COMMANDS.iter().map(|(command, _)| with_common_options(command()));
    ours.chain([relay::command(), inbucket::client_command()])
}

/// Parses the arguments of a command and its common options.
pub(crate) fn parse(name: &str, matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    match name {
        relay::RELAY => return relay::parse(matches),
        inbucket::CLIENT => return inbucket::parse_client(matches),
        _ => {}
    }
    let (_, parse) = COMMANDS.iter().find(|(command, _)| command().get_name() == name)?;
    Some((parse(matches), Options::parse(matches)))
}

/// Adds the common options to a command.
fn with_common_options(command: Command) -> Command {
    let command = if command.get_after_help().is_none() { command.after_help(EXIT_CODES) } else { command };
    Options::add_to(command).args_override_self(true)
}

fn mailbox_arg() -> Arg {
    Arg::new("mailbox")
        .value_name("MAILBOX")
        .required(true)
        .value_parser(parse_segment)
        .help("The mailbox, as a name or an address")
}

fn id_arg() -> Arg {
    Arg::new("id")
        .value_name("ID")
        .default_value("latest")
        .value_parser(parse_segment)
        .help("The id of a message, or latest")
}

/// Parses a segment of a path. An empty name, `.` and `..` would change the meaning of the path.
fn parse_segment(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("must be a name, and not empty, . or ..".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Returns the text of an argument; empty if it was not given.
fn arg_text(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).cloned().unwrap_or_default()
}
