//! Queries of the file.

use std::path::PathBuf;

use async_trait::async_trait;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::sql_values::{id_to_i64, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::{Connection, params};
use tokio::task::spawn_blocking;

use super::file::open_for_reading;
use crate::groups::max_last_id;
use crate::journal::StorageReader;
use crate::queued::{PartQuery, TranscriptPart};
use crate::stored::{StoredGroup, StoredTranscripts, find_message};
use crate::{SessionId, SessionPage};

/// Sessions below `?1`, at most `?2`, highest first. Each is one index lookup, which skips all groups of a session.
macro_rules! sessions {
    ($which:literal) => {
        concat!(
            "WITH RECURSIVE latest (session) AS (
                SELECT max(session) FROM chunk_groups WHERE ",
            $which,
            " AND session < ?1
                UNION ALL
                SELECT (SELECT max(session) FROM chunk_groups WHERE ",
            $which,
            " AND session < latest.session) FROM latest WHERE latest.session IS NOT NULL
                LIMIT ?2
            ) SELECT session FROM latest WHERE session IS NOT NULL"
        )
    };
}

const SELECT_SESSIONS: &str = sessions!("true");
const SELECT_REFUSED_SESSIONS: &str = sessions!("refused");
/// Groups that may contain the message `?1`. `?2` is the highest id of a group with it.
const SELECT_GROUPS_OF_MESSAGE: &str = "
    SELECT session, number, chunks FROM chunk_groups
    WHERE last_id BETWEEN ?1 AND ?2 AND first_id <= ?1";
/// The groups with a part of the session `?1`, last first: with `?2`, those with the first chunk, that one and the last one;
/// with `?3`, those with that number of last chunks.
const SELECT_GROUPS: &str = "
    WITH last (number) AS (SELECT max(number) FROM chunk_groups WHERE session = ?1)
    SELECT number, incarnation = (SELECT incarnation FROM state), info, chunks, CASE WHEN ?4 THEN lines ELSE x'' END
    FROM chunk_groups
    WHERE session = ?1
        AND (?2 IS NULL OR number IN (
            0, (SELECT max(number) FROM chunk_groups WHERE session = ?1 AND number <= ?2), (SELECT number FROM last)
        ))
        AND number >= coalesce((
            SELECT max(number) FROM chunk_groups WHERE session = ?1 AND number <= (SELECT number FROM last) - ?3 + 1
        ), 0)
    ORDER BY number DESC";

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
        // Boxed, so that the task is compiled once for each type of result.
        let run: Box<dyn FnOnce() -> rusqlite::Result<T> + Send> =
            Box::new(move || open_for_reading(&path).and_then(|file| query(&file)));
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
            let mut statement = file.prepare(SELECT_GROUPS_OF_MESSAGE)?;
            let mut rows = statement.query([id_to_i64(id), max_last_id(id)])?;
            while let Some(row) = rows.next()? {
                let (session, first) = (SessionId(row.get(0)?), row.get(1)?);
                if let Some(number) = find_message(first, row.get_ref(2)?.as_blob()?, &mailbox, id) {
                    return Ok(Some((session, number)));
                }
            }
            Ok(None)
        })
        .await
    }

    async fn transcripts(&self, sessions: &[SessionId], part: TranscriptPart) -> Result<StoredTranscripts> {
        let sessions = sessions.to_vec();
        self.query(move |file| {
            let PartQuery { single, max_chunks, with_lines } = part.query();
            let mut statement = file.prepare(SELECT_GROUPS)?;
            let mut transcripts = StoredTranscripts::default();
            for session in sessions {
                let mut rows = statement.query(params![to_i64(session.number()), single, max_chunks, with_lines])?;
                while let Some(row) = rows.next()? {
                    let (number, is_running) = (row.get(0)?, row.get(1)?);
                    let (info, chunks) = (row.get_ref(2)?.as_blob()?, row.get_ref(3)?.as_blob()?);
                    let lines = row.get_ref(4)?.as_blob()?;
                    transcripts.add(&StoredGroup { session, number, is_running, info, chunks, lines }, part);
                }
            }
            Ok(transcripts)
        })
        .await
    }
}
