//! Load over HTTP: sending requests over several connections, and the values that are reported about them. The commands `http`
//! and `mailpit` choose the requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::measure::{Results, Sample, ratio, to_f64};
use crate::report::Row;

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
    /// Requests these paths, of which there is at least one, and waits for all responses.
    pub(crate) async fn measure(&self, paths: impl Iterator<Item = String>) -> Result<Measurement, Error> {
        let requests = paths.map(|path| self.base.request("GET", &path)).collect();
        let before = self.pid.map(Sample::read).transpose()?;
        let start = Instant::now();
        let deadline = self.duration.map(|duration| start + duration);
        let queue = Arc::new(RequestQueue { requests, next: AtomicUsize::new(0), deadline });
        let mut workers = JoinSet::new();
        for _ in 0..self.connections {
            workers.spawn(send_requests(Client::new(self.base), Arc::clone(&queue)));
        }
        let results = Results::merge(workers.join_all().await);
        let elapsed = start.elapsed();
        let after = self.pid.map(Sample::read).transpose()?;
        Ok(Measurement { results, elapsed, samples: before.zip(after) })
    }
}

/// The results of sending requests.
pub(crate) struct Measurement {
    results: Results,
    elapsed: Duration,
    /// The server's process before and after.
    samples: Option<(Sample, Sample)>,
}

impl Measurement {
    /// Returns the number of successful requests per second.
    pub(crate) fn rate(&self) -> f64 {
        ratio(to_f64(self.results.latencies.len()), self.elapsed.as_secs_f64())
    }

    /// Prints the first error and returns the verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        self.results.verdict()
    }

    /// Adds the values to a row.
    pub(crate) fn append_to(self, row: Row) -> Row {
        let Self { results, elapsed, samples } = self;
        let count = to_f64(results.latencies.len());
        row.with_rate("requests", &results, elapsed)
            .with_throughput(&results, elapsed)
            .with_rounded("bytes_per_body", ratio(to_f64(results.bytes), count), 0)
            .with_percentiles(results.latencies.percentiles())
            .with_samples(samples, count)
    }
}

/// The requests that all workers send in turn.
struct RequestQueue {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    /// When the workers stop, but not before every worker has sent a request. If `None`, each request is sent once.
    deadline: Option<Instant>,
}

impl RequestQueue {
    fn next(&self, is_first: bool) -> Option<&[u8]> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let is_due = match self.deadline {
            None => number < self.requests.len(),
            Some(deadline) => is_first || Instant::now() < deadline,
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
        match client.exchange(request).await {
            Ok(body) => results.record_success(start.elapsed(), body.len()),
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
        let queue = |deadline| RequestQueue { requests: vec![vec![0], vec![1]], next: AtomicUsize::new(0), deadline };
        let once = queue(None);
        let sent: Vec<_> = std::iter::from_fn(|| once.next(false)).collect();
        assert_eq!(sent, [[0], [1]]);
        let expired = queue(Some(Instant::now()));
        assert_eq!((expired.next(true), expired.next(false)), (Some(&[0][..]), None));
        let endless = queue(Some(Instant::now() + Duration::from_mins(1)));
        let sent: Vec<_> = (0..3).filter_map(|_| endless.next(false)).collect();
        assert_eq!(sent, [[0], [1], [0]]);
    }
}
