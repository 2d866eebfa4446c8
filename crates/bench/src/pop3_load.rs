//! The `pop3` command: how long it takes to open a mailbox, to list it, and to fetch and delete its messages. Every
//! session has its own mailbox, because POP3 locks it. All sessions finish a step before the next one starts, so that
//! each step has a rate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::load::{build_envelopes, fill, parse_positive};
use crate::measure::{Results, Sample, ratio, to_f64};
use crate::message::{self, MessageKind, mailbox_name};
use crate::pop3::{Client, Stat};
use crate::report::{Report, Row};

/// Options of the `pop3` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The POP3 server.
    #[arg(long, value_name = "HOST:PORT")]
    pop3: String,
    /// Empty the mailboxes and fill them over this SMTP server first.
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "filled")]
    smtp: Option<String>,
    /// Use the mailboxes as they are.
    #[arg(long, conflicts_with = "smtp")]
    filled: bool,
    /// Prefix of the mailbox names: pop3-0, pop3-1.
    #[arg(long, default_value = "pop3")]
    mailbox: String,
    /// Password of each mailbox.
    #[arg(long, default_value = "bench")]
    password: String,
    /// Concurrent sessions, each with its own mailbox.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    sessions: usize,
    /// Messages in each mailbox; the message cap of the server must not be lower.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Maximum number of messages to fetch in each session; if there are more, an evenly spread sample.
    #[arg(long, default_value_t = 10_000)]
    retrieve: usize,
    /// Do not delete the messages at the end.
    #[arg(long)]
    keep: bool,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// Runs the `pop3` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let addresses = resolve(&options.pop3).await?;
    if let Some(smtp) = &options.smtp {
        for n in 0..options.sessions {
            empty_mailbox(&addresses, &mailbox_name(&options.mailbox, n), &options.password).await?;
        }
        let envelopes = build_envelopes(&options.mailbox, options.sessions, 1);
        let message = message::build_message(MessageKind::Text, "pop3", options.size);
        fill(smtp, envelopes, options.messages * options.sessions, message).await?;
    }
    let mut sessions = Vec::new();
    for n in 0..options.sessions {
        sessions.push(Session {
            client: Client::connect(&addresses).await?,
            user: mailbox_name(&options.mailbox, n),
            password: options.password.clone(),
            retrieve: options.retrieve,
            stat: Stat { messages: 0, octets: 0 },
        });
    }

    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    for step in Step::ALL {
        if step == Step::Dele && options.keep {
            continue;
        }
        let before = options.pid.map(Sample::read).transpose()?;
        let start = Instant::now();
        let results;
        (sessions, results) = run_step_in_all(sessions, step).await;
        let elapsed = start.elapsed();
        let after = options.pid.map(Sample::read).transpose()?;
        verdict = verdict.and(results.verdict());
        if step == Step::Stat {
            verdict = verdict.and(check_filled(&sessions, options));
        }
        report.row(&row(step, results, elapsed, before.zip(after)));
    }
    Ok(verdict)
}

/// The steps of a session, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// USER and PASS.
    Login,
    Stat,
    List,
    Uidl,
    /// All messages, or a sample of them.
    Retr,
    /// All messages.
    Dele,
    /// The server deletes the messages now.
    Quit,
}

impl Step {
    const ALL: [Self; 7] = [Self::Login, Self::Stat, Self::List, Self::Uidl, Self::Retr, Self::Dele, Self::Quit];
}

struct Session {
    client: Client,
    user: String,
    password: String,
    /// The maximum number of messages to fetch.
    retrieve: usize,
    /// The reply to STAT.
    stat: Stat,
}

impl Session {
    /// Runs one step. Returns no session after an error or after the last step.
    async fn run_step(mut self, step: Step) -> (Option<Self>, Results) {
        let mut results = Results::default();
        let outcome = self.run_operations(step, &mut results).await;
        if let Err(error) = &outcome {
            results.record_error(error);
        }
        (outcome.is_ok().then_some(self).filter(|_| step != Step::Quit), results)
    }

    /// Runs the operations of a step.
    async fn run_operations(&mut self, step: Step, results: &mut Results) -> Result<(), Error> {
        let (retrieved, total) = (self.retrieve.min(self.stat.messages), self.stat.messages);
        let operations = match step {
            Step::Retr => retrieved,
            Step::Dele => total,
            Step::Login | Step::Stat | Step::List | Step::Uidl | Step::Quit => 1,
        };
        for n in 0..operations {
            let start = Instant::now();
            let bytes = match step {
                Step::Login => self.client.login(&self.user, &self.password).await.map(|()| 0)?,
                Step::Stat => {
                    self.stat = self.client.stat().await?;
                    0
                }
                Step::List => self.list("LIST\r\n").await?,
                Step::Uidl => self.list("UIDL\r\n").await?,
                Step::Retr => self.client.fetch(&format!("RETR {}\r\n", 1 + n * total / retrieved)).await?.len(),
                Step::Dele => self.client.delete(n + 1).await.map(|()| 0)?,
                Step::Quit => self.client.quit().await.map(|()| 0)?,
            };
            results.record_success(start.elapsed(), bytes);
        }
        Ok(())
    }

    /// Requests a list and checks its length. Returns its size.
    async fn list(&mut self, command: &str) -> Result<usize, Error> {
        let lines = self.client.fetch(command).await?;
        if memchr::memchr_iter(b'\n', lines).count() != self.stat.messages {
            return Err(Error::Protocol("number of list entries differs from STAT"));
        }
        Ok(lines.len())
    }
}

/// Runs a step in all sessions concurrently. Sessions that fail are left out of the next steps.
async fn run_step_in_all(sessions: Vec<Session>, step: Step) -> (Vec<Session>, Results) {
    let mut tasks = JoinSet::new();
    for session in sessions {
        tasks.spawn(session.run_step(step));
    }
    let (remaining, results): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().unzip();
    (remaining.into_iter().flatten().collect(), Results::merge(results))
}

/// Deletes all messages of a mailbox over POP3.
async fn empty_mailbox(addresses: &[SocketAddr], user: &str, password: &str) -> Result<(), Error> {
    let mut client = Client::connect(addresses).await?;
    client.login(user, password).await?;
    for number in 1..=client.stat().await?.messages {
        client.delete(number).await?;
    }
    client.quit().await
}

/// Checks that the mailboxes contain the messages that were sent.
fn check_filled(sessions: &[Session], options: &Options) -> Verdict {
    let stored: usize = sessions.iter().map(|session| session.stat.messages).sum();
    let octets: u64 = sessions.iter().map(|session| session.stat.octets).sum();
    let sent = sessions.len() * options.messages;
    if options.filled || stored == sent {
        eprintln!("restante-bench: {} mailboxes hold {stored} messages, {octets} octets", sessions.len());
        return Verdict::Clean;
    }
    let count = sessions.len();
    eprintln!(
        "restante-bench: {count} mailboxes hold {stored} of {sent} messages: is the message cap of the server too low?"
    );
    Verdict::Faulty
}

fn row(step: Step, results: Results, elapsed: Duration, samples: Option<(Sample, Sample)>) -> Row {
    let count = to_f64(results.latencies.len());
    Row::default()
        .with("step", format!("{step:?}").to_lowercase())
        .with_rate("operations", &results, elapsed)
        .with_throughput(&results, elapsed)
        .with_rounded("bytes_each", ratio(to_f64(results.bytes), count), 0)
        .with_percentiles(results.latencies.percentiles())
        .with_samples(samples, count)
}
