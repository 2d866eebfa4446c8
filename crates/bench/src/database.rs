//! The `database` command, a baseline: how fast PostgreSQL inserts the rows that a node writes for a message. The
//! tables and indexes are those of a node. Everything else that a node does is left out: counting, ordering the changes
//! and notifying other nodes. No mail server is involved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Statement};

use crate::Verdict;
use crate::connection::with_timeout;
use crate::error::Error;
use crate::load::parse_positive;
use crate::measure::{Results, median, mib, ratio, to_f64};
use crate::message::{self, END_OF_DATA, MessageKind, mailbox_name};
use crate::report::{Report, Row};

const TABLES: &str = include_str!("../../store/src/postgres/tables.sql");
const CREATE_SCHEMA: &str = "CREATE SCHEMA restante_bench";
const DROP_SCHEMA: &str = "DROP SCHEMA IF EXISTS restante_bench CASCADE";
const USE_SCHEMA: &str = "SET search_path TO restante_bench";
const INSERT: &str = "
    WITH mails AS (
        INSERT INTO bodies (id, bytes) SELECT * FROM unnest($1::bigint[], $2::bytea[])
    )
    INSERT INTO copies (id, message, modseq, number, received, size, body, shared, seen, mailbox, headline, trace, tags, details)
    SELECT id, id, id, 1, received, size, id, false, false, mailbox, headline, trace, '', ''
    FROM unnest($1::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[])
        AS copy (id, received, size, mailbox, headline, trace)";

const PREFIX: &str = "bench";
/// What a node stores for its lists: the sender, the subject and every recipient.
const HEADLINE: &[u8] = b"Bench Sender <sender@bench.example>\nbench\nBench Receiver <receiver@bench.example>\n";

/// The help text after the options.
const AFTER_HELP: &str = "\
All tables are in the schema restante_bench, which is dropped before and after. The role needs CREATE on the database. \
Times are those of a whole batch, from sending the statement to the result, which arrives after the commit.";

/// Options of the `database` command.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The database, as postgres://USER:PASSWORD@HOST:PORT/DATABASE; the connection does not use TLS.
    #[arg(long)]
    url: String,
    /// Duration of each round in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Number of rounds, each with empty tables.
    #[arg(long, default_value_t = 3, value_parser = parse_positive)]
    rounds: usize,
    /// Messages in one statement.
    #[arg(long, default_value_t = 50, value_parser = parse_positive)]
    batch: usize,
    /// Connections, each of which sends one batch after the other.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    connections: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Mailboxes that receive in turn.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    mailboxes: usize,
}

/// Runs the `database` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let config: Config = options.url.parse().map_err(Error::Database)?;
    let owner = Session::open(&config).await?;
    let measured = measure(options, json, &config, &owner).await;
    // The result of the measurement takes precedence, but a schema that could not be dropped must be reported.
    let dropped = owner.execute(DROP_SCHEMA).await;
    owner.close().await;
    measured.and(dropped).map(|()| Verdict::Clean)
}

async fn measure(options: &Options, json: bool, config: &Config, owner: &Session) -> Result<(), Error> {
    let generator = Arc::new(MessageGenerator::new(options.size, options.batch, options.mailboxes));
    let mut report = Report::new(json);
    let mut rates = Vec::new();
    for round in 1..=options.rounds {
        for statements in [DROP_SCHEMA, CREATE_SCHEMA, USE_SCHEMA, TABLES] {
            owner.execute(statements).await?;
        }
        let (results, elapsed) = run_round(options, config, &generator).await?;
        let count = results.latencies.len() * options.batch;
        let rate = ratio(to_f64(count), elapsed.as_secs_f64());
        rates.push(rate);
        let row = Row::default()
            .with("round", round)
            .with("connections", options.connections)
            .with("batch", options.batch)
            .with("mails", count)
            .with_rounded("per_s", rate, 0)
            .with_rounded("mib_per_s", ratio(mib(results.bytes), elapsed.as_secs_f64()), 1)
            .with_percentiles(results.latencies.percentiles());
        report.row(&row);
    }
    let row = Row::default().with("median", "per_s").with_rounded("raw", median(rates.into_iter()), 0);
    Report::new(json).row(&row);
    Ok(())
}

/// Runs one round on all connections. Returns the results of the batches and the duration of the round.
async fn run_round(
    options: &Options,
    config: &Config,
    generator: &Arc<MessageGenerator>,
) -> Result<(Results, Duration), Error> {
    let mut inserters = Vec::new();
    for _ in 0..options.connections {
        inserters.push(Inserter::open(config, generator).await?);
    }
    let start = Instant::now();
    let deadline = start + Duration::from_secs(options.seconds);
    let mut workers = JoinSet::new();
    for inserter in inserters {
        workers.spawn(inserter.work(deadline));
    }
    let results: Result<Vec<Results>, Error> = workers.join_all().await.into_iter().collect();
    Ok((Results::merge(results?), start.elapsed()))
}

/// A connection with a prepared statement.
struct Inserter {
    session: Session,
    insert: Statement,
    generator: Arc<MessageGenerator>,
}

