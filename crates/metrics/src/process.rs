//! What the system says about this process.
//!
//! It says it in files, and these are opened at the start and kept open: when there are no file descriptors left, none
//! could be had to tell so.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rustix::fs::Dir;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Where the system tells about the process that asks.
const STATUS_PATH: &str = "/proc/self/status";
const DESCRIPTORS_PATH: &str = "/proc/self/fd";
/// More than the status ever takes.
const MAX_STATUS_BYTES: usize = 8 * 1024;

/// Where to look. What the system does not have is none.
#[derive(Debug)]
pub(super) struct ProcFiles {
    status: Option<File>,
    descriptors: Option<Mutex<Dir>>,
}

/// The process at one moment. What the system does not tell is none.
pub(super) struct ProcessStats {
    /// When it was started, in seconds since 1970.
    pub(super) started: f64,
    /// The processor time that it has taken, in seconds.
    pub(super) cpu_seconds: f64,
    /// The memory that it has, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// How many file descriptors are open.
    pub(super) open_files: Option<u64>,
    /// How many there may be.
    pub(super) max_files: Option<u64>,
}

impl ProcFiles {
    /// Opens them.
    pub(super) fn open() -> Self {
        let descriptors = File::open(DESCRIPTORS_PATH).ok().and_then(|dir| Dir::new(dir).ok());
        Self { status: File::open(STATUS_PATH).ok(), descriptors: descriptors.map(Mutex::new) }
    }

    /// The memory that the process has, in bytes.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let mut status = [0; MAX_STATUS_BYTES];
        // Read from its beginning, the file is written anew.
        let length = self.status.as_ref()?.read_at(&mut status, 0).ok()?;
        parse_resident_bytes(&String::from_utf8_lossy(&status[..length]))
    }

    /// How many file descriptors are open, those of the sources too.
    fn open_files(&self) -> Option<u64> {
        let mut dir = self.descriptors.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        dir.rewind();
        let mut count = 0;
        while let Some(entry) = dir.read() {
            let is_number = entry.ok()?.file_name().to_bytes().iter().all(u8::is_ascii_digit);
            count += u64::from(is_number);
        }
        Some(count)
    }
}

impl ProcessStats {
    /// Asks the system.
    pub(super) fn read(started: Timestamp, sources: &ProcFiles) -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970, and the processor's, are far below 2^52")]
        let seconds = |whole: i64, nanos: i64| whole as f64 + nanos as f64 / 1e9;
        Self {
            started: seconds(started.as_second(), started.subsec_nanosecond().into()),
            cpu_seconds: seconds(cpu.tv_sec, cpu.tv_nsec),
            resident_bytes: sources.resident_bytes(),
            open_files: sources.open_files(),
            max_files: getrlimit(Resource::Nofile).current,
        }
    }
}

/// The line `VmRSS:    5120 kB` (proc_pid_status(5)).
fn parse_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory() {
        let table = [
            ("Name:\trestante\nVmRSS:\t    5120 kB\nRssAnon:\t  12 kB\n", Some(5120 * 1024)),
            ("Name:\tkthreadd\n", None),
            ("VmRSS:\tmuch\n", None),
            ("", None),
        ];
        for (status, expected) in table {
            assert_eq!(parse_resident_bytes(status), expected, "{status:?}");
        }
    }
}
