//! Queries of the file and of the chunks that are not written yet.

use std::path::Path;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::sql_values::{id_to_i64, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::file::open_for_reading;
use crate::queued::{PartQuery, QueuedChunks, TranscriptPart};
use crate::stored::{StoredChunk, StoredTranscripts};
use crate::write_queue::WriteQueue;
use crate::{SessionId, SessionPage, Transcript};

/// Sessions below `?1`, at most `?2`, highest first. Each is one index lookup, which skips all chunks of a session.
macro_rules! sessions {
    ($which:literal) => {
        concat!(
            "WITH RECURSIVE latest (session) AS (
                SELECT max(session) FROM chunks WHERE ",
            $which,
            " AND session < ?1
                UNION ALL
                SELECT (SELECT max(session) FROM chunks WHERE ",
            $which,
            " AND session < latest.session) FROM latest WHERE latest.session IS NOT NULL
                LIMIT ?2
            ) SELECT session FROM latest WHERE session IS NOT NULL"
        )
    };
}

const SELECT_SESSIONS: &str = sessions!("true");
const SELECT_REFUSED_SESSIONS: &str = sessions!("refused");
const SELECT_MESSAGE: &str = "SELECT session, number FROM messages WHERE mailbox = ?1 AND id = ?2";
const SELECT_CHUNKS: &str = "
    SELECT number, at, incarnation = (SELECT incarnation FROM state), head, CASE WHEN ?4 THEN lines ELSE x'' END
    FROM chunks
    WHERE session = ?1
        AND (?2 IS NULL OR number IN (0, ?2, (SELECT max(number) FROM chunks WHERE session = ?1)))
    ORDER BY number DESC LIMIT ?3";

/// The contents of the journal at one moment.
pub(super) struct Snapshot {
    queued: QueuedChunks,
    file: Option<Connection>,
}

impl Snapshot {
    pub(super) fn open(queue: &WriteQueue, path: &Path) -> Result<Self> {
        let (queued, has_file) = QueuedChunks::snapshot(queue);
        let file = if has_file { Some(open_for_reading(path).map_err(unavailable)?) } else { None };
        Ok(Self { queued, file })
    }

    pub(super) fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let mut ids = self.queued.sessions(page);
        if let Some(file) = &self.file {
            ids.extend(session_ids(file, page).map_err(unavailable)?);
        }
        let latest = ids.into_iter().rev().take(page.limit);
        latest.filter_map(|id| self.transcript(id, TranscriptPart::Listed).transpose()).collect()
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Option<Transcript>> {
        self.transcript(id, TranscriptPart::Whole)
    }

    pub(super) fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>> {
        let mut location = self.queued.find_message(mailbox, id);
        if location.is_none()
            && let Some(file) = &self.file
        {
            location = find_message(file, mailbox, id).map_err(unavailable)?;
        }
        location.map_or(Ok(None), |(session, number)| self.transcript(session, TranscriptPart::Chunk(number)))
    }

    fn transcript(&self, session: SessionId, part: TranscriptPart) -> Result<Option<Transcript>> {
        let stored = match &self.file {
            Some(file) => read_transcript(file, session, part).map_err(unavailable)?,
            None => None,
        };
        Ok(self.queued.merge(session, part, stored))
    }
}

fn session_ids(file: &Connection, page: SessionPage) -> rusqlite::Result<Vec<SessionId>> {
    let query = if page.refused_only { SELECT_REFUSED_SESSIONS } else { SELECT_SESSIONS };
    let before: i64 = page.before.map_or(i64::MAX, |before| to_i64(before.number()));
    let mut statement = file.prepare(query)?;
    let ids =
        statement.query_map(params![before, to_i64(page.limit)], |row| row.get::<_, u64>(0).map(SessionId::from))?;
    ids.collect()
}

fn find_message(file: &Connection, mailbox: &MailboxName, id: MessageId) -> rusqlite::Result<Option<(SessionId, u32)>> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u64>(0)?.into(), row.get(1)?));
    file.query_row(SELECT_MESSAGE, params![mailbox.as_str(), id_to_i64(id)], read).optional()
}

fn read_transcript(
    file: &Connection,
    session: SessionId,
    part: TranscriptPart,
) -> rusqlite::Result<Option<Transcript>> {
    let PartQuery { single, max_chunks, with_lines } = part.query();
    let mut statement = file.prepare(SELECT_CHUNKS)?;
    // A negative limit means no limit.
    let mut rows = statement.query(params![to_i64(session.number()), single, max_chunks.unwrap_or(-1), with_lines])?;
    let mut transcripts = StoredTranscripts::default();
    while let Some(row) = rows.next()? {
        let (number, at, is_running) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (head, lines) = (row.get_ref(3)?.as_blob()?, row.get(4)?);
        transcripts.add(StoredChunk { session, number, at, is_running, head, lines }, part);
    }
    Ok(transcripts.take(session))
}

fn unavailable(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
