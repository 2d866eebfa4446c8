//! The environment of the process: memory, file descriptors, the pid file and signals.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
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
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT.
    Shutdown,
    /// SIGHUP.
    Reload,
}

impl Signals {
    /// Registers the signal handlers. Signals that arrive before they are awaited are not lost.
    pub fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("cannot register signal handlers: {error}"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT. A SIGHUP in the meantime is returned by [`Signals::next`].
    pub async fn wait_for_shutdown(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {},
            _ = self.interrupt.recv() => {},
        }
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Shutdown,
            _ = self.interrupt.recv() => SignalRequest::Shutdown,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}
