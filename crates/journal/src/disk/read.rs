//! Queries of the file.

use std::path::PathBuf;

use async_trait::async_trait;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::sql_values::{id_to_i64, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::task::spawn_blocking;

use super::file::open_for_reading;
use crate::journal::StorageReader;
use crate::queued::{PartQuery, TranscriptPart};
use crate::stored::{StoredChunk, StoredTranscripts};
use crate::{SessionId, SessionPage};

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

/// Reads the file through a separate connection for each query.
pub(super) struct FileReader {
    pub(super) path: PathBuf,
}

impl FileReader {
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.path.clone();
        let run = move || open_for_reading(&path).and_then(|file| query(&file));
        let result = spawn_blocking(run).await.map_err(|panic| StoreError::Broken(panic.to_string()))?;
        result.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

#[async_trait]
impl StorageReader for FileReader {
    async fn session_ids(&self, page: SessionPage) -> Result<Vec<SessionId>> {
        self.query(move |file| {
            let query = if page.refused_only { SELECT_REFUSED_SESSIONS } else { SELECT_SESSIONS };
            let before: i64 = page.before.map_or(i64::MAX, |before| to_i64(before.number()));
            let mut statement = file.prepare(query)?;
            let ids = statement.query_map(params![before, to_i64(page.limit)], |row| Ok(SessionId(row.get(0)?)))?;
            ids.collect()
        })
        .await
    }

    async fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<(SessionId, u32)>> {
        let mailbox = mailbox.clone();
        self.query(move |file| {
            let read = |row: &Row<'_>| Ok((SessionId(row.get(0)?), row.get(1)?));
            file.query_row(SELECT_MESSAGE, params![mailbox.as_str(), id_to_i64(id)], read).optional()
        })
        .await
    }

    async fn transcripts(&self, sessions: &[SessionId], part: TranscriptPart) -> Result<StoredTranscripts> {
        let sessions = sessions.to_vec();
        self.query(move |file| {
            let PartQuery { single, max_chunks, with_lines } = part.query();
            // A negative limit means no limit.
            let max_chunks = max_chunks.unwrap_or(-1);
            let mut statement = file.prepare(SELECT_CHUNKS)?;
            let mut transcripts = StoredTranscripts::default();
            for session in sessions {
                let mut rows = statement.query(params![to_i64(session.number()), single, max_chunks, with_lines])?;
                while let Some(row) = rows.next()? {
                    let (number, at, is_running) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    let (head, lines) = (row.get_ref(3)?.as_blob()?, row.get(4)?);
                    transcripts.add(StoredChunk { session, number, at, is_running, head, lines }, part);
                }
            }
            Ok(transcripts)
        })
        .await
    }
}
