//! `mailpit sendmail`: sends a message from standard input, with the flags and rules of Mailpit's command. The
//! recipients are those on the command line, or else all in the header. With `-bs`, standard input and output are
//! connected to the SMTP server.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::Timestamp;
use restante_mail::address::Address;
use restante_mail::terminal_text;

use super::raw_message::{DefaultHeaders, RawMessage, parse_all_addresses};
use super::smtp::{ConnectionSettings, OutgoingMessage, connect_error, send_message};
use super::stream;
use super::{LocalSender, parse_address, random_number, read_stdin};
use crate::error::CommandError;
use crate::options::env_variable;
use crate::server::Credentials;

const DEFAULT_ADDR: &str = "localhost:1025";
/// The variable with the address of the SMTP server.
pub(super) const ADDR_VARIABLE: &str = "MP_SENDMAIL_SMTP_ADDR";
/// The variable with the envelope sender.
pub(super) const FROM_VARIABLE: &str = "MP_SENDMAIL_FROM";
/// The time limit of each step of SMTP.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The sentences that follow an error if no SMTP server listens at the address.
const REFUSED_HINT: &str = "Is a server running? Choose another one with --smtp-addr.";
/// The exit code if the message or its sender cannot be used, and that of all other errors.
const INVALID_MESSAGE: u8 = 11;
const FAILED: u8 = 1;

/// Acts as the command `mailpit sendmail`. The arguments begin with `sendmail`.
pub fn run(args: &[OsString]) -> ExitCode {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            // The exit code reports the error too.
            let _ = error.print();
            return ExitCode::from(u8::from(error.exit_code() != 0));
        }
    };
    let Err((error, exit_code)) = run_parsed(&matches) else { return ExitCode::SUCCESS };
    let message = terminal_text::escape_line(error.message().unwrap_or_default());
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(exit_code)
}

