//! The three tables of the results of passes and monitors, and the verdict.

use super::delivery::DeliveryResult;
use super::monitor_group::GroupOutcome;
use crate::Verdict;
use crate::measure::{Percentiles, Sample, median, ratio, to_f64};
use crate::report::{Report, Row};

/// The result of sending all messages once.
pub(super) struct Pass {
    /// The result of the delivery.
    pub(super) delivery: DeliveryResult,
    /// Samples before the monitors were opened and before they were closed.
    pub(super) samples: Option<(Sample, Sample)>,
}

/// The values that are compared.
pub(super) struct Figures {
    per_second: f64,
    latency: Percentiles,
}

type Figure = fn(&Figures) -> f64;

impl Pass {
    /// Returns the row of the first table, and the values for the last one.
    pub(super) fn row(self, round: usize, monitors: usize) -> (Row, Figures) {
        let DeliveryResult { results: tally, elapsed, .. } = self.delivery;
        let sent = to_f64(tally.latencies.len());
        let per_second = ratio(sent, elapsed.as_secs_f64());
        let row = Row::default()
            .with("round", round)
            .with("monitors", monitors)
            .with("messages", tally.latencies.len())
            .with("errors", tally.errors)
            .with_rounded("per_s", per_second, 0);
        let latency = tally.latencies.percentiles();
        let row = row.with_percentiles(latency);
        let row = match self.samples {
            Some((before, after)) => row.with_cpu(before, after, sent).with_memory(before, after),
            None => row,
        };
        (row, Figures { per_second, latency })
    }
}

/// Prints errors and returns the verdict. Monitors may lag if the server reports it; events must not be repeated.
pub(super) fn check_outcome(outcome: &GroupOutcome) -> Verdict {
    let attendance = &outcome.summary;
    if attendance.lost > 0 {
        eprintln!("restante-bench: {} events did not come to monitors that were not cut off", attendance.lost);
    }
    if attendance.doubled > 0 {
        eprintln!("restante-bench: {} events came twice to monitors that were not cut off", attendance.doubled);
    }
    if let Some(error) = &attendance.first_error {
        eprintln!("restante-bench: {} monitors were cut off, the first one: {error}", attendance.dropped);
    }
    if attendance.lost + attendance.doubled + attendance.dropped == 0 { Verdict::Clean } else { Verdict::Faulty }
}

/// Returns the row of the second table.
pub(super) fn group_row(round: usize, outcome: GroupOutcome) -> Row {
    let GroupOutcome { summary: attendance, stalled_dropped } = outcome;
    let events = &attendance.events;
    let row = Row::default()
        .with("round", round)
        .with("events_min", events.first().copied())
        .with("events_median", events.get(events.len() / 2).copied())
        .with("events_max", events.last().copied())
        .with("missed", attendance.missed)
        .with("lost", attendance.lost)
        .with("doubled", attendance.doubled)
        .with("lagged", attendance.lagged)
        .with("dropped", attendance.dropped)
        .with("reconnected", attendance.reconnected)
        .with("stalled_dropped", stalled_dropped);
    let latency = attendance.latencies.percentiles();
    row.with("event_p50_us", latency.p50).with("event_p99_us", latency.p99).with("event_max_us", latency.max)
}

/// Prints the medians of all rounds, and the median ratio of passes with monitors to passes without.
pub(super) fn report_medians(json: bool, [without, with]: &[Vec<Figures>; 2]) {
    let mut report = Report::new(json);
    let figures: [(&str, Figure); 3] = [
        ("per_s", |turn| turn.per_second),
        ("p50_us", |turn| f64::from(turn.latency.p50)),
        ("p99_us", |turn| f64::from(turn.latency.p99)),
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
