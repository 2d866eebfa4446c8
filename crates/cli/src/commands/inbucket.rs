//! The commands of Inbucket's client: `match` and `mbox`, and the group `restante client`, with the flags and the
//! output that existing scripts rely on.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use jiff::Timestamp;
use regex::{Regex, RegexBuilder};
use restante_mail::mbox;
use restante_mail::mime::NamedAddress;
use restante_mail::terminal_text;
use serde_json::{Value, json};

use super::message::{self, Message};
use super::{parse_segment, parse_task, with_common_options};
use crate::error::CommandError;
use crate::options::{Options, inbucket_args, parse_duration};
use crate::server::decode;
use crate::{CommandContext, Task};

/// The group that replaces Inbucket's client.
pub(super) const CLIENT: &str = "client";
/// The commands after which flags may have a single dash.
const SINGLE_DASH_COMMANDS: &[&str] = &[CLIENT, "match", "mbox"];
/// Flags that Inbucket's client accepts with a single dash, as Go programs do.
const SINGLE_DASH_FLAGS: &[&str] = &["delete", "from", "help", "host", "maxage", "output", "port", "subject", "to"];
/// The memory limit of a compiled regular expression in bytes.
const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// Converts flags such as `-output` to `--output` after the commands of Inbucket's client, so that scripts written for it
/// work unchanged.
pub fn with_two_dashes(args: Vec<OsString>) -> Vec<OsString> {
    let allows_single_dash = |arg: &OsString| arg.to_str().is_some_and(|arg| SINGLE_DASH_COMMANDS.contains(&arg));
    let Some(at) = args.iter().position(allows_single_dash) else { return args };
    args.into_iter().enumerate().map(|(index, arg)| if index > at { add_dash(arg) } else { arg }).collect()
}

fn add_dash(arg: OsString) -> OsString {
    let name = arg.to_str().and_then(|text| text.strip_prefix('-')).and_then(|text| text.split('=').next());
    if !name.is_some_and(|name| SINGLE_DASH_FLAGS.contains(&name)) {
        return arg;
    }
    let mut doubled = OsString::from("-");
    doubled.push(AsRef::<OsStr>::as_ref(&arg));
    doubled
}

pub(super) fn client_command() -> Command {
    Command::new(CLIENT)
        .about("Replaces Inbucket's client: list, match and mbox with the same flags")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .args(inbucket_args())
        .subcommands(
            [ListIds::command(), Match::command(), Mbox::command()]
                .map(|command| with_common_options(command).args(inbucket_args())),
        )
}

pub(super) fn parse_client(matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let (name, subcommand) = matches.subcommand()?;
    let task: Box<dyn Task> = match name {
        "list" => parse_task::<ListIds>(subcommand),
        "match" => parse_task::<Match>(subcommand),
        _ => Box::new(Mbox { allows_empty: true, ..Mbox::from_arg_matches(subcommand).ok()? }),
    };
    let mut options = Options::parse(subcommand);
    options.or_host_and_port(matches);
    Some((task, options))
}

fn compile_regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build().map_err(|error| error.to_string())
}

/// Lists the ids of the messages of a mailbox.
#[derive(Parser)]
#[command(name = "list")]
struct ListIds {
    /// The mailbox, as a name or an address
    #[arg(value_parser = parse_segment)]
    mailbox: String,
}

impl Task for ListIds {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let messages: Vec<Message> = decode(&Value::Array(message::list(&context.server, &self.mailbox, None)?))?;
        for message in messages {
            writeln!(context.out, "{}", terminal_text::escape_line(&message.id))?;
        }
        Ok(())
    }
}

/// Prints the messages of a mailbox that match regular expressions, as Inbucket's client does.
#[derive(Parser)]
#[command(
    name = "match",
    long_about = "Prints the messages of a mailbox that match all given conditions. The exit code is 1 if there are none. \
        Flags may have a single dash, as in Inbucket's client."
)]
pub(super) struct Match {
    /// The mailbox, as a name or an address
    #[arg(value_parser = parse_segment)]
    mailbox: String,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "id")]
    output: OutputFormat,
    /// Only messages whose From address matches
    #[arg(long, value_name = "REGEXP", allow_hyphen_values = true, value_parser = compile_regex)]
    from: Option<Regex>,
    /// Only messages with at least one matching To address
    #[arg(long, value_name = "REGEXP", allow_hyphen_values = true, value_parser = compile_regex)]
    to: Option<Regex>,
    /// Only messages whose subject matches
    #[arg(long, value_name = "REGEXP", allow_hyphen_values = true, value_parser = compile_regex)]
    subject: Option<Regex>,
    /// Only messages received within this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    maxage: Option<Duration>,
    #[command(flatten)]
    delete: DeleteFlag,
}

