//! The journal file: its tables, how it is opened, and how chunks are written and deleted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use restante_sqlite::{Migration, OpenError, Schema, Synchronous, Unusable, open_reader};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::{Chunk, SessionId};

/// The file. It is deleted if it is damaged or has another version, because old transcripts are of little use.
const SCHEMA: Schema = Schema {
    application_id: 0x7273_6573, // "rses"
    migrations: &[Migration { from: 0, to: 1, sql: TABLES }],
    incremental_vacuum: false,
    synchronous: Synchronous::Normal,
    checkpoint_pages: None,
    max_wal_bytes: 1 << 20,
    cache_bytes: Some(512 << 10),
    busy_timeout: Duration::from_secs(1),
    quick_check: true,
    unusable: Unusable::Delete,
};

const TABLES: &str = "
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        dialect TEXT NOT NULL,
        client TEXT,
        helo TEXT,
        tls_version TEXT,
        tls_cipher TEXT,
        user TEXT,
        started INTEGER NOT NULL,        -- Unix microseconds
        ended INTEGER,                   -- Unix microseconds
        ending TEXT,
        refused INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX refused_sessions ON sessions (id) WHERE refused > 0;
    CREATE TABLE pieces (
        place INTEGER PRIMARY KEY,       -- ascends with the order in which they were noted
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,             -- Unix microseconds
        bytes INTEGER NOT NULL,
        outcome TEXT,                    -- of the mail that ends here, and so are the next four
        sender TEXT,
        parameters TEXT,
        recipients TEXT,                 -- address and parameters, each with a line feed
        reply TEXT,
        lines BLOB NOT NULL,
        UNIQUE (session, number)
    ) STRICT;
    CREATE TABLE messages (
        mailbox TEXT NOT NULL,
        id INTEGER NOT NULL,
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (mailbox, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX messages_of_pieces ON messages (session, number);
";

/// The file, open for its one writer.
pub(super) struct JournalFile {
    connection: Connection,
    /// The sum of the sizes of all chunks.
    bytes: usize,
    last_session: SessionId,
}

impl JournalFile {
    /// Opens the file of an earlier process, whose open sessions are over. A file that cannot be read is replaced. The
    /// error is a sentence for the operator.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        Self::open_or_replace(path, |path| {
            let file = Self::load(path)?;
            file.connection.execute("UPDATE sessions SET ending = 'lost' WHERE ending IS NULL", [])?;
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

    /// Writes chunks, and before that deletes all others if `clear_first` is set. Then deletes chunks that were
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
            transaction.execute_batch("DELETE FROM messages; DELETE FROM pieces; DELETE FROM sessions")?;
            bytes = 0;
        }
        for chunk in chunks {
            insert(&transaction, chunk)?;
            bytes += chunk.bytes();
        }
        let deadline = deadline.map_or(i64::MIN, Timestamp::as_microsecond);
        while let Some(oldest) = oldest_chunk(&transaction)?
            && (bytes > max_bytes || oldest.at < deadline)
        {
            oldest.remove(&transaction)?;
            bytes = bytes.saturating_sub(oldest.bytes);
        }
        transaction.commit()?;
        self.bytes = bytes;
        Ok(())
    }

    fn open_or_replace(path: &Path, read: impl Fn(&Path) -> Result<Self, OpenError>) -> Result<Self, String> {
        let describe = |error: OpenError| format!("{} cannot be used: {error}", path.display());
        let error = match read(path) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        let replaced = SCHEMA.replace(path, error).map_err(describe)?;
        tracing::warn!(error = describe(replaced.error), "the transcripts of earlier sessions are deleted");
        read(path).map_err(describe)
    }

    fn load(path: &Path) -> Result<Self, OpenError> {
        let connection = SCHEMA.open(path)?;
        let bytes = connection.query_row("SELECT coalesce(sum(bytes), 0) FROM pieces", [], |row| row.get(0))?;
        let last = connection.query_row("SELECT coalesce(max(id), 0) FROM sessions", [], |row| row.get::<_, u64>(0))?;
        Ok(Self { connection, bytes, last_session: last.into() })
    }
}

