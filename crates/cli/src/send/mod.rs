//! `restante send`: composes a mail, or takes a ready one as `sendmail` does, and hands it to a server by SMTP. `compose` makes
//! mails of flags, `ready` completes those that others have made, `route` knows where they go, `smtp` sends them.

mod compose;
mod raw_message;
mod smtp;
mod smtp_target;

use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use restante_mail::address::{Address, Alphabet, is_valid_domain};
use restante_mail::compose::ComposeContext;
use restante_mail::mime::NamedAddress;
use serde_json::json;

use self::compose::ComposeFlags;
use self::raw_message::{DefaultHeaders, RawMessage, parse_all_addresses, truncate_at_dot};
use self::smtp::{ConnectionSettings, OutgoingMessage, send_message};
use self::smtp_target::SmtpTarget;
use crate::error::CommandError;
use crate::options::{Options, env_variable};
use crate::server::Credentials;
use crate::{ClientCommand, CommandContext, Task};

/// The most that is read of one file, or of standard input.
const MAX_INPUT_BYTES: u64 = 256 * 1024 * 1024;
/// The flags that compose a mail.
const COMPOSE_FLAGS: &[&str] = &["from", "to", "cc", "bcc", "subject", "text", "html", "header", "attach"];
/// Flags of `sendmail` that take a value and change nothing here.
const IGNORED_FLAGS_WITH_VALUE: &str = "ABCLNORVXdep";
/// Flags of `sendmail` that change nothing here.
const IGNORED_FLAGS: &str = "GUmnv";

/// The exit codes of `sendmail` (`sysexits.h`).
mod sysexits {
    pub(super) const USAGE: u8 = 64;
    pub(super) const NO_USER: u8 = 67;
    pub(super) const UNAVAILABLE: u8 = 69;
    pub(super) const IO: u8 = 74;
    pub(super) const TEMPORARY: u8 = 75;
    pub(super) const NO_PERMISSION: u8 = 77;
}

pub(crate) fn command() -> Command {
    let composing = compose_args().map(|arg| arg.help_heading("A new mail"));
    let ready = sendmail_args().map(|arg| {
        let arg = arg.help_heading("A ready mail, as sendmail takes it");
        if arg.get_id() == "sender" { arg } else { arg.conflicts_with_all(COMPOSE_FLAGS) }
    });
    Command::new("send")
        .about("Sends a mail by SMTP: a new one, or a ready one as sendmail does")
        .long_about(
            "Sends a mail by SMTP. With --to and the like it is composed here; otherwise a ready one is read from standard \
             input, as sendmail does: restante send -t -i < mail.eml. Called by the name sendmail, the program does just \
             that.",
        )
        .after_help(
            "Exit codes: as for the other commands; 4 when the server does not take the mail, 5 when it cannot at the \
             moment. For a ready mail they are those of sendmail: 64 wrong usage, 67 no such recipient, 69 not taken, 74 \
             the input cannot be read, 75 try again later, 77 wrong credentials.",
        )
        .arg(smtp_arg())
        .args(composing)
        .args(ready)
}

pub(crate) fn parse(matches: &ArgMatches) -> Box<dyn Task> {
    let smtp = matches.get_one("smtp").cloned();
    let sender = matches.get_one::<String>("sender").cloned();
    if COMPOSE_FLAGS.iter().any(|name| matches.contains_id(name)) {
        return Box::new(ComposeTask { smtp, sender, flags: ComposeFlags::parse(matches) });
    }
    let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
    Box::new(SendmailTask {
        smtp,
        sender,
        name: matches.get_one("name").cloned().unwrap_or_default(),
        recipients_from_header: matches.get_flag("t"),
        ignores_dots: matches.get_flag("i") || texts("o").iter().any(|option| option == "i"),
        mode: matches.get_one("b").cloned(),
        queue: matches.contains_id("q"),
        recipients: texts("recipients"),
    })
}

/// The program under the name `sendmail`.
pub(crate) fn sendmail(args: &[OsString]) -> ExitCode {
    let command = Options::add_to(
        Command::new("sendmail")
            .about("Hands a mail from standard input to a server by SMTP; restante send has more")
            .disable_version_flag(true)
            // The short one is the count of hops.
            .disable_help_flag(true)
            .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Prints this"))
            .arg(Arg::new("hops").short('h').hide(true))
            .arg(smtp_arg())
            .args(sendmail_args())
            .args(compose_args().map(|arg| arg.hide(true))),
    );
    let command = command.args_override_self(true);
    match command.try_get_matches_from(args) {
        Ok(matches) => ClientCommand { task: parse(&matches), options: Options::parse(&matches) }.run(),
        Err(error) => {
            let is_help = error.exit_code() == 0;
            // The exit code tells it too.
            let _ = error.print();
            if is_help { ExitCode::SUCCESS } else { ExitCode::from(sysexits::USAGE) }
        }
    }
}

