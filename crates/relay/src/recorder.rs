//! The recorder: writes the results of attempts to the queue. The senders do not wait for it, so a slow message does not
//! delay the results of others, and the results of all senders are written together.

use std::time::Duration;

use restante_queue::{AttemptOutcome, AttemptRecord, Context, Entry};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The maximum number of results that wait to be written. Senders wait if there are more.
pub(crate) const MAX_WAITING: usize = 1000;
/// The maximum number of results that are written together.
const MAX_BATCH: usize = 500;
/// How long results are collected. If the process is killed in this time, the messages are sent again.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// The delay after an error of the queue.
const ERROR_DELAY: Duration = Duration::from_secs(2);

/// See the module documentation.
pub(crate) struct Recorder {
    pub(crate) context: Context,
    pub(crate) results: mpsc::Receiver<(Entry, AttemptOutcome)>,
}

impl Recorder {
    /// Runs until all senders have ended and their results are written.
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.results.recv().await {
            let mut batch = vec![first];
            // A timeout ends the batch, and so does the end of all senders.
            let _ = timeout(BATCH_DELAY, async {
                while batch.len() < MAX_BATCH
                    && let Some(next) = self.results.recv().await
                {
                    batch.push(next);
                }
            })
            .await;
            let record = |(entry, outcome): (Entry, _)| AttemptRecord { id: entry.id, claim: entry.claim, outcome };
            self.record(batch.into_iter().map(record).collect()).await;
        }
    }

    /// Writes results. Repeats it until it succeeds or the relay shuts down; then the messages are sent again.
    async fn record(&self, batch: Vec<AttemptRecord>) {
        loop {
            let (queue, batch) = (self.context.queue.clone(), batch.clone());
            let Err(error) = self.context.access(async move { queue.record(batch).await }).await else { return };
            self.context.log_error(&error);
            if self.context.is_stopping() {
                return;
            }
            self.context.pause(ERROR_DELAY).await;
        }
    }
}