impl Inserter {
    async fn open(config: &Config, generator: &Arc<MessageGenerator>) -> Result<Self, Error> {
        let session = Session::open(config).await?;
        session.execute(USE_SCHEMA).await?;
        let insert = with_timeout(async { session.client.prepare(INSERT).await.map_err(Error::Database) }).await?;
        Ok(Self { session, insert, generator: Arc::clone(generator) })
    }

    /// Inserts batches until the deadline, and at least one.
    async fn work(self, deadline: Instant) -> Result<Results, Error> {
        let mut results = Results::default();
        loop {
            let batch = self.generator.next();
            let start = Instant::now();
            with_timeout(self.insert(&batch)).await?;
            results.record_success(start.elapsed(), self.generator.body.len() * batch.ids.len());
            if Instant::now() >= deadline {
                break;
            }
        }
        self.session.close().await;
        Ok(results)
    }

    async fn insert(&self, batch: &Batch) -> Result<(), Error> {
        let Batch { ids, received, names, traces } = batch;
        let body = &self.generator.body[..];
        let bodies = vec![body; ids.len()];
        let headlines = vec![HEADLINE; ids.len()];
        let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let sizes: Vec<i64> = traces.iter().map(|trace| to_i64(trace.len() + body.len())).collect();
        let traces: Vec<&[u8]> = traces.iter().map(String::as_bytes).collect();
        let received = vec![*received; ids.len()];
        let rows = [ids as &(dyn ToSql + Sync), &bodies, &received, &sizes, &names, &headlines, &traces];
        self.session.client.execute(&self.insert, &rows).await.map(drop).map_err(Error::Database)
    }
}

/// Generates the messages of all rounds. They differ in what a node would make different: id, mailbox, time and trace.
struct MessageGenerator {
    body: Vec<u8>,
    batch: i64,
    mailboxes: usize,
    /// The next id.
    next: AtomicI64,
}

/// The rows of one statement.
struct Batch {
    ids: Vec<i64>,
    /// Unix nanoseconds. All messages of a batch have the same time.
    received: i64,
    names: Vec<String>,
    traces: Vec<String>,
}

impl MessageGenerator {
    fn new(size: usize, batch: usize, mailboxes: usize) -> Self {
        let mut body = message::build_message(MessageKind::Text, PREFIX, size);
        body.truncate(body.len() - END_OF_DATA.len());
        Self { body, batch: to_i64(batch), mailboxes, next: AtomicI64::new(1) }
    }

    fn next(&self) -> Batch {
        let first = self.next.fetch_add(self.batch, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ids: Vec<i64> = (first..first + self.batch).collect();
        let to_usize = |&id: &i64| usize::try_from(id).unwrap_or(0);
        let names: Vec<_> = ids.iter().map(|id| mailbox_name(PREFIX, to_usize(id) % self.mailboxes)).collect();
        let traces = names.iter().map(|name| trace(name)).collect();
        Batch { ids, received: to_i64(now.as_nanos()), names, traces }
    }
}

/// Returns the lines that a node adds in front of a message.
fn trace(mailbox: &str) -> String {
    format!(
        "Return-Path: <sender@bench.example>\r\n\
         Received: from bench.example ([127.0.0.1]) by inbucket\r\n  \
         for <{mailbox}@bench.example>; Thu, 01 Jan 2026 12:00:00 +0000\r\n"
    )
}

/// An open connection.
struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Session {
    async fn open(config: &Config) -> Result<Self, Error> {
        with_timeout(async {
            let (client, connection) = config.connect(NoTls).await.map_err(Error::Database)?;
            // If the connection fails, so do the requests of the client.
            let driver = tokio::spawn(async { drop(connection.await) });
            Ok(Self { client, driver })
        })
        .await
    }

    /// Executes statements without results.
    async fn execute(&self, statements: &str) -> Result<(), Error> {
        with_timeout(async { self.client.batch_execute(statements).await.map_err(Error::Database) }).await
    }

    /// Closes the connection properly, so that the server does not log a broken connection.
    async fn close(self) {
        drop(self.client);
        // The connection has ended, with or without an error.
        let _ = self.driver.await;
    }
}

/// Converts a number to the integer type of the database.
fn to_i64(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_consecutive_ids() {
        let generator = MessageGenerator::new(500, 3, 2);
        let (first, second) = (generator.next(), generator.next());
        assert_eq!((first.ids, second.ids), (vec![1, 2, 3], vec![4, 5, 6]));
        assert_eq!(first.names, ["bench-1", "bench-0", "bench-1"]);
        assert!(second.traces[0].contains("for <bench-0@bench.example>; "), "{}", second.traces[0]);
        assert!(second.received >= first.received && first.received > 0);
    }

    #[test]
    fn body_has_the_requested_size() {
        let generator = MessageGenerator::new(1024, 1, 1);
        assert_eq!(generator.body.len(), 1024);
        assert!(generator.body.starts_with(b"From: Bench Sender") && !generator.body.ends_with(END_OF_DATA));
    }
}
