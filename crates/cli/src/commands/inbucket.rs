//! What Inbucket's command line client has: `match` and `mbox`, and all of it below `restante client`, with the flags and
//! outputs that scripts for it rely on.

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

/// The name of the group that takes the place of Inbucket's client.
pub(super) const CLIENT: &str = "client";
/// The commands behind which flags may have a single dash.
const SINGLE_DASH_COMMANDS: &[&str] = &[CLIENT, "match", "mbox"];
/// Flags that Inbucket's client takes with a single dash, as Go programs do.
const SINGLE_DASH_FLAGS: &[&str] = &["delete", "from", "help", "host", "maxage", "output", "port", "subject", "to"];
/// The most memory that a compiled expression may take.
const MAX_REGEX_BYTES: usize = 1024 * 1024;

pub(crate) fn with_two_dashes(args: Vec<OsString>) -> Vec<OsString> {
    let is_lenient = |arg: &OsString| arg.to_str().is_some_and(|arg| SINGLE_DASH_COMMANDS.contains(&arg));
    let Some(at) = args.iter().position(is_lenient) else { return args };
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
        .about("Takes the place of Inbucket's client: list, match and mbox with its flags")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .args(inbucket_args())
        .subcommands(
            [list, match_command(), mbox_command()].map(|command| with_common_options(command).args(inbucket_args())),
        )
}

pub(super) fn parse_client(matches: &ArgMatches) -> Option<(Box<dyn Task>, Options)> {
    let (name, below) = matches.subcommand()?;
    let task: Box<dyn Task> = match name {
        "list" => Box::new(ListIds { mailbox: arg_text(below, "mailbox") }),
        "match" => parse_match(below),
        _ => Box::new(Match { allows_empty: true, ..match_all(below) }),
    };
    let mut options = Options::parse(below);
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
            "Prints the messages of a mailbox that match all that is given. The exit code is 1 when there are none. Flags \
             may have a single dash, as those of Inbucket's client.",
        )
        .arg(mailbox_arg())
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FORM")
                .value_parser(PossibleValuesParser::new(["id", "json", "mbox"]))
                .default_value("id")
                .help("What is printed of the messages"),
        )
        .arg(expression("from", "The address in From matches this"))
        .arg(expression("to", "At least one address in To matches this"))
        .arg(expression("subject", "The subject matches this"))
        .arg(duration_arg("maxage", "The message came within this time"))
        .arg(delete_arg())
}

pub(super) fn mbox_command() -> Command {
    Command::new("mbox")
        .about("Prints a mailbox as mbox")
        .long_about("Prints a mailbox in the mbox form (mboxrd), as `restante export` writes it.")
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
        .help("Deletes the messages that were printed")
}

fn compile_regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build().map_err(|error| error.to_string())
}

pub(super) fn parse_match(matches: &ArgMatches) -> Box<dyn Task> {
    // An empty expression is none, as in Inbucket's client.
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

/// A whole mailbox as mbox.
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
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let messages: Vec<Message> = decode(&Value::Array(message::list(&session.server, &self.mailbox, None)?))?;
        for message in messages {
            writeln!(session.out, "{}", terminal_text::escape_line(&message.id))?;
        }
        Ok(())
    }
}

struct Match {
    mailbox: String,
    from: Option<Regex>,
    to: Option<Regex>,
    subject: Option<Regex>,
    /// Any when it is zero.
    max_age: Duration,
    format: OutputFormat,
    delete: bool,
    /// Whether it is a success when nothing is there, as it is for Inbucket's own mbox.
    allows_empty: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Id,
    Json,
    Mbox,
}

impl Task for Match {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let listed = message::list(&session.server, &self.mailbox, None)?;
        let mut found = Vec::new();
        for record in listed {
            let message: Message = decode(&record)?;
            if self.matches(&message, session.now) {
                found.push((record, message));
            }
        }
        if found.is_empty() {
            return if self.allows_empty { Ok(()) } else { Err(CommandError::NotFound(None)) };
        }
        if self.format == OutputFormat::Json || session.json {
            let records = found.iter().map(|(record, _)| record.clone()).collect();
            session.style.write_json(session.out, &Value::Array(records))?;
        } else {
            for (_, message) in &found {
                self.print(session, message)?;
            }
        }
        // What was printed must have arrived before it is gone.
        session.out.flush()?;
        if self.delete {
            let ids: Vec<&str> = found.iter().map(|(_, message)| &*message.id).collect();
            session.server.post(&["api", "v2", "mailbox", &self.mailbox, "delete"], &json!({ "ids": ids }))?;
        }
        Ok(())
    }
}

impl Match {
    fn matches(&self, message: &Message, now: Timestamp) -> bool {
        let fits =
            |expression: &Option<Regex>, text: &str| expression.as_ref().is_none_or(|regex| regex.is_match(text));
        let address = |text: &str| NamedAddress::from_display(text).address;
        let age = now.duration_since(message::received_at(message));
        (self.max_age.is_zero() || Duration::try_from(age).unwrap_or_default() <= self.max_age)
            && fits(&self.subject, &message.subject)
            && fits(&self.from, &address(&message.from))
            && (self.to.is_none() || message.to.iter().any(|to| fits(&self.to, &address(to))))
    }

    fn print(&self, session: &mut CommandContext<'_>, message: &Message) -> Result<(), CommandError> {
        if self.format == OutputFormat::Id {
            return Ok(writeln!(session.out, "{}", terminal_text::escape_line(&message.id))?);
        }
        let mut source = Vec::new();
        let download = session.server.download(&["api", "v1", "mailbox", &self.mailbox, &message.id, "source"]);
        download?
            .read_to_end(&mut source)
            .map_err(|error| CommandError::Unreachable(format!("The source breaks off: {error}.")))?;
        let sender = NamedAddress::from_display(&message.from).address;
        if !session.style.is_terminal() {
            return Ok(mbox::write_message(session.out, &sender, message::received_at(message), &source)?);
        }
        let mut text = Vec::new();
        mbox::write_message(&mut text, &sender, message::received_at(message), &source)?;
        Ok(session.out.write_all(terminal_text::escape_text(&String::from_utf8_lossy(&text)).as_bytes())?)
    }
}
