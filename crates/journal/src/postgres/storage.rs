//! The tables of the database, as the writer thread uses them, through a separate connection. Every statement can be
//! repeated: groups of chunks that exist are not written again.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::postgres::{Database, Parameters};
use restante_store::sql_values::{id_to_i64, to_i64};
use restante_store::{Result, StoreError};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Row;

use crate::groups::ChunkGroup;
use crate::stored::{encode_chunks, encode_info};
use crate::write_queue::WriteJob;
use crate::writer::Storage;
use crate::{Chunk, SessionIdGenerator};

/// The interval of heartbeats. A node that sends none for a minute counts as dead.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The number of groups of chunks that one statement deletes, and the number of such statements per write.
const MAX_TRIM_ROWS: i64 = 1000;
const MAX_TRIM_ROUNDS: usize = 8;

const HEARTBEAT: &str = "SELECT * FROM journal_heartbeat($1)";
const LEAVE: &str = "SELECT journal_leave($1)";
const APPEND: &str = "SELECT journal_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const TRIM: &str = "SELECT journal_trim($1, $2, $3) AS deleted";

/// See the module documentation.
pub(super) struct PostgresStorage {
    /// Runs the connection while the thread waits for a result.
    runtime: Runtime,
    database: Database,
    session_ids: Arc<SessionIdGenerator>,
    /// Identifies this run of the node in the database. Zero until the database has assigned it.
    incarnation: i64,
    last_heartbeat: Option<Instant>,
    /// Whether it was logged that the database rejects the data.
    is_rejection_logged: bool,
}

impl PostgresStorage {
    pub(super) fn open(database: Database, session_ids: Arc<SessionIdGenerator>) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let mut storage =
            Self { runtime, database, session_ids, incarnation: 0, last_heartbeat: None, is_rejection_logged: false };
        if let Err(error) = storage.heartbeat() {
            tracing::debug!(%error, "the journal has no node number yet");
        }
        Ok(storage)
    }

    /// Sends a heartbeat if it is due, and receives the node's number.
    fn heartbeat(&mut self) -> Result<()> {
        if self.last_heartbeat.is_some_and(|last| last.elapsed() < HEARTBEAT_INTERVAL) {
            return Ok(());
        }
        for row in self.query(HEARTBEAT, &[&self.incarnation])? {
            let incarnation = get_column(&row, "incarnation")?;
            if incarnation != self.incarnation {
                self.incarnation = incarnation;
                self.session_ids.set_node(get_column::<i32>(&row, "number")?.unsigned_abs().into());
                self.session_ids.advance_to(get_u64(&row, "last")?.into());
            }
        }
        self.last_heartbeat = Some(Instant::now());
        Ok(())
    }

    fn run_job(&mut self, job: &WriteJob) -> Result<()> {
        self.heartbeat()?;
        if !job.batch.chunks.is_empty() {
            self.append(&job.batch.chunks)?;
        }
        // `clear_first` is ignored: chunks older than this batch are trimmed because of the size limit, but those that
        // other nodes have written meanwhile stay.
        let (max_bytes, deadline) = (to_i64(job.max_bytes), job.deadline.map_or(i64::MIN, Timestamp::as_microsecond));
        for _ in 0..MAX_TRIM_ROUNDS {
            let rows = self.query(TRIM, &[&max_bytes, &deadline, &MAX_TRIM_ROWS])?;
            let deleted: i64 = rows.first().map_or(Ok(0), |row| get_column(row, "deleted"))?;
            if deleted < MAX_TRIM_ROWS {
                break;
            }
        }
        Ok(())
    }

    fn append(&self, chunks: &[Arc<Chunk>]) -> Result<()> {
        let groups = ChunkGroup::split(chunks);
        let sessions: Vec<i64> = groups.iter().map(|group| to_i64(group.session().number())).collect();
        let numbers: Vec<i32> = groups.iter().map(|group| chunk_number_to_i32(group.number())).collect();
        let times: Vec<i64> = groups.iter().map(|group| group.last().at.as_microsecond()).collect();
        let sizes: Vec<i64> = groups.iter().map(|group| to_i64(group.bytes)).collect();
        let refusals: Vec<bool> = groups.iter().map(ChunkGroup::has_refusals).collect();
        let ids = || groups.iter().map(|group| group.message_ids);
        let first_ids: Vec<Option<i64>> = ids().map(|ids| ids.map(|(first, _)| id_to_i64(first))).collect();
        let last_ids: Vec<Option<i64>> = ids().map(|ids| ids.map(|(_, last)| id_to_i64(last))).collect();
        let infos: Vec<Vec<u8>> = groups.iter().map(|group| encode_info(&group.last().info)).collect();
        let encoded_chunks: Vec<Vec<u8>> = groups.iter().map(|group| encode_chunks(group.chunks())).collect();
        let lines: Vec<Vec<u8>> = groups.iter().map(ChunkGroup::lines).collect();
        let parameters: Parameters<'_> = &[
            &self.incarnation,
            &sessions,
            &numbers,
            &times,
            &sizes,
            &refusals,
            &first_ids,
            &last_ids,
            &infos,
            &encoded_chunks,
            &lines,
        ];
        self.query(APPEND, parameters).map(drop)
    }

    fn query(&self, statement: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.runtime.block_on(self.database.query(statement, parameters))
    }
}

impl Storage for PostgresStorage {
    const RETRY_DELAY: Duration = Duration::from_secs(1);
    /// When many messages arrive, the database must have time for them. If the queue of chunks fills up meanwhile, the
    /// oldest ones are lost.
    const PAUSE_FACTOR: u32 = 6;
    const MAX_IDLE_TIME: Duration = HEARTBEAT_INTERVAL;

    fn write(&mut self, job: &WriteJob) -> Result<(), String> {
        match self.run_job(job) {
            Ok(()) => {
                self.is_rejection_logged = false;
                Ok(())
            }
            // A retry would fail in the same way, and delay later chunks.
            Err(StoreError::Broken(error)) => {
                if !mem::replace(&mut self.is_rejection_logged, true) {
                    tracing::error!(error, "the database rejects session transcripts; they are lost");
                }
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reports that the sessions of this node are over.
    fn close(self) {
        if let Err(error) = self.query(LEAVE, &[&self.incarnation]) {
            tracing::debug!(%error, "cannot report the end of this node's sessions");
        }
    }
}

/// Converts the number of a chunk. No session has more than two billion chunks.
pub(super) fn chunk_number_to_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
