//! The journal file: its tables, how it is opened, and how chunks are written and deleted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_sqlite::{Migration, OpenError, Replaced, Schema, Synchronous, Unusable, open_reader};
use restante_store::sql_values::id_to_i64;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::groups::ChunkGroup;
use crate::stored::{encode_chunks, encode_info};
use crate::{Chunk, SessionId};

/// The file. It is deleted if it is damaged or has another version, because old transcripts are of little use.
const SCHEMA: Schema = Schema {
    application_id: 0x726a_6e6c, // "rjnl"
    migrations: &[Migration::Once(include_str!("tables.sql"))],
    incremental_vacuum: false,
    synchronous: Synchronous::Normal,
    checkpoint_pages: None,
    max_wal_bytes: 1 << 20,
    cache_bytes: Some(512 << 10),
    busy_timeout: Duration::from_secs(1),
    quick_check: true,
    unusable: Unusable::Delete,
};

/// The file, open for its one writer.
pub(super) struct JournalFile {
    connection: Connection,
    /// The sum of the sizes of all groups.
    bytes: usize,
    last_session: SessionId,
}

impl JournalFile {
    /// Opens the file of an earlier process, whose open sessions are over. A file that cannot be read is replaced. The
    /// error is a sentence for the operator.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        Self::open_or_replace(path, |path| {
            let file = Self::load(path)?;
            file.connection.execute("UPDATE state SET incarnation = incarnation + 1", [])?;
            Ok(file)
        })
    }

    /// Opens the file again in the same process, whose sessions continue.
    pub(super) fn reopen(path: &Path) -> Result<Self, String> {
        Self::open_or_replace(path, Self::load)
    }

    /// Returns the highest session id in the file.
    pub(super) fn last_session(&self) -> SessionId {
        self.last_session
    }

    /// Writes chunks, and before that deletes all others if `clear_first` is set. Then deletes groups of chunks that were
    /// recorded before the deadline, and the oldest ones while the total exceeds `max_bytes`. All or nothing.
    pub(super) fn write(
        &mut self,
        chunks: &[Arc<Chunk>],
        clear_first: bool,
        deadline: Option<Timestamp>,
        max_bytes: usize,
    ) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let mut bytes = self.bytes;
        if clear_first {
            transaction.execute("DELETE FROM chunk_groups", [])?;
            bytes = 0;
        }
        for group in ChunkGroup::split(chunks) {
            insert(&transaction, &group)?;
            bytes += group.bytes;
        }
        let deadline = deadline.map_or(i64::MIN, Timestamp::as_microsecond);
        while let Some(oldest) = oldest_group(&transaction)?
            && (bytes > max_bytes || oldest.at < deadline)
        {
            transaction.prepare_cached("DELETE FROM chunk_groups WHERE position = ?1")?.execute([oldest.position])?;
            bytes = bytes.saturating_sub(oldest.bytes);
        }
        transaction.commit()?;
        self.bytes = bytes;
        Ok(())
    }

    fn open_or_replace(path: &Path, read: impl Fn(&Path) -> Result<Self, OpenError>) -> Result<Self, String> {
        let describe = |error: OpenError| format!("{} cannot be used: {error}", path.display());
        let log = |replaced: Replaced| {
            tracing::warn!(error = describe(replaced.error), "the transcripts of earlier sessions are deleted");
        };
        SCHEMA.open_or_replace(path, || read(path), log).map_err(describe)
    }

    fn load(path: &Path) -> Result<Self, OpenError> {
        let connection = SCHEMA.open(path)?;
        let bytes = connection.query_row("SELECT coalesce(sum(bytes), 0) FROM chunk_groups", [], |row| row.get(0))?;
        let last = connection
            .query_row("SELECT coalesce(max(session), 0) FROM chunk_groups", [], |row| row.get::<_, u64>(0))?;
        Ok(Self { connection, bytes, last_session: last.into() })
    }
}

/// Opens the file for reading, in addition to its writer.
pub(super) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    open_reader(path, SCHEMA.busy_timeout)
}

fn insert(transaction: &Transaction<'_>, group: &ChunkGroup<'_>) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO chunk_groups
            (session, number, at, bytes, incarnation, refused, first_id, last_id, info, chunks, lines)
         VALUES (?1, ?2, ?3, ?4, (SELECT incarnation FROM state), ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let last = group.last();
    insert.execute(params![
        group.session().number(),
        group.number(),
        last.at.as_microsecond(),
        group.bytes,
        group.has_refusals(),
        group.message_ids.map(|(first, _)| id_to_i64(first)),
        group.message_ids.map(|(_, last)| id_to_i64(last)),
        encode_info(&last.info),
        encode_chunks(group.chunks()),
        group.lines(),
    ])?;
    Ok(())
}

/// The group that is deleted next.
struct OldestGroup {
    position: i64,
    at: i64,
    bytes: usize,
}

fn oldest_group(transaction: &Transaction<'_>) -> rusqlite::Result<Option<OldestGroup>> {
    let mut first =
        transaction.prepare_cached("SELECT position, at, bytes FROM chunk_groups ORDER BY position LIMIT 1")?;
    let read = |row: &rusqlite::Row<'_>| Ok(OldestGroup { position: row.get(0)?, at: row.get(1)?, bytes: row.get(2)? });
    first.query_row([], read).optional()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance::chunk;
    use restante_testdir::TestDir;

    #[test]
    fn open_sessions_are_lost_only_after_a_restart() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let is_running = |file: JournalFile| -> bool {
            let query = "SELECT incarnation = (SELECT incarnation FROM state) FROM chunk_groups";
            file.connection.query_row(query, [], |row| row.get(0)).unwrap()
        };
        let mut file = JournalFile::open(&path).unwrap();
        file.write(&[Arc::new(chunk(1, 0, "head"))], false, None, usize::MAX).unwrap();
        assert!(is_running(file));
        assert!(is_running(JournalFile::reopen(&path).unwrap()), "the session continues");
        assert!(!is_running(JournalFile::open(&path).unwrap()));
    }
}
