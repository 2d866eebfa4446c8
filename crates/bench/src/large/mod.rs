//! The `large` command: a data directory with many messages from the first to the last step of its life. It starts the
//! server itself, because several steps need a restart or other settings. Every step prints its figures, with the goal
//! if there is one. Messages are delivered at a fixed rate during the steps that change or read much, and their latency
//! shows whether these steps delay deliveries.

mod run;
mod steps;

use std::path::PathBuf;

use clap::Args;

use self::run::Run;
use crate::Verdict;
use crate::error::Error;
use crate::load::parse_positive;
use crate::servers::ServerOptions;

/// Options of the `large` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The program to measure.
    #[arg(long, default_value = "restante")]
    program: PathBuf,
    /// The directory for the data directory, its back-up and the restored data directory. It must be empty or not exist.
    #[arg(long)]
    dir: PathBuf,
    #[command(flatten)]
    servers: ServerOptions,
    /// Messages to store.
    #[arg(long, default_value_t = 10_000_000, value_parser = parse_positive)]
    messages: usize,
    /// Mailboxes over which the messages are distributed.
    #[arg(long, default_value_t = 20_000, value_parser = parse_positive)]
    mailboxes: usize,
    /// Words in each message.
    #[arg(long, default_value_t = 60, value_parser = parse_positive)]
    words: usize,
    /// The oldest messages, which the retention deletes.
    #[arg(long, default_value_t = 1_000_000, value_parser = parse_positive)]
    expired: usize,
    /// Concurrent connections that fill the mailboxes.
    #[arg(long, default_value_t = 50, value_parser = parse_positive)]
    connections: usize,
    /// Messages per second of the steady stream.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Requests of each kind.
    #[arg(long, default_value_t = 200, value_parser = parse_positive)]
    operations: usize,
    /// Seconds of the steady stream without other work, for comparison, and seconds without change after which space is
    /// considered reclaimed.
    #[arg(long, default_value_t = 10)]
    settle: u64,
}

/// Runs the `large` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    if options.expired >= options.messages {
        return Err(Error::Usage("--expired must be less than --messages".to_owned()));
    }
    let mut run = Run::new(options, json).await?;
    let mut server = run.start("0")?;
    let oldest_stored = run.fill(&server).await?;
    server = run.restart(server).await?;
    run.list().await?;
    run.search().await?;
    run.report_memory("search", &server)?;
    run.baseline().await?;
    run.back_up(&server).await?;
    run.restore(&server).await?;
    run.stop("restore", server)?;
    run.check_restored().await?;
    server = run.expire(oldest_stored).await?;
    run.stop("expiry", server)?;
    server = run.start("0")?;
    run.compact(&server).await?;
    run.stop("compaction", server)?;
    Ok(run.verdict())
}
