//! Queries of the tables.

use std::sync::Arc;

use async_trait::async_trait;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::Result;
use restante_store::postgres::Database;
use restante_store::postgres::rows::{get_column, get_u64};
use restante_store::sql_values::{id_to_i64, to_i64};
use tokio_postgres::Row;

use super::storage::chunk_number_to_i32;
use crate::journal::StorageReader;
use crate::queued::{PartQuery, TranscriptPart};
use crate::stored::{StoredChunk, StoredTranscripts};
use crate::{SessionId, SessionPage};

/// Sessions below `$1`, at most `$2`, highest first. Each is one index lookup, which skips all chunks of a session.
macro_rules! sessions {
    ($which:literal) => {
        concat!(
            "WITH RECURSIVE latest AS (
                (SELECT session FROM journal_chunks WHERE ",
            $which,
            " AND session < $1 ORDER BY session DESC LIMIT 1)
                UNION ALL
                SELECT below.session FROM latest CROSS JOIN LATERAL (
                    SELECT session FROM journal_chunks WHERE ",
            $which,
            " AND session < latest.session ORDER BY session DESC LIMIT 1
                ) AS below
            ) SELECT session FROM latest LIMIT $2"
        )
    };
}

const SELECT_SESSIONS: &str = sessions!("true");
const SELECT_REFUSED_SESSIONS: &str = sessions!("refused");
const SELECT_MESSAGE: &str = "SELECT session, number FROM journal_messages WHERE mailbox = $1 AND id = $2";
const SELECT_CHUNKS: &str = "SELECT * FROM journal_read($1, $2, $3, $4)";

/// Reads the tables.
pub(super) struct TableReader {
    pub(super) database: Arc<Database>,
}

#[async_trait]
impl StorageReader for TableReader {
    async fn session_ids(&self, page: SessionPage) -> Result<Vec<SessionId>> {
        let before = page.before.map_or(i64::MAX, |before| to_i64(before.number()));
        let query = if page.refused_only { SELECT_REFUSED_SESSIONS } else { SELECT_SESSIONS };
        let rows = self.database.query(query, &[&before, &to_i64(page.limit)]).await?;
        rows.iter().map(|row| get_u64(row, "session").map(SessionId::from)).collect()
    }

    async fn find_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<(SessionId, u32)>> {
        let rows = self.database.query(SELECT_MESSAGE, &[&mailbox.as_str().as_bytes(), &id_to_i64(id)]).await?;
        rows.first().map(|row| Ok((get_u64(row, "session")?.into(), get_chunk_number(row)?))).transpose()
    }

    async fn transcripts(&self, sessions: &[SessionId], part: TranscriptPart) -> Result<StoredTranscripts> {
        let ids: Vec<i64> = sessions.iter().map(|session| to_i64(session.number())).collect();
        let PartQuery { single, max_chunks, with_lines } = part.query();
        let single = single.map(chunk_number_to_i32);
        let mut transcripts = StoredTranscripts::default();
        for row in self.database.query(SELECT_CHUNKS, &[&ids, &single, &max_chunks, &with_lines]).await? {
            let chunk = StoredChunk {
                session: get_u64(&row, "session")?.into(),
                number: get_chunk_number(&row)?,
                at: get_column(&row, "at")?,
                is_running: get_column(&row, "is_running")?,
                head: get_column(&row, "head")?,
                lines: get_column(&row, "lines")?,
            };
            transcripts.add(chunk, part);
        }
        Ok(transcripts)
    }
}

fn get_chunk_number(row: &Row) -> Result<u32> {
    get_column::<i32>(row, "number").map(i32::unsigned_abs)
}
