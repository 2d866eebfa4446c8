//! The state of a run: how servers and other commands of the program are started, and how figures are reported.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use super::Options;
use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::measure::{Latencies, Results, Sample, millis, to_f64};
use crate::report::{Report, Row, rounded};
use crate::server_process::ServerProcess;
use crate::steady_stream::SteadyStream;
use crate::words::WordGenerator;

/// The interval at which a process or a state of the server is checked.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum time of an export or import.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(2);
/// The connections of the steady stream.
const STREAM_CONNECTIONS: u32 = 10;
/// The size of its messages.
const STREAM_MESSAGE_BYTES: usize = 1024;

/// The widths of the columns `step` and `what`.
const COLUMN_WIDTHS: [usize; 2] = [10, 40];

/// The goals.
pub(super) const MAX_MEMORY_MB: f64 = 60.0;
pub(super) const MAX_START_MS: f64 = 50.0;
pub(super) const MAX_PAGE_MS: f64 = 5.0;
pub(super) const MAX_SEARCH_MS: f64 = 100.0;
pub(super) const MAX_PAUSE_MS: f64 = 100.0;

/// A run of the command.
pub(super) struct Run<'a> {
    pub(super) options: &'a Options,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) base: BaseUrl,
    pub(super) generator: Arc<WordGenerator>,
    report: Report,
    verdict: Verdict,
}

impl<'a> Run<'a> {
    pub(super) async fn new(options: &'a Options, json: bool) -> Result<Self, Error> {
        let dir = &options.dir;
        fs::create_dir_all(dir).map_err(|error| Error::Io("creating the directory", error))?;
        let is_empty = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty {
            return Err(Error::Usage(format!("{} is not empty", dir.display())));
        }
        Ok(Self {
            options,
            addresses: options.servers.smtp_addresses().await?,
            base: options.servers.base_url().await?,
            generator: Arc::new(WordGenerator::new(options.words)),
            report: Report::new(json).with_min_widths(&COLUMN_WIDTHS),
            verdict: Verdict::Clean,
        })
    }

    /// Returns the path of a file or directory of the run.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.options.dir.join(name)
    }

    /// Creates a client of the server.
    pub(super) fn client(&self) -> Client {
        Client::new(&self.base)
    }

    /// Starts the server on the filled data directory with a retention period.
    pub(super) fn start(&self, retention: &str) -> Result<ServerProcess, Error> {
        self.start_on(&self.path("data"), retention).map(|(server, _)| server)
    }

    /// Starts the server on a data directory. Returns also the time until it greeted a client.
    pub(super) fn start_on(&self, data: &Path, retention: &str) -> Result<(ServerProcess, Duration), Error> {
        let mut command = Command::new(&self.options.program);
        command.arg("--data").arg(data).args(["--storage-mailboxmsgcap", "0", "--storage-retentionperiod", retention]);
        command.args([
            "--smtp-addr",
            self.options.servers.smtp(),
            "--web-addr",
            self.base.authority(),
            "--pop3-addr",
            "",
            "--imap-addr",
            "",
        ]);
        let mut server = ServerProcess::start(&mut command, None)?;
        let greeted = server.wait_for_greeting(self.addresses[0])?;
        Ok((server, greeted))
    }

    /// Stops the server and reports its peak of memory.
    pub(super) fn stop(&mut self, step: &'static str, server: ServerProcess) -> Result<(), Error> {
        let sample = Sample::read(server.id())?;
        self.figure(step, "peak memory of the server", megabytes(sample.peak), "MB", Some(MAX_MEMORY_MB));
        let stopped = server.stop()?;
        self.figure(step, "stop of the server", millis(stopped), "ms", None);
        Ok(())
    }

    /// Reports the memory of the server now.
    pub(super) fn report_memory(&mut self, step: &'static str, server: &ServerProcess) -> Result<(), Error> {
        let sample = Sample::read(server.id())?;
        self.figure(step, "memory", megabytes(sample.resident), "MB", Some(MAX_MEMORY_MB));
        Ok(())
    }

    /// Runs `export` or `import` with a data directory and a file, and reports its duration and its peak of memory.
    pub(super) async fn transfer(
        &mut self,
        step: &'static str,
        name: &str,
        data: &str,
        file: &str,
    ) -> Result<(), Error> {
        let mut command = Command::new(&self.options.program);
        command.args([name, "--data"]).args([self.path(data), self.path(file)]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.env("RESTANTE_STORAGE_MAILBOXMSGCAP", "0").env("RESTANTE_STORAGE_RETENTIONPERIOD", "0");
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| Error::Io("starting a command", error))?;
        let mut peak = 0;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| Error::Io("waiting for a command", error))? {
                break status;
            }
            if start.elapsed() > TRANSFER_TIMEOUT {
                // It fails only if the process has ended.
                let _ = child.kill();
                return Err(Error::Timeout);
            }
            // A process that has just ended has no memory.
            peak = Sample::read(child.id()).map_or(peak, |sample| sample.peak);
            sleep(POLL_INTERVAL).await;
        };
        if !status.success() {
            return Err(Error::Usage(format!("{} {name}: {status}", self.options.program.display())));
        }
        self.figure(step, "duration", start.elapsed().as_secs_f64(), "s", None);
        self.figure(step, "peak memory of the command", megabytes(peak), "MB", None);
        Ok(())
    }

    /// Starts the steady stream of deliveries.
    pub(super) fn start_stream(&self) -> SteadyStream {
        SteadyStream::start(self.addresses.clone(), self.options.rate, STREAM_CONNECTIONS, STREAM_MESSAGE_BYTES)
    }

    /// Stops the steady stream and reports its latencies.
    pub(super) async fn stop_stream(&mut self, step: &'static str, stream: SteadyStream, max_pause: Option<f64>) {
        let mut results = Results::default();
        for message in stream.stop().await {
            results.record_sent(message.outcome);
        }
        self.check(results.verdict());
        let latency = results.latencies.percentiles();
        for (what, value, goal) in [
            ("delivery, p50", latency.p50, None),
            ("delivery, p99", latency.p99, None),
            ("delivery, max", latency.max, max_pause),
        ] {
            self.figure(step, what, f64::from(value) / 1000.0, "ms", goal);
        }
    }

    /// Reports latencies of requests. The goal is for p99.
    pub(super) fn latencies(&mut self, step: &'static str, what: &str, latencies: Latencies, goal: Option<f64>) {
        let latency = latencies.percentiles();
        for (name, value, goal) in [("p50", latency.p50, None), ("p99", latency.p99, goal), ("max", latency.max, None)]
        {
            self.figure(step, &format!("{what}, {name}"), f64::from(value) / 1000.0, "ms", goal);
        }
    }

    /// Prints a figure.
    pub(super) fn figure(&mut self, step: &'static str, what: &str, value: f64, unit: &'static str, goal: Option<f64>) {
        let row = Row::default()
            .with("step", step)
            .with("what", what)
            .with_rounded("value", value, 1)
            .with("unit", unit)
            .with("goal", goal.map_or(Value::Null, |goal| rounded(goal, 0)))
            .with("met", goal.map_or(Value::Null, |goal| Value::from(if value <= goal { "yes" } else { "no" })));
        self.report.row(&row);
    }

    /// Adds the verdict of a step.
    pub(super) fn check(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.and(verdict);
    }

    /// Returns the verdict of all steps. Goals that were not met do not change it.
    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// Converts bytes to megabytes.
pub(super) fn megabytes(bytes: u64) -> f64 {
    to_f64(bytes) / 1e6
}
