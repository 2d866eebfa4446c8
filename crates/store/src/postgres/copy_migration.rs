//! Migrates the copies that nodes of an earlier version stored: they have no message, number, tags and details. This can
//! take long, so it runs in the background, in short transactions, on one node at a time. If it is interrupted, any node
//! continues it. If it fails, it is retried with fewer copies. Until a copy is migrated, its details are empty.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use super::bulk_delete::BulkDeleter;
use super::database::Database;
use super::rows::{get_column, missing_error};
use crate::migrated_details::BodyDetails;
use crate::sql_values::to_i64;
use crate::{Result, StoreError};

/// The maximum number of copies, and of bytes of their bodies, in one transaction. Changes wait while it is written.
const MAX_BATCH_COPIES: usize = 1000;
const MAX_BATCH_BYTES: usize = 8 << 20;
/// The number of bytes at the start of a body that are parsed.
const PARSED_BYTES: usize = 64 << 10;
/// The pause after the last copy. Nodes of an earlier version may store others.
const IDLE_INTERVAL: Duration = Duration::from_mins(1);
/// The pause after an error, and while another node migrates.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The interval of progress reports in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long attempts must fail before a warning is logged, and the time between two warnings.
const WARN_INTERVAL: Duration = Duration::from_mins(1);

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
    batch_size: BatchSize,
    failure_log: FailureLog,
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
        let (batch_size, failure_log) = (BatchSize::new(MAX_BATCH_COPIES), FailureLog::default());
        Self { database, bulk_deleter, batch_size, failure_log, migrated: 0, last_logged: Instant::now() }
    }

    /// Sets the maximum number of copies in one transaction.
    #[cfg(test)]
    pub(super) fn with_max_batch_copies(self, max_batch_copies: usize) -> Self {
        Self { batch_size: BatchSize::new(max_batch_copies), ..self }
    }

    /// Migrates copies until it is cancelled. A short failure is logged at debug level only, because the other operations
    /// report it too.
    pub(super) async fn run(mut self) {
        loop {
            let start = Instant::now();
            let result = self.migrate_batch().await;
            self.batch_size.adapt(result.is_ok());
            let is_lasting = self.failure_log.record(result.is_ok(), Instant::now());
            let pause = match result {
                // Other changes get at least as much time.
                Ok(Progress::Migrated(_)) => start.elapsed(),
                Ok(Progress::Busy) => RETRY_DELAY,
                Ok(Progress::Done) => IDLE_INTERVAL,
                Err(error) => {
                    if is_lasting {
                        tracing::warn!(%error, "cannot migrate messages of an earlier version");
                    } else {
                        tracing::debug!(%error, "cannot migrate messages of an earlier version");
                    }
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
        let (max_copies, max_bytes): (i64, i64) = (to_i64(self.batch_size.current), to_i64(MAX_BATCH_BYTES));
        let parsed_bytes = i32::try_from(PARSED_BYTES).unwrap_or(i32::MAX);
        let rows = transaction.run(SELECT_BATCH, &[&first, &last, &max_copies, &parsed_bytes, &max_bytes]).await?;
        let last = rows.last().map_or(Ok(last), |row| get_column(row, "id"))?;
        let parsed = spawn_blocking(move || parse_details(&rows)).await;
        let details = parsed.map_err(|error| StoreError::Broken(format!("cannot parse messages: {error}")))??;
        let (ids, details): (Vec<i64>, Vec<Vec<u8>>) = details.into_iter().unzip();
        // The change is a transaction of its own, so that the database never waits for this node while changes of others
        // wait for the change. If another node has migrated these copies meanwhile, it does nothing.
        transaction.commit().await?;
        let migrated = self.database.execute(MIGRATE, &[&first, &last, &ids, &details]).await?;
        let is_migrated = migrated.first().map_or(Ok(false), |row| get_column(row, "is_migrated"))?;
        Ok(if is_migrated { Progress::Migrated(ids.len()) } else { Progress::Busy })
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

/// The number of copies in the next transaction. One that fails, for example because it takes too long, is repeated with
/// half of them.
struct BatchSize {
    current: usize,
    max: usize,
}

impl BatchSize {
    fn new(max: usize) -> Self {
        Self { current: max, max }
    }

    /// Halves the number after a failure, and doubles it after a success.
    fn adapt(&mut self, is_success: bool) {
        let next = if is_success { self.current.saturating_mul(2) } else { self.current / 2 };
        self.current = next.clamp(1, self.max.max(1));
    }
}

/// Decides when a failure that lasts is logged as a warning.
#[derive(Default)]
struct FailureLog {
    /// The time of the first failure after a success, or of the last warning.
    since: Option<Instant>,
}

impl FailureLog {
    /// Records the result of an attempt. Returns true if a warning is due.
    fn record(&mut self, is_success: bool, now: Instant) -> bool {
        if is_success {
            self.since = None;
            return false;
        }
        let is_due = now.saturating_duration_since(*self.since.get_or_insert(now)) >= WARN_INTERVAL;
        if is_due {
            self.since = Some(now);
        }
        is_due
    }
}

/// Returns the ids and the details of the copies that have none. A body that cannot be parsed is like an empty one.
fn parse_details(rows: &[Row]) -> Result<Vec<(i64, Vec<u8>)>> {
    let mut parsed = Vec::with_capacity(rows.len());
    for row in rows {
        if get_column(row, "is_pending")? {
            let trace = get_column(row, "trace")?;
            let body = get_column::<Option<&[u8]>>(row, "bytes")?.unwrap_or_default();
            let is_complete = body.len() < PARSED_BYTES;
            let details = BodyDetails::parse(body, is_complete).unwrap_or_default().details(trace);
            parsed.push((get_column(row, "id")?, details.encoded().as_bytes().to_vec()));
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_smaller_after_failures() {
        let mut size = BatchSize::new(1000);
        let mut sizes = |is_success| {
            [(); 11].map(|()| {
                size.adapt(is_success);
                size.current
            })
        };
        assert_eq!(sizes(false), [500, 250, 125, 62, 31, 15, 7, 3, 1, 1, 1]);
        assert_eq!(sizes(true), [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    }

    #[test]
    fn warns_of_lasting_failures_once_per_interval() {
        let (mut log, start) = (FailureLog::default(), Instant::now());
        let table = [
            (0, false, false),
            (59, false, false),
            (60, true, false),
            (61, false, false),
            (120, false, false),
            (121, false, true),
            (126, false, false),
            (181, false, true),
        ];
        for (second, is_success, expected) in table {
            let is_due = log.record(is_success, start + Duration::from_secs(second));
            assert_eq!(is_due, expected, "{second}");
        }
    }
}