fn command() -> Command {
    let ignored = |short: char| Arg::new(format!("ignored-{short}")).short(short).action(ArgAction::Count);
    let ignored_value = |short: char| Arg::new(format!("ignored-{short}")).short(short).action(ArgAction::Append);
    Command::new("mailpit sendmail")
        .about("Sends a message from standard input by SMTP, with the flags of Mailpit's sendmail")
        .override_usage("mailpit sendmail [flags] [recipients] < message")
        .disable_version_flag(true)
        .args_override_self(true)
        .arg(
            Arg::new("smtp-addr")
                .long("smtp-addr")
                .short('S')
                .value_name("HOST:PORT")
                .help("The SMTP server, or unix:/path; variable MP_SENDMAIL_SMTP_ADDR [default: localhost:1025]"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .short('f')
                .value_name("ADDRESS")
                .help("The envelope sender; variable MP_SENDMAIL_FROM [default: the current user]"),
        )
        .arg(Arg::new("b").short('b').action(ArgAction::SetTrue).help("Speaks SMTP on standard input and output (-bs)"))
        .arg(Arg::new("s").short('s').action(ArgAction::SetTrue).help("See -b"))
        .args(['i', 'o', 't', 'v'].map(|short| ignored(short).help("Ignored")))
        .arg(Arg::new("verbose").long("verbose").action(ArgAction::Count).help("Ignored"))
        .args(['F', 'B', 'e'].map(|short| ignored_value(short).help("Ignored")))
        .arg(Arg::new("recipients").value_name("RECIPIENT").num_args(0..).help("The recipients"))
}

/// Runs the command. An error has the exit code of Mailpit's command.
fn run_parsed(matches: &ArgMatches) -> Result<(), (CommandError, u8)> {
    let invalid = |error: CommandError| (error, INVALID_MESSAGE);
    let failed = |error: CommandError| (error, FAILED);
    let text = |name: &str, variable: &str| matches.get_one::<String>(name).cloned().or_else(|| env_variable(variable));
    let addr = text("smtp-addr", ADDR_VARIABLE).unwrap_or_else(|| DEFAULT_ADDR.to_owned());
    match (matches.get_flag("b"), matches.get_flag("s")) {
        (true, true) => return speak_smtp(&addr, REFUSED_HINT).map_err(failed),
        (false, false) => {}
        _ => return Err(failed(CommandError::Usage("Use -b and -s together: -bs.".to_owned()))),
    }
    let input = read_stdin().map_err(invalid)?;
    check_header(&input).map_err(invalid)?;
    let local = LocalSender::detect();
    let from = match text("from", FROM_VARIABLE) {
        Some(from) => local.qualify(&parse_sender(&from).map_err(invalid)?),
        None => local.address(),
    };
    let sender = parse_address(&from).map_err(invalid)?;
    let raw = RawMessage::parse(&input);
    let to = recipients(matches, &raw, &local).map_err(failed)?;
    let now = Timestamp::now();
    let unique_id = format!("{:x}.{:016x}", now.as_microsecond(), random_number());
    let defaults = DefaultHeaders { now, unique_id: &unique_id, host: &local.host, from: (&from, "") };
    let message = OutgoingMessage { from: Some(sender), to, source: raw.with_defaults(&defaults, false) };
    let settings = ConnectionSettings {
        addr: &addr,
        helo_name: &local.host,
        credentials: &Credentials::None,
        insecure: true,
        timeout: TIMEOUT,
        refused_hint: REFUSED_HINT,
    };
    send_message(&settings, &message).map(drop).map_err(failed)
}

/// Refuses input without a header, as Mailpit does: each line up to an empty one must have a colon, or continue the line
/// before it.
fn check_header(input: &[u8]) -> Result<(), CommandError> {
    if input.is_empty() {
        return Err(CommandError::Usage("Standard input is empty.".to_owned()));
    }
    let lines = input.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut header = lines.take_while(|line| !line.is_empty()).enumerate();
    let is_malformed = |(index, line): &(usize, &[u8])| match line.first() {
        Some(b' ' | b'\t') => *index == 0,
        _ => !line.contains(&b':'),
    };
    match header.find(is_malformed) {
        None => Ok(()),
        Some((_, line)) => {
            let line = String::from_utf8_lossy(line);
            Err(CommandError::Usage(format!("The message has no valid header: {line:?} is not a header field.")))
        }
    }
}

/// Returns the recipients on the command line, or else those in the header, each once.
fn recipients(matches: &ArgMatches, raw: &RawMessage<'_>, local: &LocalSender) -> Result<Vec<Address>, CommandError> {
    let lists: Vec<&String> = matches.get_many("recipients").into_iter().flatten().collect();
    let header_recipients = if lists.is_empty() { raw.recipients() } else { Vec::new() };
    let to = local.collect_recipients(lists, header_recipients)?;
    if to.is_empty() {
        return Err(CommandError::Usage("The message has no recipients.".to_owned()));
    }
    to.iter().map(|to| parse_address(to)).collect()
}

/// Returns the address of a sender, which may have a name: `Ann <ann@x.org>`.
fn parse_sender(text: &str) -> Result<String, CommandError> {
    let found = parse_all_addresses(text.as_bytes()).and_then(|addresses| <[String; 1]>::try_from(addresses).ok());
    let [address] = found.ok_or_else(|| CommandError::Usage(format!("{text:?} is not a sender address.")))?;
    Ok(address)
}

/// Connects standard input and output to the SMTP server, until the server closes the connection.
pub(super) fn speak_smtp(addr: &str, refused_hint: &str) -> Result<(), CommandError> {
    let failed = |error: io::Error| connect_error(addr, &error, refused_hint);
    let mut stream = stream::connect(addr, TIMEOUT).map_err(failed)?;
    let mut replies = stream.try_clone().map_err(failed)?;
    let (sender, done) = mpsc::channel();
    thread::spawn(move || {
        let copied = io::copy(&mut replies, &mut io::stdout()).and_then(|_| io::stdout().flush());
        // The other side waits no longer than its time limit.
        let _ = sender.send(copied.is_ok());
    });
    // The server may close the connection before the end of the input.
    let _ = io::copy(&mut io::stdin().lock(), &mut stream);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = done.recv_timeout(TIMEOUT);
    Ok(())
}
