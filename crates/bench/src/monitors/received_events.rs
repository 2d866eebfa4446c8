//! The events that monitors received, compared with the acknowledged messages. Does no I/O.

use std::ops::Range;
use std::time::Instant;

use super::Topic;
use crate::error::Error;
use crate::measure::Latencies;

/// The events that one monitor received about messages with certain numbers.
#[derive(Debug)]
pub(super) struct ReceivedEvents {
    numbers: Range<usize>,
    /// Which of them it received.
    received: BitSet,
    /// How many events it received more than once.
    repeated: u64,
    /// When they arrived; `None` if times are not recorded.
    arrivals: Option<Vec<(usize, Instant)>>,
    /// How often the server disconnected it because it lagged.
    lagged: u64,
    /// How often it reconnected.
    pub(super) reconnected: u64,
    /// How often it was disconnected without a reason.
    dropped: u64,
    /// The first such error.
    first_error: Option<String>,
}

impl ReceivedEvents {
    /// Creates an empty record.
    pub(super) fn new(numbers: Range<usize>, is_timed: bool) -> Self {
        let received = BitSet::with_capacity(numbers.len());
        let arrivals = is_timed.then(Vec::new);
        Self { numbers, received, repeated: 0, arrivals, lagged: 0, reconnected: 0, dropped: 0, first_error: None }
    }

    /// Records an event. Returns true if its message counts and was received for the first time. A monitor gets older
    /// messages when it connects, and repeated ones when it reconnects.
    pub(super) fn record(&mut self, number: usize) -> bool {
        let Some(offset) = offset(&self.numbers, number) else { return false };
        if !self.received.insert(offset) {
            self.repeated += 1;
            return false;
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push((number, Instant::now()));
        }
        true
    }

