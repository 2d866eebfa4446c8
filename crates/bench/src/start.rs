//! The `start` command: the time from starting a server to its first greeting, and its idle memory. The code is
//! sequential and blocking, because there is only one thing to wait for.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Verdict;
use crate::error::Error;
use crate::load::parse_positive;
use crate::measure::{Sample, mib};
use crate::report::{Report, Row, rounded};

/// The maximum time until a server greets, and until it stops.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between attempts to connect: short compared to the measured time, but long enough to leave the server
/// its core.
const CONNECT_INTERVAL: Duration = Duration::from_micros(100);
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

/// Runs the `start` command.
pub(crate) fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let unresolved = || Error::Usage(format!("cannot find the address of {:?}", options.smtp));
    let address = options.smtp.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(unresolved)?;
    let mut report = Report::new(json);
    for run in 1..=options.runs {
        if TcpStream::connect(address).is_ok() {
            return Err(Error::Usage(format!("something is already listening on {address}")));
        }
        let mut server = Server::start(&options.command, options.smtp_pattern.as_deref())?;
        let greeted = server.wait_for_greeting(address)?;
        thread::sleep(SETTLE_TIME);
        let idle = Sample::read(server.child.id())?;
        let pattern_seen = server.pattern_seen.try_recv().ok();
        let stopped = server.stop()?;
        let row = Row::default()
            .with("run", run)
            .with_rounded("greeted_ms", millis(greeted), 2)
            .with("announced_ms", pattern_seen.map_or(Value::Null, |elapsed| rounded(millis(elapsed), 2)))
            .with_rounded("idle_rss_mib", mib(idle.resident), 2)
            .with_rounded("stopped_ms", millis(stopped), 1);
        report.row(&row);
    }
    Ok(Verdict::Clean)
}

/// A started server, which is killed when this value is dropped.
struct Server {
    child: Child,
    started: Instant,
    /// Receives the time from the start until the pattern appears in the output.
    pattern_seen: Receiver<Duration>,
}

impl Server {
    fn start(command: &str, pattern: Option<&str>) -> Result<Self, Error> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| Error::Usage("--command is empty".to_owned()))?;
        let output = || if pattern.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(output()).stderr(output());
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| Error::Io("starting the server", error))?;
        let (sender, pattern_seen) = mpsc::channel();
        if let Some(pattern) = pattern {
            if let Some(stdout) = child.stdout.take() {
                watch_output(stdout, pattern.to_owned(), started, sender.clone());
            }
            if let Some(stderr) = child.stderr.take() {
                watch_output(stderr, pattern.to_owned(), started, sender);
            }
        }
        Ok(Self { child, started, pattern_seen })
    }

    /// Waits until a client is greeted. Returns the time since the start.
    fn wait_for_greeting(&mut self, address: SocketAddr) -> Result<Duration, Error> {
        while self.started.elapsed() < TIMEOUT {
            if let Ok(mut stream) = TcpStream::connect(address) {
                stream.set_read_timeout(Some(TIMEOUT)).map_err(|error| Error::Io("connecting", error))?;
                let mut code = [0; 4];
                stream.read_exact(&mut code).map_err(|error| Error::Io("waiting for the greeting", error))?;
                let elapsed = self.started.elapsed();
                return match &code {
                    b"220 " | b"220-" => Ok(elapsed),
                    _ => Err(Error::refused(&code)),
                };
            }
            let status = self.child.try_wait().map_err(|error| Error::Io("watching the server", error))?;
            if let Some(status) = status {
                return Err(Error::Usage(format!("the server ended before its greeting: {status}")));
            }
            thread::sleep(CONNECT_INTERVAL);
        }
        Err(Error::Timeout)
    }

    /// Stops the server with SIGTERM. Returns how long that took.
    fn stop(mut self) -> Result<Duration, Error> {
        let stop_started = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .map_err(|error| Error::Io("stopping the server", error.into()))?;
        while stop_started.elapsed() < TIMEOUT {
            let status = self.child.try_wait().map_err(|error| Error::Io("watching the server", error))?;
            if status.is_some() {
                return Ok(stop_started.elapsed());
            }
            thread::sleep(CONNECT_INTERVAL);
        }
        Err(Error::Usage("the server did not stop after SIGTERM and was killed".to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output to its end, so that the server never blocks on it, and sends the time at which the pattern first
/// appears.
fn watch_output(output: impl Read + Send + 'static, pattern: String, started: Instant, sender: Sender<Duration>) {
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        let mut is_sent = false;
        loop {
            line.clear();
            match output.by_ref().take(64 * 1024).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if !is_sent && String::from_utf8_lossy(&line).contains(&pattern) => {
                    is_sent = true;
                    // The receiver is gone if the run has ended before.
                    let _ = sender.send(started.elapsed());
                }
                Ok(_) => {}
            }
        }
    });
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
