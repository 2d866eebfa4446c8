//! What the system says about this process.

use jiff::Timestamp;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Where the system tells about the process that asks.
const STATUS: &str = "/proc/self/status";
const DESCRIPTORS: &str = "/proc/self/fd";

/// The process at one moment. What the system does not tell is none.
pub(super) struct Process {
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

impl Process {
    /// Asks the system.
    pub(super) fn now(started: Timestamp) -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970, and the processor's, are far below 2^52")]
        let seconds = |whole: i64, nanos: i64| whole as f64 + nanos as f64 / 1e9;
        Self {
            started: seconds(started.as_second(), started.subsec_nanosecond().into()),
            cpu_seconds: seconds(cpu.tv_sec, cpu.tv_nsec),
            resident_bytes: std::fs::read_to_string(STATUS).ok().and_then(|status| resident_bytes(&status)),
            // The one through which they are listed does not count.
            open_files: std::fs::read_dir(DESCRIPTORS).ok().map(|files| (files.count() as u64).saturating_sub(1)),
            max_files: getrlimit(Resource::Nofile).current,
        }
    }
}

/// The line `VmRSS:    5120 kB` (proc_pid_status(5)).
fn resident_bytes(status: &str) -> Option<u64> {
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
            assert_eq!(resident_bytes(status), expected, "{status:?}");
        }
    }
}
