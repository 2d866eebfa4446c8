//! The three tables of the results of passes and monitors, and the verdict.

use super::monitor_group::GroupOutcome;
use crate::Verdict;
use crate::load::LoadResult;
use crate::measure::{Percentiles, Sample, median, ratio, to_f64};
use crate::report::{Report, Row};

/// The result of sending all messages once.
pub(super) struct Pass {
    /// The result of the delivery.
    pub(super) delivery: LoadResult,
    /// Samples before the monitors were opened and before they were closed.
    pub(super) samples: Option<(Sample, Sample)>,
}

/// The values that are compared between passes.
pub(super) struct Figures {
    per_second: f64,
    latency: Percentiles,
}

type Figure = fn(&Figures) -> f64;

impl Pass {
    /// Returns the row of the first table, and the values for the last one.
    pub(super) fn row(self, round: usize, monitors: usize) -> (Row, Figures) {
        let LoadResult { results, elapsed, .. } = self.delivery;
        let count = to_f64(results.latencies.len());
        let per_second = ratio(count, elapsed.as_secs_f64());
        let row =
            Row::default().with("round", round).with("monitors", monitors).with_rate("messages", &results, elapsed);
        let latency = results.latencies.percentiles();
        let row = row.with_percentiles(latency).with_samples(self.samples, count);
        (row, Figures { per_second, latency })
    }
}

/// Prints errors and returns the verdict. Monitors may lag if the server reports it; events must not be repeated.
pub(super) fn check_outcome(outcome: &GroupOutcome) -> Verdict {
    let summary = &outcome.summary;
    if summary.lost > 0 {
        eprintln!("restante-bench: {} events were not sent to monitors that stayed connected", summary.lost);
    }
    if summary.doubled > 0 {
        eprintln!("restante-bench: {} events were sent twice to monitors that stayed connected", summary.doubled);
    }
    if let Some(error) = &summary.first_error {
        eprintln!("restante-bench: {} monitors were disconnected; first error: {error}", summary.dropped);
    }
    if summary.lost + summary.doubled + summary.dropped == 0 { Verdict::Clean } else { Verdict::Faulty }
}

/// Returns the row of the second table.
pub(super) fn group_row(round: usize, outcome: GroupOutcome) -> Row {
    let GroupOutcome { summary, stalled_dropped } = outcome;
    let events = &summary.events;
    let row = Row::default()
        .with("round", round)
        .with("events_min", events.first().copied())
        .with("events_median", events.get(events.len() / 2).copied())
        .with("events_max", events.last().copied())
        .with("missed", summary.missed)
        .with("lost", summary.lost)
        .with("doubled", summary.doubled)
        .with("lagged", summary.lagged)
        .with("dropped", summary.dropped)
        .with("reconnected", summary.reconnected)
        .with("stalled_dropped", stalled_dropped);
    let latency = summary.latencies.percentiles();
    row.with("event_p50_us", latency.p50).with("event_p99_us", latency.p99).with("event_max_us", latency.max)
}

/// Prints the medians of all rounds, and the median ratio of passes with monitors to passes without.
pub(super) fn report_medians(json: bool, [without, with]: &[Vec<Figures>; 2]) {
    let mut report = Report::new(json);
    let figures: [(&str, Figure); 3] = [
        ("per_s", |figures| figures.per_second),
        ("p50_us", |figures| f64::from(figures.latency.p50)),
        ("p99_us", |figures| f64::from(figures.latency.p99)),
    ];
    for (name, figure) in figures {
        let ratios = without.iter().zip(with).map(|(without, with)| ratio(figure(with), figure(without)));
        let row = Row::default()
            .with("median", name)
            .with_rounded("without", median(without.iter().map(figure)), 0)
            .with_rounded("with", median(with.iter().map(figure)), 0)
            .with_rounded("ratio", median(ratios), 3);
        report.row(&row);
    }
}
