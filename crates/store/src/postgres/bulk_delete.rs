//! What removes much at once: purges, expiry, and what is past. They take turns, and have a connection for it: the lanes are for mail.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::rows::get_column;
use crate::feed::HISTORY_DURATION;
use crate::{Result, StoreError};

/// How often the past is tidied, how much of it goes at once, and when it goes on where that was not enough.
const TRIM_INTERVAL: Duration = Duration::from_secs(10);
const MAX_TRIM_ROWS: i64 = 1000;
const CONTINUE_DELAY: Duration = Duration::from_millis(100);

/// How long it is waited for one's turn. A purge of many mailboxes is many purges.
const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

const TRIM_HISTORY: &str = "SELECT tidy(make_interval(secs => $1), $2) AS tidied";

/// See the file's documentation.
pub(super) struct BulkDeleter {
    database: Arc<Database>,
    lock: Mutex<()>,
}

impl BulkDeleter {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, lock: Mutex::new(()) }
    }

    /// Makes a change that removes many messages, when it is its turn.
    pub(super) async fn run(&self, change: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        let late = |_| StoreError::Unavailable("others who remove mail took too long".to_owned());
        let _turn = timeout(LOCK_TIMEOUT, self.lock.lock()).await.map_err(late)?;
        self.database.execute(change, parameters).await
    }

    /// Forgets what is past, for as long as the future is polled. While that cannot be done, others have reason enough to tell.
    pub(super) async fn trim_history_forever(self: Arc<Self>) {
        let mut pause = TRIM_INTERVAL;
        loop {
            sleep(pause).await;
            pause = match self.trim_history().await {
                Ok(tidied) if tidied == MAX_TRIM_ROWS => CONTINUE_DELAY,
                Ok(_) => TRIM_INTERVAL,
                Err(error) => {
                    tracing::debug!(%error, "the past could not be tidied");
                    TRIM_INTERVAL
                }
            };
        }
    }

    async fn trim_history(&self) -> Result<i64> {
        let rows = self.run(TRIM_HISTORY, &[&HISTORY_DURATION.as_secs_f64(), &MAX_TRIM_ROWS]).await?;
        rows.first().map_or(Ok(0), |row| get_column(row, "tidied"))
    }
}