/// Opens the file for reading, in addition to its writer.
pub(super) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    open_reader(path, SCHEMA.busy_timeout)
}

fn insert(transaction: &Transaction<'_>, chunk: &Chunk) -> rusqlite::Result<()> {
    let (session, info) = (chunk.session.number(), &chunk.info);
    transaction
        .prepare_cached("INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?
        .execute(params![
            session,
            info.dialect.name(),
            info.client.map(|ip| ip.to_string()),
            info.helo,
            info.tls.as_ref().map(|tls| &tls.version),
            info.tls.as_ref().map(|tls| &tls.cipher),
            info.user,
            info.started.as_microsecond(),
            info.end.as_ref().and_then(|end| end.at).map(Timestamp::as_microsecond),
            info.end.as_ref().map(|end| &end.reason),
            info.refusals,
        ])?;
    let mail = chunk.transaction.as_ref();
    let recipients = mail.map(|mail| {
        let lines = mail.to.iter().flat_map(|to| [&to.address, "\n", &to.parameters, "\n"]);
        lines.collect::<String>()
    });
    transaction
        .prepare_cached("INSERT OR REPLACE INTO pieces VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
        .execute(params![
            session,
            chunk.number,
            chunk.at.as_microsecond(),
            chunk.bytes(),
            mail.map(|mail| mail.outcome.name()),
            mail.map(|mail| &mail.from),
            mail.map(|mail| &mail.parameters),
            recipients,
            mail.and_then(|mail| mail.reply.as_deref()),
            chunk.lines.as_bytes(),
        ])?;
    for (mailbox, id) in mail.iter().flat_map(|mail| &mail.messages) {
        transaction.prepare_cached("INSERT OR REPLACE INTO messages VALUES (?1, ?2, ?3, ?4)")?.execute(params![
            mailbox.as_str(),
            id.number(),
            session,
            chunk.number
        ])?;
    }
    Ok(())
}

/// The chunk that is deleted next.
struct OldestChunk {
    place: i64,
    session: u64,
    number: u32,
    at: i64,
    bytes: usize,
}

fn oldest_chunk(transaction: &Transaction<'_>) -> rusqlite::Result<Option<OldestChunk>> {
    let mut first =
        transaction.prepare_cached("SELECT place, session, number, at, bytes FROM pieces ORDER BY place LIMIT 1")?;
    let read = |row: &rusqlite::Row<'_>| {
        let (place, session, number) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(OldestChunk { place, session, number, at: row.get(3)?, bytes: row.get(4)? })
    };
    first.query_row([], read).optional()
}

impl OldestChunk {
    fn remove(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let Self { place, session, number, .. } = self;
        transaction.prepare_cached("DELETE FROM pieces WHERE place = ?1")?.execute([place])?;
        transaction
            .prepare_cached("DELETE FROM messages WHERE session = ?1 AND number = ?2")?
            .execute(params![session, number])?;
        transaction
            .prepare_cached(
                "DELETE FROM sessions WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM pieces WHERE session = ?1)",
            )?
            .execute([session])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance::chunk;
    use restante_testdir::TestDir;

    #[test]
    fn open_sessions_are_marked_lost_only_after_a_restart() {
        let dir = TestDir::new();
        let path = dir.path().join("file");
        let ending = |file: JournalFile| -> Option<String> {
            file.connection.query_row("SELECT ending FROM sessions", [], |row| row.get(0)).unwrap()
        };
        let mut file = JournalFile::open(&path).unwrap();
        file.write(&[Arc::new(chunk(1, 0, "head"))], false, None, usize::MAX).unwrap();
        assert_eq!(ending(file), None);
        assert_eq!(ending(JournalFile::reopen(&path).unwrap()), None, "the session continues");
        assert_eq!(ending(JournalFile::open(&path).unwrap()).as_deref(), Some("lost"));
    }
}
