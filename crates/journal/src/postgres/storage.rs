//! The tables as the thread that writes them sees them, through one connection of its own. Whatever it asks of the database may be
//! asked twice: what is written already is not written again.

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

use super::record;
use crate::write_queue::WriteJob;
use crate::writer::Storage;
use crate::{Chunk, SessionIdGenerator};

/// How often this node says that it lives. One of which nothing was heard for a minute is taken for dead.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// How many pieces are let go in one statement, and in how many statements at once.
const MAX_TRIM_ROWS: i64 = 1000;
const MAX_TRIM_ROUNDS: usize = 8;

const HEARTBEAT: &str = "SELECT * FROM journal_attend($1)";
const LEAVE: &str = "SELECT journal_leave($1)";
const APPEND: &str = "SELECT journal_note($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const TRIM: &str = "SELECT journal_trim($1, $2, $3) AS gone";

/// See the file's documentation.
pub(super) struct PostgresStorage {
    /// What the connection runs in, as long as the thread waits for an answer.
    runtime: Runtime,
    database: Database,
    session_ids: Arc<SessionIdGenerator>,
    /// This node in the database; zero as long as it is not known there.
    incarnation: i64,
    last_heartbeat: Option<Instant>,
    /// Whether the database has said that it will not take what it was given, and that was told.
    is_rejection_logged: bool,
}

impl PostgresStorage {
    pub(super) fn open(database: Database, numbers: Arc<SessionIdGenerator>) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let mut ledger = Self {
            runtime,
            database,
            session_ids: numbers,
            incarnation: 0,
            last_heartbeat: None,
            is_rejection_logged: false,
        };
        if let Err(error) = ledger.heartbeat() {
            tracing::debug!(%error, "the journal of sessions has no number yet");
        }
        Ok(ledger)
    }

    /// Says that this node lives, when it is time to, and hears what its number is.
    fn heartbeat(&mut self) -> Result<()> {
        if self.last_heartbeat.is_some_and(|attended| attended.elapsed() < HEARTBEAT_INTERVAL) {
            return Ok(());
        }
        for row in self.query(HEARTBEAT, &[&self.incarnation])? {
            let life = get_column(&row, "life")?;
            if life != self.incarnation {
                self.incarnation = life;
                self.session_ids.set_node(get_column::<i32>(&row, "number")?.unsigned_abs().into());
                self.session_ids.advance_to(get_u64(&row, "last")?.into());
            }
        }
        self.last_heartbeat = Some(Instant::now());
        Ok(())
    }

    fn run_job(&mut self, batch: &WriteJob) -> Result<()> {
        self.heartbeat()?;
        if !batch.batch.chunks.is_empty() {
            self.append(&batch.batch.chunks)?;
        }
        // A journal that has outgrown itself is not emptied: what is older than this batch goes for want of room, and what
        // other nodes have said meanwhile stays.
        let (room, deadline) = (to_i64(batch.max_bytes), batch.deadline.map_or(i64::MIN, Timestamp::as_microsecond));
        for _ in 0..MAX_TRIM_ROUNDS {
            let rows = self.query(TRIM, &[&room, &deadline, &MAX_TRIM_ROWS])?;
            let gone: i64 = rows.first().map_or(Ok(0), |row| get_column(row, "gone"))?;
            if gone < MAX_TRIM_ROWS {
                break;
            }
        }
        Ok(())
    }

    fn append(&self, pieces: &[Arc<Chunk>]) -> Result<()> {
        let sessions: Vec<i64> = pieces.iter().map(|piece| to_i64(piece.session.number())).collect();
        let numbers: Vec<i32> = pieces.iter().map(|piece| chunk_number_to_i32(piece.number)).collect();
        let times: Vec<i64> = pieces.iter().map(|piece| piece.at.as_microsecond()).collect();
        let sizes: Vec<i64> = pieces.iter().map(|piece| to_i64(piece.bytes())).collect();
        let refusals: Vec<bool> = pieces.iter().map(|piece| piece.info.refusals > 0).collect();
        let heads: Vec<Vec<u8>> = pieces.iter().map(|piece| record::encode(piece)).collect();
        let lines: Vec<&[u8]> = pieces.iter().map(|piece| piece.lines.as_bytes()).collect();
        let messages = || {
            pieces.iter().zip(&sessions).zip(&numbers).flat_map(|((piece, session), number)| {
                let messages = piece.transaction.iter().flat_map(|mail| &mail.messages);
                messages.map(move |(mailbox, id)| (mailbox.as_str().as_bytes(), id_to_i64(*id), *session, *number))
            })
        };
        let mailboxes: Vec<&[u8]> = messages().map(|(mailbox, ..)| mailbox).collect();
        let ids: Vec<i64> = messages().map(|(_, id, ..)| id).collect();
        let sessions_of: Vec<i64> = messages().map(|(_, _, session, _)| session).collect();
        let numbers_of: Vec<i32> = messages().map(|(.., number)| number).collect();
        let parameters: Parameters<'_> = &[
            &self.incarnation,
            &sessions,
            &numbers,
            &times,
            &sizes,
            &refusals,
            &heads,
            &lines,
            &mailboxes,
            &ids,
            &sessions_of,
            &numbers_of,
        ];
        self.query(APPEND, parameters).map(drop)
    }

    fn query(&self, question: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.runtime.block_on(self.database.query(question, parameters))
    }
}

impl Storage for PostgresStorage {
    const RETRY_DELAY: Duration = Duration::from_secs(1);
    /// When mail comes fast, the database has better things to do. What cannot be written then gives way to what comes after it.
    const PAUSE_FACTOR: u32 = 6;
    const MAX_IDLE_TIME: Duration = HEARTBEAT_INTERVAL;

    fn write(&mut self, batch: &WriteJob) -> Result<(), String> {
        match self.run_job(batch) {
            Ok(()) => {
                self.is_rejection_logged = false;
                Ok(())
            }
            // It would say the same again, and what comes next has to wait no longer.
            Err(StoreError::Broken(problem)) => {
                if !mem::replace(&mut self.is_rejection_logged, true) {
                    tracing::error!(problem, "the database does not take transcripts of sessions, and they are lost");
                }
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The sessions of this node are over.
    fn close(self) {
        if let Err(error) = self.query(LEAVE, &[&self.incarnation]) {
            tracing::debug!(%error, "the journal of sessions was not closed");
        }
    }
}

/// The place of a piece in its session. Nobody sends two thousand million mails in one.
pub(super) fn chunk_number_to_i32(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
