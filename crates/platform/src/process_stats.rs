//! Statistics of this process, from the system. Linux provides all of them, macOS only the processor time and the limit
//! on open files, Windows none.
//!
//! The files below `/proc` are opened at the start and stay open: if the process has no file descriptors left, they
//! could not be opened to report it.

pub use imp::ProcessFiles;

#[cfg(unix)]
mod imp {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::time::Duration;

    use parking_lot::Mutex;
    use rustix::fs::Dir;
    use rustix::process::{Resource, getrlimit};
    use rustix::time::{ClockId, clock_gettime};

    /// The files with the statistics of the calling process.
    const STATUS_PATH: &str = "/proc/self/status";
    const DESCRIPTORS_PATH: &str = "/proc/self/fd";
    /// Larger than the status file.
    const MAX_STATUS_BYTES: usize = 8 * 1024;

    /// The open files. Values that the system does not provide are `None`.
    #[derive(Debug)]
    pub struct ProcessFiles {
        status: Option<File>,
        descriptors: Option<Mutex<Dir>>,
    }

    impl ProcessFiles {
        /// Opens the files.
        pub fn open() -> Self {
            let descriptors = File::open(DESCRIPTORS_PATH).ok().and_then(|dir| Dir::new(dir).ok());
            Self { status: File::open(STATUS_PATH).ok(), descriptors: descriptors.map(Mutex::new) }
        }

        /// Returns the resident memory, in bytes.
        pub fn resident_bytes(&self) -> Option<u64> {
            let mut status = [0; MAX_STATUS_BYTES];
            // A read at offset 0 makes the system generate the file again.
            let length = self.status.as_ref()?.read_at(&mut status, 0).ok()?;
            parse_resident_bytes(&String::from_utf8_lossy(&status[..length]))
        }

        /// Returns the number of open file descriptors, including those of these files.
        pub fn open_files(&self) -> Option<u64> {
            let mut dir = self.descriptors.as_ref()?.lock();
            dir.rewind();
            let mut count = 0;
            while let Some(entry) = dir.read() {
                let is_number = entry.ok()?.file_name().to_bytes().iter().all(u8::is_ascii_digit);
                count += u64::from(is_number);
            }
            Some(count)
        }

        /// Returns the limit on open file descriptors.
        pub fn max_files(&self) -> Option<u64> {
            getrlimit(Resource::Nofile).current
        }

        /// Returns the processor time used.
        pub fn cpu_time(&self) -> Option<Duration> {
            Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()
        }
    }

    /// Parses the line `VmRSS:    5120 kB` (proc_pid_status(5)).
    pub(super) fn parse_resident_bytes(status: &str) -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}

#[cfg(windows)]
mod imp {
    use std::time::Duration;

    /// No files: none of the values is provided.
    #[derive(Debug)]
    pub struct ProcessFiles(());

    impl ProcessFiles {
        /// Opens the files.
        pub fn open() -> Self {
            Self(())
        }

        /// Returns the resident memory, in bytes.
        pub fn resident_bytes(&self) -> Option<u64> {
            None
        }

        /// Returns the number of open file descriptors.
        pub fn open_files(&self) -> Option<u64> {
            None
        }

        /// Returns the limit on open file descriptors.
        pub fn max_files(&self) -> Option<u64> {
            None
        }

        /// Returns the processor time used.
        pub fn cpu_time(&self) -> Option<Duration> {
            None
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::imp::parse_resident_bytes;

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
