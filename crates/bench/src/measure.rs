//! Measurements: latencies with percentiles, and CPU time and memory of a process. Their output is in `report`.

use std::fs;
use std::time::Duration;

use crate::Verdict;
use crate::error::Error;

/// Latencies of single operations, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds the latency of an operation.
    pub(crate) fn push(&mut self, elapsed: Duration) {
        self.0.push(u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX));
    }

    /// Returns the number of operations.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the reported percentiles.
    pub(crate) fn percentiles(mut self) -> Percentiles {
        self.0.sort_unstable();
        Percentiles {
            p50: self.rank(500),
            p90: self.rank(900),
            p99: self.rank(990),
            p99_9: self.rank(999),
            max: self.rank(1000),
        }
    }

    /// Returns the nearest-rank percentile of sorted values: the smallest value that at least `permille` of all values
    /// do not exceed.
    fn rank(&self, permille: usize) -> u32 {
        let rank = (self.0.len() * permille).div_ceil(1000);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Percentiles of latencies in microseconds. All are 0 if there are no operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percentiles {
    /// The median.
    pub(crate) p50: u32,
    /// 90 %.
    pub(crate) p90: u32,
    /// 99 %.
    pub(crate) p99: u32,
    /// 99.9 %.
    pub(crate) p99_9: u32,
    /// The slowest.
    pub(crate) max: u32,
}

/// The combined results of all workers of a measurement.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// The latencies of successful operations.
    pub(crate) latencies: Latencies,
    /// Bytes of content that they transferred.
    pub(crate) bytes: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// The first error.
    pub(crate) first_error: Option<String>,
}

impl Results {
    /// Merges the results of all workers.
    pub(crate) fn merge(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self::default();
        for mut part in parts {
            merged.latencies.0.append(&mut part.latencies.0);
            merged.bytes += part.bytes;
            merged.errors += part.errors;
            merged.first_error = merged.first_error.or(part.first_error);
        }
        merged
    }

    /// Adds a successful operation.
    pub(crate) fn record_success(&mut self, elapsed: Duration, bytes: usize) {
        self.latencies.push(elapsed);
        self.bytes += bytes as u64;
    }

    /// Adds a failed operation.
    pub(crate) fn record_error(&mut self, error: &Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    /// Prints the first error and returns the verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.errors == 0 {
            return Verdict::Clean;
        }
        let first = self.first_error.as_deref().unwrap_or_default();
        eprintln!("restante-bench: {} errors; first error: {first}", self.errors);
        Verdict::Faulty
    }
}

/// CPU time and memory of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// User and system time since the process started, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Resident memory now, in bytes.
    pub(crate) resident: u64,
    /// The part of it that is not pages of files, such as the program itself.
    pub(crate) anonymous: u64,
    /// The peak of resident memory, in bytes.
    pub(crate) peak: u64,
}

impl Sample {
    /// Reads the CPU time and memory of process `pid`.
    pub(crate) fn read(pid: u32) -> Result<Self, Error> {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/{pid}/{file}"))
                .map_err(|error| Error::Io("reading the state of the server process", error))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        Self::parse(&stat, &status)
            .ok_or(Error::Usage(format!("cannot read CPU time and memory of process {pid}: has it ended?")))
    }

    /// Parses the text of /proc/PID/stat and /proc/PID/status (proc(5)).
    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The kernel reports in units of USER_HZ, which is 100 on every architecture that Rust's std supports on Linux.
        const TICKS_PER_SECOND: f64 = 100.0;
        // The program name, in parentheses, may contain anything; the fields after it are numbers. utime and stime are
        // fields 14 and 15, counted from 1 with the name as field 2.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_ascii_whitespace().skip(11);
        let user: u32 = times.next()?.parse().ok()?;
        let system: u32 = times.next()?.parse().ok()?;
        let bytes_of = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib * 1024)
        };
        Some(Self {
            cpu_seconds: (f64::from(user) + f64::from(system)) / TICKS_PER_SECOND,
            resident: bytes_of("VmRSS:")?,
            anonymous: bytes_of("RssAnon:")?,
            peak: bytes_of("VmHWM:")?,
        })
    }
}

/// Converts a count to `f64`. Exact for all counts here.
#[expect(clippy::cast_precision_loss, reason = "all counts are far below 2^52")]
pub(crate) fn to_f64(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

/// Converts bytes to mebibytes.
pub(crate) fn mib(bytes: u64) -> f64 {
    to_f64(bytes) / 1_048_576.0
}

/// Converts a duration to milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns `amount` divided by `count`, or 0 if `count` is 0.
pub(crate) fn ratio(amount: f64, count: f64) -> f64 {
    if count > 0.0 { amount / count } else { 0.0 }
}

/// Returns the median, or 0 if there are no values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.len() / 2;
    match (values.get(upper), values.len().is_multiple_of(2)) {
        (Some(&middle), false) => middle,
        (Some(&above), true) => values[upper - 1].midpoint(above),
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut latencies = Latencies::default();
        for micros in (1..=1000).rev() {
            latencies.push(Duration::from_micros(micros));
        }
        let expected = Percentiles { p50: 500, p90: 900, p99: 990, p99_9: 999, max: 1000 };
        assert_eq!(latencies.percentiles(), expected);
    }

    #[test]
    fn percentiles_of_one_value_and_of_none() {
        assert_eq!(Latencies::default().percentiles().max, 0);
        let mut results = Latencies::default();
        results.push(Duration::from_micros(7));
        let percentiles = results.percentiles();
        assert_eq!((percentiles.p50, percentiles.p99_9, percentiles.max), (7, 7, 7));
    }

    #[test]
    fn the_first_error_is_kept() {
        let mut results = Results::default();
        results.record_error(&Error::Refused("451 first".into()));
        let mut other = Results::default();
        other.record_error(&Error::Refused("452 second".into()));
        let results = Results::merge([results, other]);
        assert_eq!(results.errors, 2);
        assert_eq!(results.first_error.as_deref(), Some("refused: 451 first"));
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b) (c) S 1 42 42 0 -1 4194560 500 0 0 0 150 50 0 0 20 0 1 0 100";
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n";
        let sample = Sample::parse(stat, status).expect("both files are whole");
        assert!((sample.cpu_seconds - 2.0).abs() < 1e-9);
        assert_eq!((sample.anonymous, sample.resident, sample.peak), (1 << 19, 1 << 20, 2 << 20));
    }

    #[test]
    fn zombie_has_no_memory() {
        assert_eq!(Sample::parse("42 (a) Z 1 42 42 0 -1 0 0 0 0 0 1 1", "Name:\ta\n"), None);
    }

    #[test]
    fn samples_this_process() {
        let sample = Sample::read(std::process::id()).expect("proc is mounted");
        assert!(sample.peak >= sample.resident && sample.resident > 0);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        for (values, expected) in [(&[][..], 0.0), (&[3.0], 3.0), (&[9.0, 1.0], 5.0), (&[9.0, 1.0, 2.0], 2.0)] {
            assert!((median(values.iter().copied()) - expected).abs() < 1e-9, "{values:?}");
        }
    }
}