fn smtp_arg() -> Arg {
    Arg::new("smtp")
        .long("smtp")
        .value_name("HOST:PORT")
        .help("Where to send it; variable RESTANTE_SMTP [default: the SMTP port of the server, or localhost:2500]")
}

fn compose_args() -> impl Iterator<Item = Arg> {
    let one = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let many = move |name, value| one(name, value).action(ArgAction::Append);
    [
        one("from", "PERSON").help("The author, as an address or 'Name <address>' [default: you at this machine]"),
        many("to", "PERSON").help("Who gets it; may be repeated, or a list with commas"),
        many("cc", "PERSON").help("Who else gets it"),
        many("bcc", "PERSON").help("Who gets it without being named in it"),
        one("subject", "TEXT").allow_hyphen_values(true).help("What it is about"),
        one("text", "TEXT")
            .allow_hyphen_values(true)
            .help("The text; @FILE takes it from a file, - from standard input"),
        one("html", "HTML").allow_hyphen_values(true).help("The same as HTML; @FILE and - as well"),
        many("header", "FIELD").help("One more header field: 'X-Name: value'"),
        many("attach", "FILE").value_parser(value_parser!(PathBuf)).help("Files that come with it"),
    ]
    .into_iter()
}

fn sendmail_args() -> impl Iterator<Item = Arg> {
    let flag = |short: char, name: &'static str| Arg::new(name).short(short);
    let shown = [
        flag('t', "t").action(ArgAction::SetTrue).help("Takes recipients from To, Cc and Bcc too, and drops Bcc"),
        flag('i', "i")
            .action(ArgAction::SetTrue)
            .help("A line with nothing but a dot does not end the mail (also -oi)"),
        flag('f', "sender").short_alias('r').value_name("ADDRESS").help("The sender of the envelope (also -r)"),
        flag('F', "name").value_name("NAME").help("The name of the sender, where the mail has no From"),
        flag('b', "b").value_name("MODE").hide(true),
        flag('q', "q").value_name("TIME").num_args(0..=1).hide(true),
        flag('o', "o").value_name("OPTION").action(ArgAction::Append).hide(true),
        Arg::new("recipients").value_name("RECIPIENT").num_args(0..).help("Who gets it"),
    ];
    let with_value = IGNORED_FLAGS_WITH_VALUE
        .chars()
        .map(|short| Arg::new(format!("ignored-{short}")).short(short).action(ArgAction::Append).hide(true));
    let without = IGNORED_FLAGS
        .chars()
        .map(|short| Arg::new(format!("ignored-{short}")).short(short).action(ArgAction::Count).hide(true));
    shown.into_iter().chain(with_value).chain(without)
}

/// A mail from flags.
struct ComposeTask {
    smtp: Option<String>,
    sender: Option<String>,
    flags: ComposeFlags,
}

impl Task for ComposeTask {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let place = LocalSender::detect();
        let (draft, to) = self.flags.draft(&place)?;
        let mark = ComposeContext::new(session.now, &place.host, random_number());
        let mail =
            draft.compose(&mark).map_err(|flaw| CommandError::Usage(format!("The mail cannot be written: {flaw}.")))?;
        let sender = self.sender.as_ref().map_or_else(|| NamedAddress::from_display(&draft.from).address, Clone::clone);
        send(session, self.smtp.as_deref(), &place, &sender, &to, mail)
    }
}

/// A mail from standard input, in the place of `sendmail`.
struct SendmailTask {
    smtp: Option<String>,
    sender: Option<String>,
    name: String,
    recipients_from_header: bool,
    ignores_dots: bool,
    mode: Option<String>,
    queue: bool,
    recipients: Vec<String>,
}

