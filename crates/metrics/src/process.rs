//! Statistics of this process, from the system.
//!
//! The files below `/proc` are opened at the start and stay open: if the process has no file descriptors left, they
//! could not be opened to report it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rustix::fs::Dir;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The files with the statistics of the calling process.
const STATUS_PATH: &str = "/proc/self/status";
const DESCRIPTORS_PATH: &str = "/proc/self/fd";
/// Larger than the status file.
const MAX_STATUS_BYTES: usize = 8 * 1024;

/// The open files. `None` if the system does not have a file.
#[derive(Debug)]
pub(super) struct ProcFiles {
    status: Option<File>,
    descriptors: Option<Mutex<Dir>>,
}

/// The statistics at one moment. `None` if the system does not provide a value.
pub(super) struct ProcessStats {
    /// The start time, in seconds since 1970.
    pub(super) started: f64,
    /// The processor time used, in seconds.
    pub(super) cpu_seconds: f64,
    /// The resident memory, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// The number of open file descriptors.
    pub(super) open_files: Option<u64>,
    /// The limit on open file descriptors.
    pub(super) max_files: Option<u64>,
}

impl ProcFiles {
    /// Opens the files.
    pub(super) fn open() -> Self {
        let descriptors = File::open(DESCRIPTORS_PATH).ok().and_then(|dir| Dir::new(dir).ok());
        Self { status: File::open(STATUS_PATH).ok(), descriptors: descriptors.map(Mutex::new) }
    }

    /// Returns the resident memory, in bytes.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let mut status = [0; MAX_STATUS_BYTES];
        // A read at offset 0 makes the system generate the file again.
        let length = self.status.as_ref()?.read_at(&mut status, 0).ok()?;
        parse_resident_bytes(&String::from_utf8_lossy(&status[..length]))
    }

    /// Returns the number of open file descriptors, including those of these files.
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
    /// Reads the statistics.
    pub(super) fn read(started: Timestamp, proc_files: &ProcFiles) -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "both times are far below 2^52 seconds")]
        let seconds = |whole: i64, nanos: i64| whole as f64 + nanos as f64 / 1e9;
        Self {
            started: seconds(started.as_second(), started.subsec_nanosecond().into()),
            cpu_seconds: seconds(cpu.tv_sec, cpu.tv_nsec),
            resident_bytes: proc_files.resident_bytes(),
            open_files: proc_files.open_files(),
            max_files: getrlimit(Resource::Nofile).current,
        }
    }
}

/// Parses the line `VmRSS:    5120 kB` (proc_pid_status(5)).
fn parse_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_resident_memory() {
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
