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
use crate::groups::max_last_id;
use crate::journal::StorageReader;
use crate::queued::{PartQuery, TranscriptPart};
use crate::stored::{StoredGroup, StoredTranscripts, find_message};
use crate::{SessionId, SessionPage};

/// Sessions below `$1`, at most `$2`, highest first. Each is one index lookup, which skips all groups of a session.
macro_rules! sessions {
    ($which:literal) => {
        concat!(
            "WITH RECURSIVE latest AS (
                (SELECT session FROM journal_groups WHERE ",
            $which,
            " AND session < $1 ORDER BY session DESC LIMIT 1)
                UNION ALL
                SELECT below.session FROM latest CROSS JOIN LATERAL (
                    SELECT session FROM journal_groups WHERE ",
            $which,
            " AND session < latest.session ORDER BY session DESC LIMIT 1
                ) AS below
            ) SELECT session FROM latest LIMIT $2"
        )
    };
}

const SELECT_SESSIONS: &str = sessions!("true");
const SELECT_REFUSED_SESSIONS: &str = sessions!("refused");
/// Groups that may contain the message `$1`. `$2` is the highest id of a group with it.
const SELECT_GROUPS_OF_MESSAGE: &str = "
    SELECT session, number, chunks FROM journal_groups WHERE last_id BETWEEN $1 AND $2 AND first_id <= $1";
const SELECT_GROUPS: &str = "SELECT * FROM journal_read($1, $2, $3, $4)";

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
        let rows = self.database.query(SELECT_GROUPS_OF_MESSAGE, &[&id_to_i64(id), &max_last_id(id)]).await?;
        for row in &rows {
            if let Some(number) = find_message(get_chunk_number(row)?, get_column(row, "chunks")?, mailbox, id) {
                return Ok(Some((get_u64(row, "session")?.into(), number)));
            }
        }
        Ok(None)
    }

    async fn transcripts(&self, sessions: &[SessionId], part: TranscriptPart) -> Result<StoredTranscripts> {
        let ids: Vec<i64> = sessions.iter().map(|session| to_i64(session.number())).collect();
        let PartQuery { single, max_chunks, with_lines } = part.query();
        let single = single.map(chunk_number_to_i32);
        let mut transcripts = StoredTranscripts::default();
        for row in self.database.query(SELECT_GROUPS, &[&ids, &single, &max_chunks, &with_lines]).await? {
            let group = StoredGroup {
                session: get_u64(&row, "session")?.into(),
                number: get_chunk_number(&row)?,
                is_running: get_column(&row, "is_running")?,
                info: get_column(&row, "info")?,
                chunks: get_column(&row, "chunks")?,
                lines: get_column(&row, "lines")?,
            };
            transcripts.add(&group, part);
        }
        Ok(transcripts)
    }
}

fn get_chunk_number(row: &Row) -> Result<u32> {
    get_column::<i32>(row, "number").map(i32::unsigned_abs)
}