impl Task for SendmailTask {
    fn run(&self, session: &mut CommandContext<'_>) -> Result<(), CommandError> {
        if let Some(mode) = self.mode.as_deref().filter(|mode| *mode != "m") {
            return Err(CommandError::Usage(format!("Mail is only delivered here: there is no -b{mode}.")));
        }
        if self.queue {
            return Err(CommandError::Usage("There is no queue, so there is no -q.".to_owned()));
        }
        if self.recipients.is_empty() && !self.recipients_from_header {
            return Err(CommandError::Usage("There are no recipients: name some, or use -t or --to.".to_owned()));
        }
        let place = LocalSender::detect();
        let input = read_stdin()?;
        let ready = RawMessage::parse(if self.ignores_dots { &input } else { truncate_at_dot(&input) });

        let mut named = Vec::new();
        for list in &self.recipients {
            let found = parse_all_addresses(list.as_bytes());
            named.extend(found.ok_or_else(|| CommandError::Usage(format!("{list:?} is no recipient.")))?);
        }
        let in_header = if self.recipients_from_header { ready.recipients() } else { Vec::new() };
        let mut to: Vec<String> = named.into_iter().chain(in_header).map(|address| place.qualify(&address)).collect();
        to.sort_unstable();
        to.dedup();
        let sender = match &self.sender {
            Some(sender) => sender.trim_matches(['<', '>']).to_owned(),
            None => ready.from().map_or_else(|| place.address(), |from| place.qualify(&from)),
        };
        let author = if sender.is_empty() { place.address() } else { place.qualify(&sender) };
        let unique = format!("{:x}.{:016x}", session.now.as_microsecond(), random_number());
        let missing =
            DefaultHeaders { now: session.now, unique_id: &unique, host: &place.host, from: (&author, &self.name) };
        let mail = ready.with_defaults(&missing, self.recipients_from_header);
        send(session, self.smtp.as_deref(), &place, &sender, &to, mail)
    }

    fn exit_code(&self, failure: &CommandError) -> u8 {
        match failure {
            CommandError::OutputClosed => 0,
            CommandError::Usage(_) => sysexits::USAGE,
            CommandError::Unauthorized(_) => sysexits::NO_PERMISSION,
            CommandError::Local(_) => sysexits::IO,
            CommandError::Unreachable(_) | CommandError::Undelivered { is_temporary: true, .. } => sysexits::TEMPORARY,
            CommandError::Undelivered { is_recipient: true, .. } => sysexits::NO_USER,
            CommandError::Undelivered { .. } | CommandError::Server(_) | CommandError::NotFound(_) => {
                sysexits::UNAVAILABLE
            }
        }
    }
}

fn send(
    session: &mut CommandContext<'_>,
    smtp: Option<&str>,
    place: &LocalSender,
    sender: &str,
    to: &[String],
    mail: Vec<u8>,
) -> Result<(), CommandError> {
    let from = if sender.is_empty() { None } else { Some(parse_address(&place.qualify(sender))?) };
    let to = to.iter().map(|to| parse_address(to)).collect::<Result<Vec<_>, _>>()?;
    if to.is_empty() {
        return Err(CommandError::Usage("The mail has no recipients.".to_owned()));
    }
    let mailing = session.smtp_options;
    let route = SmtpTarget::find(smtp, &session.server, mailing)?;
    let way = ConnectionSettings {
        addr: &route.addr,
        helo_name: &place.host,
        credentials: if route.use_credentials { session.server.credentials() } else { &Credentials::None },
        insecure: mailing.insecure,
        timeout: mailing.timeout,
    };
    let reply = send_message(&way, &OutgoingMessage { from, to, source: mail })?;
    if session.json {
        session.style.write_json(session.out, &json!({ "reply": reply }))?;
    } else if session.style.is_terminal() {
        writeln!(session.out, "Sent to {}: {}", route.addr, restante_mail::terminal_text::escape_line(&reply))?;
    }
    Ok(())
}

fn parse_address(text: &str) -> Result<Address, CommandError> {
    Address::parse(text, Alphabet::Utf8)
        .map_err(|error| CommandError::Usage(format!("{text:?} is no address: {error}.")))
}

/// All of standard input, within reason.
fn read_stdin() -> Result<Vec<u8>, CommandError> {
    let mut input = Vec::new();
    let read = std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut input);
    read.map_err(|error| CommandError::Local(format!("Standard input cannot be read: {error}.")))?;
    Ok(input)
}

/// A number that nobody can guess: the key of a hash map.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Who sends, where nobody says it.
struct LocalSender {
    user: String,
    host: String,
}

impl LocalSender {
    fn detect() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let user = ["LOGNAME", "USER"].into_iter().find_map(env_variable).unwrap_or_else(|| "nobody".to_owned());
        Self { user, host: if is_valid_domain(&host) { host } else { "localhost".to_owned() } }
    }

    /// The address of whoever runs this.
    fn address(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    /// An address with a domain; a name alone is somebody on this machine.
    fn qualify(&self, address: &str) -> String {
        if address.contains('@') { address.to_owned() } else { format!("{address}@{}", self.host) }
    }
}
