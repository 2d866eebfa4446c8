//! Statistics of this process, from the system.

use jiff::Timestamp;
use restante_platform::ProcessFiles;

/// The statistics at one moment. `None` if the system does not provide a value.
pub(super) struct ProcessStats {
    /// The start time, in seconds since 1970.
    pub(super) started: f64,
    /// The processor time used, in seconds.
    pub(super) cpu_seconds: Option<f64>,
    /// The resident memory, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// The number of open file descriptors.
    pub(super) open_files: Option<u64>,
    /// The limit on open file descriptors.
    pub(super) max_files: Option<u64>,
}

impl ProcessStats {
    /// Reads the statistics.
    pub(super) fn read(started: Timestamp, files: &ProcessFiles) -> Self {
        Self {
            started: started.as_duration().as_secs_f64(),
            cpu_seconds: files.cpu_time().map(|time| time.as_secs_f64()),
            resident_bytes: files.resident_bytes(),
            open_files: files.open_files(),
            max_files: files.max_files(),
        }
    }
}
