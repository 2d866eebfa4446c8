//! The commands of Inbucket's client: `match` and `mbox`, and the group `restante client`, with the flags and the
//! output that existing scripts rely on.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::Timestamp;
use regex::{Regex, RegexBuilder};
use restante_mail::mbox;
use restante_mail::mime::NamedAddress;
use restante_mail::terminal_text;
use serde_json::{Value, json};

use super::message::{self, Message};
use super::{arg_text, mailbox_arg, with_common_options};
use crate::error::CommandError;
use crate::options::{Options, duration_arg, inbucket_args};
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

pub(crate) fn with_two_dashes(args: Vec<OsString>) -> Vec<OsString> {
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
    let list = Command::new("list").about("Lists the ids of the messages of a mailbox").arg(mailbox_arg());
    Command::new(CLIENT)
        .about("Replaces Inbucket's client: list, match and mbox with the same flags")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .args(inbucket_args())
        .subcommands(
            [list, match_command(), mbox_command()].map(|command| with_common_options(command).args(inbucket_args())),
        )
}

pub(super) fn parse_client(matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let (name, subcommand) = matches.subcommand()?;
    let task: Box<dyn Task> = match name {
        "list" => Box::new(ListIds { mailbox: arg_text(subcommand, "mailbox") }),
        "match" => parse_match(subcommand),
        _ => Box::new(Match { allows_empty: true, ..match_all(subcommand) }),
    };
    let mut options = Options::parse(subcommand);
    options.or_host_and_port(matches);
    Some((task, options))
}

pub(super) fn match_command() -> Command {
    let expression = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("REGEXP").allow_hyphen_values(true).value_parser(compile_regex).help(help)
    };
    Command::new("match")
        .about("Prints the messages of a mailbox that match regular expressions, as Inbucket's client does")
        .long_about(
            "Prints the messages of a mailbox that match all given conditions. The exit code is 1 if there are none. \
             Flags may have a single dash, as in Inbucket's client.",
        )
        .arg(mailbox_arg())
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FORMAT")
                .value_parser(PossibleValuesParser::new(["id", "json", "mbox"]))
                .default_value("id")
                .help("The output format"),
        )
        .arg(expression("from", "Only messages whose From address matches"))
        .arg(expression("to", "Only messages with at least one matching To address"))
        .arg(expression("subject", "Only messages whose subject matches"))
        .arg(duration_arg("maxage", "Only messages received within this time"))
        .arg(delete_arg())
}

pub(super) fn mbox_command() -> Command {
    Command::new("mbox")
        .about("Prints a mailbox as mbox")
        .long_about("Prints a mailbox in mbox format (mboxrd), as `restante export` writes it.")
        .arg(mailbox_arg())
        .arg(delete_arg())
}

fn delete_arg() -> Arg {
    Arg::new("delete")
        .long("delete")
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_name("BOOL")
        .value_parser(PossibleValuesParser::new(["true", "false"]))
        .hide_possible_values(true)
        .help("Deletes the printed messages")
}

fn compile_regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build().map_err(|error| error.to_string())
}

pub(super) fn parse_match(matches: &ArgMatches) -> Box<dyn Task> {
    // An empty expression matches everything, as in Inbucket's client.
    let expression = |name| matches.get_one::<Regex>(name).filter(|regex| !regex.as_str().is_empty()).cloned();
    Box::new(Match {
        mailbox: arg_text(matches, "mailbox"),
        from: expression("from"),
        to: expression("to"),
        subject: expression("subject"),
        max_age: matches.get_one("maxage").copied().unwrap_or_default(),
        format: match arg_text(matches, "output").as_str() {
            "json" => OutputFormat::Json,
            "mbox" => OutputFormat::Mbox,
            _ => OutputFormat::Id,
        },
        delete: arg_text(matches, "delete") == "true",
        allows_empty: false,
    })
}

pub(super) fn parse_mbox(matches: &ArgMatches) -> Box<dyn Task> {
    Box::new(match_all(matches))
}

/// Matches all messages and prints them as mbox.
fn match_all(matches: &ArgMatches) -> Match {
    Match {
        mailbox: arg_text(matches, "mailbox"),
        from: None,
        to: None,
        subject: None,
        max_age: Duration::ZERO,
        format: OutputFormat::Mbox,
        delete: arg_text(matches, "delete") == "true",
        allows_empty: false,
    }
}

struct ListIds {
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

struct Match {
    mailbox: String,
    from: Option<Regex>,
    to: Option<Regex>,
    subject: Option<Regex>,
    /// Zero means any age.
    max_age: Duration,
    format: OutputFormat,
    delete: bool,
    /// True if an empty result is a success, as for Inbucket's own mbox.
    allows_empty: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Id,
    Json,
    Mbox,
}

impl Task for Match {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let listed = message::list(&context.server, &self.mailbox, None)?;
        let mut found = Vec::new();
        for record in listed {
            let message: Message = decode(&record)?;
            if self.matches(&message, context.now) {
                found.push((record, message));
            }
        }
        if found.is_empty() {
            return if self.allows_empty { Ok(()) } else { Err(CommandError::NotFound(None)) };
        }
        if self.format == OutputFormat::Json || context.json {
            let records = found.iter().map(|(record, _)| record.clone()).collect();
            context.style.write_json(context.out, &Value::Array(records))?;
        } else {
            for (_, message) in &found {
                self.print(context, message)?;
            }
        }
        // The output must be complete before messages are deleted.
        context.out.flush()?;
        if self.delete {
            let ids: Vec<&str> = found.iter().map(|(_, message)| &*message.id).collect();
            context.server.post(&["api", "v2", "mailbox", &self.mailbox, "delete"], &json!({ "ids": ids }))?;
        }
        Ok(())
    }
}

impl Match {
    fn matches(&self, message: &Message, now: Timestamp) -> bool {
        let is_match =
            |expression: &Option<Regex>, text: &str| expression.as_ref().is_none_or(|regex| regex.is_match(text));
        let address = |text: &str| NamedAddress::from_display(text).address;
        let age = now.duration_since(message::received_at(message));
        (self.max_age.is_zero() || Duration::try_from(age).unwrap_or_default() <= self.max_age)
            && is_match(&self.subject, &message.subject)
            && is_match(&self.from, &address(&message.from))
            && (self.to.is_none() || message.to.iter().any(|to| is_match(&self.to, &address(to))))
    }

    fn print(&self, context: &mut CommandContext<'_>, message: &Message) -> Result<(), CommandError> {
        if self.format == OutputFormat::Id {
            return Ok(writeln!(context.out, "{}", terminal_text::escape_line(&message.id))?);
        }
        let mut source = Vec::new();
        let download = context.server.download(&["api", "v1", "mailbox", &self.mailbox, &message.id, "source"]);
        download?.read_to_end(&mut source).map_err(|error| {
            CommandError::Unreachable(format!("The download of the message was interrupted: {error}."))
        })?;
        let sender = NamedAddress::from_display(&message.from).address;
        if !context.style.is_terminal() {
            return Ok(mbox::write_message(context.out, &sender, message::received_at(message), &source)?);
        }
        let mut text = Vec::new();
        mbox::write_message(&mut text, &sender, message::received_at(message), &source)?;
        Ok(context.out.write_all(terminal_text::escape_text(&String::from_utf8_lossy(&text)).as_bytes())?)
    }
}
