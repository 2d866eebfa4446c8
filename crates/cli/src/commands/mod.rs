//! The commands: one file for each, and the table of all commands.

mod entry;
mod extract;
mod html_check;
pub(crate) mod inbucket;
mod list;
mod mailboxes;
mod message;
mod queue;
mod read;
mod release;
mod remove;
mod run;
mod scope;
mod search;
mod tag;
mod wait;
mod wait_requests;
mod watch;

use clap::builder::TypedValueParser;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, value_parser};

use crate::options::Options;
use crate::{Task, send};

/// A command: its definition, and the parser of its arguments.
type CommandEntry = (fn() -> Command, fn(&ArgMatches) -> Box<dyn Task>);

/// In the order of the help text.
const COMMANDS: &[CommandEntry] = &[
    entry::<list::List>(),
    entry::<mailboxes::ListMailboxes>(),
    entry::<read::Get>(),
    entry::<read::Source>(),
    entry::<wait::Wait>(),
    entry::<watch::Watch>(),
    entry::<search::Search>(),
    entry::<extract::Codes>(),
    entry::<extract::Links>(),
    entry::<html_check::HtmlCheck>(),
    entry::<run::Run>(),
    (send::command, send::parse),
    entry::<send::demo::SendSamples>(),
    entry::<release::Release>(),
    entry::<tag::Tag>(),
    entry::<remove::Delete>(),
    entry::<remove::Purge>(),
    entry::<inbucket::Match>(),
    entry::<inbucket::Mbox>(),
];

/// The exit codes, for the help of every command that has no others.
pub const EXIT_CODES: &str = "Exit codes: 0 success, 1 nothing found or no message in time, 2 wrong usage, 3 server \
 not reachable, 4 credentials missing or refused, 5 error of the server or of this machine.";

/// Returns the commands in the order of the help text.
pub fn all() -> impl Iterator<Item = Command> {
    let ours = COMMANDS.iter().map(|(command, _)| with_common_options(command()));
    ours.chain(queue::commands()).chain([inbucket::client_command()])
}

/// Parses the arguments of a command and its common options.
pub(crate) fn parse(name: &str, matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    if name == inbucket::CLIENT {
        return inbucket::parse_client(matches);
    }
    match COMMANDS.iter().find(|(command, _)| command().get_name() == name) {
        Some((_, parse)) => Some((parse(matches), Options::parse(matches))),
        None => queue::parse(name, matches),
    }
}

/// Adds the common options to a command.
fn with_common_options(command: Command) -> Command {
    let command = if command.get_after_help().is_none() { command.after_help(EXIT_CODES) } else { command };
    Options::add_to(command).args_override_self(true)
}

/// Returns the entry of a command whose definition is derived from its type.
const fn entry<T: Task + CommandFactory + FromArgMatches + 'static>() -> CommandEntry {
    (T::command, parse_task::<T>)
}

/// Returns a command with its arguments. They were checked when the command line was parsed.
fn parse_task<T: Task + FromArgMatches + 'static>(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(T::from_arg_matches(matches).unwrap_or_else(|error| error.exit()))
}

/// Returns a parser for the number of results.
fn limit_parser() -> impl TypedValueParser<Value = usize> {
    value_parser!(u32).range(1..).map(|limit| limit as usize)
}

/// Parses a segment of a path. An empty name, `.` and `..` would change the meaning of the path.
fn parse_segment(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("must be a name, and not empty, . or ..".to_owned()),
        _ => Ok(text.to_owned()),
    }
}
