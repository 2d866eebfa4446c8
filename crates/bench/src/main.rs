//! The command line of the load generator: the commands, their options and the exit code. Each command is in its own
//! module.

mod connection;
mod database;
mod durable_reference;
mod error;
mod expiry;
mod growth;
mod http;
mod imap;
mod large;
mod load;
mod lost;
mod mailpit;
mod measure;
mod message;
mod monitors;
mod pop3;
mod pop3_load;
mod process_tree;
mod relay;
mod report;
mod request_load;
mod rest;
mod search;
mod server_process;
mod servers;
mod smtp;
mod start;
mod steady_stream;
mod wait;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;

/// Measures a mail server from the outside over SMTP, POP3, IMAP and HTTP, and PostgreSQL as a baseline.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object per line.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Send messages: rate, latency, and CPU and memory of the server.
    Smtp(load::Options),
    /// Read mailboxes over the REST API: rate, latency, CPU of the server.
    Http(rest::Options),
    /// Cost of append, get, latest and delete while the number of stored messages grows.
    Growth(growth::Options),
    /// Latency of delivery before, during and after the expiry of many messages; the server needs a short retention.
    Expiry(expiry::Options),
    /// A data directory with many messages: fill, restart, list, search, back up, restore, expire, compact.
    Large(large::Options),
    /// Time from starting a server to its first greeting, and its idle memory.
    Start(start::Options),
    /// Check that every acknowledged message is stored exactly once.
    Lost(lost::Options),
    /// Delivery with and without live monitors, some of which never read: rate, latency, memory, and received events.
    Monitors(monitors::Options),
    /// Messages sent to one node of several: time from the 250 to the event at the other nodes, and lost or repeated
    /// events.
    Cluster(monitors::cluster::Options),
    /// Insert rows of messages into PostgreSQL in batches: the upper limit for a node that stores there.
    Database(database::Options),
    /// A server that does the least a durable store must do, to measure other servers beside it; runs until it is stopped.
    DurableReference(durable_reference::Options),
    /// Requests that wait for a message: time from the 250 to the response, and memory of each request.
    Wait(wait::Options),
    /// Fetch mailboxes over POP3: log in, STAT, LIST, UIDL, RETR, DELE, QUIT.
    Pop3(pop3_load::Options),
    /// Read a large mailbox over IMAP: SELECT, FETCH, SEARCH, APPEND, and memory and notification of idle sessions.
    Imap(imap::Options),
    /// Fill a mailbox for the `imap` command, as a Maildir or over SMTP.
    ImapFill(imap::fill::Options),
    /// Search many messages by two words: latency for common and rare words.
    Search(search::Options),
    /// The API of Mailpit, which Mailpit and Restante have: list, get and search: rate, latency, CPU, and the ratio of servers.
    Mailpit(mailpit::Options),
    /// Delivery to a server that forwards all messages, compared with one that does not, and the rate of its queue.
    Relay(relay::Options),
}

/// The verdict of a completed measurement about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All requests succeeded.
    Clean,
    /// Some requests failed or some messages are missing; the report says which.
    Faulty,
}

impl Verdict {
    /// Returns `Clean` only if both are clean.
    fn and(self, other: Self) -> Self {
        if self == Self::Clean { other } else { self }
    }
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Faulty) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("restante-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command on one thread: the server under test is usually on the same machine and should get the other cores.
fn run(Cli { command, json }: Cli) -> Result<Verdict, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Io("starting the runtime", error))?;
    match command {
        Command::Smtp(options) => runtime.block_on(load::run(&options, json)),
        Command::Http(options) => runtime.block_on(rest::run(&options, json)),
        Command::Growth(options) => runtime.block_on(growth::run(&options, json)),
        Command::Expiry(options) => runtime.block_on(expiry::run(&options, json)),
        Command::Large(options) => runtime.block_on(large::run(&options, json)),
        Command::Start(options) => start::run(&options, json),
        Command::Lost(options) => runtime.block_on(lost::run(&options, json)),
        Command::Monitors(options) => runtime.block_on(monitors::run(&options, json)),
        Command::Cluster(options) => runtime.block_on(monitors::cluster::run(&options, json)),
        Command::Database(options) => runtime.block_on(database::run(&options, json)),
        Command::DurableReference(options) => runtime.block_on(durable_reference::run(&options, json)),
        Command::Wait(options) => runtime.block_on(wait::run(&options, json)),
        Command::Pop3(options) => runtime.block_on(pop3_load::run(&options, json)),
        Command::Imap(options) => runtime.block_on(imap::run(&options, json)),
        Command::ImapFill(options) => runtime.block_on(imap::fill::run(&options, json)),
        Command::Search(options) => runtime.block_on(search::run(&options, json)),
        Command::Mailpit(options) => runtime.block_on(mailpit::run(&options, json)),
        Command::Relay(options) => runtime.block_on(relay::run(&options, json)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
