//! Changes of many rows: purges, expiry and the trimming of the history. They run one at a time, on a separate connection,
//! so that they do not delay new messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::rows::get_column;
use crate::feed::HISTORY_DURATION;
use crate::{Result, StoreError};

/// How the history is trimmed: the interval between two runs, the number of rows per statement, and the delay before the
/// next statement if there are more rows.
const TRIM_INTERVAL: Duration = Duration::from_secs(10);
const MAX_TRIM_ROWS: i64 = 1000;
const CONTINUE_DELAY: Duration = Duration::from_millis(100);

/// How long a change waits for the others. A purge of many mailboxes is many changes.
const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

const TRIM_HISTORY: &str = "SELECT trim_history(make_interval(secs => $1), $2) AS trimmed";

/// Runs the changes of this module one at a time.
pub(super) struct BulkDeleter {
    database: Arc<Database>,
    lock: Mutex<()>,
}

impl BulkDeleter {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, lock: Mutex::new(()) }
    }

    /// Runs a change that deletes many messages, after the changes that are already waiting.
    pub(super) async fn run(&self, change: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        let timed_out = |_| StoreError::Unavailable("other bulk changes took too long".to_owned());
        let _guard = timeout(LOCK_TIMEOUT, self.lock.lock()).await.map_err(timed_out)?;
        self.database.execute(change, parameters).await
    }

    /// Trims the history until it is cancelled. Errors are logged at debug level only, because the other operations
    /// report the same failure.
    pub(super) async fn trim_history_forever(self: Arc<Self>) {
        let mut pause = TRIM_INTERVAL;
        loop {
            sleep(pause).await;
            pause = match self.trim_history().await {
                Ok(deleted) if deleted == MAX_TRIM_ROWS => CONTINUE_DELAY,
                Ok(_) => TRIM_INTERVAL,
                Err(error) => {
                    tracing::debug!(%error, "cannot trim the history");
                    TRIM_INTERVAL
                }
            };
        }
    }

    async fn trim_history(&self) -> Result<i64> {
        let rows = self.run(TRIM_HISTORY, &[&HISTORY_DURATION.as_secs_f64(), &MAX_TRIM_ROWS]).await?;
        rows.first().map_or(Ok(0), |row| get_column(row, "trimmed"))
    }
}
