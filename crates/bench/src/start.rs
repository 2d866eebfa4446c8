//! The `start` command: the time from starting a server to its first greeting, and its idle memory.

use std::net::{TcpStream, ToSocketAddrs};
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::Verdict;
use crate::error::Error;
use crate::load::parse_positive;
use crate::measure::{Sample, mib, millis};
use crate::report::{Report, Row, rounded};
use crate::server_process::ServerProcess;

/// The time between the greeting and reading the idle memory.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Options of the `start` command.
#[derive(Args)]
pub(crate) struct Options {
    /// Program and arguments of the server, separated by spaces.
    #[arg(long)]
    command: String,
    /// The address on which the server will listen.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// Also measure when the output of the server first contains this text.
    #[arg(long, value_name = "TEXT")]
    smtp_pattern: Option<String>,
    /// How many times to start the server.
    #[arg(long, default_value_t = 10, value_parser = parse_positive)]
    runs: usize,
}

impl Options {
    /// Returns the command that starts the server.
    fn command(&self) -> Result<Command, Error> {
        let mut words = self.command.split_whitespace();
        let program = words.next().ok_or_else(|| Error::Usage("--command is empty".to_owned()))?;
        let mut command = Command::new(program);
        command.args(words);
        Ok(command)
    }
}

/// Runs the `start` command.
pub(crate) fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let unresolved = || Error::Usage(format!("cannot find the address of {:?}", options.smtp));
    let address = options.smtp.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(unresolved)?;
    let mut report = Report::new(json);
    for run in 1..=options.runs {
        if TcpStream::connect(address).is_ok() {
            return Err(Error::Usage(format!("something is already listening on {address}")));
        }
        let mut server = ServerProcess::start(&mut options.command()?, options.smtp_pattern.as_deref())?;
        let greeted = server.wait_for_greeting(address)?;
        thread::sleep(SETTLE_TIME);
        let idle = Sample::read(server.id())?;
        let pattern_seen = server.pattern_seen();
        let stopped = server.stop()?;
        let row = Row::default()
            .with("run", run)
            .with_rounded("greeted_ms", millis(greeted), 2)
            .with("announced_ms", pattern_seen.map_or(Value::Null, |elapsed| rounded(millis(elapsed), 2)))
            .with_rounded("idle_rss_mib", mib(idle.resident), 2)
            .with_rounded("idle_anonymous_mib", mib(idle.anonymous), 2)
            .with_rounded("stopped_ms", millis(stopped), 1);
        report.row(&row);
    }
    Ok(Verdict::Clean)
}
