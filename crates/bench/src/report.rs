//! The output: rows of named values, as an aligned table or as one JSON object per line. A row is printed as soon as it
//! is complete, so that a long measurement can be watched.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use crate::measure::{Percentiles, Results, Sample, mib, ratio, to_f64};

/// One row: names and values in the order of output.
#[derive(Debug, Default)]
pub(crate) struct Row(Vec<(&'static str, Value)>);

impl Row {
    /// Adds a value as it is.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// Adds a number rounded to `decimals` places. With 0 decimals it is an integer.
    pub(crate) fn with_rounded(self, name: &'static str, value: f64, decimals: usize) -> Self {
        self.with(name, rounded(value, decimals))
    }

    /// Adds latencies.
    pub(crate) fn with_percentiles(self, latency: Percentiles) -> Self {
        self.with("p50_us", latency.p50)
            .with("p90_us", latency.p90)
            .with("p99_us", latency.p99)
            .with("p99.9_us", latency.p99_9)
            .with("max_us", latency.max)
    }

    /// Adds the number of operations by this name, their errors and their rate.
    pub(crate) fn with_rate(self, name: &'static str, results: &Results, elapsed: Duration) -> Self {
        let count = results.latencies.len();
        let per_second = ratio(to_f64(count), elapsed.as_secs_f64());
        self.with(name, count).with("errors", results.errors).with_rounded("per_s", per_second, 0)
    }

    /// Adds the bytes of content per second.
    pub(crate) fn with_throughput(self, results: &Results, elapsed: Duration) -> Self {
        self.with_rounded("mib_per_s", ratio(mib(results.bytes), elapsed.as_secs_f64()), 1)
    }

    /// Adds the CPU seconds of the server per 1,000 of `count` operations, and its memory, if there are samples.
    pub(crate) fn with_samples(self, samples: Option<(Sample, Sample)>, count: f64) -> Self {
        let Some((before, after)) = samples else { return self };
        let seconds = after.cpu_seconds - before.cpu_seconds;
        self.with_rounded("cpu_s_per_1000", ratio(seconds * 1000.0, count), 4).with_memory(before, after)
    }

    /// Adds the resident memory of the server before and after, and its peak, in MiB.
    pub(crate) fn with_memory(self, before: Sample, after: Sample) -> Self {
        self.with_rounded("rss_before_mib", mib(before.resident), 1)
            .with_rounded("rss_after_mib", mib(after.resident), 1)
            .with_rounded("rss_peak_mib", mib(after.peak), 1)
    }
}

/// The minimum width of a column: later rows may have larger values than the first.
const MIN_WIDTH: usize = 7;

/// Prints rows that all have the same names.
pub(crate) struct Report {
    json: bool,
    /// The minimum width of the first columns.
    min_widths: &'static [usize],
    /// The width of each column; empty until the first row has been printed.
    widths: Vec<usize>,
}

impl Report {
    /// Creates a report as a table, or as JSON.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, min_widths: &[], widths: Vec::new() }
    }

    /// Sets the minimum width of the first columns, for texts that become longer than in the first row.
    pub(crate) fn with_min_widths(self, min_widths: &'static [usize]) -> Self {
        Self { min_widths, ..self }
    }

    /// Prints one row.
    pub(crate) fn row(&mut self, row: &Row) {
        let text = if self.json { json_line(row) } else { self.table_lines(row) };
        // The reader of the output may be gone.
        let _ = io::stdout().write_all(text.as_bytes());
    }

    fn table_lines(&mut self, row: &Row) -> String {
        let mut lines = String::new();
        if self.widths.is_empty() {
            let names: Vec<_> = row.0.iter().map(|(name, _)| (*name).to_owned()).collect();
            let values = row.0.iter().map(|(_, value)| cell(value).len() + 1);
            let widths = names.iter().map(|name| name.len().max(MIN_WIDTH)).zip(values);
            let min_widths = self.min_widths.iter().copied().chain(std::iter::repeat(0));
            self.widths = widths.zip(min_widths).map(|((name, value), min)| name.max(value).max(min)).collect();
            lines.push_str(&aligned(&names, &self.widths));
        }
        let values: Vec<_> = row.0.iter().map(|(_, value)| cell(value)).collect();
        lines + &aligned(&values, &self.widths)
    }
}

/// Rounds a number to `decimals` places. Returns null if it is not finite.
pub(crate) fn rounded(value: f64, decimals: usize) -> Value {
    format!("{value:.decimals$}").parse().unwrap_or(Value::Null)
}

fn json_line(row: &Row) -> String {
    let members: Vec<_> = row.0.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}\n", members.join(","))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let columns: Vec<_> = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
    columns.join("  ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size: u32, rate: f64) -> Row {
        Row::default()
            .with("size", size)
            .with_rounded("rate", rate, 1)
            .with_rounded("whole", rate, 0)
            .with("note", Value::Null)
    }

    #[test]
    fn a_table_has_one_header_and_aligned_columns() {
        let mut report = Report::new(false);
        let text = report.table_lines(&row(1024, 1234.56)) + &report.table_lines(&row(20, 0.0));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "   size     rate    whole     note");
        assert_eq!(lines[1], "   1024   1234.6     1235        -");
        assert_eq!(lines[2..], ["     20      0.0        0        -"]);
    }

    #[test]
    fn a_column_has_at_least_its_minimum_width() {
        let mut report = Report::new(false).with_min_widths(&[10]);
        assert!(report.table_lines(&row(1024, 1.0)).starts_with("      size     rate"));
    }

    #[test]
    fn a_json_line_keeps_the_order_of_the_names() {
        let line = json_line(&row(1024, 2.26));
        let expected = "{\"size\":1024,\"rate\":2.3,\"whole\":2,\"note\":null}\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn non_finite_number_is_null() {
        assert_eq!(rounded(f64::NAN, 1), Value::Null);
    }
}
