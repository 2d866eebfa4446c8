//! Load over HTTP: filling a server with messages, sending prepared requests over several connections, and the values that are
//! reported about them. The commands `http` and `mailpit` prepare the requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::Load;
use crate::measure::{Results, Sample, mib, ratio, to_f64};
use crate::message::Envelope;
use crate::report::Row;
use crate::smtp::{CommandMode, resolve};

/// How to send requests.
pub(crate) struct RequestLoad<'a> {
    /// The server.
    pub(crate) base: &'a BaseUrl,
    /// Concurrent connections.
    pub(crate) connections: usize,
    /// How long all requests are repeated. Each one is sent once if `None`.
    pub(crate) duration: Option<Duration>,
    /// The server's process, to measure its CPU time and memory.
    pub(crate) pid: Option<u32>,
}

impl RequestLoad<'_> {
    /// Sends these requests, of which there is at least one, and waits for all responses.
    pub(crate) async fn measure(&self, requests: Vec<Vec<u8>>) -> Result<Measurement, Error> {
        let before = self.pid.map(Sample::read).transpose()?;
        let start = Instant::now();
        let until = self.duration.map_or(StopCondition::Once, |duration| StopCondition::Time(start + duration));
        let queue = Arc::new(RequestQueue { requests, next: AtomicUsize::new(0), until });
        let mut workers = JoinSet::new();
        for _ in 0..self.connections {
            workers.spawn(send_requests(Client::new(self.base), Arc::clone(&queue)));
        }
        let results = Results::merge(workers.join_all().await);
        let seconds = start.elapsed().as_secs_f64();
        let after = self.pid.map(Sample::read).transpose()?;
        Ok(Measurement { results, seconds, process: before.zip(after) })
    }
}

/// The results of sending requests.
pub(crate) struct Measurement {
    results: Results,
    seconds: f64,
    /// The server's process before and after.
    process: Option<(Sample, Sample)>,
}

impl Measurement {
    /// Returns the number of successful requests per second.
    pub(crate) fn rate(&self) -> f64 {
        ratio(to_f64(self.results.latencies.len()), self.seconds)
    }

    /// Prints the first error and returns the verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        self.results.verdict()
    }

    /// Adds the values to a row.
    pub(crate) fn append_to(self, row: Row) -> Row {
        let rate = self.rate();
        let Self { results, seconds, process } = self;
        let count = to_f64(results.latencies.len());
        let row = row
            .with("requests", results.latencies.len())
            .with("errors", results.errors)
            .with_rounded("per_s", rate, 0)
            .with_rounded("mib_per_s", ratio(mib(results.bytes), seconds), 1)
            .with_rounded("bytes_per_body", ratio(to_f64(results.bytes), count), 0)
            .with_percentiles(results.latencies.percentiles());
        match process {
            Some((before, after)) => row.with_cpu(before, after, count).with_memory(before, after),
            None => row,
        }
    }
}

/// Sends messages over an SMTP server, in turn to the recipients of the envelopes.
pub(crate) async fn fill(smtp: &str, envelopes: Vec<Envelope>, messages: usize, message: Vec<u8>) -> Result<(), Error> {
    let load = Arc::new(Load {
        addresses: resolve(smtp).await?,
        connections: 4,
        connection_per_message: false,
        mode: CommandMode::Sequential,
        envelopes,
        message,
    });
    let outcome = load.run(messages).await;
    outcome.results.first_error.map_or(Ok(()), |error| Err(Error::Usage(format!("sending messages: {error}"))))
}

/// The requests that all workers send in turn.
struct RequestQueue {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    until: StopCondition,
}

/// When the workers stop.
enum StopCondition {
    /// When each request was sent once.
    Once,
    /// At this time, but not before every worker has sent a request.
    Time(Instant),
}

impl RequestQueue {
    fn next(&self, is_first: bool) -> Option<&[u8]> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let is_due = match self.until {
            StopCondition::Once => number < self.requests.len(),
            StopCondition::Time(deadline) => is_first || Instant::now() < deadline,
        };
        is_due.then(|| self.requests[number % self.requests.len()].as_slice())
    }
}

/// Runs one worker: sends requests until there are no more.
async fn send_requests(mut client: Client, queue: Arc<RequestQueue>) -> Results {
    let mut results = Results::default();
    let mut is_first = true;
    while let Some(request) = queue.next(is_first) {
        is_first = false;
        let start = Instant::now();
        match client.exchange(request).await.and_then(|response| response.ok().map(<[u8]>::len)) {
            Ok(length) => results.record_success(start.elapsed(), length),
            Err(error @ Error::Refused(_)) => results.record_error(&error),
            Err(error) => {
                results.record_error(&error);
                // Do not retry in a tight loop if the server is gone.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_once_or_repeatedly() {
        let queue = |until| RequestQueue { requests: vec![vec![0], vec![1]], next: AtomicUsize::new(0), until };
        let once = queue(StopCondition::Once);
        let sent: Vec<_> = std::iter::from_fn(|| once.next(false)).collect();
        assert_eq!(sent, [[0], [1]]);
        let expired = queue(StopCondition::Time(Instant::now()));
        assert_eq!((expired.next(true), expired.next(false)), (Some(&[0][..]), None));
        let endless = queue(StopCondition::Time(Instant::now() + Duration::from_mins(1)));
        let sent: Vec<_> = (0..3).filter_map(|_| endless.next(false)).collect();
        assert_eq!(sent, [[0], [1], [0]]);
    }
}
