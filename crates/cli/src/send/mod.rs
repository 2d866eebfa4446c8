//! `restante send`: composes a message, or reads a complete one as `sendmail` does, and sends it by SMTP; and `restante
//! demo`. `compose` creates messages from flags, `demo` creates sample messages, `sendmail` reads them from standard
//! input, `mailpit` is the command of Mailpit, `raw_message` completes messages from standard input, `smtp_target` finds
//! the server, `stream` connects to it, and `smtp` sends them.

mod compose;
pub(crate) mod demo;
pub(crate) mod mailpit;
mod raw_message;
pub(crate) mod sendmail;
mod smtp;
mod smtp_target;
mod stream;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _};
use restante_mail::address::{Address, Alphabet, is_valid_domain};
use restante_mail::compose::ComposeContext;
use restante_mail::mime::NamedAddress;
use serde_json::json;

use self::compose::ComposeFlags;
use self::raw_message::parse_all_addresses;
use self::sendmail::{SendmailArgs, SendmailTask};
use self::smtp::{ConnectionSettings, OutgoingMessage, send_message};
use self::smtp_target::SmtpTarget;
use crate::error::CommandError;
use crate::options::{Options, env_variable};
use crate::server::{Credentials, Server};
use crate::{CommandContext, Task};

/// The sentences that follow an error if no SMTP server listens at the address.
const REFUSED_HINT: &str =
    "Is a server running? Start one with `restante`, or choose another one with --server or --smtp.";
/// The maximum number of bytes read from a file or from standard input.
const MAX_INPUT_BYTES: u64 = 256 * 1024 * 1024;
/// The flags that compose a message.
const COMPOSE_FLAGS: &[&str] = &["from", "to", "cc", "bcc", "subject", "text", "html", "header", "attach"];
/// The heading of the arguments of `sendmail`.
const SENDMAIL_HEADING: &str = "Message from standard input, like sendmail";
/// Flags of `sendmail` with a value that are ignored.
const IGNORED_FLAGS_WITH_VALUE: &str = "ABCLNORVXdep";
/// Flags of `sendmail` that are ignored.
const IGNORED_FLAGS: &str = "GUmnv";

pub(crate) fn command() -> Command {
    let command = Command::new("send")
        .about("Sends a message by SMTP: a new one, or one from standard input like sendmail")
        .long_about(
            "Sends a message by SMTP. With --to and similar flags, it composes a new message. Otherwise it reads a \
             complete message from standard input, like sendmail: restante send -t -i < mail.eml. If the program is \
             called by the name sendmail, it behaves like sendmail.",
        )
        .after_help(
            "Exit codes: as for the other commands; 4 if the server refuses the message, 5 if it refuses the message \
             temporarily. For a message from standard input they are those of sendmail: 64 wrong usage, 67 recipient \
             refused, 69 message refused, 74 input cannot be read, 75 try again later, 77 wrong credentials.",
        );
    let command = SmtpArg::augment_args(command).next_help_heading("New message");
    let command = ComposeFlags::augment_args(command).next_help_heading(SENDMAIL_HEADING);
    with_sendmail_args(command).mut_args(|arg| match arg.get_help_heading() {
        Some(SENDMAIL_HEADING) if arg.get_id() != "sender" => arg.conflicts_with_all(COMPOSE_FLAGS),
        _ => arg,
    })
}

pub(crate) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    if COMPOSE_FLAGS.iter().any(|name| matches.contains_id(name)) {
        return Box::new(ComposeTask {
            smtp: matches.get_one("smtp").cloned(),
            sender: matches.get_one("sender").cloned(),
            flags: ComposeFlags::from_arg_matches(matches).unwrap_or_else(|error| error.exit()),
        });
    }
    Box::new(SendmailTask::parse(matches))
}

// The flag that selects the SMTP server. A doc comment would replace the description of the command.
#[derive(Args)]
struct SmtpArg {
    /// The SMTP server; variable RESTANTE_SMTP [default: the SMTP port of the server, or localhost:2500]
    #[arg(long, value_name = "HOST:PORT")]
    smtp: Option<String>,
}

/// Adds the arguments of `sendmail`, and those that it ignores.
fn with_sendmail_args(command: Command) -> Command {
    let ignored = |action: ArgAction| {
        move |short: char| Arg::new(format!("ignored-{short}")).short(short).action(action.clone()).hide(true)
    };
    SendmailArgs::augment_args(command)
        .args(IGNORED_FLAGS_WITH_VALUE.chars().map(ignored(ArgAction::Append)))
        .args(IGNORED_FLAGS.chars().map(ignored(ArgAction::Count)))
}

/// Sends a message composed from flags.
struct ComposeTask {
    smtp: Option<String>,
    sender: Option<String>,
    flags: ComposeFlags,
}

