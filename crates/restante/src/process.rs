//! The environment of the process: memory, file descriptors, the pid file and signals.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use restante_platform::{SignalRequest, SystemSignals};
use tokio::sync::oneshot;

/// How long after a request to shut down further signals count as the same request. Programs such as `timeout` and `npx`
/// send a signal to the server in addition to the one that its process group gets.
const REPEATED_SIGNAL_INTERVAL: Duration = Duration::from_secs(1);

/// The time after which a shutdown logs what it waits for.
pub(crate) const SLOW_SHUTDOWN_INTERVAL: Duration = Duration::from_secs(1);

/// Prepares the allocator for large messages. glibc returns every large block to the system when it is freed, and the
/// next one costs a page fault for every 4 KiB: half of the time that a message of 1 MiB takes. It learns from freed
/// blocks which sizes are reused ("dynamic mmap threshold"). So one block of the largest size that it learns from is
/// freed here, without touching it.
pub fn tune_allocator() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

/// Returns the number of network threads: half of the cores, because the sender usually runs on the same machine. One
/// thread accepts about 20,000 messages per second; two threads that have to wake each other on two cores accept a
/// fifth less (`docs/performance.md`).
pub fn network_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// Raises the limit on open files. Every connection needs a file descriptor, and the usual limit of 1,024 is only a
/// default.
pub fn raise_file_limit() {
    if let Err(error) = restante_platform::raise_file_limit() {
        tracing::debug!(%error, "cannot raise the limit on open files");
    }
}

/// A file with the process id. It is deleted on drop.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file. The error is a sentence for the operator.
    pub fn write(path: PathBuf) -> Result<Self, String> {
        let written = File::create(&path).and_then(|mut file| writeln!(file, "{}", std::process::id()));
        match written {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(format!("cannot write the pid file {}: {error}", path.display())),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The file may have been deleted already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The signals that the server handles.
pub struct Signals {
    system: SystemSignals,
    /// Completes when standard input is closed. `None` if this has no meaning.
    stdin_closed: Option<oneshot::Receiver<()>>,
    /// When the last request to shut down arrived.
    last_request: Option<Instant>,
}

impl Signals {
    /// Registers the signal handlers. Signals that arrive before they are awaited are not lost.
    pub fn listen() -> Result<Self, String> {
        let system = SystemSignals::listen().map_err(|error| format!("cannot register signal handlers: {error}"))?;
        Ok(Self { system, stdin_closed: None, last_request: None })
    }

    /// Treats the end of standard input like a signal to stop. What can be read until then is discarded.
    pub fn stop_with_stdin(&mut self) -> Result<(), String> {
        let (closed, stdin_closed) = oneshot::channel();
        // A thread of the runtime would delay its shutdown.
        let read = move || {
            // After an error, nothing more can be read either.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            // The server may be shutting down already.
            let _ = closed.send(());
        };
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(read)
            .map_err(|error| format!("cannot start a thread that reads standard input: {error}"))?;
        self.stdin_closed = Some(stdin_closed);
        Ok(())
    }

    /// Waits for a request to shut down: a signal or the end of standard input. Signals that arrive shortly after a request
    /// are ignored. A request to reload in the meantime is returned by [`Signals::next`].
    pub async fn wait_for_shutdown(&mut self) {
        loop {
            tokio::select! {
                () = self.system.wait_for_shutdown() => {},
                () = wait_until_closed(&mut self.stdin_closed) => {},
            }
            if self.is_new_request(Instant::now()) {
                return;
            }
        }
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalRequest {
        loop {
            let request = tokio::select! {
                request = self.system.next() => request,
                () = wait_until_closed(&mut self.stdin_closed) => SignalRequest::Shutdown,
            };
            if request == SignalRequest::Reload || self.is_new_request(Instant::now()) {
                return request;
            }
        }
    }

    /// Returns whether a signal is a new request to shut down, not a repetition of the last one. Ignores the end of standard
    /// input from now on: a program that has sent a signal and then ends has not asked twice.
    fn is_new_request(&mut self, now: Instant) -> bool {
        self.stdin_closed = None;
        let is_repeated =
            self.last_request.is_some_and(|last| now.saturating_duration_since(last) < REPEATED_SIGNAL_INTERVAL);
        if is_repeated {
            tracing::debug!("signal ignored: a shutdown was requested less than a second ago");
            return false;
        }
        self.last_request = Some(now);
        true
    }
}

/// Waits until standard input is closed, or forever if this has no meaning.
async fn wait_until_closed(stdin_closed: &mut Option<oneshot::Receiver<()>>) {
    match stdin_closed {
        // The sender always sends.
        Some(receiver) => drop(receiver.await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signals_within_a_second_are_one_request() {
        let mut signals = Signals::listen().unwrap();
        let start = Instant::now();
        let table = [(0, true), (1, false), (999, false), (1000, true), (1001, false), (2500, true)];
        for (milliseconds, is_new) in table {
            let now = start + Duration::from_millis(milliseconds);
            assert_eq!(signals.is_new_request(now), is_new, "after {milliseconds} ms");
        }
    }
}
