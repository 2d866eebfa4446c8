//! What the process has to settle with the system around it: memory, file descriptors, its pid file, and signals.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The C library gives every large block back to the system when it is freed, and the next one costs a page fault for
/// every 4 KiB again: half the time that a mail of 1 MiB takes. It learns from what is freed which sizes come and go
/// (glibc, "dynamic mmap threshold"); so one block of the largest size it learns from is freed here, never touched.
pub fn tune_allocator() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

/// Half of the cores, because who sends the mail usually runs on the same machine. One thread takes some 20,000 mails a
/// second; two that have to wake each other up on two cores take a fifth less (`docs/performance.md`).
pub fn network_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// Every connection needs a file descriptor, and the usual limit of 1,024 is only a default that may be raised.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}

/// The file that tells other programs our process id; gone when this is dropped.
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
        // A file that is gone already is what was wanted.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The signals that the server listens to.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT.
    Shutdown,
    /// SIGHUP.
    Reload,
}

impl Signals {
    /// From now on signals are heard, also those that come before anybody asks for them.
    pub fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("cannot listen to signals: {error}"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits until the end is asked for. Wishes to reload are heard of by [`Signals::next`].
    pub async fn wait_for_shutdown(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {},
            _ = self.interrupt.recv() => {},
        }
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Shutdown,
            _ = self.interrupt.recv() => SignalRequest::Shutdown,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}
