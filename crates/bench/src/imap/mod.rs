//! The `imap` command: the time of SELECT, FETCH and SEARCH in one large mailbox, the rate of APPEND, and the memory and the
//! notification of idle sessions. The `imap-fill` command fills the mailbox with the same mails for each server.

mod client;
pub(crate) mod fill;
mod idle;
mod mail;
mod steps;

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use self::client::{Account, Client};
use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::load::parse_positive;
use crate::message::{self, END_OF_DATA, MessageKind};
use crate::report::Report;

/// The size of a read of a small response and of a large one.
const SMALL_READ_BYTES: usize = 1024;
const LARGE_READ_BYTES: usize = 256 * 1024;
/// The size of an appended message.
const APPENDED_BYTES: usize = 4096;

/// Options of the `imap` command.
#[derive(Args)]
#[command(after_help = "Messages are appended to the mailboxes USER-append and USER-idle, which are emptied first.")]
pub(crate) struct Options {
    /// The IMAP server.
    #[arg(long, value_name = "HOST:PORT")]
    imap: String,
    /// The user whose INBOX is read. `imap-fill` fills it.
    #[arg(long, default_value = "bench")]
    user: String,
    /// Password of all users.
    #[arg(long, default_value = "bench")]
    password: String,
    /// What to measure; everything by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    what: Vec<Step>,
    /// Repetitions of each command after the first.
    #[arg(long, default_value_t = 3, value_parser = parse_positive)]
    repeats: usize,
    /// Number of messages whose bodies are fetched.
    #[arg(long, default_value_t = 5000, value_parser = parse_positive)]
    bodies: usize,
    /// Messages to append.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    appends: usize,
    /// Idle sessions.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    sessions: usize,
    /// Seconds between the last IDLE and reading the memory.
    #[arg(long, default_value_t = 2)]
    settle: u64,
    /// The server's main process, to measure CPU time and memory of it and its descendants.
    #[arg(long)]
    pid: Option<u32>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// SELECT of the mailbox in the same session.
    Select,
    /// Connecting, LOGIN and SELECT.
    Session,
    /// UID FETCH 1:* (FLAGS).
    Flags,
    /// FETCH 1:* (ENVELOPE BODYSTRUCTURE).
    Envelope,
    /// FETCH 1:5000 (BODY.PEEK[]).
    Body,
    /// SEARCH HEADER SUBJECT.
    Subject,
    /// SEARCH FROM.
    From,
    /// SEARCH TEXT.
    Text,
    /// APPEND of messages of 4 KiB by one session and by ten.
    Append,
    /// Sessions in IDLE: memory, and time until all are notified of a message.
    Idle,
}

/// The server under test and the options.
struct Target<'a> {
    addresses: Vec<SocketAddr>,
    options: &'a Options,
}

impl Target<'_> {
    /// Returns the user with this suffix.
    fn account(&self, suffix: &str) -> Account {
        Account { user: format!("{}{suffix}", self.options.user), password: self.options.password.clone() }
    }

    /// Empties the mailbox of a user and appends messages to it.
    async fn refill(&self, account: &Account, messages: usize) -> Result<(), Error> {
        let (mut client, exists) = Client::open(&self.addresses, account, SMALL_READ_BYTES).await?;
        if exists > 0 {
            client.command("STORE 1:* +FLAGS.SILENT (\\Deleted)").await?;
            client.command("EXPUNGE").await?;
        }
        for _ in 0..messages {
            client.append(&appended_message()).await?;
        }
        client.command("LOGOUT").await.map(|_| ())
    }
}

/// Returns a message for APPEND.
fn appended_message() -> Vec<u8> {
    let mut message = message::build_message(MessageKind::Text, "append", APPENDED_BYTES);
    message.truncate(message.len() - END_OF_DATA.len());
    message
}

/// Runs the `imap` command. A step that the server refuses is reported, and the next one begins.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let target = Target { addresses: resolve(&options.imap).await?, options };
    let mut report = Report::new(json).with_min_widths(&[8, 11]);
    let mut verdict = Verdict::Clean;
    let all = Step::value_variants();
    for &step in if options.what.is_empty() { all } else { &options.what } {
        let measured = match step {
            Step::Append => steps::append(&target, &mut report).await.map(|()| Verdict::Clean),
            Step::Idle => idle::run(&target, &mut Report::new(json)).await.map(|()| Verdict::Clean),
            _ => steps::run(&target, step, &mut report).await,
        };
        verdict = verdict.and(match measured {
            Err(Error::Refused(text)) => {
                eprintln!("restante-bench: {}: {}", steps::name(step), Error::Refused(text));
                Verdict::Faulty
            }
            other => other?,
        });
    }
    Ok(verdict)
}