    /// Records that the server disconnected the monitor: `Ok` if it lagged, or an error.
    pub(super) fn record_disconnect(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => self.lagged += 1,
            Err(error) => {
                self.dropped += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

/// The combined results of all reading monitors.
#[derive(Debug, Default)]
pub(super) struct EventSummary {
    /// The number of messages that each monitor received, in ascending order.
    pub(super) events: Vec<u64>,
    /// Acknowledged messages that disconnected monitors did not receive, over all of them.
    pub(super) missed: u64,
    /// Acknowledged messages that other monitors did not receive. This must not happen.
    pub(super) lost: u64,
    /// Repeated events at monitors that were not disconnected. This must not happen.
    pub(super) doubled: u64,
    /// See [`ReceivedEvents::lagged`].
    pub(super) lagged: u64,
    /// See [`ReceivedEvents::reconnected`].
    pub(super) reconnected: u64,
    /// See [`ReceivedEvents::dropped`].
    pub(super) dropped: u64,
    /// See [`ReceivedEvents::first_error`].
    pub(super) first_error: Option<String>,
    /// The time from the acknowledgement of a message to its event; 0 if the event came first.
    pub(super) latencies: Latencies,
}

impl EventSummary {
    /// Compares the received events with the acknowledged messages.
    pub(super) fn compare(monitors: &[&ReceivedEvents], acknowledged: &[Option<Instant>], topic: Topic) -> Self {
        let mut summary = Self::default();
        for (index, monitor) in monitors.iter().enumerate() {
            summary.add(monitor, acknowledged, |number| topic.includes(number, index, monitors.len()));
        }
        summary.events.sort_unstable();
        summary
    }

    fn add(&mut self, monitor: &ReceivedEvents, acknowledged: &[Option<Instant>], is_expected: impl Fn(usize) -> bool) {
        let missing = |(number, (offset, at)): &(usize, (usize, &Option<Instant>))| {
            at.is_some() && !monitor.received.contains(*offset) && is_expected(*number)
        };
        let missing = monitor.numbers.clone().zip(acknowledged.iter().enumerate()).filter(missing).count() as u64;
        if monitor.lagged + monitor.dropped > 0 {
            self.missed += missing;
        } else {
            self.lost += missing;
            self.doubled += monitor.repeated;
        }
        self.events.push(monitor.received.count());
        self.lagged += monitor.lagged;
        self.reconnected += monitor.reconnected;
        self.dropped += monitor.dropped;
        self.first_error = self.first_error.take().or_else(|| monitor.first_error.clone());
        for &(number, arrival) in monitor.arrivals.iter().flatten() {
            let at = offset(&monitor.numbers, number).and_then(|offset| acknowledged.get(offset).copied().flatten());
            if let Some(at) = at {
                self.latencies.push(arrival.saturating_duration_since(at));
            }
        }
    }
}

/// A compact set of small numbers: a thousand monitors have one each.
#[derive(Debug)]
struct BitSet(Vec<u64>);

impl BitSet {
    /// Creates an empty set for numbers below `end`.
    fn with_capacity(end: usize) -> Self {
        Self(vec![0; end.div_ceil(64)])
    }

    /// Adds a number. Returns false if it is in the set already.
    fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Returns the position of a number in the range of those that count.
fn offset(numbers: &Range<usize>, number: usize) -> Option<usize> {
    numbers.contains(&number).then(|| number - numbers.start)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn received_numbers(numbers: &[usize]) -> ReceivedEvents {
        let mut received = ReceivedEvents::new(10..14, true);
        for &number in numbers {
            received.record(number);
        }
        received
    }

    #[test]
    fn bit_set_inserts_and_counts() {
        let mut bits = BitSet::with_capacity(130);
        let added: Vec<_> = [0, 63, 64, 129, 63].iter().map(|&number| bits.insert(number)).collect();
        assert_eq!(added, [true, true, true, true, false]);
        assert_eq!(bits.count(), 4);
        assert!(bits.contains(129) && !bits.contains(128));
    }

    #[test]
    fn messages_count_once_and_older_ones_not_at_all() {
        let mut received = ReceivedEvents::new(10..14, false);
        let counted: Vec<_> = [9, 10, 10, 13, 14, 10].iter().map(|&number| received.record(number)).collect();
        assert_eq!(counted, [false, true, false, true, false, false]);
    }

    #[test]
    fn only_disconnected_monitors_may_get_repeated_events() {
        let acknowledged = [Some(Instant::now()); 4];
        let mut disconnected = received_numbers(&[10, 11, 12, 13, 12, 13]);
        disconnected.record_disconnect(Ok(()));
        let summary = EventSummary::compare(
            &[&disconnected, &received_numbers(&[10, 11, 12, 10, 13, 10])],
            &acknowledged,
            Topic::All,
        );
        assert_eq!((summary.events, summary.lost, summary.doubled), (vec![4, 4], 0, 2));
    }

    #[test]
    fn only_disconnected_monitors_may_miss_events() {
        let acknowledged = [Some(Instant::now()), Some(Instant::now()), None, Some(Instant::now())];
        let mut disconnected = received_numbers(&[10]);
        disconnected.record_disconnect(Ok(()));
        disconnected.reconnected += 1;
        let (incomplete, complete) = (received_numbers(&[10, 13]), received_numbers(&[10, 11, 13]));
        let summary = EventSummary::compare(&[&disconnected, &complete, &incomplete], &acknowledged, Topic::All);
        assert_eq!(summary.events, [1, 2, 3]);
        assert_eq!((summary.missed, summary.lost), (2, 1), "the one without a 250 is not due");
        assert_eq!((summary.lagged, summary.reconnected, summary.dropped), (1, 1, 0));
        assert_eq!(summary.latencies.len(), 6);
    }

    #[test]
    fn monitor_of_one_mailbox_expects_its_own_messages() {
        let acknowledged = [Some(Instant::now()); 4];
        let summary = EventSummary::compare(
            &[&received_numbers(&[10, 12]), &received_numbers(&[11])],
            &acknowledged,
            Topic::Mailbox,
        );
        assert_eq!((summary.events, summary.lost), (vec![1, 2], 1), "13 belongs to the second");
    }

    #[test]
    fn event_before_its_acknowledgement_has_latency_zero() {
        let received = received_numbers(&[10]);
        let later = Some(Instant::now() + Duration::from_mins(1));
        let summary = EventSummary::compare(&[&received], &[later, None, None, None], Topic::All);
        assert_eq!(summary.latencies.percentiles().max, 0);
    }
}