impl Task for ComposeTask {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let local = LocalSender::detect();
        let (draft, to) = self.flags.draft(&local)?;
        let compose_context = ComposeContext::new(context.now, &local.host, random_number());
        let source = draft
            .compose(&compose_context)
            .map_err(|error| CommandError::Usage(format!("The message cannot be composed: {error}.")))?;
        let sender = self.sender.as_ref().map_or_else(|| NamedAddress::from_display(&draft.from).address, Clone::clone);
        send(context, self.smtp.as_deref(), &local, &sender, &to, source)
    }
}

fn send(
    context: &mut CommandContext<'_>,
    smtp: Option<&str>,
    local: &LocalSender,
    sender: &str,
    to: &[String],
    source: Vec<u8>,
) -> Result<(), CommandError> {
    let sender = if sender.is_empty() { String::new() } else { local.qualify(sender) };
    let message = outgoing_message(&sender, to, source)?;
    let outbox = Outbox::find(context, smtp)?;
    let reply = outbox.send(&message, local)?;
    if context.json {
        context.style.write_json(context.out, &json!({ "reply": reply }))?;
    } else if context.style.is_terminal() {
        writeln!(context.out, "Sent to {}: {}", outbox.addr(), restante_mail::terminal_text::escape_line(&reply))?;
    }
    Ok(())
}

/// Returns a message with its envelope. An empty sender is the null reverse-path.
fn outgoing_message(sender: &str, to: &[String], source: Vec<u8>) -> Result<OutgoingMessage, CommandError> {
    let from = if sender.is_empty() { None } else { Some(parse_address(sender)?) };
    let to = to.iter().map(|to| parse_address(to)).collect::<Result<Vec<_>, _>>()?;
    if to.is_empty() {
        return Err(CommandError::Usage("The message has no recipients.".to_owned()));
    }
    Ok(OutgoingMessage { from, to, source })
}

/// The SMTP server that messages are sent to, with the options and credentials of the command.
struct Outbox<'a> {
    target: SmtpTarget,
    server: Arc<Server>,
    options: &'a Options,
}

impl<'a> Outbox<'a> {
    /// Finds the SMTP server.
    fn find(context: &CommandContext<'a>, smtp: Option<&str>) -> Result<Self, CommandError> {
        let (server, options) = (Arc::clone(&context.server), context.options);
        Ok(Self { target: SmtpTarget::find(smtp, &server, options)?, server, options })
    }

    /// Returns the address of the SMTP server.
    fn addr(&self) -> &str {
        &self.target.addr
    }

    /// Sends a message and returns the final reply.
    fn send(&self, message: &OutgoingMessage, local: &LocalSender) -> Result<String, CommandError> {
        let settings = ConnectionSettings {
            addr: self.addr(),
            helo_name: &local.host,
            credentials: if self.target.use_credentials { self.server.credentials() } else { &Credentials::None },
            insecure: self.options.insecure,
            timeout: self.options.timeout,
            refused_hint: REFUSED_HINT,
        };
        send_message(&settings, message)
    }
}

fn parse_address(text: &str) -> Result<Address, CommandError> {
    Address::parse(text, Alphabet::Utf8)
        .map_err(|error| CommandError::Usage(format!("{text:?} is not an address: {error}.")))
}

/// Reads standard input, up to the limit.
fn read_stdin() -> Result<Vec<u8>, CommandError> {
    let mut input = Vec::new();
    let read = std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut input);
    read.map_err(|error| CommandError::Local(format!("Standard input cannot be read: {error}.")))?;
    Ok(input)
}

/// Returns a random number: the key of a hash map.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The sender if none is given.
struct LocalSender {
    user: String,
    host: String,
}

impl LocalSender {
    fn detect() -> Self {
        let host = restante_platform::host_name();
        let user = ["LOGNAME", "USER", "USERNAME"].into_iter().find_map(env_variable);
        // A service manager and cron set no such variable.
        let user = user.or_else(restante_platform::current_user_name).unwrap_or_else(|| "nobody".to_owned());
        Self { user, host: if is_valid_domain(&host) { host } else { "localhost".to_owned() } }
    }

    /// Returns the address of the user who runs the program.
    fn address(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    /// Returns the addresses in the lists and in the header, each once and with a domain.
    fn collect_recipients<'a>(
        &self,
        lists: impl IntoIterator<Item = &'a String>,
        header_recipients: Vec<String>,
    ) -> Result<Vec<String>, CommandError> {
        let mut to = header_recipients;
        for list in lists {
            let found = parse_all_addresses(list.as_bytes());
            to.extend(found.ok_or_else(|| CommandError::Usage(format!("{list:?} is not a recipient address.")))?);
        }
        let to: BTreeSet<String> = to.iter().map(|address| self.qualify(address)).collect();
        Ok(to.into_iter().collect())
    }

    /// Adds the local domain to an address without one.
    fn qualify(&self, address: &str) -> String {
        if address.contains('@') { address.to_owned() } else { format!("{address}@{}", self.host) }
    }
}