/// Prints a mailbox as mbox.
#[derive(Parser)]
#[command(name = "mbox", long_about = "Prints a mailbox in mbox format (mboxrd), as `restante export` writes it.")]
pub(super) struct Mbox {
    /// The mailbox, as a name or an address
    #[arg(value_parser = parse_segment)]
    mailbox: String,
    #[command(flatten)]
    delete: DeleteFlag,
    /// True if an empty mailbox is a success, as for Inbucket's own mbox.
    #[arg(skip)]
    allows_empty: bool,
}

/// The flag that deletes messages, with the syntax of Go programs.
#[derive(Args, Clone, Copy)]
struct DeleteFlag {
    /// Deletes the printed messages
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true
    )]
    delete: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Id,
    Json,
    Mbox,
}

impl Task for Match {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let found = find_messages(context, &self.mailbox, |message| self.matches(message, context.now))?;
        print_found(context, &self.mailbox, &found, self.output, self.delete)
    }
}

impl Task for Mbox {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let found = find_messages(context, &self.mailbox, |_| true)?;
        if found.is_empty() && self.allows_empty {
            return Ok(());
        }
        print_found(context, &self.mailbox, &found, OutputFormat::Mbox, self.delete)
    }
}

impl Match {
    fn matches(&self, message: &Message, now: Timestamp) -> bool {
        let is_match =
            |expression: &Option<Regex>, text: &str| expression.as_ref().is_none_or(|regex| regex.is_match(text));
        let address = |text: &str| NamedAddress::from_display(text).address;
        let age = now.duration_since(message::received_at(message));
        let max_age = self.maxage.unwrap_or_default();
        (max_age.is_zero() || Duration::try_from(age).unwrap_or_default() <= max_age)
            && is_match(&self.subject, &message.subject)
            && is_match(&self.from, &address(&message.from))
            && self.to.as_ref().is_none_or(|regex| {
                // An empty expression matches everything, as in Inbucket's client.
                regex.as_str().is_empty() || message.to.iter().any(|to| regex.is_match(&address(to)))
            })
    }
}

/// Returns the messages of a mailbox that match, with their records.
fn find_messages(
    context: &CommandContext<'_>,
    mailbox: &str,
    matches: impl Fn(&Message) -> bool,
) -> Result<Vec<(Value, Message)>, CommandError> {
    let mut found = Vec::new();
    for record in message::list(&context.server, mailbox, None)? {
        let message: Message = decode(&record)?;
        if matches(&message) {
            found.push((record, message));
        }
    }
    Ok(found)
}

/// Prints messages of a mailbox, and deletes them if that was requested.
fn print_found(
    context: &mut CommandContext<'_>,
    mailbox: &str,
    found: &[(Value, Message)],
    format: OutputFormat,
    delete: DeleteFlag,
) -> Result<(), CommandError> {
    if found.is_empty() {
        return Err(CommandError::NotFound(None));
    }
    if format == OutputFormat::Json || context.json {
        let records = found.iter().map(|(record, _)| record.clone()).collect();
        context.style.write_json(context.out, &Value::Array(records))?;
    } else {
        for (_, message) in found {
            match format {
                OutputFormat::Id => writeln!(context.out, "{}", terminal_text::escape_line(&message.id))?,
                _ => print_mbox(context, mailbox, message)?,
            }
        }
    }
    // The output must be complete before messages are deleted.
    context.out.flush()?;
    if delete.delete == Some(true) {
        let ids: Vec<&str> = found.iter().map(|(_, message)| &*message.id).collect();
        context.server.post(&["api", "v2", "mailbox", mailbox, "delete"], &json!({ "ids": ids }))?;
    }
    Ok(())
}

fn print_mbox(context: &mut CommandContext<'_>, mailbox: &str, message: &Message) -> Result<(), CommandError> {
    let mut source = Vec::new();
    let download = context.server.download(&["api", "v1", "mailbox", mailbox, &message.id, "source"]);
    download?
        .read_to_end(&mut source)
        .map_err(|error| CommandError::Unreachable(format!("The download of the message was interrupted: {error}.")))?;
    let sender = NamedAddress::from_display(&message.from).address;
    if !context.style.is_terminal() {
        return Ok(mbox::write_message(context.out, &sender, message::received_at(message), &source)?);
    }
    let mut text = Vec::new();
    mbox::write_message(&mut text, &sender, message::received_at(message), &source)?;
    Ok(context.out.write_all(terminal_text::escape_text(&String::from_utf8_lossy(&text)).as_bytes())?)
}
