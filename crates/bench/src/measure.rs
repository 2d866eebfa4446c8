//! Figures: latencies with their percentiles, and what the kernel knows about the CPU time and memory of a process. How
//! they are shown is the business of `report`.

use std::fs;
use std::time::Duration;

use crate::Verdict;
use crate::error::Error;

/// Latencies of single operations, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    /// Notes one operation.
    pub(crate) fn push(&mut self, elapsed: Duration) {
        self.0.push(u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX));
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// How many operations were noted.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The figures that are reported.
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

    /// The nearest-rank percentile of sorted values: the smallest that at least `permille` of all do not exceed.
    fn rank(&self, permille: usize) -> u32 {
        let rank = (self.0.len() * permille).div_ceil(1000);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Latencies in microseconds that a share of all operations did not exceed. All are 0 when there were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percentiles {
    /// The median.
    pub(crate) p50: u32,
    /// Nine of ten.
    pub(crate) p90: u32,
    /// 99 of 100.
    pub(crate) p99: u32,
    /// 999 of 1,000.
    pub(crate) p99_9: u32,
    /// The slowest.
    pub(crate) max: u32,
}

/// What the workers of one measurement have seen together.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Operations that succeeded.
    pub(crate) latencies: Latencies,
    /// Bytes of content that were moved by them.
    pub(crate) bytes: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// The first failure, in words.
    pub(crate) first_error: Option<String>,
}

impl Results {
    /// What all workers have seen together.
    pub(crate) fn merge(workers: impl IntoIterator<Item = Self>) -> Self {
        workers.into_iter().fold(Self::default(), |mut all, one| {
            all.append(one);
            all
        })
    }

    /// Notes an operation that succeeded.
    pub(crate) fn record_success(&mut self, elapsed: Duration, bytes: usize) {
        self.latencies.push(elapsed);
        self.bytes += bytes as u64;
    }

    /// Notes an operation that failed.
    pub(crate) fn record_error(&mut self, error: &Error) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    fn append(&mut self, other: Self) {
        self.latencies.append(other.latencies);
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// Shows the first failure, and judges.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.errors == 0 {
            return Verdict::Clean;
        }
        let first = self.first_error.as_deref().unwrap_or_default();
        eprintln!("restante-bench: {} errors, the first one: {first}", self.errors);
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
    /// The most that was ever resident, in bytes.
    pub(crate) peak: u64,
}

impl Sample {
    /// Reads what the kernel knows about process `pid`.
    pub(crate) fn read(pid: u32) -> Result<Self, Error> {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/{pid}/{file}"))
                .map_err(|error| Error::io("reading the state of the server process", error))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        Self::parse(&stat, &status)
            .ok_or(Error::Usage(format!("process {pid} shows no CPU time and memory: has it ended?")))
    }

    /// From the text of /proc/PID/stat and /proc/PID/status (proc(5)).
    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The kernel reports in units of USER_HZ, which is 100 on every architecture that Rust's std supports on Linux.
        const TICKS_PER_SECOND: f64 = 100.0;
        // The name of the program, in parentheses, may itself contain anything; the fields after it are numbers. utime
        // and stime are fields 14 and 15, counted from 1 with the name as field 2.
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
            peak: bytes_of("VmHWM:")?,
        })
    }
}

/// A count as a number that can be divided; exact for everything that is counted here.
#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
pub(crate) fn to_f64(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}

/// Bytes as mebibytes.
pub(crate) fn mib(bytes: u64) -> f64 {
    to_f64(bytes) / 1_048_576.0
}

/// `amount` divided by `count`, and 0 where there is nothing to divide by.
pub(crate) fn ratio(amount: f64, count: f64) -> f64 {
    if count > 0.0 { amount / count } else { 0.0 }
}

/// The middle one, or the mean of the two in the middle; 0 when there are none.
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
    fn percentiles_of_few_and_of_none() {
        assert_eq!(Latencies::default().percentiles().max, 0);
        let mut one = Latencies::default();
        one.push(Duration::from_micros(7));
        let seven = one.percentiles();
        assert_eq!((seven.p50, seven.p99_9, seven.max), (7, 7, 7));
    }

    #[test]
    fn the_first_error_is_kept() {
        let mut tally = Results::default();
        tally.record_error(&Error::Refused("451 first".into()));
        let mut other = Results::default();
        other.record_error(&Error::Refused("452 second".into()));
        let tally = Results::merge([tally, other]);
        assert_eq!(tally.errors, 2);
        assert_eq!(tally.first_error.as_deref(), Some("refused: 451 first"));
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b) (c) S 1 42 42 0 -1 4194560 500 0 0 0 150 50 0 0 20 0 1 0 100";
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let sample = Sample::parse(stat, status).expect("both files are whole");
        assert!((sample.cpu_seconds - 2.0).abs() < 1e-9);
        assert_eq!((sample.resident, sample.peak), (1 << 20, 2 << 20));
    }

    #[test]
    fn a_zombie_has_no_memory_to_show() {
        assert_eq!(Sample::parse("42 (a) Z 1 42 42 0 -1 0 0 0 0 0 1 1", "Name:\ta\n"), None);
    }

    #[test]
    fn this_process_can_be_sampled() {
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
