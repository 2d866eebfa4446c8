//! Queries of the file and of the chunks that are not written yet.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::file::open_for_reading;
use crate::queued::{QueuedChunks, TranscriptPart};
use crate::write_queue::WriteQueue;
use crate::{
    Chunk, Dialect, MAX_LISTED_CHUNKS, Outcome, Recipient, SessionEnd, SessionId, SessionInfo, SessionPage, Tls,
    Transaction, Transcript, TranscriptLines,
};

/// The contents of the journal at one moment.
pub(super) struct Snapshot {
    queued: QueuedChunks,
    file: Option<Connection>,
}

impl Snapshot {
    pub(super) fn open(queue: &WriteQueue, path: &Path) -> Result<Self> {
        let (queued, has_file) = QueuedChunks::snapshot(queue);
        let file = if has_file { Some(open_for_reading(path).map_err(|error| unavailable(&error))?) } else { None };
        Ok(Self { queued, file })
    }

    pub(super) fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>> {
        let mut ids = self.queued.sessions(page);
        if let Some(file) = &self.file {
            let before = page.before.map_or(u64::MAX, SessionId::number).min(i64::MAX as u64);
            let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
            let stored = session_ids(file, before, page.refused_only, limit).map_err(|error| unavailable(&error))?;
            ids.extend(stored.into_iter().map(SessionId::from));
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
            location = find_message(file, mailbox, id).map_err(|error| unavailable(&error))?;
        }
        location.map_or(Ok(None), |(session, number)| self.transcript(session, TranscriptPart::Chunk(number)))
    }

    fn transcript(&self, session: SessionId, part: TranscriptPart) -> Result<Option<Transcript>> {
        let stored = match &self.file {
            Some(file) => read_transcript(file, session, part).map_err(|error| unavailable(&error))?,
            None => None,
        };
        Ok(self.queued.merge(session, part, stored))
    }
}

fn session_ids(file: &Connection, before: u64, refused: bool, limit: i64) -> rusqlite::Result<Vec<u64>> {
    let query = if refused {
        "SELECT id FROM sessions WHERE id < ?1 AND refused > 0 ORDER BY id DESC LIMIT ?2"
    } else {
        "SELECT id FROM sessions WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
    };
    file.prepare(query)?.query_map(params![before, limit], |row| row.get(0))?.collect()
}

fn find_message(file: &Connection, mailbox: &MailboxName, id: MessageId) -> rusqlite::Result<Option<(SessionId, u32)>> {
    file.query_row(
        "SELECT session, number FROM messages WHERE mailbox = ?1 AND id = ?2",
        params![mailbox.as_str(), id.number()],
        |row| Ok((row.get::<_, u64>(0)?.into(), row.get(1)?)),
    )
    .optional()
}

/// Reads a session from the file, last chunk first.
fn read_transcript(
    file: &Connection,
    session: SessionId,
    part: TranscriptPart,
) -> rusqlite::Result<Option<Transcript>> {
    // The file contains no numbers above this.
    let Ok(number) = i64::try_from(session.number()) else { return Ok(None) };
    let info = file.query_row("SELECT * FROM sessions WHERE id = ?1", [number], read_info).optional()?;
    let Some(info) = info.map(Arc::new) else { return Ok(None) };
    let columns = match part {
        TranscriptPart::Listed => "number, at, outcome, sender, parameters, recipients, reply, x''",
        TranscriptPart::Whole | TranscriptPart::Chunk(_) => {
            "number, at, outcome, sender, parameters, recipients, reply, lines"
        }
    };
    let (single, limit) = match part {
        TranscriptPart::Listed => (None, MAX_LISTED_CHUNKS),
        TranscriptPart::Whole => (None, usize::MAX),
        TranscriptPart::Chunk(number) => (Some(number), 2),
    };
    let query = format!(
        "SELECT {columns} FROM pieces WHERE session = ?1 AND (?2 IS NULL OR number IN (0, ?2))
         ORDER BY number DESC LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = file.prepare(&query)?;
    let mut rows = rows.query(params![number, single, limit])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        chunks.push(Arc::new(read_chunk(file, session, &info, row)?));
    }
    Ok(Some(Transcript { session, info, chunks }))
}

fn read_info(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let dialect: String = row.get("dialect")?;
    let client: Option<String> = row.get("client")?;
    let get_owned = |name: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(name)?.map(Cow::Owned));
    let ended: Option<i64> = row.get("ended")?;
    Ok(SessionInfo {
        dialect: if dialect == Dialect::Lmtp.name() { Dialect::Lmtp } else { Dialect::Smtp },
        client: client.and_then(|text| text.parse().ok()),
        helo: row.get("helo")?,
        tls: get_owned("tls_version")?.zip(get_owned("tls_cipher")?).map(|(version, cipher)| Tls { version, cipher }),
        user: row.get("user")?,
        started: timestamp(row.get("started")?),
        end: get_owned("ending")?.map(|reason| SessionEnd { at: ended.map(timestamp), reason }),
        refusals: row.get("refused")?,
    })
}

fn read_chunk(
    file: &Connection,
    session: SessionId,
    info: &Arc<SessionInfo>,
    row: &Row<'_>,
) -> rusqlite::Result<Chunk> {
    let number = row.get(0)?;
    let outcome: Option<String> = row.get(2)?;
    let outcome = outcome.and_then(|name| Outcome::ALL.into_iter().find(|outcome| outcome.name() == name));
    let transaction = match outcome {
        Some(outcome) => Some(Transaction {
            from: row.get(3)?,
            parameters: row.get(4)?,
            to: parse_recipients(&row.get::<_, String>(5)?),
            outcome,
            reply: row.get::<_, Option<String>>(6)?.map(Into::into),
            messages: read_messages(file, session, number)?,
        }),
        None => None,
    };
    let lines = TranscriptLines::from_bytes(row.get(7)?);
    Ok(Chunk { session, number, at: timestamp(row.get(1)?), info: info.clone(), transaction, lines })
}

fn parse_recipients(text: &str) -> Vec<Recipient> {
    let mut lines = text.split_terminator('\n').map(str::to_owned);
    let next = || Some(Recipient { address: lines.next()?, parameters: lines.next()? });
    std::iter::from_fn(next).collect()
}

fn read_messages(
    file: &Connection,
    session: SessionId,
    number: u32,
) -> rusqlite::Result<Vec<(MailboxName, MessageId)>> {
    file.prepare_cached("SELECT mailbox, id FROM messages WHERE session = ?1 AND number = ?2 ORDER BY id")?
        .query_map(params![session.number(), number], |row| {
            Ok((row.get::<_, String>(0)?.into(), row.get::<_, u64>(1)?.into()))
        })?
        .collect()
}

/// Converts a stored time. If it is damaged, returns the Unix epoch.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

fn unavailable(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
