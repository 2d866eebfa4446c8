//! What removes much at once: purges, expiry, and what is past. They take turns, and have a connection for it: the lanes are for mail.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::rows::value;
use crate::feed::PAST;
use crate::{Result, StoreError};

/// How often the past is tidied, how much of it goes at once, and when it goes on where that was not enough.
const INTERVAL: Duration = Duration::from_secs(10);
const MOST: i64 = 1000;
const PAUSE: Duration = Duration::from_millis(100);

/// How long it is waited for one's turn. A purge of many mailboxes is many purges.
const PATIENCE: Duration = Duration::from_mins(1);

const TIDY: &str = "SELECT tidy(make_interval(secs => $1), $2) AS tidied";

/// See the file's documentation.
pub(super) struct Broom {
    database: Arc<Database>,
    turn: Mutex<()>,
}

impl Broom {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self { database, turn: Mutex::new(()) }
    }

    /// Makes a change that removes many messages, when it is its turn.
    pub(super) async fn sweep(&self, change: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        let late = |_| StoreError::Unavailable("others who remove mail took too long".to_owned());
        let _turn = timeout(PATIENCE, self.turn.lock()).await.map_err(late)?;
        self.database.change(change, parameters).await
    }

    /// Forgets what is past, for as long as the future is polled. While that cannot be done, others have reason enough to tell.
    pub(super) async fn keep_tidy(self: Arc<Self>) {
        let mut pause = INTERVAL;
        loop {
            sleep(pause).await;
            pause = match self.tidy().await {
                Ok(tidied) if tidied == MOST => PAUSE,
                Ok(_) => INTERVAL,
                Err(error) => {
                    tracing::debug!(%error, "the past could not be tidied");
                    INTERVAL
                }
            };
        }
    }

    async fn tidy(&self) -> Result<i64> {
        let rows = self.sweep(TIDY, &[&PAST.as_secs_f64(), &MOST]).await?;
        rows.first().map_or(Ok(0), |row| value(row, "tidied"))
    }
}
