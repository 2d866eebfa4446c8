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
use crate::waiting::Batch;
use crate::writer::Shelf;
use crate::{Numbers, Piece};

/// How often this node says that it lives. One of which nothing was heard for a minute is taken for dead.
const ATTENDANCE: Duration = Duration::from_secs(10);
/// How many pieces are let go in one statement, and in how many statements at once.
const MOST: i64 = 1000;
const ROUNDS: usize = 8;

const ATTEND: &str = "SELECT * FROM journal_attend($1)";
const LEAVE: &str = "SELECT journal_leave($1)";
const NOTE: &str = "SELECT journal_note($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const TRIM: &str = "SELECT journal_trim($1, $2, $3) AS gone";

/// See the file's documentation.
pub(super) struct Ledger {
    /// What the connection runs in, as long as the thread waits for an answer.
    runtime: Runtime,
    database: Database,
    numbers: Arc<Numbers>,
    /// This node in the database; zero as long as it is not known there.
    life: i64,
    attended: Option<Instant>,
    /// Whether the database has said that it will not take what it was given, and that was told.
    is_refused: bool,
}

impl Ledger {
    pub(super) fn open(database: Database, numbers: Arc<Numbers>) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let mut ledger = Self { runtime, database, numbers, life: 0, attended: None, is_refused: false };
        if let Err(error) = ledger.attend() {
            tracing::debug!(%error, "the journal of sessions has no number yet");
        }
        Ok(ledger)
    }

    /// Says that this node lives, when it is time to, and hears what its number is.
    fn attend(&mut self) -> Result<()> {
        if self.attended.is_some_and(|attended| attended.elapsed() < ATTENDANCE) {
            return Ok(());
        }
        for row in self.ask(ATTEND, &[&self.life])? {
            let life = get_column(&row, "life")?;
            if life != self.life {
                self.life = life;
                self.numbers.belong_to(get_column::<i32>(&row, "number")?.unsigned_abs().into());
                self.numbers.skip_to(get_u64(&row, "last")?.into());
            }
        }
        self.attended = Some(Instant::now());
        Ok(())
    }

    fn put(&mut self, batch: &Batch) -> Result<()> {
        self.attend()?;
        if !batch.chunk.pieces.is_empty() {
            self.note(&batch.chunk.pieces)?;
        }
        // A journal that has outgrown itself is not emptied: what is older than this batch goes for want of room, and what
        // other nodes have said meanwhile stays.
        let (room, deadline) = (to_i64(batch.room), batch.deadline.map_or(i64::MIN, Timestamp::as_microsecond));
        for _ in 0..ROUNDS {
            let rows = self.ask(TRIM, &[&room, &deadline, &MOST])?;
            let gone: i64 = rows.first().map_or(Ok(0), |row| get_column(row, "gone"))?;
            if gone < MOST {
                break;
            }
        }
        Ok(())
    }

    fn note(&self, pieces: &[Arc<Piece>]) -> Result<()> {
        let sessions: Vec<i64> = pieces.iter().map(|piece| to_i64(piece.session.number())).collect();
        let numbers: Vec<i32> = pieces.iter().map(|piece| small(piece.number)).collect();
        let times: Vec<i64> = pieces.iter().map(|piece| piece.at.as_microsecond()).collect();
        let sizes: Vec<i64> = pieces.iter().map(|piece| to_i64(piece.bytes())).collect();
        let refusals: Vec<bool> = pieces.iter().map(|piece| piece.cover.refused > 0).collect();
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
            &self.life,
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
        self.ask(NOTE, parameters).map(drop)
    }

    fn ask(&self, question: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        self.runtime.block_on(self.database.query(question, parameters))
    }
}

impl Shelf for Ledger {
    const LONG_REST: Duration = Duration::from_secs(1);
    /// When mail comes fast, the database has better things to do. What cannot be written then gives way to what comes after it.
    const MODESTY: u32 = 6;
    const IDLE: Duration = ATTENDANCE;

    fn write(&mut self, batch: &Batch) -> Result<(), String> {
        match self.put(batch) {
            Ok(()) => {
                self.is_refused = false;
                Ok(())
            }
            // It would say the same again, and what comes next has to wait no longer.
            Err(StoreError::Broken(problem)) => {
                if !mem::replace(&mut self.is_refused, true) {
                    tracing::error!(problem, "the database does not take transcripts of sessions, and they are lost");
                }
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The sessions of this node are over.
    fn close(self) {
        if let Err(error) = self.ask(LEAVE, &[&self.life]) {
            tracing::debug!(%error, "the journal of sessions was not closed");
        }
    }
}

/// The place of a piece in its session. Nobody sends two thousand million mails in one.
pub(super) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
