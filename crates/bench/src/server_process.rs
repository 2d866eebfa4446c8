//! A server process that a command starts and stops. The code is blocking, because there is only one thing to wait for.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;

/// The maximum time until a server greets, and until it stops.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between attempts to connect: short compared to the measured time, but long enough to leave the server
/// its core.
const CONNECT_INTERVAL: Duration = Duration::from_micros(100);

/// A started server, which is killed when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    started: Instant,
    /// Receives the time from the start until the pattern appears in the output.
    pattern_seen: Receiver<Duration>,
}

impl ServerProcess {
    /// Starts a server and watches its output for a text.
    pub(crate) fn start(command: &mut Command, pattern: Option<&str>) -> Result<Self, Error> {
        let output = || if pattern.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(output()).stderr(output());
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

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the time from the start until the text appeared in the output, if it did.
    pub(crate) fn pattern_seen(&self) -> Option<Duration> {
        self.pattern_seen.try_recv().ok()
    }

    /// Waits until a client is greeted. Returns the time since the start.
    pub(crate) fn wait_for_greeting(&mut self, address: SocketAddr) -> Result<Duration, Error> {
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
    pub(crate) fn stop(mut self) -> Result<Duration, Error> {
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

impl Drop for ServerProcess {
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
