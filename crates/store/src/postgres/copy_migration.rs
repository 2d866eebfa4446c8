//! Migrates the copies that nodes of an earlier version stored: they have no message, number, tags and details. This can
//! take long, so it runs in the background, in short transactions, on one node at a time. If it is interrupted, any node
//! continues it. Until a copy is migrated, its details are empty.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::bulk_delete::BulkDeleter;
use super::database::Database;
use super::rows::{get_column, missing_error};
use crate::migrated_details::{PARSED_BYTES, migrated_details};
use crate::sql_values::to_i64;
use crate::{Result, StoreError};

/// The maximum number of copies, and of bytes of their bodies, in one transaction. Changes wait while it is written.
const MAX_BATCH_COPIES: usize = 1000;
const MAX_BATCH_BYTES: usize = 8 << 20;
/// The pause after the last copy. Nodes of an earlier version may store others.
const IDLE_INTERVAL: Duration = Duration::from_mins(1);
/// The pause after an error, and while another node migrates.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The interval of progress reports in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

const SELECT_RANGE: &str = "SELECT first_to_migrate, last_to_migrate, messages FROM state";
pub(super) const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock('copies'::regclass::oid::bigint) AS is_locked";
const SELECT_BATCH: &str = "WITH next AS MATERIALIZED (
        SELECT id, body, trace, details IS NULL AS is_pending
        FROM copies WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3
    ), sized AS (
        SELECT next.*, row_number() OVER (ORDER BY next.id) AS index,
            sum(CASE WHEN is_pending THEN least(length(bytes), $4) ELSE 0 END) OVER (ORDER BY next.id) AS total
        FROM next JOIN bodies ON bodies.id = next.body
    )
    SELECT id, is_pending, CASE WHEN is_pending THEN trace END AS trace,
        (SELECT substring(bytes FROM 1 FOR $4) FROM bodies WHERE bodies.id = sized.body AND is_pending) AS bytes
    FROM sized WHERE total <= $5 OR index = 1 ORDER BY id";
const MIGRATE: &str = "SELECT migrate_copies($1, $2, $3, $4) AS is_migrated";

/// See the module documentation.
pub(super) struct CopyMigration {
    database: Arc<Database>,
    bulk_deleter: Arc<BulkDeleter>,
    max_batch_copies: usize,
    /// The number of copies that were migrated since the last pause.
    migrated: usize,
    last_logged: Instant,
}

/// The result of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// This number of copies was migrated. There may be more.
    Migrated(usize),
    /// Another node is migrating.
    Busy,
    /// All copies are migrated.
    Done,
}

impl CopyMigration {
    pub(super) fn new(database: Arc<Database>, bulk_deleter: Arc<BulkDeleter>) -> Self {
        Self { database, bulk_deleter, max_batch_copies: MAX_BATCH_COPIES, migrated: 0, last_logged: Instant::now() }
    }

    /// Sets the maximum number of copies in one transaction.
    #[cfg(test)]
    pub(super) fn with_max_batch_copies(self, max_batch_copies: usize) -> Self {
        Self { max_batch_copies, ..self }
    }

    /// Migrates copies until it is cancelled. Errors are logged at debug level only, because the other operations report
    /// the same failure.
    pub(super) async fn run(mut self) {
        loop {
            let start = Instant::now();
            let pause = match self.migrate_batch().await {
                // Other changes get at least as much time.
                Ok(Progress::Migrated(_)) => start.elapsed(),
                Ok(Progress::Busy) => RETRY_DELAY,
                Ok(Progress::Done) => IDLE_INTERVAL,
                Err(error) => {
                    tracing::debug!(%error, "cannot migrate messages of an earlier version");
                    RETRY_DELAY
                }
            };
            sleep(pause).await;
        }
    }

    /// Migrates the next copies in one transaction.
    pub(super) async fn migrate_batch(&mut self) -> Result<Progress> {
        let range = self.database.query(SELECT_RANGE, &[]).await?;
        let range = range.first().ok_or_else(|| missing_error("the state"))?;
        if get_column::<i64>(range, "first_to_migrate")? > get_column(range, "last_to_migrate")? {
            self.log_end();
            return Ok(Progress::Done);
        }
        let progress = self.migrate_next().await?;
        if let Progress::Migrated(count) = progress {
            self.log_progress(count, get_column(range, "messages")?);
        }
        Ok(progress)
    }

    async fn migrate_next(&self) -> Result<Progress> {
        let _guard = self.bulk_deleter.lock().await?;
        let transaction = self.database.begin().await?;
        let locked = transaction.run(TRY_LOCK, &[]).await?;
        if !locked.first().map_or(Ok(false), |row| get_column(row, "is_locked"))? {
            transaction.commit().await?;
            return Ok(Progress::Busy);
        }
        let range = transaction.run(SELECT_RANGE, &[]).await?;
        let range = range.first().ok_or_else(|| missing_error("the state"))?;
        let (first, last): (i64, i64) = (get_column(range, "first_to_migrate")?, get_column(range, "last_to_migrate")?);
        let (max_copies, max_bytes): (i64, i64) = (to_i64(self.max_batch_copies), to_i64(MAX_BATCH_BYTES));
        let parsed_bytes = i32::try_from(PARSED_BYTES).unwrap_or(i32::MAX);
        let rows = transaction.run(SELECT_BATCH, &[&first, &last, &max_copies, &parsed_bytes, &max_bytes]).await?;
        let last = rows.last().map_or(Ok(last), |row| get_column(row, "id"))?;
        let parsed = spawn_blocking(move || parse_details(&rows)).await;
        let details = parsed.map_err(|error| StoreError::Broken(format!("cannot parse messages: {error}")))??;
        let (ids, details): (Vec<i64>, Vec<Vec<u8>>) = details.into_iter().unzip();
        transaction.run(MIGRATE, &[&first, &last, &ids, &details]).await?;
        transaction.commit().await?;
        Ok(Progress::Migrated(ids.len()))
    }

    fn log_progress(&mut self, count: usize, all: i64) {
        if self.migrated == 0 && count > 0 {
            tracing::info!("migrating messages of an earlier version in the background");
            self.last_logged = Instant::now();
        }
        self.migrated += count;
        if self.last_logged.elapsed() >= LOG_INTERVAL {
            let migrated = self.migrated;
            tracing::info!("migrated {migrated} of about {all} messages of an earlier version");
            self.last_logged = Instant::now();
        }
    }

    fn log_end(&mut self) {
        let migrated = std::mem::take(&mut self.migrated);
        if migrated > 0 {
            tracing::info!("migrated all messages of an earlier version ({migrated} by this node)");
        }
    }
}

/// Returns the ids and the details of the copies that have none.
fn parse_details(rows: &[Row]) -> Result<Vec<(i64, Vec<u8>)>> {
    let mut parsed = Vec::with_capacity(rows.len());
    for row in rows {
        if get_column(row, "is_pending")? {
            let (trace, body) = (get_column(row, "trace")?, get_column::<Option<&[u8]>>(row, "bytes")?);
            let details = migrated_details(trace, body.unwrap_or_default());
            parsed.push((get_column(row, "id")?, details.encoded().as_bytes().to_vec()));
        }
    }
    Ok(parsed)
}
